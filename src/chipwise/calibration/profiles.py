"""Stored and packaged profiles of devices, and what predictions make of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from chipwise.calibration.from_profile import ChipOffset, Shares, assumed, chip_offset, impossible, shares_of
from chipwise.errors import ChipwiseError, InvalidFile
from chipwise.perf.model import packaged as packaged_model
from chipwise.perf.part import Part, Parts
from chipwise.perf.profile import Profile, parse
from chipwise.perf.tables import DATA

PACKAGED = DATA.parent / "profiles"


_LARGEST = 130_000_000  # bytes; more than the longest text that `parse` takes


@dataclass(frozen=True, slots=True)
class Profiled:
    """A profile with the part it is of (None: not in the catalog) and what predictions make of it."""

    profile: Profile
    part: Part | None
    path: Path | None
    measured: Shares | None = None
    expected: Shares | None = None
    offset: ChipOffset | None = None


def offsets(folder: Path, parts: Parts, problems: list[str]) -> Mapping[str, ChipOffset]:
    """What stored profiles say of their chips; one that cannot be used is added to `problems`."""
    by_chip = {}
    for path in profile_paths(folder):
        try:
            offset = profiled(read_profile(path), path, parts).offset
        except (ChipwiseError, OSError) as error:
            problems.append(f"The profile {path} is skipped: {str(error).splitlines()[0][:200]} Measure again.")
            continue
        if offset is not None:
            by_chip[offset.chip] = offset
    return by_chip


def profiled(profile: Profile, path: Path, parts: Parts) -> Profiled:
    part = parts.find(profile.chip or "")
    problems = impossible(profile, part)
    if problems:
        raise InvalidFile(str(path), problems, remedy="Measure again with: chipwise profile")
    if part is None:
        return Profiled(profile, None, path)
    measured = shares_of(profile, part)
    expected = assumed(part, packaged_model().factors, _packaged_of(part, parts))
    return Profiled(
        profile=profile,
        part=part,
        path=path,
        measured=measured,
        expected=expected,
        offset=chip_offset(part.name, measured, expected),
    )


def _packaged_of(part: Part, parts: Parts) -> Profile | None:
    for path in profile_paths(PACKAGED):
        profile = read_profile(path)
        own = parts.find(profile.chip or "")
        if own is not None and own.name == part.name:
            return profile
    return None


def profile_paths(place: Path) -> list[Path]:
    try:
        return sorted(
            path for path in place.iterdir() if path.suffix == ".json" and not path.name.startswith(".") and path.is_file()
        )
    except (FileNotFoundError, NotADirectoryError):
        return []


def read_profile(path: Path) -> Profile:
    with path.open("rb") as file:
        return parse(file.read(_LARGEST).decode("utf-8", "replace"), str(path))
