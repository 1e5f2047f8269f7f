"""What moves between the stages of a pipeline: how much, what it costs and how long it takes from any place to any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from chipwise.errors import BadInput
from chipwise.money.transfer import Gravity, Transfer
from chipwise.plan.joint import HandOff
from chipwise.units import HOUR, MONTH, WEEK, show_bytes
from chipwise.workload.kinds import Batch, Common, Hpc, Hybrid, Learning, Render, Serve, Stream, Transcode

if TYPE_CHECKING:
    from chipwise.workload.pipeline import Pipeline

Place = tuple[str, str]  # provider, region
_OWN_SITE = "/"  # any path: `Gravity` takes it for a site of one's own


@dataclass(frozen=True, slots=True)
class Flow:
    """What one stage gives to another, by their places in the order of stages."""

    giver: int
    taker: int
    size_bytes: float
    monthly: bool  # flows out of a service: so much every month
    how: str


@dataclass(frozen=True)
class Ways:
    """Ways between places. Providers in `own` stand on sites of one's own: what leaves them costs nothing."""

    gravity: Gravity
    own: frozenset[str]
    countries: Mapping[Place, str | None]

    def move(self, giver: Place, taker: Place, size_bytes: float) -> tuple[Transfer, float]:
        """(what it costs, seconds). Between a cloud and a site the slower line counts, which is the site's."""
        if giver == taker:
            return self.gravity.hand_off(giver, giver, size_bytes), 0.0
        if giver[0] in self.own:
            found = self.gravity.bring(_OWN_SITE, *taker, size_bytes)
            return found, found.hours * HOUR
        found = self.gravity.hand_off(giver, taker, size_bytes)
        slow = self.gravity.bring(_OWN_SITE, *taker, size_bytes).hours if taker[0] in self.own else 0.0
        return found, max(found.hours, slow) * HOUR

    def alike(self, giver: Place, taker: Place) -> tuple[object, ...]:
        """Takers for which this is the same are the same to the giver: egress has a price by country, not by place."""
        return giver == taker, giver[0] == taker[0], taker[0] in self.own, self.countries.get(taker)


def flows_of(work: Pipeline, order: Sequence[Common]) -> list[Flow]:
    """Hand-offs with their sizes; where the file lists none, each stage follows the one before it and nothing is moved."""
    at = {stage.name: place for place, stage in enumerate(order)}
    if not work.hand_offs:
        return [Flow(at[giver], at[taker], 0.0, False, "no size is given: nothing moves") for giver, taker in work.edges]
    found = []
    for number, one in enumerate(work.hand_offs):
        giver, taker = at[one.source], at[one.to]
        if one.size_per_item is None:
            how = "in all" if one.size is not None else "no size is given: nothing moves"
            found.append(Flow(giver, taker, one.size or 0.0, False, how))
            continue
        counted = next(((items, stage) for stage in (order[giver], order[taker]) if (items := _items(stage))), None)
        if counted is None:
            raise BadInput(
                f"hand_offs[{number}].size_per_item: neither {one.source} nor {one.to} says how many items there are.",
                remedy="Give size, in all, instead.",
            )
        (many, noun, monthly), stage = counted
        how = f"{many:,.0f} {noun} of {stage.name} x {show_bytes(one.size_per_item, binary=False)}"
        found.append(Flow(giver, taker, many * one.size_per_item, monthly, how))
    return found


def _items(stage: Common) -> tuple[float, str, bool] | None:
    """(how many items pass, what they are, whether in a month)."""
    month = (stage.schedule.hours_per_week or WEEK / HOUR) * HOUR * MONTH / WEEK
    match stage:
        case Batch():
            return stage.items, "items", False
        case Render():
            return stage.frames, "frames", False
        case Hybrid():
            return float(stage.iterations), "iterations", False
        case Hpc() if stage.steps * stage.runs > 1:
            return stage.steps * stage.runs, "steps", False
        case Transcode() if stage.duration is not None:
            return stage.duration * stage.source.fps, "frames", False
        case Transcode() if stage.streams is not None:
            return stage.streams * stage.source.fps * month, "frames a month", True
        case Serve() if stage.arrival.rate is not None:
            return stage.arrival.rate * (stage.devices or 1) * month, "requests a month", True
        case Stream() if stage.messages is not None:
            return stage.messages * month, "messages a month", True
        case Stream() if stage.bandwidth is not None and stage.message_size is not None:
            return stage.bandwidth / stage.message_size * month, "messages a month", True
        case Learning() if stage.samples is not None:
            return stage.samples, "samples", False
        case Learning() if stage.tokens is not None and stage.sequence_length is not None:
            return stage.tokens / stage.sequence_length, "sequences", False
    return None


def tables(
    flows: Sequence[Flow], used: Sequence[Sequence[int]], places: Sequence[Place], ways: Ways, months: float
) -> list[HandOff]:
    """Cost and time of every flow by the codes of both places; `used` are those that each stage may run in. `months` is what a
    budget counts of money that is paid monthly."""
    found = []
    for flow in flows:
        usd, seconds = np.zeros((len(places), len(places))), np.zeros((len(places), len(places)))
        for here in used[flow.giver] if flow.size_bytes else ():
            known: dict[tuple[object, ...], tuple[float, float]] = {}
            for there in used[flow.taker]:
                alike = ways.alike(places[here], places[there])
                if alike not in known:
                    moved, taken = ways.move(places[here], places[there], flow.size_bytes)
                    known[alike] = moved.usd, 0.0 if flow.monthly else taken
                usd[here, there], seconds[here, there] = known[alike]
        found.append(HandOff(flow.giver, flow.taker, usd, seconds, usd * (months if flow.monthly else 1.0)))
    return found
