"""A profile: how fast one real device ran many small known pieces of work, and the JSON text it is kept in.

A sample is one piece of work at one size: the median time of one run, the arithmetic it does (FLOP, or OP for integers)
and the bytes it cannot avoid to move (inputs read once, outputs written once). So `flop / seconds` is the achieved rate
and `flop / bytes` the arithmetic intensity of a roofline. `adapters/profiling` measures; nothing here touches a device.

This file imports the standard library and `chipwise.errors` only, so that a profile can be made on a machine where
nothing but torch is installed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from chipwise.errors import InvalidFile, Problem

FORMAT = 1
DEVICE_KINDS = ("cuda", "rocm", "cpu")

# What a kind of sample is. A file may hold others, from a later version; they are kept.
KINDS = {
    "copy": "copy within device memory; bytes are read plus written",
    "copy-to-device": "copy from host memory; pinned 1 or 0",
    "copy-from-device": "copy to host memory; pinned 1 or 0",
    "gemm": "matrix product (m x k) by (k x n), weights not in cache",
    "attention-prefill": "causal attention of all tokens over all earlier ones",
    "attention-decode": "attention of one new token over a context",
    "add": "z = x + y",
    "rms-norm": "RMSNorm over rows",
    "swiglu": "silu(gate) * up",
    "softmax": "softmax over rows",
    "embedding": "random rows of a table",
    "launch": "one small kernel, launched by itself",
    "launch-graph": "one small kernel within a CUDA graph of many",
    "layer-forward": "a Llama-8B decoder layer",
    "layer-forward-backward": "a Llama-8B decoder layer with its gradients",
    "all-reduce": "sum over all devices; bytes are those of one device's tensor",
    "all-gather": "bytes are those of the gathered tensor",
    "reduce-scatter": "bytes are those of the tensor before it is scattered",
}

_LONGEST = 32 * 1024 * 1024  # characters; a full profile has some hundred kB
_MOST_SAMPLES = 100_000
_LARGEST_SIZE = 2**63 - 1
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,59}")
_REMEDY = "Measure again with: chipwise profile"


@dataclass(frozen=True, slots=True)
class ProfileSample:
    kind: str
    shape: tuple[tuple[str, int], ...]  # ("m", 16), ("compiled", 1): sizes and switches, in a fixed order per kind
    precision: str
    seconds: float  # the median of one run
    flop: float
    bytes: float
    spread: float  # (90th - 10th percentile) / median of the repeats

    def size(self, name: str) -> int | None:
        """One entry of the shape; None where this kind has none of that name."""
        return dict(self.shape).get(name)

    @property
    def flop_per_s(self) -> float:
        return self.flop / self.seconds

    @property
    def bytes_per_s(self) -> float:
        return self.bytes / self.seconds

    @property
    def intensity(self) -> float | None:
        """FLOP per byte; None where there is no arithmetic or no traffic to speak of."""
        return self.flop / self.bytes if self.flop > 0 and self.bytes > 0 else None


@dataclass(frozen=True, slots=True)
class Profile:
    device: str  # as the driver calls it
    device_kind: str  # one of DEVICE_KINDS
    chip: str | None  # the catalog's name; None where nobody said
    date: str  # ISO
    software: str
    samples: tuple[ProfileSample, ...]
    notes: tuple[str, ...] = ()  # what was not measured, and why


def dump(profile: Profile) -> str:
    """JSON, one sample a line, so that two profiles can be compared line by line."""
    head = {
        "format": FORMAT,
        "device": profile.device,
        "device_kind": profile.device_kind,
        "chip": profile.chip,
        "date": profile.date,
        "software": profile.software,
        "notes": list(profile.notes),
    }
    lines = ",\n".join(f"    {_text(_unshaped(sample))}" for sample in profile.samples)
    return _text(head)[:-1] + ', "samples": [\n' + lines + "\n]}\n"


def _unshaped(sample: ProfileSample) -> dict[str, object]:
    return {
        "kind": sample.kind,
        "shape": dict(sample.shape),
        "precision": sample.precision,
        "seconds": sample.seconds,
        "flop": sample.flop,
        "bytes": sample.bytes,
        "spread": sample.spread,
    }


def _text(value: object) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False)


def parse(text: str, source: str) -> Profile:
    """The profile in `text`, or InvalidFile with all that is wrong with it; `source` is what messages call the file."""
    loaded = _loaded(text, source)
    reader = _Reader()
    profile = reader.profile(loaded)
    if reader.problems or profile is None:
        raise InvalidFile(source, reader.problems, remedy=_REMEDY)
    return profile


def _loaded(text: str, source: str) -> Mapping[str, object]:
    def refuse(problem: str, line: int | None = None) -> InvalidFile:
        return InvalidFile(source, [Problem("", problem, line)], remedy=_REMEDY)

    if len(text) > _LONGEST:
        raise refuse(f"holds {len(text):,} characters; a profile holds at most {_LONGEST:,}")
    if not text.strip():
        raise refuse("is empty")
    try:
        loaded = json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        cut = error.pos >= len(text.rstrip())
        raise refuse(f"is not JSON: {'it ends too early' if cut else error.msg}", error.lineno) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits; brackets a thousand deep
        raise refuse("is not a profile: its numbers are too long or its brackets too deep") from error
    if not isinstance(loaded, dict):
        raise refuse(f"holds a JSON {_json_name(loaded)}, not an object")
    return loaded


class _Reader:
    """Reads fields and gathers every problem. A field that is wrong reads as a harmless value that is never returned."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def profile(self, data: Mapping[str, object]) -> Profile | None:
        keys = {"format", "device", "device_kind", "chip", "date", "software", "samples", "notes"}
        if not self._keys(data, "", keys, optional={"notes", "chip"}):
            return None
        if data["format"] != FORMAT or isinstance(data["format"], bool):
            self._wrong("format", f"is {_quoted(data['format'])}; this version of chipwise reads {FORMAT}")
        kind = self._string(data["device_kind"], "device_kind")
        if kind and kind not in DEVICE_KINDS:
            self._wrong("device_kind", f"is {_quoted(kind)}", allowed=", ".join(DEVICE_KINDS))
        day = self._string(data["date"], "date")
        try:
            date.fromisoformat(day)
        except ValueError:
            if day:
                self._wrong("date", f"is {_quoted(day)}, not a date like 2026-01-31")
        chip = data.get("chip")
        return Profile(
            device=self._string(data["device"], "device"),
            device_kind=kind,
            chip=None if chip is None else self._string(chip, "chip"),
            date=day,
            software=self._string(data["software"], "software"),
            samples=self._samples(data["samples"]),
            notes=tuple(self._string(note, f"notes[{i}]") for i, note in enumerate(self._list(data.get("notes", []), "notes"))),
        )

    def _samples(self, data: object) -> tuple[ProfileSample, ...]:
        entries = self._list(data, "samples")
        if len(entries) > _MOST_SAMPLES:
            self._wrong("samples", f"has {len(entries):,} entries; at most {_MOST_SAMPLES:,} are read")
            return ()
        samples = (self._sample(entry, f"samples[{i}]") for i, entry in enumerate(entries))
        return tuple(sample for sample in samples if sample is not None)

    def _sample(self, data: object, path: str) -> ProfileSample | None:
        if not isinstance(data, dict):
            self._wrong(path, f"is a JSON {_json_name(data)}, not an object")
            return None
        if not self._keys(data, path, {"kind", "shape", "precision", "seconds", "flop", "bytes", "spread"}):
            return None
        return ProfileSample(
            kind=self._name(data["kind"], f"{path}.kind"),
            shape=self._shape(data["shape"], f"{path}.shape"),
            precision=self._name(data["precision"], f"{path}.precision"),
            seconds=self._number(data["seconds"], f"{path}.seconds", above_zero=True),
            flop=self._number(data["flop"], f"{path}.flop"),
            bytes=self._number(data["bytes"], f"{path}.bytes"),
            spread=self._number(data["spread"], f"{path}.spread"),
        )

    def _shape(self, data: object, path: str) -> tuple[tuple[str, int], ...]:
        if not isinstance(data, dict):
            self._wrong(path, f"is a JSON {_json_name(data)}, not an object of sizes")
            return ()
        for name, size in data.items():
            self._name(name, path)
            if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= _LARGEST_SIZE:
                self._wrong(f"{path}.{name[:60]}", f"is {_quoted(size)}, not a whole number from 0 to 2^63 - 1")
        return tuple(data.items())

    def _keys(self, data: Mapping[str, object], path: str, keys: set[str], optional: set[str] | None = None) -> bool:
        dot = f"{path}." if path else ""
        missing = keys - data.keys() - (optional or set())
        for name in sorted(missing):
            self._wrong(f"{dot}{name}", "is missing")
        for name in sorted(data.keys() - keys)[:20]:
            self._wrong(f"{dot}{name[:60]}", "is not a field here", allowed=", ".join(sorted(keys)))
        return not missing

    def _string(self, data: object, path: str) -> str:
        if not isinstance(data, str):
            self._wrong(path, f"is a JSON {_json_name(data)}, not text")
            return ""
        if not data.strip() or len(data) > 1000 or not data.isprintable():
            self._wrong(path, f"is {_quoted(data)}, not a line of 1 to 1,000 characters")
        return data

    def _name(self, data: object, path: str) -> str:
        if not isinstance(data, str) or not _NAME.fullmatch(data):
            self._wrong(path, f"is {_quoted(data)}, not a name of lower-case letters, digits, '-', '_' and '.'")
            return ""
        return data

    def _number(self, data: object, path: str, above_zero: bool = False) -> float:
        value = math.nan
        if isinstance(data, int | float) and not isinstance(data, bool):
            try:
                value = float(data)
            except OverflowError:
                value = math.inf
        if not math.isfinite(value):
            self._wrong(path, f"is {_quoted(data)}, not a finite number")
        elif value < 0 or (above_zero and value == 0):
            self._wrong(path, f"is {_quoted(data)}; it must be {'above zero' if above_zero else 'zero or more'}")
        return value

    def _list(self, data: object, path: str) -> list[object]:
        if not isinstance(data, list):
            self._wrong(path, f"is a JSON {_json_name(data)}, not a list")
            return []
        return data

    def _wrong(self, at: str, message: str, allowed: str | None = None) -> None:
        self.problems.append(Problem(at, message, allowed=allowed))


def _json_name(value: object) -> str:
    names = {"dict": "object", "list": "list", "str": "text", "bool": "true/false", "NoneType": "null"}
    return names.get(type(value).__name__, "number")


def _quoted(value: object) -> str:
    """A wrong value as messages quote it: never a whole document."""
    try:
        text = json.dumps(value, ensure_ascii=True)
    except (ValueError, RecursionError):  # an integer of thousands of digits
        return f"a JSON {_json_name(value)}"
    return text if len(text) <= 60 else text[:57] + "..."
