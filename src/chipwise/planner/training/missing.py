"""What stood in the way of training where nothing fits or a family has no way, and the smallest changes that would help."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from chipwise.planner.missing import Searched
from chipwise.planner.reasons import Reason
from chipwise.planner.reasons.abilities import GpusOnly, NoPrecision, ServesOnly
from chipwise.planner.reasons.sizes import LacksMemory, NeedsChips, NeedsNetwork, NoSplit
from chipwise.planner.remedies import Advice, Lighter, MoreChips, Remedy, StateNetwork
from chipwise.planner.training.search import Ways, has, search
from chipwise.planner.training.splits import LearningJob
from chipwise.planner.values.plan import Missing, Obstacle


def unable(job: LearningJob, ways: Ways, searched: Searched) -> dict[str, Reason]:
    """Why families that are on offer have no way within the limits, each by the way that comes nearest."""
    family = {at: searched.fleet.families[at] for at in searched.shapes}
    able = {family[at] for at in ways.shape[np.isfinite(ways.seconds)].tolist()}
    closed = [at for at in searched.shapes if family[at] not in able]
    wide = ways
    if searched.bound and closed:  # rows of more chips than are allowed were not searched
        wide = search(job, searched.fleet, searched.model, closed, searched.wider().chips)
    reasons: dict[str, Reason] = {}
    for name in dict.fromkeys(family[at] for at in closed):
        members = [at for at in closed if family[at] == name]
        reasons[name] = _nearest(job, wide, searched, members)
    return reasons


def reason_of(job: LearningJob, searched: Searched) -> Reason:
    """Why the shapes of `searched` have no candidate, by the way that comes nearest."""
    wide = search(job, searched.fleet, searched.model, searched.shapes, searched.wider().chips)
    fine = np.isfinite(wide.seconds)
    chips = np.array([one.chips for one in searched.fleet.shapes])[wide.shape] * wide.machines
    allowed = fine & (chips >= searched.chips[0]) & (chips <= searched.chips[1])
    if allowed.any():  # it would do, were its machines joined
        return NeedsNetwork(int(wide.machines[allowed].min()))
    return _nearest(job, wide, searched, list(searched.shapes))


def _nearest(job: LearningJob, ways: Ways, searched: Searched, shapes: list[int]) -> Reason:
    rows = np.flatnonzero(np.isin(ways.shape, shapes))
    fine = rows[np.isfinite(ways.seconds[rows])]
    if len(fine):
        chips = np.array([one.chips for one in searched.fleet.shapes])[ways.shape[fine]] * ways.machines[fine]
        return NeedsChips(int(chips.min()), searched.chips[1])
    if len(rows):
        return LacksMemory(float(ways.short[rows].min()))
    parts = [searched.fleet.part(at) for at in shapes]
    if not any(part.trains for part in parts):
        return ServesOnly()
    if job.method == "qlora" and all(part.kind != "gpu" for part in parts):
        return GpusOnly("QLoRA")
    able = any(has(part, one, job.method) for part in parts for one in job.precisions)
    return NoSplit(*searched.chips) if able else NoPrecision(job.precisions)


def memory_of_learning(job: LearningJob, ways: Ways, searched: Searched) -> list[Missing]:
    """Empty where something fits."""
    lacking = np.flatnonzero(ways.short > 0)
    if not len(lacking) or np.isfinite(ways.seconds).any():
        return []
    row = int(lacking[np.argmin(ways.short[lacking])])
    helps: list[Remedy] = []
    if searched.bound and (hardware := _fewest(job, searched.wider())):
        helps.append(MoreChips(hardware, searched.chips[1]))
    elif hardware := _fewest(job, searched.joined()):
        helps.append(StateNetwork(hardware))
    for name, lighter in _lighter(job):
        if fewest := _fewest(lighter, searched):
            helps.append(Lighter(name, fewest))
    remedies = tuple(helps) or (Advice("a smaller model: more chips and lighter methods were tried"),)
    nearest = searched.name(int(ways.shape[row]), float(ways.machines[row]))
    return [Missing(Obstacle.MEMORY, LacksMemory(float(ways.short[row])), remedies, nearest)]


def _fewest(job: LearningJob, searched: Searched) -> str:
    """The fewest chips on which it fits; empty: on none."""
    ways = search(job, searched.fleet, searched.model, searched.shapes, searched.chips)
    fine = np.flatnonzero(np.isfinite(ways.seconds))
    if not len(fine):
        return ""
    chips = np.array([one.chips for one in searched.fleet.shapes])[ways.shape[fine]] * ways.machines[fine]
    row = int(fine[np.lexsort((ways.seconds[fine], chips))[0]])
    return searched.name(int(ways.shape[row]), float(ways.machines[row]))


def _lighter(job: LearningJob) -> Iterator[tuple[str, LearningJob]]:
    """The same with less to keep in memory, the least change first."""
    if job.recompute != (0, 1, 2):
        yield "recompute: full", replace(job, recompute=(2,))
    if job.optimizer == "adamw":
        yield "optimizer: adamw-8bit", replace(job, optimizer="adamw-8bit")
    for method in {"full": ("lora", "qlora"), "lora": ("qlora",)}.get(job.method, ()):
        yield f"finetune with method: {method}", replace(job, method=method)
    if job.seq >= 1024 and not job.layer.source:  # of a pair it is both lengths
        yield f"sequence_length: {job.seq // 2}", replace(job, seq=job.seq // 2, batch=job.batch * 2)
