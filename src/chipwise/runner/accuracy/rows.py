"""Finished runs as rows that `chipwise calibrate` reads, and why others are none.

What was run is what its workload file said when it was submitted, which the record keeps. The chips are those that the driver
named while the job was watched, and where nobody watched those that the prediction was made for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from chipwise.runner.accuracy.runs import AS_COMMAND, MeasuredRun
from chipwise.runner.bench.measuring import speed_of, why_unmeasured
from chipwise.runner.bench.rows import row, unfit, written
from chipwise.runner.comparing import number
from chipwise.runner.submission.described import Cells
from chipwise.runner.submission.predicted import Allocation, Unknown

ChipOf = Callable[[str], str | None]  # of the catalog, by what a driver calls it


def rows(runs: Sequence[MeasuredRun], chip_of: ChipOf) -> tuple[str, list[tuple[str, int]]]:
    """A CSV, which is empty where there is no row; and how many runs are left out for which reason."""
    records: list[Cells] = []
    reasons: Counter[str] = Counter()
    for run in runs:
        cells = run.measurement.predicted.get("row")
        allocation = _allocation(run, chip_of)
        speed = speed_of(run.measurement.measured, run.job.spec.work, None)
        if reason := _unfit(run, cells, speed, allocation):
            reasons[reason] += 1
            continue
        assert isinstance(cells, dict)
        assert isinstance(allocation, Allocation)
        assert speed is not None
        day = datetime.fromtimestamp(run.ended, UTC).date().isoformat()
        records.append(
            row(cells, run.measurement.predicted, allocation, speed) | {"notes": f"chipwise run {run.job.id}, {day}"}
        )
    return written(records), reasons.most_common()


def _unfit(run: MeasuredRun, cells: object, speed: float | None, allocation: Allocation | Unknown) -> str:
    if not run.job.spec.workload:
        return f"it was {AS_COMMAND}"
    if not isinstance(cells, dict) or "metric_name" not in cells:
        return str(run.measurement.predicted.get("why_not") or "calibrate has no model for this kind of work")
    if "least_share_of_workers" in run.measurement.measured:
        return "it ran on fewer devices than it asked for"
    if speed is None:
        return why_unmeasured(run.job, run.measurement.measured, run.job.spec.work, None, names_logs=False)
    return unfit(speed, allocation)


def _allocation(run: MeasuredRun, chip_of: ChipOf) -> Allocation | Unknown:
    predicted = run.measurement.predicted
    chips, share = number(predicted.get("chips")) or 1.0, number(predicted.get("share")) or 1.0
    chip = predicted.get("chip")
    names = sorted({str(device["name"]) for device in run.devices if device.get("name") and "missing" not in device})
    if run.job.spec.needs.gpus and names:
        watched = sorted({chip_of(name) or "" for name in names})
        if watched == [""] or len(watched) > 1:
            return Unknown(f"its devices ({', '.join(names)}) are not one chip of the catalog")
        chip = watched[0]
    if not isinstance(chip, str) or not chip:
        return Unknown("its chip is not known")
    return Allocation(chip, chips, share)
