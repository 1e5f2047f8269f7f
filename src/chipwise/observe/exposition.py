"""What was sampled last as Prometheus text (format 0.0.4), with the labels of the job.

Names say what is measured and in which unit, as Prometheus wants it: `chipwise_device_busy_ratio`,
`chipwise_host_disk_read_bytes_total`. A sensor that is missing is left out, and counted in `chipwise_missing`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from chipwise.observe.metrics import Metric, MetricKind
from chipwise.observe.sample import HOST, PROGRAM, SERVER, NoReading, Recording, Sample
from chipwise.observe.series import known_metrics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Unit of ours: what the name ends with, and by what the number is multiplied.
_UNITS = {
    "share": ("ratio", 1.0),
    "bytes": ("bytes", 1.0),
    "bytes/s": ("bytes_per_second", 1.0),
    "s": ("seconds", 1.0),
    "W": ("watts", 1.0),
    "J": ("joules", 1.0),
    "C": ("celsius", 1.0),
    "MHz": ("hertz", 1e6),
    "count": ("", 1.0),
}
_OF_NO_LABEL = re.compile(r"[^a-zA-Z0-9_]")


def exposed(samples: Iterable[Sample], header: Recording) -> str:
    """Each metric once, with a line for each source."""
    families: dict[str, tuple[Metric, str, list[str]]] = {}
    missing: list[str] = []
    names = {device.source: device for device in header.devices}
    for sample in samples:
        room, labels = _labels(sample.source, header)
        if (device := names.get(sample.source)) is not None:
            labels |= {"name": device.name, "uuid": device.identity}
        lost = 0
        for name, reading in sample.readings.items():
            if (metric := known_metrics(sample.source).get(name)) is None:
                continue
            if isinstance(reading, NoReading):
                lost += 1
                continue
            full, scale = _name(room, metric)
            family = families.setdefault(full, (metric, room, []))
            family[2].append(f"{full}{_text(labels)} {reading * scale!r}")
        missing.append(f"chipwise_missing{_text(labels | {'source': sample.source})} {lost}")
    lines: list[str] = []
    for full, (metric, room, rows) in families.items():
        kind = "counter" if metric.kind is MetricKind.COUNTER else "gauge"
        lines += [f"# HELP {full} {_help(room, metric)}", f"# TYPE {full} {kind}", *rows]
    if missing:
        lines += ["# HELP chipwise_missing sensors that could not be read", "# TYPE chipwise_missing gauge", *missing]
    return "".join(f"{line}\n" for line in lines)


def _labels(source: str, header: Recording) -> tuple[str, dict[str, str]]:
    labels = {_OF_NO_LABEL.sub("_", name): value for name, value in header.labels.items()}
    kind, _, rest = source.partition(":")
    if kind in (HOST, PROGRAM):
        return kind, labels
    return (SERVER, labels | {"server": rest}) if kind == SERVER else ("device", labels | {"device": source})


def _name(room: str, metric: Metric) -> tuple[str, float]:
    unit, scale = _UNITS[metric.unit]
    parts = ["chipwise", room, metric.name, *([unit] if unit and not metric.name.endswith(unit) else [])]
    return "_".join(parts) + ("_total" if metric.kind is MetricKind.COUNTER else ""), scale


def _help(room: str, metric: Metric) -> str:
    return f"{room}: {metric.meaning}".replace("\\", "\\\\").replace("\n", " ")


def _text(labels: Mapping[str, str]) -> str:
    pairs = (f'{name}="{_escaped(value)}"' for name, value in labels.items() if value)
    return f"{{{','.join(pairs)}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
