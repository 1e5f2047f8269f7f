"""The user's own finished runs: as rows for `calibrate`, and held against what was predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.api.running import held
from chipwise.api.session import settings_file
from chipwise.api.session.settings_file import CALIBRATE_FROM_RUNS
from chipwise.runner.accuracy.report import Accuracy as Accuracy
from chipwise.runner.accuracy.report import accuracy as _accuracy
from chipwise.runner.accuracy.rows import rows
from chipwise.runner.accuracy.runs import MeasuredRun, measured_run
from chipwise.runner.job import Phase
from chipwise.runner.record import Wanted

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session

MOST_RUNS = 2000  # the newest ones
_OVER = frozenset(phase for phase in Phase if phase.over)


def own_runs(session: Session, name: str = "", since: float = 0.0) -> list[MeasuredRun]:
    """Those of the record that are over and were measured, the newest first. In a team's record: those of whoever asks."""
    with held.opened(session) as runtime:
        record = runtime.record
        jobs = record.jobs(Wanted(phases=_OVER, owner=record.login, name=name, newest=MOST_RUNS))
        runs = [measured_run(job, record.events(job.id)) for job in jobs if (job.ended or 0.0) >= since]
    return sorted((run for run in runs if run is not None), key=lambda run: -run.ended)


def own_rows(session: Session) -> tuple[str, list[tuple[str, int]]]:
    """A CSV of measurements, and how many runs are left out for which reason. Raises where the user did not consent."""
    settings_file.check(session.config.settings, CALIBRATE_FROM_RUNS, "calibrating from your runs")
    return rows(own_runs(session), session.names.chip_within)


def accuracy(session: Session, name: str = "", since: float = 0.0) -> Accuracy:
    return _accuracy(own_runs(session, name, since))
