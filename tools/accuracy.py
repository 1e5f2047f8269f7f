"""Writes docs/accuracy.md and docs/accuracy.svg: how far predictions are from measurements they have not seen.

`python tools/accuracy.py` takes some minutes: every family is fitted once per fold and once per chip that is left out.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import source_out
from accuracy_picture import draw
from chipwise.calibration.crossvalidate import Sample, configuration_key, folds, group_key, left_out, samples
from chipwise.calibration.fingerprint import fingerprint
from chipwise.calibration.measurements import DATA as MEASUREMENTS
from chipwise.calibration.measurements import packaged, read
from chipwise.calibration.own import columns_of
from chipwise.calibration.score import Figures, Scored, figures, order_kept
from chipwise.calibration.score import predict as predict_packaged
from chipwise.calibration.without import fold_of, residuals
from chipwise.catalog.load import load
from chipwise.perf import bands
from chipwise.perf.arrays import Array, Coded
from chipwise.perf.blocks import fitted
from chipwise.perf.model import packaged as packaged_model
from chipwise.perf.model import widened
from chipwise.perf.part import Parts
from chipwise.perf.rows import Row
from fit import LEFT_OUT_CHIPS

NETWORKS = "vision"  # of which tools/source_out.py reads more rows, and has folds of its own
DOCS = Path(__file__).resolve().parent.parent / "docs"
SCHEMES = {"group": (group_key, 6), "configuration": (configuration_key, 5)}
WORST = 30
_THROUGHPUT = ("output_tokens_per_s", "total_tokens_per_s", "requests_per_s", "samples_per_s")
Mask = NDArray[np.bool_]
_VISION = ("image-classification", "bert", "diffusion", "other")


@dataclass(frozen=True, slots=True)
class Held:
    """One row with what a fit said that had not seen it."""

    row: Row
    family: str
    chip: str
    software: str
    answer: Scored
    measured_s: float
    predicted_s: float

    @property
    def ratio(self) -> float:
        """How far off, the same for twice and for half."""
        return abs(float(np.log(self.predicted_s / self.measured_s)))

    @property
    def error(self) -> float:
        assert self.answer.predicted is not None
        return abs(self.answer.predicted / self.row.number("metric_value", np.nan) - 1.0)


@dataclass(frozen=True, slots=True)
class Fold:
    """Residuals log(measured / predicted seconds) of a sample's rows, each from a fit without the row's fold."""

    sample: Sample
    number: Array
    value: Array
    log_seconds: Array
    spread: Array
    residual: Array


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def run(sample: Sample, number: Array, fits: int, what: str) -> Fold:
    steps = left_out(sample, number.astype(np.intp))
    for done in range(fits):
        _, found = next(steps)
        say(f"{what}: {sample.family.name}, fit {done + 1} of {fits}")
    truth = np.log(sample.question.time_of(sample.measured))
    return Fold(sample, number, found.value, found.log_seconds, found.spread, truth - found.log_seconds)


def held_out(all_samples: Sequence[Sample]) -> dict[str, list[Held]]:
    """Every row by scheme, with the packaged intervals: those are for sources that nobody saw, and hold more often here."""
    by_scheme: dict[str, list[Held]] = {scheme: [] for scheme in SCHEMES}
    for sample in all_samples:
        made = {
            scheme: run(sample, folds(sample.rows, key, count).astype(float), count, f"by {scheme}")
            for scheme, (key, count) in SCHEMES.items()
        }
        for scheme, fold in made.items():
            for number in np.unique(fold.number):
                out = fold.number == number
                by_scheme[scheme] += answers(fold, out)
    return by_scheme


def without_chips(all_samples: Sequence[Sample]) -> dict[str, list[Held]]:
    found: dict[str, list[Held]] = {}
    for chip in LEFT_OUT_CHIPS:
        for sample in all_samples:
            out = np.array([is_of(name, chip) for name in columns_of(sample.question)[0].texts()])
            if out.any():
                fold = run(sample, np.where(out, 0.0, 1.0), 1, f"without {chip}")
                found.setdefault(chip, []).extend(answers(fold, out))
    return found


def is_of(name: str, chip: str) -> bool:
    return name == chip or name.startswith(f"{chip}-")


def answers(fold: Fold, out: Mask) -> Iterator[Held]:
    """The rows of a fold that count: doubtful ones (trust C of inference, quality D) were never fitted and are not scored."""
    sample, model = fold.sample, packaged_model()
    at = np.flatnonzero(out & (sample.weight > 0))
    question, family = sample.question, sample.family.name
    near, beyond = model.near(family, question)
    kind = Coded.of([sample.family.kind_of(case) for case in sample.cases])
    kind = kind.cross(near) if family in model.nearness else kind
    spread = np.broadcast_to(widened(fold.spread, beyond), fold.spread.shape)
    low, high = bands.limits(model.bands, Coded(kind.names, kind.index[at]), spread[at])
    chips, software, _ = (column.texts() for column in columns_of(question))
    for place, one in enumerate(at):
        scale, power = float(question.scale[one]), float(question.power[one])
        seconds = float(np.exp(fold.log_seconds[one]))
        ends = sorted(scale * (seconds * side) ** power for side in (low[place], high[place]))
        answer = Scored(float(fold.value[one]), ends[0], ends[1])
        measured_s = float(np.exp(fold.log_seconds[one] + fold.residual[one]))
        yield Held(sample.rows[one], sample.family.name, chips[one], software[one], answer, measured_s, seconds)


def without_sources(all_samples: Sequence[Sample]) -> list[list[str]]:
    """A line for each domain and class of provenance, from fits without the row's source."""
    lines: list[list[str]] = []
    for sample in all_samples:
        name = sample.family.name
        if name == NETWORKS:
            networks = source_out.sample_of([*packaged(), *read(MEASUREMENTS / "networks.jsonl").rows])
            fold = fold_of(networks.rows, source_out.FOLDS)
            lines += source_out.tables(networks, source_out.left_out_rows(networks, fold, *source_out.left_out(networks, fold)))
        else:
            lines += source_out.language_tables(sample, residuals(sample, fitted(name), say))
    return lines


# -- which rows a line of a table is about


def _is_llama(held: Held) -> bool:
    return "llama" in held.row.text("model").lower() and (is_of(held.chip, "H100") or is_of(held.chip, "H200"))


def _metric(held: Held) -> str:
    return held.row.text("metric_name")


def _task(held: Held) -> str:
    return held.row.text("task")


def _ours(held: Held) -> bool:
    return held.row.text("source_repo") == "chipwise"


def _vtrain(held: Held) -> bool:
    return held.row.text("source_repo") == "VIA-Research/vTrain"


def _offline(held: Held) -> bool:
    return _task(held) == "llm-offline" and _metric(held) in _THROUGHPUT


LINES: dict[str, Callable[[Held], bool]] = {
    "Training, quality A to C, without vTrain": lambda h: bool(h.row.text("quality")) and not _vtrain(h),
    "Training, vTrain's own cluster": _vtrain,
    "Training, MPT (MosaicML)": lambda h: h.row.text("source_repo").startswith("mosaicml/"),
    "Time per token, Llama on H100 and H200": lambda h: _metric(h) == "tpot_ms" and not _ours(h) and _is_llama(h),
    "Time per token, all models and chips": lambda h: _metric(h) == "tpot_ms" and not _ours(h),
    "Time to first token, Llama on H100 and H200": lambda h: _metric(h) == "ttft_ms" and not _ours(h) and _is_llama(h),
    "Time to first token, all models and chips": lambda h: _metric(h) == "ttft_ms" and not _ours(h),
    "Offline LLM throughput, trust A and B": _offline,
    "Offline LLM throughput, trust A": lambda h: _offline(h) and h.row.text("trust") == "A",
    "Vision, BERT, diffusion: samples/s": lambda h: _task(h) in _VISION and _metric(h) == "samples_per_s",
    "Vision, BERT, diffusion: latency": lambda h: _task(h) in _VISION and _metric(h) == "latency_ms",
    "Inferentia and Trainium": lambda h: h.chip.startswith(("Inferentia", "Trainium")),
    "Our H200, prefill": lambda h: _ours(h) and _task(h) == "llm-prefill",
    "Our H200, decode": lambda h: _ours(h) and _task(h) == "llm-decode",
    "Our H200, training": lambda h: _ours(h) and _task(h) == "pretrain",
    "All rows": lambda h: True,
}


# -- the page


def percent(value: float) -> str:
    return f"{100 * value:.1f}%" if value >= 0.001 else f"{100 * value:.2g}%"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], names: int = 1) -> str:
    """The first `names` columns are words, the others numbers."""
    rule = ["---" if at < names else "---:" for at in range(len(header))]
    return "\n".join("| " + " | ".join(line) + " |" for line in (header, rule, *rows)) + "\n"


def of(held: Sequence[Held]) -> Figures | None:
    return figures([one.row for one in held], [one.answer for one in held])


def groups_of(held: Iterable[Held]) -> dict[str, list[Held]]:
    found: dict[str, list[Held]] = {}
    for one in held:
        found.setdefault(f"{one.family}|{group_key(one.row)}|{_metric(one)}", []).append(one)
    return found


def accuracy_rows(by_scheme: dict[str, list[Held]]) -> Iterator[list[str]]:
    for name, wanted in LINES.items():
        cells = [name]
        by_group = [one for one in by_scheme["group"] if wanted(one)]
        for scheme in SCHEMES:
            found = of([one for one in by_scheme[scheme] if wanted(one)])
            if found is None:
                cells += ["-"] * (4 if scheme == "group" else 3)
                continue
            cells += [f"{found.rows:,}"] if scheme == "group" else []
            cells += [percent(found.median_ape), percent(found.p90_ape), percent(found.within_25pct)]
        medians = [float(np.median([one.error for one in those])) for those in groups_of(by_group).values()]
        cells += (
            [f"{len(medians):,}", percent(float(np.median(medians))), percent(float(np.quantile(medians, 0.9)))]
            if medians
            else ["-"] * 3
        )
        yield cells


def interval_rows(by_scheme: dict[str, list[Held]]) -> Iterator[list[str]]:
    for name, wanted in LINES.items():
        found = of([one for one in by_scheme["group"] if wanted(one)])
        narrow = of([one for one in by_scheme["configuration"] if wanted(one)])
        if found is not None and narrow is not None:
            shown = (found.interval_coverage, found.interval_width, narrow.interval_coverage, narrow.interval_width)
            yield [name, *map(percent, shown)]


def chip_rows(without: dict[str, list[Held]]) -> Iterator[list[str]]:
    for chip, held in without.items():
        for family in ("", *dict.fromkeys(one.family for one in held)):
            found = of([one for one in held if family in ("", one.family)])
            if found is not None:
                shown = (found.median_ape, found.p90_ape, found.within_25pct, found.interval_coverage, found.interval_width)
                yield [f"{chip}, {family}" if family else f"{chip}, all rows", f"{found.rows:,}", *map(percent, shown)]


def pair_rows(held: Sequence[Held]) -> Iterator[list[str]]:
    for family in (*dict.fromkeys(one.family for one in held), ""):
        kept = [one for one in held if family in ("", one.family)]
        right, pairs = order_kept([one.row for one in kept], [one.answer for one in kept], group_key)
        yield [family or "all", f"{right:,}", f"{pairs:,}", percent(right / max(pairs, 1))]


def miss_rows(held: Sequence[Held]) -> Iterator[list[str]]:
    """The worst groups, each by its median row."""
    scored = [(float(np.median([one.ratio for one in those])), those) for those in groups_of(held).values()]
    for _, those in sorted(scored, key=lambda pair: -pair[0])[:WORST]:
        typical = sorted(those, key=lambda one: one.ratio)[len(those) // 2]
        measured, predicted = typical.row.number("metric_value", np.nan), typical.answer.predicted
        assert predicted is not None
        yield [
            typical.row.text("model"),
            typical.chip,
            typical.software,
            _metric(typical),
            f"{len(those)}",
            f"{measured:.4g}",
            f"{predicted:.4g}",
            f"{np.exp(typical.ratio):.1f}x {'high' if predicted > measured else 'low'}",
        ]


def peak_line(rows: Sequence[Row], parts: Parts) -> str:
    errors = [
        abs(one.peak_gb / row.number("peak_gb", 0.0) - 1.0)
        for row, one in zip(rows, predict_packaged(rows, parts, packaged_model()), strict=True)
        if one.peak_gb is not None and row.number("peak_gb", 0.0) > 0
    ]
    return (
        f"{len(errors):,} rows state peak memory (our own, one H200): median error {percent(float(np.median(errors)))}, 90th"
        f" percentile {percent(float(np.quantile(errors, 0.9)))}, worst {percent(max(errors))}. Nothing is fitted there, but"
        " these rows showed which terms were missing: see [memory](models/memory.md)."
    )


def fresh_rows(rows: Sequence[Row]) -> Iterator[list[str]]:
    """Runs of ours whose rows keep what was predicted before anything was fitted on them."""
    for row in rows:
        if row.text("before_fit"):
            measured, said, low, high = (
                row.number(name, np.nan) for name in ("metric_value", "before_fit", "before_fit_low", "before_fit_high")
            )
            what = "full" if row.text("task") == "sft" else row.text("notes")
            yield [
                row.text("model"),
                row.text("framework"),
                what + (", recomputed" if row.text("activation_checkpointing") == "full" else ""),
                f"{measured:,.0f}",
                f"{said:,.0f} ({low:,.0f} to {high:,.0f})",
                percent(abs(said / measured - 1.0)),
                "yes" if low <= measured <= high else "no",
            ]


def page(
    sources: Sequence[Sequence[str]],
    by_scheme: dict[str, list[Held]],
    without: dict[str, list[Held]],
    peak: str,
    rows: Sequence[Row],
) -> str:
    accuracy = ["Rows", "n", "median", "90th", "within 25%", "median*", "90th*", "within 25%*"]
    accuracy += ["groups", "median of groups", "90th of groups"]
    chips = ["Left out", "n", "median", "90th", "within 25%", "inside", "width"]
    misses = ["Model", "Chip", "Software", "Metric", "n", "measured", "predicted", "off"]
    return f"""# Accuracy

Written by `python tools/accuracy.py` from the packaged measurements, with the factors `{fingerprint()}`. Every figure is
cross-validated: the row it is about was not in the fit that predicted it, nor its kin. Misses included.

## Sources that were not seen

What to expect of a new source: every row by a fit without any row of its source (repository, campaign of an author, submitter
to MLPerf), with intervals from the other folds. "Inside" is the share of rows within the 80% interval, "width" the median of
its high end over its low end. Lines with a colon are classes of provenance: `interpolated` (near measurements) where the chip
was measured with that software at such settings in another source, `between` where not together or at other settings, `other
software` where the chip was with other software only, `formula` where it was not.

{table(source_out.HEADER, sources)}
![Predicted against measured](accuracy.svg)

## Method

- {len(rows):,} packaged rows, published and our own. A row is scored when the model has a family for its task; rows of doubtful
  trust (C in the inference table, D in the training table) are neither fitted nor scored.
- **By group**: six folds; a group is a model on a chip (with its engine for inference), and never stands on both sides.
- **By configuration** (columns with *): five folds; a configuration is left out with all its metrics, its group may be seen.
  This is the case of a user whose model and chip were measured, with other settings.
- **By chip**: every row of a chip, in all its forms, is left out.
- Fits in folds use the same priors as the packaged fit; the priors' widths (`data/perf/blocks.csv`) are halfway (geometric
  mean) between those learned once by groups of rows and ones that nobody learned: learning them does not help sources that it
  did not see (`python tools/fit.py --nested`: of generation, the loss of the half that is learned from falls from 0.375 to
  0.263, and that of the other half goes from 0.403 to 0.414). What is left of learning makes the figures of left-out sources
  above somewhat better than those that a new source will find.
- Intervals are from the 10th to the 90th percentile, by how much sources and their rows differ ([how](models/intervals.md)).
  Those of left-out sources come from the residuals of the other folds; below they are the packaged ones, which are meant for
  sources that were not seen and so hold more often than four times of five where the source is known.
- Error is |predicted / measured - 1| in the row's own metric. The last three columns take the median within each group (and
  metric) first, so that a table with hundreds of rows counts like one with two.

## Errors

{table(accuracy, accuracy_rows(by_scheme))}
## A chip that was never seen

{table(chips, chip_rows(without))}
## Intervals

Share of rows inside (80% is meant) and median width as a share of the prediction, by group and by configuration.

{table(["Rows", "inside", "width", "inside*", "width*"], interval_rows(by_scheme))}
## Order

Pairs of one group and metric whose measured values differ by more than 10%, and how many are predicted in that order (by
group).

{table(["Family", "right", "pairs", "share"], pair_rows(by_scheme["group"]))}
## Peak memory

{peak}

## Our own runs of a trainer, before they were fitted

Tokens/s of one H200, 2,048 tokens, micro-batch 8, 16 sequences a step, as the packaged model predicted them before it had read
these rows (networks: [134 runs on an H200](h200.md)). Adapters came out 23 to 63% too fast: the model counted their arithmetic
only. What they read and write is a [term of its own](models/training.md) since.

{table(["Model", "Software", "What", "measured", "predicted", "error", "inside"], list(fresh_rows(rows)), names=3)}
## The misses

The {WORST} groups that are furthest off when left out, by factor, each by its median row.

{table(misses, miss_rows(by_scheme["group"]), names=4)}"""


def main() -> int:
    parts = Parts(load().chips.values())
    rows = packaged()
    found = samples(rows, parts)
    say(f"{len(rows):,} rows, {', '.join(f'{len(sample.rows):,} {sample.family.name}' for sample in found)}")
    by_scheme = held_out(found)
    without = without_chips(found)
    pairs = {
        sample.family.name: [(h.measured_s, h.predicted_s) for h in by_scheme["group"] if h.family == sample.family.name]
        for sample in found
    }
    text = page(without_sources(found), by_scheme, without, peak_line(rows, parts), rows)
    picture = draw(pairs, "Predicted against measured", "Each row by a fit that had not seen its group")
    (DOCS / "accuracy.md").write_text(text, encoding="utf-8")
    (DOCS / "accuracy.svg").write_text(picture, encoding="utf-8")
    say(f"written: {DOCS / 'accuracy.md'}, {DOCS / 'accuracy.svg'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
