"""What stood in the way of training where nothing fits, and the smallest changes that would help."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from chipwise.planner.missing import UNSTATED, Searched
from chipwise.planner.training.search import Ways, search
from chipwise.planner.training.splits import LearningJob
from chipwise.planner.values.plan import Missing


def memory_of_learning(job: LearningJob, ways: Ways, looked: Searched) -> list[Missing]:
    """Empty where something fits."""
    lacking = np.flatnonzero(ways.short > 0)
    if not len(lacking) or np.isfinite(ways.seconds).any():
        return []
    at = int(lacking[np.argmin(ways.short[lacking])])
    name = looked.name(int(ways.shape[at]), float(ways.machines[at]))
    told = f"{name} lack {ways.short[at] / 1e9:.1f} GB a chip, the least of all"
    helps = []
    if looked.bound and (more := _fewest(job, looked.wider())):
        helps.append(f"{more} instead of {looked.chips[1]}")
    elif more := _fewest(job, looked.joined()):
        helps.append(f"{more}, {UNSTATED}")
    for name, lighter in _lighter(job):
        if fewest := _fewest(lighter, looked):
            helps.append(f"{name} ({fewest})")
    return [Missing("memory", told, " or ".join(helps) or "a smaller model: more chips and lighter methods were tried")]


def _fewest(job: LearningJob, looked: Searched) -> str:
    """The fewest chips on which it fits; empty: on none."""
    ways = search(job, looked.fleet, looked.model, looked.shapes, looked.chips)
    fine = np.flatnonzero(np.isfinite(ways.seconds))
    if not len(fine):
        return ""
    chips = np.array([one.chips for one in looked.fleet.shapes])[ways.shape[fine]] * ways.machines[fine]
    at = int(fine[np.lexsort((ways.seconds[fine], chips))[0]])
    return looked.name(int(ways.shape[at]), float(ways.machines[at]))


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
