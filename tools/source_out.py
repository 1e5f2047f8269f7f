"""Fits the family of networks (vision, encoders, diffusion, speech) and says how far it is from sources that it has not seen.

    python tools/source_out.py             source by source: median error, share inside the 80% interval, width, by domain
    python tools/source_out.py --write     then also writes factors_vision.csv and the intervals of these kinds

A source is a repository; the results of pytorch-image-models are one per file, those of MLPerf one per submitter. Sources are
dealt out over five folds; every row is predicted by a fit that has seen none of its source, and its interval comes from the
residuals of the other folds. Rows that were measured for the project (`networks.jsonl`) are a source like others.
"""

from __future__ import annotations

import argparse
import csv
import re
import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from chipwise.calibration.crossvalidate import NOISE, Sample, samples
from chipwise.calibration.families import VISION
from chipwise.calibration.measurements import DATA as MEASUREMENTS
from chipwise.calibration.measurements import packaged, read
from chipwise.catalog.load import load
from chipwise.perf import bands, published_vision
from chipwise.perf.arrays import Array, Coded
from chipwise.perf.blocks import blocks
from chipwise.perf.fitting import fit
from chipwise.perf.part import Parts
from chipwise.perf.question import answer
from chipwise.perf.rows import Row
from chipwise.perf.tables import DATA

FOLDS, ROUNDS = 5, 5
# Kinds of answers, and into how many bins by spread their rows are sorted: those of few sources are not.
KINDS = {"vision": 4, "encoder": 3, "vision training": 1, "diffusion": 1, "speech": 1}
_DOMAINS = {"bert": "encoder", "diffusion": "diffusion"}


def source_of(row: Row) -> str:
    repository = row.text("source_repo")
    if repository.startswith("mlcommons/"):
        submitter = re.search(r"submitter ([^;]+);", row.text("notes"))
        return f"MLPerf {submitter[1] if submitter else 'training'}"
    return f"{repository} {row.text('source_path')}" if repository.endswith("pytorch-image-models") else repository


def domain_of(row: Row) -> str:
    if row.text("domain"):
        return row.text("domain")
    task = row.text("task")
    return _DOMAINS.get(task, "vision") if task in published_vision.TASKS else "vision-train"


def fold_of(rows: Sequence[Row]) -> Array:
    """Large sources first, each to the fold that has the fewest rows."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[source_of(row)] = counts.get(source_of(row), 0) + 1
    filled, place = [0] * FOLDS, {}
    for source, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        place[source] = int(np.argmin(filled))
        filled[place[source]] += count
    return np.array([place[source_of(row)] for row in rows])


def left_out(sample: Sample, fold: Array) -> tuple[Array, Array]:
    """Residuals log(measured / predicted seconds) and spreads, each from a fit without the row's fold."""
    truth = np.log(sample.question.time_of(sample.measured))
    residual, spread = np.full(len(fold), np.nan), np.full(len(fold), np.nan)
    for number in range(FOLDS):
        began, out = time.perf_counter(), fold == number
        problem = sample.question.problem(sample.measured, np.where(out, 0.0, sample.weight))
        found = answer(sample.question, fit(problem, blocks("vision"), NOISE["vision"], ROUNDS))
        residual[out], spread[out] = (truth - np.log(found.seconds))[out], found.spread[out]
        error = np.median(np.abs(np.expm1(-residual[out & (sample.weight > 0)])))
        print(
            f"fold {number + 1} of {FOLDS}: {out.sum()} rows, median {error:.3f}, {time.perf_counter() - began:.0f} s",
            flush=True,
        )
    return residual, spread


def tables(sample: Sample, fold: Array, residual: Array, spread: Array) -> Iterator[list[str]]:
    kind = Coded.of([VISION.kind_of(case) for case in sample.cases])
    kinds, domains = np.array(kind.texts()), np.array([domain_of(row) for row in sample.rows])
    used = sample.weight > 0
    low, high = np.full(len(fold), np.nan), np.full(len(fold), np.nan)
    for number in range(FOLDS):
        made = calibrated(kinds, spread, residual, used & (fold != number))
        for name in set(kinds):
            rows = (fold == number) & (kinds == name)
            low[rows], high[rows] = made[name].limits(spread[rows])
    power = np.broadcast_to(sample.question.power, residual.shape)
    error = np.abs(np.expm1(-residual * power))
    inside = (residual >= low) & (residual <= high)
    for domain in sorted(set(domains)):
        rows = used & (domains == domain)
        yield [
            domain,
            str(rows.sum()),
            str(len({source_of(row) for row, one in zip(sample.rows, rows, strict=True) if one})),
            f"{np.median(error[rows]):.1%}",
            f"{np.quantile(error[rows], 0.9):.1%}",
            f"{np.mean(inside[rows]):.0%}",
            f"{np.median(np.exp(high - low)[rows]):.2f}",
        ]


def calibrated(kinds: NDArray[np.str_], spread: Array, residual: Array, rows: NDArray[np.bool_]) -> dict[str, bands.Band]:
    return {
        str(name): bands.calibrate(spread[rows & (kinds == name)], residual[rows & (kinds == name)], KINDS[str(name)])
        for name in sorted(set(kinds))
    }


def write(sample: Sample, made: Mapping[str, bands.Band]) -> None:
    factors = fit(sample.question.problem(sample.measured, sample.weight), blocks("vision"), NOISE["vision"], 8)
    with (DATA / "factors_vision.csv").open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(("block", "name", "value", "variance"))
        for key, found in factors.values.items():
            out.writerows((key, name, f"{value:.5g}", f"{variance:.3g}") for name, (value, variance) in found.items())
    with (DATA / "intervals.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] not in KINDS]
    rows = sorted([*rows, *bands.to_rows(made)], key=lambda row: row["kind"])
    with (DATA / "intervals.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def sample_of(rows: Sequence[Row]) -> Sample:
    parts = Parts(load(prices=False).chips.values())
    networks = [row for row in rows if published_vision.handles(row)]
    return next(sample for sample in samples(networks, parts) if sample.family.name == "vision")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--write", action="store_true")
    chosen = options.parse_args()
    sample = sample_of([*packaged(), *read(MEASUREMENTS / "networks.jsonl").rows])
    fold = fold_of(sample.rows)
    residual, spread = left_out(sample, fold)
    print("| Domain | rows | sources | median | 90th | inside | width |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for line in tables(sample, fold, residual, spread):
        print(f"| {' | '.join(line)} |")
    if chosen.write:
        kinds = np.array([VISION.kind_of(case) for case in sample.cases])
        write(sample, calibrated(kinds, spread, residual, sample.weight > 0))


if __name__ == "__main__":
    main()
