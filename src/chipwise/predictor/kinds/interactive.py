"""Notebooks and desktops: how many people share a chip, counted by memory."""

from __future__ import annotations

import math

from chipwise.catalog.sharing import mig_profiles
from chipwise.errors import BadInput
from chipwise.predictor.ability import able_chip
from chipwise.predictor.kinds.ask import Ask
from chipwise.predictor.values import InteractivePrediction
from chipwise.text import gib
from chipwise.units import GIB
from chipwise.workload.choices import Sharing
from chipwise.workload.kinds import Interactive


def predict_interactive(ask: Ask, work: Interactive) -> InteractivePrediction:
    chip = able_chip(ask.known, ask.hardware, "interactive")
    part = ask.known.parts[chip.name]
    people = float(work.at_once or work.people)
    alone = math.ceil(work.memory / part.memory_bytes)
    slices = [
        row
        for row in mig_profiles(ask.known.catalog.data)
        if row.chip == chip.name and (row.memory_gb or 0) * GIB >= work.memory and row.instances
    ]
    profile = None
    if work.sharing is Sharing.SLICES and alone == 1:
        if not slices:
            cut = sorted(
                {one.chip for one in mig_profiles(ask.known.catalog.data) if (one.memory_gb or 0) * GIB >= work.memory}
            )
            raise BadInput(
                f"{chip.name} cannot be cut into slices of {gib(work.memory, 0)}.", remedy=f"These can: {', '.join(cut)}."
            )
        profile = max(slices, key=lambda one: one.instances or 0)
    seats = (
        float(profile.instances or 1)
        if profile
        else max(part.memory_bytes // work.memory, 1.0)
        if work.sharing is Sharing.TIME
        else 1.0
    )
    slower = 1.0 + (seats - 1.0) * work.busy if work.sharing is Sharing.TIME else 1.0
    chips = math.ceil(people / seats) * max(alone, 1)
    return InteractivePrediction(
        chip=chip.name,
        chips=float(chips),
        people=float(work.people),
        at_once=people,
        people_per_chip=seats,
        profile=profile.profile if profile else None,
        sharing=work.sharing.value,
        slower_by=slower,
        busy_share=work.busy,
        memory_bytes=work.memory,
        needs={"chips": float(chips)},
        notes=("Counted by memory; how fast a notebook is depends on what people run.",),
    )
