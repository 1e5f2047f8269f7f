"""Says how far predictions are from sources that they have not seen, and fits the family of networks.

    python tools/source_out.py                  every family: median error, share inside the 80% interval, width, by domain
    python tools/source_out.py --only training  one family: training, inference or vision
    python tools/source_out.py --write          also writes factors and intervals of networks (vision, encoders, diffusion, ...)

A source is who measured (`calibration.sources`). Sources are dealt out over folds; every row is predicted by a fit
that has seen none of its source, and its interval comes from the residuals of the other folds. Rows that were measured for the
project are a source like others. Training and generation are fitted and written by `tools/fit.py`.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from chipwise.calibration.ceilings import best_shares
from chipwise.calibration.crossvalidate import NOISE, Sample, samples
from chipwise.calibration.families import VISION
from chipwise.calibration.measurements import DATA as MEASUREMENTS
from chipwise.calibration.measurements import packaged, read
from chipwise.calibration.random_effects import Rows, intervals
from chipwise.calibration.sources import source_of
from chipwise.calibration.without import Residuals, fold_of, inside, residuals
from chipwise.catalog.load import load
from chipwise.perf import bands, published_vision
from chipwise.perf.arrays import Array
from chipwise.perf.blocks import blocks, fitted
from chipwise.perf.fitting import fit
from chipwise.perf.part import Parts
from chipwise.perf.question import answer
from chipwise.perf.rows import Row
from chipwise.perf.seen import CLASSES
from chipwise.perf.tables import DATA
from chipwise.perf.tables import rows as table_rows

FOLDS, ROUNDS = 5, 5  # of networks
# Kinds of answers, and into how many bins by spread their rows are sorted. Three sources have none: their intervals come from
# how much sources differ (`random_effects`), for the rows of two tell little of the next.
KINDS = {"vision": 4, "encoder": 3, "vision training": 1, "diffusion": 1, "speech": 0}
_DOMAINS = {"bert": "encoder", "diffusion": "diffusion"}
HEADER = ("Domain", "rows", "sources", "median", "90th", "inside", "width")
# What the kinds of answers of generation are called where they are reported.
_GENERATION = {
    "prefill": "first token, unloaded",
    "first token unloaded": "first token, unloaded",
    "first token": "first token, loaded",
    "token": "time per token",
    "decode": "time per token",
    "throughput": "serving throughput",
    "at once": "all sent at once",
}


def reported(sample: Sample, at: int) -> str:
    """The domain that a row of training or generation counts for."""
    case, kind = sample.cases[at], sample.family.kind_of(sample.cases[at])
    if kind.endswith(" own"):
        return "our own H200"
    if sample.family.name == "training":
        return "training"
    special = {"neuron": "Neuron serving", "tpu": "TPU serving"}.get(case.part.kind)
    return special or _GENERATION[kind.removesuffix(" neuron")]


def language_tables(sample: Sample, found: Residuals) -> Iterator[list[str]]:
    """A line for each domain, then for each class of provenance in it."""
    low, high = inside(sample, found)
    power = np.broadcast_to(sample.question.power, found.residual.shape)
    error, held = np.abs(np.expm1(-found.residual * power)), (found.residual >= low) & (found.residual <= high)
    domains = np.array([reported(sample, at) for at in range(len(sample.rows))])
    sources = np.array([source_of(row) for row in sample.rows])
    used = (sample.weight > 0) & np.isfinite(found.residual)

    def line(name: str, rows: NDArray[np.bool_]) -> list[str]:
        wide = np.exp(high - low)[rows]
        shares = f"{np.median(error[rows]):.1%}", f"{np.quantile(error[rows], 0.9):.1%}", f"{np.mean(held[rows]):.0%}"
        return [name, f"{rows.sum():,}", str(len(set(sources[rows]))), *shares, f"{np.median(wide):.2f}"]

    for domain in sorted(set(domains[used])):
        yield line(str(domain), used & (domains == domain))
        for name in CLASSES:
            rows = used & (domains == domain) & (found.near == name)
            if rows.any():
                yield line(f"{domain}: {name}", rows)
    for name in CLASSES:
        rows = used & (found.near == name)
        if rows.any():
            yield line(f"{sample.family.name}, all: {name}", rows)


def domain_of(row: Row) -> str:
    if row.text("domain"):
        return row.text("domain")
    task = row.text("task")
    return _DOMAINS.get(task, "vision") if task in published_vision.TASKS else "vision-train"


def left_out(sample: Sample, fold: NDArray[np.intp]) -> tuple[Array, Array]:
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


def left_out_rows(sample: Sample, fold: NDArray[np.intp], residual: Array, spread: Array) -> Rows:
    kinds = np.array([VISION.kind_of(case) for case in sample.cases])
    sources = np.array([source_of(row) for row in sample.rows])
    return Rows(kinds, np.full(len(kinds), ""), sources, fold, residual, spread)


def tables(sample: Sample, errors: Rows) -> Iterator[list[str]]:
    fold, kinds, residual, spread = errors.fold, errors.kind, errors.residual, errors.spread
    domains, used = np.array([domain_of(row) for row in sample.rows]), sample.weight > 0
    low, high = np.full(len(fold), np.nan), np.full(len(fold), np.nan)
    for number in range(FOLDS):
        made = calibrated(errors, used & (fold != number))
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


def calibrated(errors: Rows, rows: NDArray[np.bool_]) -> dict[str, bands.Band]:
    by_source = intervals(errors, rows)

    def band(name: str) -> bands.Band:
        members = rows & (errors.kind == name)
        return bands.calibrate(errors.spread[members], errors.residual[members], KINDS[name])

    return {name: band(name) if KINDS[name] else by_source[name] for name in sorted(set(errors.kind.tolist()))}


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


def write_best_shares(sample: Sample) -> None:
    """Of one family; those of the others stay."""
    family, name = sample.family.name, "best_shares.csv"
    kept = [row for row in table_rows(name) if row["family"] != family]
    made = [{"family": family, "architecture": key, "share": f"{one:.3f}"} for key, one in best_shares(sample).items()]
    with (DATA / name).open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(made[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(sorted([*kept, *made], key=lambda row: (row["family"], row["architecture"])))


def sample_of(rows: Sequence[Row]) -> Sample:
    parts = Parts(load(prices=False).chips.values())
    networks = [row for row in rows if published_vision.handles(row)]
    return next(sample for sample in samples(networks, parts) if sample.family.name == "vision")


def show(lines: Iterator[list[str]]) -> None:
    print(f"| {' | '.join(HEADER)} |\n| --- |{' ---: |' * (len(HEADER) - 1)}")
    for line in lines:
        print(f"| {' | '.join(line)} |", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", choices=("training", "inference", "vision"))
    options.add_argument("--write", action="store_true", help="factors and intervals of networks")
    chosen = options.parse_args()
    if chosen.only != "vision":
        parts = Parts(load(prices=False).chips.values())
        for found in samples(packaged(), parts):
            name = found.family.name
            if name != "vision" and chosen.only in (None, name):
                show(language_tables(found, residuals(found, fitted(name), lambda text: print(text, flush=True))))
    if chosen.only in (None, "vision"):
        networks(chosen.write)


def networks(wanted: bool) -> None:
    sample = sample_of([*packaged(), *read(MEASUREMENTS / "networks.jsonl").rows])
    fold = fold_of(sample.rows, FOLDS)
    residual, spread = left_out(sample, fold)
    errors = left_out_rows(sample, fold, residual, spread)
    show(tables(sample, errors))
    if wanted:
        write_best_shares(sample)
        write(sample, calibrated(errors, sample.weight > 0))


if __name__ == "__main__":
    main()
