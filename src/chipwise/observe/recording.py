"""A recording as text: lines of JSON, the first of which is its header.

    {"chipwise_recording": 1, "started_at": "2026-11-18T08:00:00Z", "devices": [...], "labels": {...}, ...}
    {"t": 1.002, "s": "nvidia:0", "r": {"busy": 0.98, "power": 692.1, "memory_temperature": "the driver does not report it"}}
    {"t": 2.003, "s": "nvidia:0", "r": {"power": 690.4, "pcie_sent": null}}

A line holds what changed since the line of that source before it: a number, the reason for which there is none, or null where
the name is not read any more. So a line costs what happens, and not what could be read. A file that was cut off is read up to
the cut: whoever wrote it was killed. Anything else that cannot be is refused with its line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

from chipwise.errors import BadInput
from chipwise.files import handed
from chipwise.observe.metrics import MetricKind
from chipwise.observe.sample import NoReading, Reading, Recording, Sample, SampledDevice
from chipwise.observe.series import kind_of

VERSION = 1
MOST_BYTES = 512 << 20  # of a file
MOST_LINE = 1 << 20
MOST_SAMPLES = 2_000_000
MOST_NAMES = 1000  # that one source has
MOST_SOURCES = 4096
_LONGEST_NAME = 200
_LONGEST_REASON = 500
_LATEST_S = 1e10  # centuries
_LARGEST = 1e21  # that any sensor counts to, and of which a sum over all samples is still a number
_REMEDY = "Record it again: chipwise watch --record FILE."


# -- writing


def header_line(recording: Recording) -> str:
    """Of a recording whose samples follow."""
    fields = {
        "chipwise_recording": VERSION,
        "started_at": recording.started_at,
        "devices": [asdict(device) for device in recording.devices],
        "labels": dict(recording.labels),
        "predicted": {name: list(interval) for name, interval in recording.predicted.items()},
        "usd_per_hour": recording.usd_per_hour,
        "kg_per_kwh": recording.kg_per_kwh,
    }
    return json.dumps(fields, allow_nan=False, separators=(",", ":")) + "\n"


class Encoder:
    """Samples as lines, each with what changed since the one before it."""

    def __init__(self) -> None:
        self._before: dict[str, dict[str, Reading]] = {}

    def line(self, sample: Sample) -> str:
        before = self._before.get(sample.source, {})
        now = {name: _short(reading) for name, reading in sample.readings.items()}
        changed: dict[str, float | str | None] = {
            name: reading.reason if isinstance(reading, NoReading) else reading
            for name, reading in now.items()
            if before.get(name) != reading
        }
        changed |= {name: None for name in before if name not in now}
        self._before[sample.source] = now
        content = {"t": round(sample.at_s, 3), "s": sample.source, "r": changed}
        return json.dumps(content, allow_nan=False, separators=(",", ":"), ensure_ascii=False) + "\n"


def _short(reading: Reading) -> Reading:
    """Whole numbers as they are, others to six digits: no sensor knows more."""
    if isinstance(reading, NoReading):
        return NoReading(reading.reason[:_LONGEST_REASON])
    if not _is_number(reading):
        return NoReading("it is not a number that a sensor can have")
    if reading == (integer := int(reading)) and abs(integer) < 1 << 62:
        return integer
    return float(f"{reading:.6g}")


def written(recording: Recording) -> str:
    """The whole of it."""
    encoder = Encoder()
    return header_line(recording) + "".join(map(encoder.line, recording.samples))


# -- reading


@dataclass(slots=True)
class Decoder:
    """Lines back to samples. `name`: of the file, for messages."""

    name: str = "the recording"
    header: Recording | None = None
    _readings: dict[str, dict[str, Reading]] = field(default_factory=dict)
    _at_s: float = 0.0
    _line: int = 0

    def take(self, line: bytes) -> Sample | None:
        """None: the line was the header. Raises ValueError where the line is no JSON: it may be cut."""
        self._line += 1
        if len(line) > MOST_LINE:
            raise self._wrong(f"is longer than {MOST_LINE:,} bytes")
        content = json.loads(line.decode(), parse_constant=_no_number)
        if not isinstance(content, dict):
            raise self._wrong("is not an object")
        if self.header is None:
            self.header = self._read_header(content)
            return None
        return self._read_sample(content)

    def _read_sample(self, content: dict[str, Any]) -> Sample:
        at_s, source, changed = content.get("t"), content.get("s"), content.get("r")
        if not _is_number(at_s) or not 0.0 <= at_s <= _LATEST_S:
            raise self._wrong("has no time (t)")
        if at_s < self._at_s - 1e-3:
            raise self._wrong(f"goes back in time, from {self._at_s:g} s to {at_s:g} s")
        if not isinstance(source, str) or not 0 < len(source) <= _LONGEST_NAME or not source.isprintable():
            raise self._wrong("has no source (s)")
        if not isinstance(changed, dict):
            raise self._wrong("has no readings (r)")
        readings = dict(self._readings.get(source, {}))
        for name, value in changed.items():
            if not name.isidentifier() or len(name) > _LONGEST_NAME:
                raise self._wrong(f"has a reading with the name {name[:40]!r}")
            if value is None:
                readings.pop(name, None)
            elif isinstance(value, str):
                readings[name] = NoReading(value[:_LONGEST_REASON])
            elif _is_number(value):
                readings[name] = float(value)
            else:
                raise self._wrong(f"has {name} = {str(value)[:40]!r}, which is no number")
        if len(readings) > MOST_NAMES or (source not in self._readings and len(self._readings) >= MOST_SOURCES):
            raise self._wrong("has more sources or readings than any machine")
        self._readings[source] = readings
        self._at_s = float(at_s)
        return Sample(float(at_s), source, readings)

    def _read_header(self, content: dict[str, Any]) -> Recording:
        version = content.get("chipwise_recording")
        if not isinstance(version, int) or isinstance(version, bool):
            raise BadInput(f"{self.name} is not a recording of chipwise.", remedy=_REMEDY)
        if version > VERSION:
            raise BadInput(
                f"{self.name} was written by a newer chipwise (format {version}; this one reads {VERSION}).",
                remedy="Update chipwise: pip install --upgrade chipwise.",
            )
        predicted = content.get("predicted") or {}
        devices = content.get("devices") or []
        labels = content.get("labels") or {}
        if not isinstance(predicted, dict) or not isinstance(devices, list) or not isinstance(labels, dict):
            raise self._wrong("is not the header of a recording")
        if len(devices) > MOST_SOURCES or not all(map(_is_interval, predicted.values())):
            raise self._wrong("is not the header of a recording")
        return Recording(
            started_at=_text(content.get("started_at")),
            devices=tuple(self._read_device(device) for device in devices),
            labels={_text(name): _text(value) for name, value in labels.items()},
            predicted={_text(name): (float(low), float(value), float(high)) for name, (low, value, high) in predicted.items()},
            usd_per_hour=_amount(content.get("usd_per_hour")),
            kg_per_kwh=_amount(content.get("kg_per_kwh")),
        )

    def _read_device(self, fields: object) -> SampledDevice:
        if not isinstance(fields, dict):
            raise self._wrong("names a device that is not an object")
        node, chip = fields.get("numa_node"), fields.get("chip")
        return SampledDevice(
            source=_text(fields.get("source")),
            name=_text(fields.get("name")),
            chip=_text(chip) if chip is not None else None,
            identity=_text(fields.get("identity")),
            numa_node=node if isinstance(node, int) else None,
            driver=_text(fields.get("driver")),
        )

    def _wrong(self, trouble: str) -> BadInput:
        return BadInput(f"{self.name}: line {self._line} {trouble}.", remedy=_REMEDY)


@dataclass(frozen=True, slots=True)
class LoadedRecording:
    recording: Recording
    is_cut: bool  # its end is missing: whoever wrote it was killed, or the disk was full


def decoded(lines: Iterable[bytes], name: str = "the recording") -> LoadedRecording:
    """Of a file whose lines end with line feeds, the last one perhaps not."""
    decoder, samples, is_cut = Decoder(name), [], False
    for line in lines:
        if is_cut:
            raise BadInput(f"{name}: a line in the middle is not JSON.", remedy=_REMEDY)
        if line.strip(b"\0 \r\n") == b"":  # a file system that lost power leaves zeros
            is_cut = bool(line.strip())
            continue
        try:
            sample = decoder.take(line)
        except (ValueError, RecursionError) as error:
            if decoder.header is None:
                raise BadInput(f"{name} is not a recording of chipwise.", remedy=_REMEDY) from error
            is_cut = True
            continue
        if sample is not None:
            samples.append(sample)
            if len(samples) > MOST_SAMPLES:
                raise BadInput(f"{name} has more than {MOST_SAMPLES:,} samples.", remedy="Record with a longer --every.")
    if decoder.header is None:
        raise BadInput(f"{name} is empty.", remedy=_REMEDY)
    header = decoder.header
    recording = Recording(
        started_at=header.started_at,
        devices=header.devices,
        samples=tuple(samples),
        labels=header.labels,
        predicted=header.predicted,
        usd_per_hour=header.usd_per_hour,
        kg_per_kwh=header.kg_per_kwh,
    )
    return LoadedRecording(recording, is_cut)


def load(path: Path) -> LoadedRecording:
    """A file that a person named."""
    name = str(path)[:200]
    try:
        with handed.opened(path) as stream:
            return decoded(_lines(stream, name), name)
    except IsADirectoryError:
        raise BadInput(f"{name} is a folder, and not a recording.", remedy="Name a file in it.") from None
    except FileNotFoundError:
        raise BadInput(f"There is no file {name}.", remedy="chipwise watch --record FILE writes one.") from None
    except OSError as error:
        raise BadInput(f"{name} cannot be read: {error.strerror or error}.", remedy="Check its permissions.") from error


def _lines(stream: Any, name: str) -> Iterator[bytes]:
    size = 0
    while line := stream.readline(MOST_LINE + 2):
        size += len(line)
        if size > MOST_BYTES:
            raise BadInput(f"{name} is larger than {MOST_BYTES >> 20} MiB.", remedy="Record with a longer --every.")
        yield line


# -- coarser, so that a file stays small


def thinned(samples: Iterable[Sample], before_s: float, span_s: float) -> Iterator[Sample]:
    """Those before `before_s` joined to one of each source for each span: the mean of levels, the last of counters."""
    groups: dict[str, list[Sample]] = {}
    span: float | None = None
    for sample in samples:
        if sample.at_s >= before_s:
            yield from map(_joined, groups.values())
            groups = {}
            yield sample
            continue
        current = math.floor(sample.at_s / span_s)
        if span is not None and current != span:
            yield from map(_joined, groups.values())
            groups = {}
        span = current
        groups.setdefault(sample.source, []).append(sample)
    yield from map(_joined, groups.values())


def _joined(samples: Sequence[Sample]) -> Sample:
    """At the time of the first of a group, so that the order of time stays."""
    if len(samples) == 1:
        return samples[0]
    last = samples[-1]
    readings: dict[str, Reading] = {}
    for name, reading in last.readings.items():
        values = [value for sample in samples if (value := sample.value(name)) is not None]
        is_level = kind_of(last.source, name) is MetricKind.LEVEL
        readings[name] = sum(values) / len(values) if values and is_level else values[-1] if values else reading
    return Sample(samples[0].at_s, last.source, readings)


# -- what a field may hold


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and -_LARGEST <= value <= _LARGEST  # NaN is not


def _is_interval(value: object) -> bool:
    return isinstance(value, list) and len(value) == 3 and all(map(_is_number, value))


def _amount(value: object) -> float | None:
    return float(value) if _is_number(value) and value >= 0 else None


def _text(value: object) -> str:
    return "".join(letter for letter in value[:_LONGEST_REASON] if letter.isprintable()) if isinstance(value, str) else ""


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number")
