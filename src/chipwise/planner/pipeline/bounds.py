"""How good the rest of a joint plan can be at best: bounds by which a search drops what cannot win (`joint.py`).

    suffix[stage, region]    the least that a stage there and all that follows it along the tree can add
    reach[hand-off, region]  the least over the taker's regions of the hand-off and the taker's suffix

A stage that takes from several givers follows only one of them in the tree, so that nothing is counted twice; the other
hand-offs count as nothing, which is never too much. Time follows every hand-off, as the longest way through does. Each of usd,
kg, charged and time is bounded by itself. That alone is weak where they are traded for each other, so that weighted sums
(`Mix`) are bounded as well:

    goal        with w.x >= L and every other x within its limit U:  x_p >= (L - sum of w_i U_i) / w_p
    balanced    with x >= m and w.x >= L the product is least where one of the three takes all that is missing
                (it is concave along every edge of that region), the smallest of three cases
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, inf, log

import numpy as np

from chipwise.perf.arrays import Array
from chipwise.planner.fleet import Index
from chipwise.planner.limits import Mask
from chipwise.planner.pipeline.grouped import first_least, group_minima, runs_of

TIE = 1e-9  # of a score: what differs by less differs by rounding
ROUNDING = 1e-12  # relative: sums of the same numbers in another order
ADDED = 3  # columns that are summed: usd, kg, charged; what caps count and mixes follow them
SPAN, THIRDS = 5.0, 9  # weights are sought within e^5 of a guess, to a tenth
USD, KG, CHARGED = range(ADDED)


def ties(one: Array | float, other: Array | float) -> Mask:
    return np.asarray(np.abs(np.asarray(one) - other) <= TIE * np.abs(other))


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """Candidates of a stage that may be picked. `row` is where each stands among all."""

    row: Index
    region: Index
    adds: Array  # [candidate, column]
    seconds: Array

    def subset(self, rows: Index) -> Node:
        return Node(self.row[rows], self.region[rows], self.adds[rows], self.seconds[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    giver: int
    taker: int
    adds: Array  # [region of the giver, region of the taker, column]
    seconds: Array


@dataclass(frozen=True, slots=True)
class Mix:
    """A weighted sum that is bounded as a whole. Time is that of one way through: its stages and hand-offs by place."""

    usd: float
    kg: float
    charged: float
    seconds: float
    stages: frozenset[int]
    edges: frozenset[int]

    def of(self, adds: Array, seconds: Array, on_path: bool) -> Array:
        """`on_path`: the way through leads here."""
        total = self.usd * adds[..., USD] + self.kg * adds[..., KG] + self.charged * adds[..., CHARGED]
        return np.asarray(total + self.seconds * seconds if on_path else total)


@dataclass(frozen=True)
class Space:
    """What is searched: stages in the order of their hand-offs, and what is wanted of the whole."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    objective: str
    deadline_s: float | None
    budget_usd: float | None
    caps: tuple[float, ...] = ()  # the most that each of the columns behind the first may come to
    mixes: tuple[Mix, ...] = ()

    @property
    def summed(self) -> int:
        """Columns that are sums of what candidates have; behind them stand the mixes."""
        return ADDED + len(self.caps)

    @property
    def columns(self) -> int:
        return self.summed + len(self.mixes)

    @property
    def money(self) -> int:
        """The column by which ties are decided: what the budget counts, where there is one. (To compare by two kinds of money,
        one of them for ties alone, would keep labels that no goal asks for.)"""
        return USD if self.budget_usd is None else CHARGED

    @property
    def timed(self) -> bool:
        return self.deadline_s is not None or self.objective in ("time", "balanced")

    def mixed(self, mixes: Sequence[Mix]) -> Space:
        """The same with a column for every mix."""

        def wider(adds: Array, seconds: Array, ways: Sequence[bool]) -> Array:
            more = [one.of(adds, seconds, on) for one, on in zip(mixes, ways, strict=True)]
            return np.concatenate([adds[..., : self.summed], *(one[..., None] for one in more)], axis=-1)

        nodes = [
            replace(node, adds=wider(node.adds, node.seconds, [index in one.stages for one in mixes]))
            for index, node in enumerate(self.nodes)
        ]
        edges = [
            replace(edge, adds=wider(edge.adds, edge.seconds, [index in one.edges for one in mixes]))
            for index, edge in enumerate(self.edges)
        ]
        return replace(self, nodes=tuple(nodes), edges=tuple(edges), mixes=tuple(mixes))

    def turned(self) -> Space:
        """The same from the end: the longest way through is as long backwards, and every sum the same."""
        last = len(self.nodes) - 1
        edges = [
            Edge(last - edge.taker, last - edge.giver, edge.adds.swapaxes(0, 1), edge.seconds.swapaxes(0, 1))
            for edge in self.edges
        ]
        return replace(self, nodes=self.nodes[::-1], edges=tuple(edges))

    def apart(self) -> list[Space]:
        """One space for every region in which each stage has a candidate; it becomes the only one there."""
        rows = []
        for node in self.nodes:
            order = np.argsort(node.region, kind="stable")
            _, starts = runs_of(node.region[order])
            rows.append(dict(zip(node.region[order[starts]].tolist(), np.split(order, starts[1:]), strict=True)))
        return [self._region_space(code, [one[code] for one in rows]) for code in sorted(set(rows[0]).intersection(*rows[1:]))]

    def _region_space(self, code: int, rows: Sequence[Index]) -> Space:
        nodes = [
            replace(subset := node.subset(mine), region=subset.region * 0) for node, mine in zip(self.nodes, rows, strict=True)
        ]
        block = slice(code, code + 1)
        edges = [replace(edge, adds=edge.adds[block, block], seconds=edge.seconds[block, block]) for edge in self.edges]
        return replace(self, nodes=tuple(nodes), edges=tuple(edges))

    def sampled(self) -> Space:
        """A few candidates of every stage and region: the least of everything that counts, and of all of it together."""
        nodes = []
        for node in self.nodes:
            order = np.argsort(node.region, kind="stable")
            runs, starts = runs_of(node.region[order])
            columns = [node.seconds, *node.adds[:, : self.summed].T]
            columns.append(np.log(np.maximum([node.seconds, node.adds[:, USD], node.adds[:, KG]], 1e-12)).sum(axis=0))
            nodes.append(node.subset(np.unique([order[first_least(one[order], runs, starts)] for one in columns])))
        return replace(self, nodes=tuple(nodes))

    def trimmed(self, limit: tuple[float, float]) -> Space:
        """Without candidates that no answer better than `limit` can hold: each with the least of all that stands around it."""
        suffix, late, reach, _ = self._bounds
        taking = {edge.taker for edge in self.edges}
        roots = {at: suffix[at].min(axis=0) for at in range(len(self.nodes)) if at not in taking}
        longest = max(float(late[at].min()) for at in roots)
        above = [np.zeros_like(one) for one in suffix]  # the least of everything but the stage and what follows it
        early = [np.zeros_like(one) for one in late]
        nodes = []
        for index, node in enumerate(self.nodes):
            if index in roots:
                above[index] += sum((least for other, least in roots.items() if other != index), np.zeros(self.columns))
            for number, edge in enumerate(self.edges):
                if edge.taker == index:
                    giver = self.nodes[edge.giver]
                    finish = group_minima(early[edge.giver][giver.region] + giver.seconds, giver.region, len(early[index]))
                    early[index] = np.maximum(
                        early[index], (finish[:, None] + edge.seconds[: len(finish), : len(finish)]).min(axis=0)
                    )
                    if number in self._tree:
                        rest = above[edge.giver] + suffix[edge.giver] - reach[number]
                        above[index] = (rest[:, None] + edge.adds[: len(finish), : len(finish)]).min(axis=0)
            after, behind = self.behind(index, node.region)
            adds = above[index][node.region] + node.adds + behind
            seconds = np.maximum(longest, early[index][node.region] + node.seconds + after)
            nodes.append(node.subset(np.flatnonzero(self.judge(adds, seconds, limit)[1])))
        return replace(self, nodes=tuple(nodes))

    def tightened(self, mix: Mix, limits: Mapping[str, float]) -> Mix:
        """The mix whose weights of what is limited bound the rest best: they are scaled, one after the other, by what proves
        best. The bound is concave in them, so that a search by thirds finds its top."""

        def bound(weights: Mapping[str, float]) -> float:
            one = replace(mix, **weights)  # type: ignore[arg-type]
            return self._minimum_of(one) - sum(weights[name] * limit for name, limit in limits.items())

        weights = {name: float(getattr(mix, name)) for name in limits}
        for name in (*limits, *limits) if len(limits) > 1 else limits:
            low, high = log(weights[name]) - SPAN, log(weights[name]) + SPAN
            for _ in range(THIRDS):
                left, right = low + (high - low) / 3, high - (high - low) / 3
                if bound(weights | {name: exp(left)}) < bound(weights | {name: exp(right)}):
                    low = left
                else:
                    high = right
            weights[name] = exp((low + high) / 2)
        return replace(mix, **weights)  # type: ignore[arg-type]

    def _minimum_of(self, mix: Mix) -> float:
        """The least that a weighted sum can be along the tree."""
        regions = 1 + max(int(node.region.max()) for node in self.nodes)
        suffix = [np.zeros(0) for _ in self.nodes]
        total = 0.0
        for index in range(len(self.nodes) - 1, -1, -1):
            node = self.nodes[index]
            suffix[index] = group_minima(mix.of(node.adds, node.seconds, index in mix.stages), node.region, regions)
            for number, edge in enumerate(self.edges):
                if edge.giver == index and number in self._tree:
                    moved = mix.of(edge.adds[:regions, :regions], edge.seconds[:regions, :regions], number in mix.edges)
                    suffix[index] = suffix[index] + (moved + suffix[edge.taker][None]).min(axis=1)
            if all(edge.taker != index for edge in self.edges):
                total += float(suffix[index].min())
        return total

    def open_after(self, index: int) -> list[int]:
        """Stages up to `index` that have something to hand on to a later one."""
        return sorted({edge.giver for edge in self.edges if edge.giver <= index < edge.taker})

    def capped_after(self, index: int) -> frozenset[int]:
        """Columns of caps to which a stage behind `index` may add."""
        later = self.nodes[index + 1 :]
        return frozenset(one for one in range(ADDED, self.summed) if any(node.adds[:, one].any() for node in later))

    def ahead(self, index: int, region: Index, end: Array) -> tuple[Array, Array]:
        """What is left beside and behind a stage `index` at the least, by label: (the latest end, sums)."""
        suffix, late, reach, way = self._bounds
        seconds, adds = np.zeros(len(region)), np.zeros((len(region), self.columns))
        for number, edge in enumerate(self.edges):
            if edge.giver < index < edge.taker:
                source = region[:, edge.giver]
                seconds = np.maximum(seconds, end[:, edge.giver] + way[number][source])
                adds += reach[number][source] if number in self._tree else 0.0
        taking = {edge.taker for edge in self.edges}
        for later in range(index + 1, len(self.nodes)):
            if later not in taking:
                adds += suffix[later].min(axis=0)
                seconds = np.maximum(seconds, late[later].min())
        return seconds, adds

    def behind(self, index: int, codes: Index) -> tuple[Array, Array]:
        """What follows a stage at the least, by its region: (seconds, sums)."""
        _, _, reach, way = self._bounds
        seconds, adds = np.zeros(len(codes)), np.zeros((len(codes), self.columns))
        for number, edge in enumerate(self.edges):
            if edge.giver == index:
                seconds = np.maximum(seconds, way[number][codes])
                adds += reach[number][codes] if number in self._tree else 0.0
        return seconds, adds

    def lower_bound(self) -> float:
        """A score that no answer is better than."""
        suffix, late, _, _ = self._bounds
        taking = {edge.taker for edge in self.edges}
        roots = [at for at in range(len(self.nodes)) if at not in taking]
        adds = np.sum([suffix[at].min(axis=0) for at in roots], axis=0)
        return float(self._score(adds, np.array(max(late[at].min() for at in roots))))

    def judge(self, adds: Array, seconds: Array, limit: tuple[float, float]) -> tuple[Array, Mask]:
        """(the least score, whether goals may be kept and the score and money of `limit` be beaten)."""
        score = self._score(adds, seconds)
        best, money = limit
        fine = (score < best * (1 - TIE)) | ((score <= best * (1 + TIE)) & (adds[..., self.money] < money * (1 - ROUNDING)))
        if self.deadline_s is not None:
            fine &= seconds <= self.deadline_s * (1 + ROUNDING)
        if self.budget_usd is not None:
            fine &= adds[..., CHARGED] <= self.budget_usd * (1 + ROUNDING)
        for column, cap in enumerate(self.caps, start=ADDED):
            fine &= adds[..., column] <= cap * (1 + ROUNDING)
        return score, fine

    def _score(self, adds: Array, seconds: Array) -> Array:
        usd, kg = adds[..., USD], adds[..., KG]
        if self.objective == "balanced":
            return self._product(usd, seconds, np.maximum(kg, 1e-9), adds)
        score = {"time": seconds, "carbon": kg}.get(self.objective, usd)
        limits = {"charged": self.budget_usd, "seconds": self.deadline_s}
        aim = {"time": "seconds", "carbon": "kg"}.get(self.objective, "usd")
        for index, mix in enumerate(self.mixes):
            rest = sum(
                weight * (inf if (top := limits.get(name)) is None else top)
                for name in ("usd", "kg", "charged", "seconds")
                if name != aim and (weight := getattr(mix, name))
            )
            score = np.maximum(score, (adds[..., self.summed + index] - rest) / getattr(mix, aim))
        return score

    def _product(self, usd: Array, seconds: Array, kg: Array, adds: Array) -> Array:
        product = usd * seconds * kg
        for index, mix in enumerate(self.mixes):
            terms = ((usd, mix.usd), (seconds, mix.seconds), (kg, mix.kg))
            lacking = np.maximum(adds[..., self.summed + index] - sum(weight * value for value, weight in terms), 0.0)
            cases = [
                (usd + lacking / mix.usd) * seconds * kg,
                usd * (seconds + lacking / mix.seconds) * kg,
                usd * seconds * (kg + lacking / mix.kg),
            ]
            product = np.maximum(product, np.minimum.reduce(cases))
        return np.cbrt(product)

    @cached_property
    def _tree(self) -> frozenset[int]:
        """Of every stage the hand-off that it follows: the one that can cost most."""
        dearest: dict[int, int] = {}
        for number, edge in enumerate(self.edges):
            known = dearest.get(edge.taker)
            if known is None or edge.adds[..., USD].max() > self.edges[known].adds[..., USD].max():
                dearest[edge.taker] = number
        return frozenset(dearest.values())

    @cached_property
    def _bounds(self) -> tuple[list[Array], list[Array], dict[int, Array], dict[int, Array]]:
        """(sums by stage and region, seconds likewise, sums by hand-off and the giver's region, seconds likewise)."""
        regions = 1 + max(int(node.region.max()) for node in self.nodes)
        suffix, late = [np.zeros(0) for _ in self.nodes], [np.zeros(0) for _ in self.nodes]
        reach: dict[int, Array] = {}
        way: dict[int, Array] = {}
        for index in range(len(self.nodes) - 1, -1, -1):
            node = self.nodes[index]
            suffix[index], late[index] = (
                group_minima(node.adds, node.region, regions),
                group_minima(node.seconds, node.region, regions),
            )
            after = np.zeros(regions)
            for number, edge in enumerate(self.edges):
                if edge.giver == index:
                    after = np.maximum(after, way[number])
                    if number in self._tree:
                        suffix[index] = suffix[index] + reach[number]
            late[index] = late[index] + after
            for number, edge in enumerate(self.edges):
                if edge.taker == index:
                    way[number] = (edge.seconds[:regions, :regions] + late[index][None]).min(axis=1)
                    reach[number] = (edge.adds[:regions, :regions] + suffix[index][None]).min(axis=1)
        return suffix, late, reach, way
