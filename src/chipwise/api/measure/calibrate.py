"""Fits factors to a user's own runs and keeps them in the data directory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise import __version__
from chipwise.api.measure.runs import own_rows
from chipwise.calibration.measured import MeasurementFile, read
from chipwise.calibration.own_file import Calibration as Calibration
from chipwise.calibration.own_file import fit_file
from chipwise.calibration.stored import Stored as Stored
from chipwise.calibration.stored import packed
from chipwise.calibration.stored import stored as stored
from chipwise.errors import NoResult
from chipwise.text import plural

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session

_REASONS = 4  # that are named
FROM_RUNS = "--from-runs"  # in place of a file's name, as it is typed


def calibrate(session: Session, path: str, typed: bytes | None, *, dry_run: bool = False, force: bool = False) -> Calibration:
    """Fits the runs of a file and stores the result in place of an earlier one, unless held-out runs come out worse."""
    return _stored(session, read(session.parts, session.names, path, typed), dry_run=dry_run, force=force)


def calibrate_from_runs(session: Session, *, dry_run: bool = False, force: bool = False) -> Calibration:
    """Fits the finished runs of the record, with the user's consent."""
    text, left_out = own_rows(session)
    if not text:
        reasons = "; ".join(f"{reason} ({plural(count, 'run')})" for reason, count in left_out[:_REASONS])
        raise NoResult(
            f"None of your finished runs can be compared{f': {reasons}' if reasons else ', since none was measured'}.",
            remedy="chipwise run WORKLOAD.yaml with a training or batch file, on whole chips, makes one.",
        )
    measured = replace(read(session.parts, session.names, FROM_RUNS, text.encode()), name=FROM_RUNS)
    calibration = _stored(session, measured, dry_run=dry_run, force=force)
    return replace(calibration, refused=(*calibration.refused, *left_out))


def _stored(session: Session, measured: MeasurementFile, *, dry_run: bool, force: bool) -> Calibration:
    calibration = fit_file(measured, session.parts, dry_run=dry_run, force=force)
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
