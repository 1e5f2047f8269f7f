"""Which stages of a pipeline can run at the same time, and which quotas they then draw on together.

    beside(i, j)     no way leads from one to the other; or the one that comes first is a service, which goes on
    a crowd          stages of which any two can run at the same time: then all of them can
    within a quota   of every crowd the sum of what its stages need is at most what is granted

It goes by the order of hand-offs and not by the clock: what only happens not to overlap may overlap when a stage takes longer
than predicted. A quota of a provider's own holds in each region by itself; one that a user names holds wherever it speaks of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from chipwise.perf.arrays import Array
from chipwise.planner.fleet import Index
from chipwise.planner.pipeline.bounds import ROUNDING


@dataclass(frozen=True, slots=True)
class SharedQuota:
    """What stages may use at one time, all together. `crowds` are places of stages."""

    title: str  # "h100 at aws us-east-1"; of a provider's default its name
    unit: str
    maximum: float
    own: bool  # the user's; else what the provider grants unasked
    regional: bool  # holds in every region by itself
    crowds: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, order=True)
class Cap:
    """One quota for one crowd; `region` None: wherever they run."""

    quota: int
    crowd: tuple[int, ...]
    region: int | None

    def needed(self, stage: int, draws: Array, region: Index) -> Array:
        """What every candidate of a stage needs of it, by what it needs of all quotas and where it stands."""
        need = draws[:, self.quota] * (stage in self.crowd)
        return need if self.region is None else need * (region == self.region)


@dataclass(frozen=True, slots=True)
class Excess:
    """A crowd that needs more than is granted."""

    cap: Cap
    needed: float
    by_stage: tuple[tuple[int, float], ...]  # those that need any


def crowds(count: int, edges: Iterable[tuple[int, int]], lasting: Sequence[bool]) -> tuple[tuple[int, ...], ...]:
    """The largest sets of stages that can run at the same time, by their places in the order of hand-offs. `lasting`: which of
    them go on, as services do."""
    after = [set[int]() for _ in range(count)]
    for giver, taker in sorted(edges, reverse=True):
        after[giver] |= {taker} | after[taker]
    near = [set[int]() for _ in range(count)]
    for stage in range(count):
        for peer in range(stage + 1, count):
            if lasting[stage] or peer not in after[stage]:
                near[stage].add(peer)
                near[peer].add(stage)
    return tuple(sorted(_largest(near, frozenset(), frozenset(range(count)), frozenset())))


def _largest(
    near: Sequence[set[int]], inside: frozenset[int], left: frozenset[int], excluded: frozenset[int]
) -> Iterator[tuple[int, ...]]:
    """Bron and Kerbosch's algorithm: sets to which no stage can be added."""
    if not left and not excluded:
        yield tuple(sorted(inside))
        return
    pivot = max(sorted(left | excluded), key=lambda one: len(near[one] & left))
    for stage in sorted(left - near[pivot]):
        yield from _largest(near, inside | {stage}, left & near[stage], excluded & near[stage])
        left, excluded = left - {stage}, excluded | {stage}


def excesses(quotas: Sequence[SharedQuota], draws: Sequence[Array], regions: Sequence[int]) -> list[Excess]:
    """What a combination exceeds. `draws`: of every stage what its pick needs of every quota."""
    exceeded = []
    for index, quota in enumerate(quotas):
        for crowd in quota.crowds:
            for region in sorted({regions[one] for one in crowd}) if quota.regional else (None,):
                needs = [(one, float(draws[one][index])) for one in crowd if region is None or regions[one] == region]
                total = sum(need for _, need in needs)
                if total > quota.maximum * (1 + ROUNDING):
                    exceeded.append(Excess(Cap(index, crowd, region), total, tuple(one for one in needs if one[1])))
    return exceeded
