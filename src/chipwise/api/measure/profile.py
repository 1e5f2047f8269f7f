"""Measures the device at hand, keeps its profile in the data directory, and tells what predictions make of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.calibration.profiles import PACKAGED, Profiled, profile_paths, profiled, read_profile
from chipwise.catalog.feed import Report
from chipwise.errors import NoResult, UnknownName
from chipwise.perf.profile import KINDS
from chipwise.perf.profile import dump as dump
from chipwise.spelling import fold, nearest

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session


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
