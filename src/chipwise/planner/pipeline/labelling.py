"""The search behind a joint plan: stages decided one after the other, partial answers as columns.

A partial answer (a label) is known by the regions and ends of the stages that still have to hand on. Of labels that agree in
those regions only those stay that none beats in everything that counts, and of all only those whose bound (`bounds.py`) is
better than what is known. Chains and trees keep one region open, other graphs as many as they need.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np

from chipwise.perf.arrays import Array
from chipwise.planner.fleet import Index
from chipwise.planner.pipeline.bounds import ADDED, KG, USD, Space, ties
from chipwise.planner.pipeline.grouped import unbeaten

CELLS = 200_000  # label x candidate pairs reckoned at once


@dataclass(frozen=True, slots=True, eq=False)
class _Labels:
    """Partial answers: sums so far, the latest end, and of every stage decided its region and end."""

    adds: Array  # [label, column]
    latest: Array
    region: Index  # [label, stage]
    end: Array  # [label, stage]
    parent: Index
    row: Index  # of the stage decided last

    def __len__(self) -> int:
        return len(self.latest)

    def subset(self, rows: Index) -> _Labels:
        return _Labels(
            adds=self.adds[rows],
            latest=self.latest[rows],
            region=self.region[rows],
            end=self.end[rows],
            parent=self.parent[rows],
            row=self.row[rows],
        )


def search(space: Space, limit: tuple[float, float], beam: int | None) -> tuple[int, ...] | None:
    """The picks of the best answer that beats `limit`, a score and a cost, if there is one. With a `beam` that many labels stay
    of every step: quick, and not surely the best."""
    count = len(space.nodes)
    labels = _Labels(
        adds=np.zeros((1, space.columns)),
        latest=np.zeros(1),
        region=np.zeros((1, count), np.intp),
        end=np.zeros((1, count)),
        parent=np.zeros(1, np.intp),
        row=np.zeros(1, np.intp),
    )
    trail: list[_Labels] = []
    for index in range(count):
        labels = _step(space, labels, index, limit, beam)
        if not len(labels):
            return None
        trail.append(labels)
    picks, label = [], 0
    for index in range(count - 1, -1, -1):
        picks.append(int(space.nodes[index].row[trail[index].row[label]]))
        label = int(trail[index].parent[label])
    return tuple(reversed(picks))


def counted(space: Space, adds: Array, times: Array, capped: Container[int]) -> Array:
    """Columns by which candidates and labels are compared: what neither objective nor goals ask for does not count.
    `capped`: columns of caps that a later choice may exceed."""
    columns = [adds[:, [space.money]]]
    if space.timed:
        columns.append(times)
    if space.objective in ("carbon", "balanced"):
        columns.append(adds[:, [KG]])
    if space.objective in ("cost", "balanced") and space.money != USD:
        columns.append(adds[:, [USD]])
    columns.append(adds[:, [at for at in range(ADDED, space.summed) if at in capped]])
    return np.concatenate(columns, axis=1)


def _step(space: Space, labels: _Labels, index: int, limit: tuple[float, float], beam: int | None) -> _Labels:
    """Labels with one more stage decided; after the last stage only the best of them."""
    node, last = space.nodes[index], index == len(space.nodes) - 1
    size = max(CELLS // len(node.row), 1)
    parts = [
        _extended(space, labels.subset(np.arange(first, min(first + size, len(labels)))), index, limit, first)
        for first in range(0, len(labels), size)
    ]
    new, score, money, seconds = _joined([one for one, _ in parts]), *np.concatenate([values for _, values in parts]).T
    if not len(new):
        return new
    if last:
        good = np.flatnonzero(ties(score, score.min()))
        return new.subset(good[np.lexsort((seconds[good], money[good]))[:1]])
    if beam is not None and len(new) > beam:
        return new.subset(np.lexsort((money, score))[:beam])
    return new.subset(_unbeaten_labels(space, new, index))


def _extended(space: Space, labels: _Labels, index: int, limit: tuple[float, float], first: int) -> tuple[_Labels, Array]:
    """Labels with every candidate of a stage that may still win; and of each its least score, cost and time."""
    node = space.nodes[index]
    codes, place = np.unique(node.region, return_inverse=True)
    start, handed = _arrivals(space, labels, index, codes)
    adds = labels.adds[:, None, :] + handed[:, place] + node.adds[None]
    ends = start[:, place] + node.seconds[None]
    latest, rest = space.ahead(index, labels.region, labels.end)
    after, behind = space.behind(index, codes)
    seconds = np.maximum(np.maximum(latest, labels.latest)[:, None], ends + after[place][None])
    reached = adds + rest[:, None, :] + behind[place][None]
    score, fine = space.judge(reached, seconds, limit)
    label, row = np.nonzero(fine)
    region, end = labels.region[label], labels.end[label]
    region[:, index], end[:, index] = node.region[row], ends[label, row]
    extended = _Labels(
        adds=adds[label, row],
        latest=np.maximum(labels.latest[label], end[:, index]),
        region=region,
        end=end,
        parent=label + first,
        row=row,
    )
    return extended, np.column_stack([score[label, row], reached[label, row][:, space.money], seconds[label, row]])


def _arrivals(space: Space, labels: _Labels, index: int, codes: Index) -> tuple[Array, Array]:
    """By label and region: when a stage could start there, and what the hand-offs to it add."""
    start = np.zeros((len(labels), len(codes)))
    handed = np.zeros((len(labels), len(codes), space.columns))
    for edge in space.edges:
        if edge.taker == index:
            source = labels.region[:, edge.giver]
            start = np.maximum(start, labels.end[:, edge.giver, None] + edge.seconds[source[:, None], codes[None]])
            handed += edge.adds[source[:, None], codes[None]]
    return start, handed


def _unbeaten_labels(space: Space, labels: _Labels, index: int) -> Index:
    """Labels that none with the same open regions beats."""
    opened = space.open_after(index)
    group = np.zeros(len(labels), np.intp)
    for stage in opened:
        wide = int(labels.region[:, stage].max()) + 1
        group = np.unique(group * wide + labels.region[:, stage], return_inverse=True)[1]
    times = np.column_stack([labels.latest, *(labels.end[:, one] for one in opened)])
    return unbeaten(counted(space, labels.adds[:, : space.summed], times, space.capped_after(index)), group)


def _joined(parts: Sequence[_Labels]) -> _Labels:
    return _Labels(
        adds=np.concatenate([one.adds for one in parts]),
        latest=np.concatenate([one.latest for one in parts]),
        region=np.concatenate([one.region for one in parts]),
        end=np.concatenate([one.end for one in parts]),
        parent=np.concatenate([one.parent for one in parts]),
        row=np.concatenate([one.row for one in parts]),
    )
