"""Measures the device at hand, keeps its profile in the data directory, and tells what predictions make of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from chipwise.api.session.profiles import PACKAGED, Profiled, profile_paths, profiled, read_profile
from chipwise.api.session.wiring import Session
from chipwise.calibration.from_profile import peak_of
from chipwise.catalog.feed import Report
from chipwise.errors import NoResult, UnknownName
from chipwise.perf.profile import KINDS, Sample
from chipwise.perf.profile import dump as dump
from chipwise.perf.roofline_picture import draw
from chipwise.spelling import fold, nearest
from chipwise.text import size as size_text

_ELEMENTWISE = ("add", "rms-norm", "swiglu", "softmax")


@dataclass(frozen=True, slots=True)
class Wish:
    """What to measure."""

    quick: bool = False
    device: str = "auto"
    chip: str | None = None
    seconds: float | None = None


def measure(session: Session, wish: Wish, report: Report) -> Profiled:
    """Measures and stores; the chip is the one that was named, else what the driver's name means in the catalog."""
    from chipwise.adapters.profiling.measure import ProfileSettings
    from chipwise.adapters.profiling.measure import measure as run
    from chipwise.adapters.stores import whole

    chip = session.names.one_chip(wish.chip).chip.name if wish.chip else None  # a bad name is told before minutes of work
    settings = ProfileSettings(
        date=session.today.isoformat(), chip=chip, device=wish.device, quick=wish.quick, seconds=wish.seconds
    )
    profile = run(settings, lambda done, total, what: report(done, total, _kind(what)))
    if profile.chip is None and session.names.chips_or_none(profile.device) is not None:
        profile = replace(profile, chip=session.names.one_chip(profile.device).chip.name)
    path = session.config.profiles / f"{_stem(profile.chip or profile.device)}.json"
    result = profiled(profile, path, session.parts)  # what cannot be is not stored
    path.parent.mkdir(parents=True, exist_ok=True)
    whole.write(path, dump(profile))
    return result


def _kind(case: str) -> str:
    """Of a case such as `gemm bf16 m 16 k 4096` its kind: a line of progress each, not a hundred."""
    first = case.split(" ", 1)[0]
    return first if first in KINDS else case


def check_out(path: Path, force: bool) -> None:
    """Whether `write` could write there, told before minutes of work."""
    from chipwise.adapters.stores import whole

    whole.check_named(path, force)


def write(path: Path, text: str, force: bool = False) -> None:
    from chipwise.adapters.stores import whole

    whole.write_named(path, text, force)


def picture(result: Profiled) -> str:
    """The roofline as SVG; the dashed line is the 16-bit peak of the data sheet."""
    part = result.part
    return draw(result.profile, peak_of(part, "bf16") if part else None, part.bandwidth if part else None)


def show(session: Session, name: str | None) -> Profiled:
    """A profile by its file, its chip or its device, stored before packaged; without a name the newest stored one."""
    paths = {path.stem: path for place in (PACKAGED, session.config.profiles) for path in profile_paths(place)}
    if name is None:
        own = profile_paths(session.config.profiles)
        path = max(own, key=lambda one: one.stat().st_mtime) if own else next(iter(profile_paths(PACKAGED)), None)
        if path is None:
            raise NoResult("No profile is stored.", remedy="chipwise profile measures one.")
        return profiled(read_profile(path), path, session.parts)
    if name.endswith(".json") and Path(name).is_file():
        return profiled(read_profile(Path(name)), Path(name), session.parts)
    by_stem = {fold(stem): path for stem, path in paths.items()}
    if fold(name) in by_stem:
        path = by_stem[fold(name)]
        return profiled(read_profile(path), path, session.parts)
    chips = session.names.chips_or_none(name)
    for path in reversed(list(paths.values())):
        profile = read_profile(path)
        part = session.parts.find(profile.chip or "")
        known = {fold(profile.device), fold(profile.chip or ""), fold(part.name if part else "")} - {""}
        if fold(name) in known or (chips and part and part.name in {chip.name for chip in chips}):
            return profiled(profile, path, session.parts)
    raise UnknownName("profile", name, nearest(name, paths), remedy=f"Stored or packaged: {', '.join(paths) or 'none'}.")


def forget(session: Session, name: str) -> Path:
    """Removes a stored profile."""
    from chipwise.adapters.stores import whole

    stems = {fold(path.stem): path for path in profile_paths(session.config.profiles)}
    path = stems.get(fold(name))
    if path is None or not whole.remove(path):
        known = [one.stem for one in stems.values()]
        raise UnknownName("stored profile", name, nearest(name, known), remedy=f"Stored: {', '.join(known) or 'none'}.")
    return path


def _stem(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")[:60] or "device"


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


def _best(label: str, samples: Sequence[Sample], unit: str, nominal: float | None) -> Line | None:
    def rate(sample: Sample) -> float:
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


def _size(sample: Sample) -> str:
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
