"""A profile of a device: its best figures line by line, as plain data and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chipwise.calibration.from_profile import peak_of
from chipwise.calibration.profiles import Profiled as Profiled
from chipwise.perf.profile import ProfileSample
from chipwise.perf.roofline_picture import draw
from chipwise.text import size as size_text

_ELEMENTWISE = ("add", "rms-norm", "swiglu", "softmax")


def picture(result: Profiled) -> str:
    """The roofline as SVG; the dashed line is the 16-bit peak of the data sheet."""
    part = result.part
    return draw(result.profile, peak_of(part, "bf16") if part else None, part.bandwidth if part else None)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a profile's summary: the best that was seen, and its share of the data sheet where that says one."""

    title: str
    value: float
    unit: str  # B/s, FLOP/s or s
    share: float | None
    full_size: str  # the size, every number by its name
    size: str  # the same for a narrow column


def lines(result: Profiled) -> list[Line]:
    samples, part = result.profile.samples, result.part
    bandwidth, half = (part.bandwidth, peak_of(part, "bf16")) if part else (None, None)

    def best(what: str, kind: str, unit: str, nominal: float | None = None, **fixed: int) -> Line | None:
        kept = [s for s in samples if s.kind == kind and all(s.size(name) == size for name, size in fixed.items())]
        return _best(what, kept, unit, nominal)

    products = [
        _best(f"gemm {name}", [s for s in samples if (s.kind, s.precision) == ("gemm", name)], "FLOP/s", peak)
        for name in dict.fromkeys(s.precision for s in samples if s.kind == "gemm")
        for peak in (peak_of(part, name) if part else None,)
    ]
    candidates = [
        best("copy in memory", "copy", "B/s", bandwidth),
        best("host to device", "copy-to-device", "B/s", pinned=1),
        best("host to device, pageable", "copy-to-device", "B/s", pinned=0),
        best("device to host", "copy-from-device", "B/s", pinned=1),
        best("device to host, pageable", "copy-from-device", "B/s", pinned=0),
        *products,
        best("attention, prefill", "attention-prefill", "FLOP/s", half),
        best("attention, decode", "attention-decode", "B/s", bandwidth),
        _best("element-wise", [s for s in samples if s.kind in _ELEMENTWISE], "B/s", bandwidth),
        best("rows of a table", "embedding", "B/s", bandwidth),
        best("layer, forward", "layer-forward", "FLOP/s", half),
        best("layer, with gradients", "layer-forward-backward", "FLOP/s", half),
        best("launch", "launch", "s"),
        best("launch in a graph", "launch-graph", "s"),
        *(best(kind, kind, "B/s") for kind in ("all-reduce", "all-gather", "reduce-scatter")),
    ]
    return [line for line in candidates if line is not None]


def _best(label: str, samples: Sequence[ProfileSample], unit: str, nominal: float | None) -> Line | None:
    def rate(sample: ProfileSample) -> float:
        return {"B/s": sample.bytes_per_s, "FLOP/s": sample.flop_per_s, "s": -sample.seconds}[unit]

    if not samples:
        return None
    top = max(samples, key=rate)
    shape = " ".join(f"{name} {size:,}" for name, size in top.shape if name != "pinned")
    return Line(
        title=label,
        value=abs(rate(top)),
        unit=unit,
        share=rate(top) / nominal if nominal and unit != "s" else None,
        full_size=shape,
        size=_size(top),
    )


def _size(sample: ProfileSample) -> str:
    """Short enough to stand whole in a table of 80 columns; a profile of a later version may miss any of these sizes."""
    size = {name: f"{value:,}" for name, value in sample.shape}
    compiled = ", compiled" if sample.size("compiled") else ""
    if sample.kind.startswith("attention") and {"batch", "heads", "kv_heads", "head"} <= set(size):
        tokens = size.get("length") or size.get("context", "?")
        return f"{size['batch']} x {tokens}, heads {size['heads']}/{size['kv_heads']}x{size['head']}"
    if sample.kind.startswith("layer") and {"batch", "length", "hidden"} <= set(size):
        return f"{size['batch']} x {size['length']} x {size['hidden']}{compiled}"
    if sample.kind in _ELEMENTWISE and {"rows", "columns"} <= set(size):
        return f"{sample.kind} {size['rows']}x{size['columns']}{compiled}"
    if sample.kind == "embedding" and {"tokens", "columns"} <= set(size):
        return f"{size['tokens']} of {size['columns']} values"
    moved = sample.size("bytes")
    rest = " ".join(f"{name} {value}" for name, value in size.items() if name not in ("bytes", "pinned"))
    return f"{size_text(moved)} {rest}".strip() if moved else rest


def view(result: Profiled) -> dict[str, Any]:
    profile = result.profile
    return {
        "device": profile.device,
        "device_kind": profile.device_kind,
        "chip": result.part.name if result.part else profile.chip,
        "date": profile.date,
        "software": profile.software,
        "samples": len(profile.samples),
        "notes": list(profile.notes),
        "path": str(result.path) if result.path else None,
        "best": [
            {"what": line.title, "value": line.value, "unit": line.unit, "share_of_nominal": line.share, "at": line.full_size}
            for line in lines(result)
        ],
        "compute_share": dict(result.measured.compute) if result.measured else {},
        "memory_share": result.measured.memory if result.measured else None,
        "assumed_compute_share": result.expected.half if result.expected else None,
        "assumed_memory_share": result.expected.memory if result.expected else None,
        "log_offset": {"compute": result.offset.compute, "memory": result.offset.memory} if result.offset else None,
    }
