"""Fits factors to a user's own runs and keeps them in the data directory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise import __version__
from chipwise.calibration.measured import read
from chipwise.calibration.own_file import Calibration as Calibration
from chipwise.calibration.own_file import fit_file
from chipwise.calibration.stored import Stored as Stored
from chipwise.calibration.stored import packed
from chipwise.calibration.stored import stored as stored
from chipwise.errors import NoResult

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session


def calibrate(session: Session, path: str, typed: bytes | None, *, dry_run: bool = False, force: bool = False) -> Calibration:
    """Fits the runs of a file and stores the result in place of an earlier one, unless held-out runs come out worse."""
    calibration = fit_file(read(session.parts, session.names, path, typed), session.parts, dry_run=dry_run, force=force)
    if calibration.why_not:
        return calibration
    from chipwise.adapters.stores import whole

    place = session.config.calibration
    place.parent.mkdir(parents=True, exist_ok=True)
    name, rows = calibration.measured.name, calibration.used
    whole.write(place, packed(session.today, __version__, name, rows, calibration.factors, calibration.trial))
    return replace(calibration, path=place)


def forget(session: Session) -> Path:
    from chipwise.adapters.stores import whole

    path = session.config.calibration
    if not whole.remove(path):
        raise NoResult("There is no calibration to forget.", remedy="chipwise calibrate MEASURED.csv makes one.")
    return path
