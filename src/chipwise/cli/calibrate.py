"""`chipwise calibrate`: factors from your own runs, for later predictions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from chipwise.api.measure.calibrate import Calibration, Stored
    from chipwise.views.calibrate import OwnFactors, Trial

_ROW_LIMIT = 12


@click.command()
@click.argument("path", metavar="[MEASURED.csv]", required=False)
@click.option("--from-runs", is_flag=True, help="Fit your finished runs; settings.yaml must allow it.")
@click.option("--dry-run", is_flag=True, help="Show the result; store nothing.")
@click.option("--force", is_flag=True, help="Store it even if held-out runs come out worse.")
@click.option("--forget", is_flag=True, help="Remove the stored calibration.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def calibrate(path: str | None, from_runs: bool, dry_run: bool, force: bool, forget: bool, as_json: bool) -> None:
    """Fit factors to your own runs (CSV or JSON lines, as for `score`) and use them in later predictions.

    Groups of runs are left out in turn to see whether the factors help; if not, nothing is stored. A new calibration
    replaces the old one. Without a file, shows what is stored. --from-runs takes the runs of your workload files from the
    database, if settings.yaml of the config directory says calibrate_from_runs: true.

    \b
    Examples:
      chipwise calibrate measured.csv
      chipwise calibrate measured.csv --dry-run --json
      chipwise calibrate --from-runs
      chipwise calibrate --forget
    """
    from chipwise.api.measure import calibrate as calibration
    from chipwise.api.measure.calibrate import stored
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.cli.score import standard_input
    from chipwise.errors import BadInput, NoResult
    from chipwise.views.calibrate import calibration_view, stored_view

    session = open_session()
    if forget:
        if path is not None or from_runs:
            raise BadInput("--forget takes no file.", remedy="Run --forget first, then calibrate again.")
        removed = calibration.forget(session)
        if as_json:
            text.show_json({"forgotten": str(removed)})
        else:
            text.show_lines(f"Forgotten: {removed}. Predictions are the packaged ones again.")
        return
    if from_runs and path is not None:
        raise BadInput("--from-runs takes no file.", remedy="Give a file or --from-runs.")
    if path is None and not from_runs:
        current = stored(session.config.calibration)
        if current is None:
            raise NoResult("No calibration is stored.", remedy="chipwise calibrate MEASURED.csv makes one.")
        if as_json:
            text.show_json(stored_view(current))
        else:
            _show_stored(current)
        return
    if path is None:
        result = calibration.calibrate_from_runs(session, dry_run=dry_run, force=force)
    else:
        typed = standard_input() if path == "-" else None
        result = calibration.calibrate(session, path, typed, dry_run=dry_run, force=force)
    if as_json:
        text.show_json(calibration_view(result))
    else:
        _show(result)
    text.say(*result.measured.notes)
    if result.path is None and not dry_run:
        raise click.exceptions.Exit(1)


def _error(log: float) -> str:
    return f"{100 * math.expm1(log):.1f}%"


def _trial_text(trial: Trial | None) -> str:
    if trial is None:
        return "There are too few runs to measure the held-out error: the factors stay close to 1."
    medians = f"held-out median error {_error(trial.median_before)} -> {_error(trial.median_after)}"
    return f"{medians}, mean {_error(trial.mean_before)} -> {_error(trial.mean_after)} ({trial.groups} groups)"


def _show(result: Calibration) -> None:
    from chipwise.cli import text

    text.show_title(f"{result.measured.name}: {text.plural(len(result.measured.rows), 'row')}, {result.used:,} used")
    left = [(f"{count:,} left out", reason) for reason, count in result.refused[:8]]
    blank = len(result.measured.rows) - result.used - sum(count for _, count in result.refused)
    if blank > 0:
        left.append((f"{blank:,} left out", "no metric_value"))
    if result.far:
        left.append((f"{result.far:,} far off", "more than three times the prediction or a third of it: check the units"))
    text.show_pairs(left)
    _table(result.factors)
    if result.path is not None:
        forced = " although held-out runs come out worse" if result.trial and result.trial.worse else ""
        text.show_lines(
            _sentence(_trial_text(result.trial)), f"Stored in {result.path}{forced}; predictions use it from now on."
        )
    elif result.trial is not None:
        text.show_lines(f"{_trial_text(result.trial)}: not stored")
    else:
        text.show_lines(_trial_text(result.trial), "Not stored.")
    if result.why_not and result.why_not != "a dry run":
        text.show_lines("The packaged factors do better on runs they have not seen; --force stores yours anyway.")


def _sentence(said: str) -> str:
    return said if said.endswith(".") else f"{said}."


def _show_stored(current: Stored) -> None:
    from chipwise.cli import text

    text.show_title(f"{text.plural(current.rows, 'run')} of {current.file}, {current.date}, chipwise {current.chipwise}")
    _table(current.factors)
    text.show_lines(_sentence(_trial_text(current.trial)))


def _table(factors: OwnFactors) -> None:
    """The strongest factors on the time: 1.20 is a fifth slower than predicted."""
    from chipwise.cli import text

    rows = sorted(factors.factors(), key=lambda one: (one[0] != "all", -abs(one[2])))
    columns = [
        text.Column("level"),
        text.Column("name", flexible=True),
        text.Column("time x", True),
        text.Column("within", True),
    ]
    text.show_table(
        columns,
        [
            [level, name or "all runs", f"{math.exp(log):.3f}", f"+-{100 * deviation:.0f}%"]
            for level, name, log, deviation in rows[:_ROW_LIMIT]
        ],
    )
    if len(rows) > _ROW_LIMIT:
        text.show_lines(f"and {len(rows) - _ROW_LIMIT} more; --json lists all")
