"""Pairs of published rows of one model on two chips: what the ratio of two predictions errs by (`perf.ratios`).

Rows are predicted by fits that saw nothing of their source: all repositories of one owner are left out together, so that
rounds of one campaign do not answer for each other. A pair has one source, model, software and metric. `alike` says
that everything else that the tables state is the same too, so that only the chip differs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil, log

import numpy as np

from chipwise.calibration.crossvalidate import Sample
from chipwise.perf.arrays import Array
from chipwise.perf.bands import outer
from chipwise.perf.part import Parts
from chipwise.perf.ratios import RELATIONS, SAME_CHIP, SHEET, error_of, relation, speed_of
from chipwise.perf.rows import Row

MOST_OF_A_GROUP = 400  # pairs of one source, model and software, evenly among them
FEWEST = 8  # pairs that tell something
HOLDS = 0.8  # share of pairs that the interval holds
SMALL_BATCH = 8.0  # up to which a token is bound by reading weights
_COMMON = ("source_repo", "model", "task", "engine", "metric_name")
_SETTING = (
    *("chips", "precision", "precision_weights", "precision_kv", "tp", "pp", "cp", "ep", "dp_or_fsdp"),
    *("seq_len", "micro_batch", "global_batch_sequences", "activation_checkpointing", "batch_or_concurrency"),
    *("input_len", "output_len", "image_size", "compiled"),
)


@dataclass(frozen=True, slots=True)
class Pair:
    family: str
    relation: str
    alike: bool  # in all but the chip
    seen: bool  # both chips, in rows of other sources
    difference: float  # of log(measured seconds / predicted seconds)
    source: str


@dataclass(frozen=True, slots=True)
class Width:
    """What pairs of one kind err by."""

    family: str
    relation: str
    alike: bool
    seen: bool
    median_error: float
    four_in_five_below: float
    coverage: float  # share of pairs inside, each source by the interval of the others
    pairs: int
    sources: int


def source_of(row: Row) -> str:
    """Whoever published it: an owner's repositories go together."""
    return row.text("source_repo").partition("/")[0].lower()


def pairs_of(sample: Sample, log_seconds: Array, parts: Parts) -> Iterator[Pair]:
    """Of one family, as the fitted formulas compare two chips."""
    residual = np.log(sample.question.time_of(sample.measured)) - log_seconds
    chips = [parts[name] for name in sample.question.levels["chip"].texts()]
    sources = _sources(sample)
    for left, right, alike in _paired(sample, np.isfinite(residual)):
        related, source = relation(chips[left], chips[right]), source_of(sample.rows[left])
        if alike and related == SAME_CHIP:
            continue
        yield Pair(
            family=sample.family.name,
            relation=related,
            alike=alike,
            seen=all(sources[chips[place].name] - {source} for place in (left, right)),
            difference=float(residual[left] - residual[right]),
            source=source,
        )


def _sources(sample: Sample) -> Mapping[str, set[str]]:
    """Who measured each chip."""
    sources: dict[str, set[str]] = defaultdict(set)
    for row, chip, weight in zip(sample.rows, sample.question.levels["chip"].texts(), sample.weight, strict=True):
        if weight > 0:
            sources[chip].add(source_of(row))
    return sources


def sheet_pairs(sample: Sample, parts: Parts) -> Iterator[Pair]:
    """The same runs, as the chips' sheets alone compare them: by what holds them up where that is plain, and by both."""
    seconds = np.log(sample.question.time_of(sample.measured))
    chips = [parts[name] for name in sample.question.levels["chip"].texts()]
    kinds = [sample.family.kind_of(case) for case in sample.cases]
    for left, right, alike in _paired(sample, np.isfinite(seconds)):
        if not alike or chips[left].name == chips[right].name:
            continue
        row = sample.rows[left]
        precision = row.text("precision_weights") or row.text("precision") or "bf16"
        for bound in _bounds(sample.family.name, kinds[left], row):
            share = log(speed_of(chips[right], bound, precision) / speed_of(chips[left], bound, precision))
            yield Pair(
                family=f"{SHEET} {bound}",
                relation=relation(chips[left], chips[right]),
                alike=True,
                seen=True,  # a sheet needs no row
                difference=float(seconds[left] - seconds[right]) - share,
                source=source_of(row),
            )


def _bounds(family: str, kind: str, row: Row) -> tuple[str, ...]:
    if family in ("training", "vision") or "prefill" in kind:
        return ("compute", "unknown")
    small = row.number("batch_or_concurrency", 1e9) <= SMALL_BATCH
    return ("memory", "unknown") if small and kind in ("token", "decode", "decode own", "throughput") else ("unknown",)


def _paired(sample: Sample, usable: Sequence[bool] | Array) -> Iterator[tuple[int, int, bool]]:
    groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for place, row in enumerate(sample.rows):
        if sample.weight[place] > 0 and usable[place]:
            groups[tuple(row.text(name) for name in _COMMON)].append(place)
    for members in groups.values():
        settings = {place: tuple(sample.rows[place].text(name) for name in _SETTING) for place in members}
        alike: list[tuple[int, int]] = []
        apart: list[tuple[int, int]] = []
        for left, right in combinations(members, 2):
            (alike if settings[left] == settings[right] else apart).append((left, right))
        yield from ((left, right, True) for left, right in alike)
        step = max(ceil(len(apart) / MOST_OF_A_GROUP), 1)
        yield from ((left, right, False) for left, right in apart[::step])


def widths_of(pairs: Sequence[Pair]) -> list[Width]:
    """By family, relation, setting, and whether others measured both chips."""
    groups: dict[tuple[str, str, bool, bool], list[Pair]] = defaultdict(list)
    for pair in pairs:
        groups[pair.family, pair.relation, pair.alike, pair.seen].append(pair)
    order = {name: place for place, name in enumerate(RELATIONS)}
    keys = sorted(groups, key=lambda key: (key[0], order[key[1]], not key[2], not key[3]))
    return [_width(key, groups[key]) for key in keys if len(groups[key]) >= FEWEST]


def _width(key: tuple[str, str, bool, bool], pairs: Sequence[Pair]) -> Width:
    family, related, alike, seen = key
    sizes = np.array([abs(pair.difference) for pair in pairs])
    sources = np.array([pair.source for pair in pairs])
    inside = np.zeros(len(pairs), dtype=bool)
    for source in np.unique(sources):
        rest = sizes[sources != source]
        inside[sources == source] = sizes[sources == source] <= (_size(rest) if len(rest) >= FEWEST else _size(sizes))
    return Width(
        family=family,
        relation=related,
        alike=alike,
        seen=seen,
        median_error=error_of([pair.difference for pair in pairs]),
        four_in_five_below=_size(sizes),
        coverage=float(np.mean(inside)),
        pairs=len(pairs),
        sources=len(np.unique(sources)),
    )


def _size(sizes: Array) -> float:
    return outer(np.sort(sizes), HOLDS)


def overall(pairs: Sequence[Pair], any_setting: bool = False) -> Mapping[str, float]:
    """The median error of carrying a run over to another chip in the same setting, by family, of chips that others measured; or
    (`any_setting`) of every pair of two chips."""
    differences: dict[str, list[float]] = defaultdict(list)
    for pair in pairs:
        if (any_setting or (pair.alike and pair.seen)) and pair.relation != SAME_CHIP:
            differences[pair.family].append(pair.difference)
    return {family: error_of(found) for family, found in differences.items()}
