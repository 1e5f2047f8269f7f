"""How well one measured run carries over to another chip: `python tools/carry_over.py [--write]`.

Fits every family without one source after the other, and holds pairs of rows of one model on two chips against the ratio of
what is predicted for them. Prints the errors; --write puts the intervals into `data/perf/ratios.csv`. Takes minutes.
"""

from __future__ import annotations

import argparse
import csv
import time

from chipwise.calibration.crossvalidate import folds, left_out, samples
from chipwise.calibration.measurements import packaged
from chipwise.calibration.pairs import Pair, overall, pairs_of, sheet_pairs, source_of, widths_of
from chipwise.catalog.load import load
from chipwise.perf.part import Parts
from chipwise.perf.tables import DATA

FOLDS = 6
HEADER = ("family", "relation", "setting", "chips", "median_error", "four_in_five_below", "held", "pairs", "sources")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write data/perf/ratios.csv")
    options = parser.parse_args()
    parts = Parts(load().chips.values())
    pairs: list[Pair] = []
    for sample in samples(packaged(), parts):
        began = time.perf_counter()
        *_, (_, predicted) = left_out(sample, folds(sample.rows, source_of, FOLDS))
        pairs += [*pairs_of(sample, predicted.log_seconds, parts), *sheet_pairs(sample, parts)]
        sources = len({source_of(row) for row in sample.rows})
        seconds = time.perf_counter() - began
        print(f"{sample.family.name}: {len(sample.rows)} rows of {sources} sources, {seconds:.0f} s", flush=True)
    widths = widths_of(pairs)
    rows = [
        (
            width.family,
            width.relation,
            "same" if width.alike else "other",
            "measured" if width.seen else "new",
            f"{width.median_error:.3f}",
            f"{width.four_in_five_below:.3f}",
            f"{width.coverage:.2f}",
            width.pairs,
            width.sources,
        )
        for width in widths
    ]
    print(",".join(HEADER), *(",".join(map(str, row)) for row in rows), sep="\n")
    every = overall(pairs, any_setting=True)
    for family, error in overall(pairs).items():
        print(f"to another chip that others measured, in the same setting, {family}: median error {error:.1%}", end="; ")
        print(f"to any chip, in any setting: {every[family]:.1%}")
    if options.write:
        with (DATA / "ratios.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(HEADER)
            writer.writerows(rows)


if __name__ == "__main__":
    main()
