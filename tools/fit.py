"""Fits the packaged factors and intervals of training and generation: `python tools/fit.py [--learn ROUNDS] [--only FAMILY]`.

--learn ROUNDS first learns the blocks' standard deviations (data/perf/blocks.csv) from what is left out, whole sources
before all, of at most `MOST_ROWS` rows of a source and domain. Then each family
is fitted on all rows (factors_*.csv), what was measured at which settings is written (seen.csv), and source by source is left
out to set the intervals (intervals.csv). It prints what `tools/source_out.py` prints.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from chipwise.calibration import priors, without
from chipwise.calibration.crossvalidate import NOISE, Sample, configuration_key, folds, group_key, samples
from chipwise.calibration.measurements import packaged
from chipwise.calibration.own import columns_of
from chipwise.calibration.sources import source_of
from chipwise.catalog.load import load
from chipwise.perf import bands, seen
from chipwise.perf.blocks import blocks
from chipwise.perf.fitting import fit
from chipwise.perf.part import Parts
from chipwise.perf.pooling import PLAIN, FactorBlock, Factors
from chipwise.perf.tables import DATA, rows
from source_out import language_tables, reported, show, write_best_shares

LEFT_OUT_CHIPS = ("H100", "A100", "L40S", "Trainium1", "TPU-v5e", "MI300X")
# What the tables have few rows of counts for more when priors are learnt.
COUNTED = {"tpot_ms": 2.5}
COUNTED_CHIPS = {"Inferentia": 3.0, "Trainium": 3.0}
COUNTED_DOMAINS = {
    "time per token": 2.0,
    "first token, unloaded": 2.0,
    "all sent at once": 2.0,
    "TPU serving": 2.0,
    "Neuron serving": 1.5,
    "our own H200": 0.5,
}
MOST_ROWS = 30  # of a source in a domain
STEPS = 40
ROUNDS = 24  # after ten, factors of hosts still move
SMALLEST = 0.012  # blocks below differ by less than anything else says: they are dropped


def write(name: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with (DATA / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def ways_of(sample: Sample) -> list[priors.LeaveOut]:
    """What the priors are learnt for: a source that was left out, then a model on a chip, then configurations, then chips."""
    used = np.flatnonzero(sample.weight > 0)
    rows = [sample.rows[at] for at in used]
    names = columns_of(sample.question)[0].texts()
    chips = [chip_key(names[at]) for at in used]
    rare = [next((count for start, count in COUNTED_CHIPS.items() if chip.startswith(start)), 1.0) for chip in chips]
    counts = np.array([COUNTED.get(row.text("metric_name"), 1.0) for row in rows]) * np.array(rare)
    domains = np.array([COUNTED_DOMAINS.get(reported(sample, int(at)), 1.0) for at in used])
    return [
        priors.LeaveOut.of([source_of(row) for row in rows], domains, crowd=0.5, share=1.0),
        priors.LeaveOut.of([group_key(row) for row in rows], counts, crowd=0.3, share=0.4),
        priors.LeaveOut.of([configuration_key(row) for row in rows], counts, crowd=0.0, share=0.16),
        priors.LeaveOut.of(chips, np.ones(len(rows)), crowd=0.5, share=0.12),
    ]


def thinned(sample: Sample) -> Sample:
    """With at most `MOST_ROWS` rows of each source in each domain: priors are about sources, and steps cost rows cubed."""
    taken: dict[tuple[str, str], int] = {}
    weight = np.zeros(len(sample.rows))
    for at in np.random.default_rng(0).permutation(np.flatnonzero(sample.weight > 0)):
        key = source_of(sample.rows[at]), reported(sample, int(at))
        taken[key] = taken.get(key, 0) + 1
        weight[at] = sample.weight[at] if taken[key] <= MOST_ROWS else 0.0
    return replace(sample, weight=weight)


def chip_key(name: str) -> str:
    """All forms of a chip that is left out as a whole go together."""
    return next((chip for chip in LEFT_OUT_CHIPS if name == chip or name.startswith(f"{chip}-")), name)


def learn(all_samples: list[Sample], rounds: int, steps: int) -> None:
    found: dict[str, list[FactorBlock]] = {name: list(blocks(name)) for name in NOISE}
    for sample in map(thinned, all_samples):
        name = sample.family.name
        problem = sample.question.problem(sample.measured, sample.weight)
        began = time.perf_counter()
        before = found[name]
        for turn, learnt, noise in priors.learn(problem, before, NOISE[name], ways_of(sample), rounds, steps):
            found[name] = [block for block in learnt if block.sd >= SMALLEST]
            if turn.number % 10 == 0 or turn.number == 1:
                said = " ".join(f"{one:.4f}" for one in turn.losses)
                print(f"{name} step {turn.number}: {said}, noise {noise:.3f}, {time.perf_counter() - began:.0f} s", flush=True)
        print(f"{name}: {len(found[name])} of {len(before)} blocks kept; NOISE in crossvalidate.py: {noise:.3f}", flush=True)
        rows = ((family, b.level, b.base, b.feature, f"{b.sd:.3g}") for family, kept in found.items() for b in kept)
        write("blocks.csv", ("family", "level", "base", "feature", "sd"), rows)
    blocks.cache_clear()


def nested(all_samples: list[Sample]) -> None:
    """Whether learning helps where it did not look: learnt from half of the sources, judged by the other half, twice.

    It starts from deviations that nobody learnt (0.15 for factors, 0.03 for slopes). The second half's way of leaving out has
    no share in the descent; its loss is only read.
    """
    for sample in map(thinned, all_samples):
        name = sample.family.name
        rows = [row for row, weight in zip(sample.rows, sample.weight, strict=True) if weight > 0]
        half = folds(rows, source_of, 2)
        problem = sample.question.problem(sample.measured, sample.weight)
        neutral = [replace(block, sd=0.15 if block.feature == PLAIN else 0.03) for block in blocks(name)]
        for number in (0, 1):
            ways = [
                priors.LeaveOut.of(
                    [source_of(row) for row in rows], (half == side).astype(float), crowd=0.5, share=float(side == number)
                )
                for side in (0, 1)
            ]
            turns = [turn for turn, *_ in priors.learn(problem, neutral, NOISE[name], ways, 1, STEPS)]
            before, after = turns[0].losses, turns[-1].losses
            print(
                f"{name}, half {number}: learnt {before[number]:.4f} to {after[number]:.4f}, "
                f"other half {before[1 - number]:.4f} to {after[1 - number]:.4f}",
                flush=True,
            )


def fit_all(sample: Sample) -> Factors:
    began, family = time.perf_counter(), sample.family.name
    factors = fit(sample.question.problem(sample.measured, sample.weight), blocks(family), NOISE[family], ROUNDS)
    rows = [
        (key, name, f"{value:.5g}", f"{variance:.3g}")
        for key, found in factors.values.items()
        for name, (value, variance) in found.items()
    ]
    write(f"factors_{family}.csv", ("block", "name", "value", "variance"), rows)
    print(f"{family}: {len(sample.rows)} rows, {len(rows)} coefficients, {time.perf_counter() - began:.0f} s", flush=True)
    return factors


def calibrate(sample: Sample, start: Factors) -> None:
    """Intervals and measured settings of one family; those of the others stay."""
    family, used = sample.family.name, sample.weight > 0
    found = without.residuals(sample, start, lambda text: print(text, flush=True))
    show(language_tables(sample, found))
    made = bands.to_rows(without.calibrated(sample, found, used))
    kinds = {row["kind"].split("|")[0] for row in made}
    kept = [row for row in rows("intervals.csv") if row["kind"].split("|")[0] not in kinds]
    header = ("kind", "spread_up_to", "low", "high", "rows")
    table = sorted([*made, *kept], key=lambda row: row["kind"])
    write("intervals.csv", header, ([row[name] for name in header] for row in table))
    place = seen.to_rows(family, seen.Seen.of(family, sample.question, used))
    columns = tuple(place[0])
    settings = sorted([*place, *(row for row in rows("seen.csv") if row["family"] != family)], key=lambda row: row["family"])
    write("seen.csv", columns, ([row[name] for name in columns] for row in settings))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--learn", type=int, default=0, metavar="ROUNDS")
    options.add_argument("--only", default="")
    options.add_argument("--stop", action="store_true", help="after learning")
    options.add_argument("--nested", action="store_true", help="only say whether learning helps sources it did not see")
    chosen = options.parse_args()
    parts = Parts(load().chips.values())
    found = [sample for sample in samples(packaged(), parts) if chosen.only in ("", sample.family.name)]
    found = [sample for sample in found if sample.family.name != "vision"]  # tools/source_out.py fits these
    if chosen.nested:
        nested(found)
        return
    if chosen.learn:
        learn(found, chosen.learn, STEPS)
        if chosen.stop:
            return
    for sample in found:
        calibrate(sample, fit_all(sample))
        if sample.family.name == "training":  # products are not what most of generation waits for
            write_best_shares(sample)


if __name__ == "__main__":
    main()
