"""Fits the packaged factors and intervals from the packaged measurements: `python tools/fit.py [--learn]`.

--learn first estimates the blocks' standard deviations (data/perf/blocks.csv). Then each family is fitted on all rows
(factors_*.csv), and cross-validated to set the intervals (intervals.csv).
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterable, Sequence

import numpy as np

from chipwise.calibrate.crossvalidate import NOISE, Sample, folds, key_of, left_out, samples
from chipwise.calibrate.measurements import packaged
from chipwise.catalog.load import load
from chipwise.perf import bands
from chipwise.perf.blocks import blocks
from chipwise.perf.fitting import fit, learn_spreads
from chipwise.perf.part import Parts
from chipwise.perf.pooling import Block
from chipwise.perf.tables import DATA

SCHEMES = (("group", 6), ("configuration", 5), ("chip", 8))
# How often a scheme's residuals count for the intervals: training is asked of models and chips that were not measured
# together, serving mostly of other loads of what was. Whole chips left out are printed only.
COUNTS = {"training": {"group": 2, "configuration": 1}, "inference": {"group": 1, "configuration": 2}}


def write(name: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with (DATA / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def learn(all_samples: list[Sample], turns: int) -> None:
    found: list[tuple[str, Block]] = []
    for sample in all_samples:
        problem = sample.question.problem(sample.measured, sample.weight)
        learned = learn_spreads(problem, blocks(sample.family.name), NOISE[sample.family.name], turns)
        found += [(sample.family.name, block) for block in learned]
        print(f"learned {len(learned)} spreads of {sample.family.name}", flush=True)
    write(
        "blocks.csv",
        ("family", "level", "base", "feature", "sd"),
        ((f, b.level, b.base, b.feature, f"{b.sd:.3g}") for f, b in found),
    )
    blocks.cache_clear()


def fit_all(all_samples: list[Sample]) -> None:
    for sample in all_samples:
        began = time.perf_counter()
        factors = fit(
            sample.question.problem(sample.measured, sample.weight), blocks(sample.family.name), NOISE[sample.family.name], 10
        )
        rows = [
            (key, name, f"{value:.5g}", f"{variance:.3g}")
            for key, found in factors.values.items()
            for name, (value, variance) in found.items()
        ]
        write(f"factors_{sample.family.name}.csv", ("block", "name", "value", "variance"), rows)
        print(
            f"{sample.family.name}: {len(sample.rows)} rows, {len(rows)} coefficients, {time.perf_counter() - began:.0f} s",
            flush=True,
        )


def calibrate(all_samples: list[Sample]) -> None:
    found: dict[str, tuple[list[float], list[float]]] = {}
    for sample in all_samples:
        kinds = [sample.family.kind_of(case) for case in sample.cases]
        truth = np.log(sample.question.time_of(sample.measured))
        for scheme, count in SCHEMES:
            *_, (_, predicted) = left_out(sample, folds(sample.rows, key_of(scheme), count))
            error = np.abs(np.exp(predicted.log_seconds - truth) ** sample.question.power - 1)
            used = sample.weight > 0
            print(
                f"{sample.family.name} {scheme}: median {np.median(error[used]):.3f} p90 {np.quantile(error[used], 0.9):.3f}",
                flush=True,
            )
            times = COUNTS.get(sample.family.name, {"group": 1, "configuration": 1}).get(scheme, 0)
            for at in np.flatnonzero(used):
                spread, residual = found.setdefault(kinds[at], ([], []))
                spread += [float(predicted.spread[at])] * times
                residual += [float(truth[at] - predicted.log_seconds[at])] * times
    made = {kind: bands.calibrate(np.array(spread), np.array(residual)) for kind, (spread, residual) in found.items()}
    header = ("kind", "spread_up_to", "low", "high", "rows")
    write("intervals.csv", header, ([row[name] for name in header] for row in bands.to_rows(made)))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--learn", type=int, default=0, metavar="TURNS")
    options.add_argument("--only", default="")
    chosen = options.parse_args()
    parts = Parts(load().chips.values())
    found = [sample for sample in samples(packaged(), parts) if chosen.only in ("", sample.family.name)]
    if chosen.learn:
        learn(found, chosen.learn)
    fit_all(found)
    calibrate(found)


if __name__ == "__main__":
    main()
