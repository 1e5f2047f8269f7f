"""What moves between the stages of a pipeline: how much, what it costs and how long it takes from any place to any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from chipwise.errors import BadInput
from chipwise.money.transfer import Gravity, Path, Transfer
from chipwise.planner.fleet import Index
from chipwise.planner.pipeline.joint import StageHandOff
from chipwise.text import decimal_size
from chipwise.units import HOUR, MONTH, WEEK
from chipwise.workload.common import Common
from chipwise.workload.kinds import Batch, Hpc, Hybrid, Learning, Render, Serve, Stream, Transcode

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
    basis: str


@dataclass(frozen=True, slots=True)
class Way:
    """From one place to another. Between a cloud and a site the slower line counts, which is the site's."""

    path: Path
    slower: Path | None = None

    def seconds(self, size_bytes: float) -> float:
        slow = 0.0 if self.slower is None else self.slower.hours(size_bytes)
        return max(self.path.hours(size_bytes), slow) * HOUR


@dataclass(frozen=True)
class Ways:
    """Ways between places. Providers in `own` stand on sites of one's own: what leaves them costs nothing."""

    gravity: Gravity
    own: frozenset[str]
    countries: Mapping[Place, str | None]

    def between(self, giver: Place, taker: Place) -> Way:
        if giver[0] in self.own and giver != taker:
            return Way(self.gravity.path(_OWN_SITE, *taker))
        to_own = taker[0] in self.own and giver != taker
        return Way(self.gravity.between(giver, taker), self.gravity.path(_OWN_SITE, *taker) if to_own else None)

    def move(self, giver: Place, taker: Place, size_bytes: float) -> tuple[Transfer, float]:
        """(what it costs, seconds)."""
        from_own = giver[0] in self.own and giver != taker
        bring, hand_off = self.gravity.bring, self.gravity.hand_off
        transfer = bring(_OWN_SITE, *taker, size_bytes) if from_own else hand_off(giver, taker, size_bytes)
        return transfer, self.between(giver, taker).seconds(size_bytes)

    def table(self, givers: Sequence[int], places: Sequence[Place]) -> tuple[list[Way], Index]:
        """(ways, of every giver to every place which of them it is). Takers that a giver pays the same for share a way: egress
        has a price by provider and, to few countries, by country."""
        ways: list[Way] = []
        numbers = np.zeros((len(places), len(places)), np.intp)
        for source in givers:
            giver = places[source]
            apart = self.gravity.priced_apart(giver[0])
            known: dict[tuple[object, ...], int] = {}
            for target, taker in enumerate(places):
                country = self.countries.get(taker)
                alike = giver == taker, giver[0] == taker[0], taker[0] in self.own, country if country in apart else None
                if alike not in known:
                    known[alike] = len(ways)
                    ways.append(self.between(giver, taker))
                numbers[source, target] = known[alike]
        return ways, numbers


def flows_of(work: Pipeline, order: Sequence[Common]) -> list[Flow]:
    """Hand-offs with their sizes; where the file lists none, each stage follows the one before it and nothing is moved."""
    positions = {stage.name: place for place, stage in enumerate(order)}
    if not work.hand_offs:
        return [
            Flow(
                giver=positions[giver],
                taker=positions[taker],
                size_bytes=0.0,
                monthly=False,
                basis="no size is given: nothing moves",
            )
            for giver, taker in work.edges
        ]
    flows = []
    for number, hand_off in enumerate(work.hand_offs):
        giver, taker = positions[hand_off.source], positions[hand_off.to]
        if hand_off.size_per_item is None:
            basis = "in all" if hand_off.size is not None else "no size is given: nothing moves"
            flows.append(Flow(giver=giver, taker=taker, size_bytes=hand_off.size or 0.0, monthly=False, basis=basis))
            continue
        counted = next(((items, stage) for stage in (order[giver], order[taker]) if (items := _items(stage))), None)
        if counted is None:
            raise BadInput(
                f"hand_offs[{number}].size_per_item: neither {hand_off.source} nor {hand_off.to} says how many items "
                "there are.",
                remedy="Give size, in all, instead.",
            )
        (count, noun, monthly), stage = counted
        basis = f"{count:,.0f} {noun} of {stage.name} x {decimal_size(hand_off.size_per_item)}"
        flows.append(Flow(giver=giver, taker=taker, size_bytes=count * hand_off.size_per_item, monthly=monthly, basis=basis))
    return flows


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
) -> list[StageHandOff]:
    """Cost and time of every flow by the codes of both places; `used` are those that each stage may run in. `months` is what a
    budget counts of money that is paid monthly."""
    givers = sorted({here for flow in flows if flow.size_bytes for here in used[flow.giver]})
    distinct, numbers = ways.table(givers, places)
    hand_offs = []
    for flow in flows:
        usd, seconds = np.zeros((len(places), len(places))), np.zeros((len(places), len(places)))
        if flow.size_bytes:
            usd[givers] = np.array([way.path.usd(flow.size_bytes) for way in distinct])[numbers[givers]]
            if not flow.monthly:
                seconds[givers] = np.array([way.seconds(flow.size_bytes) for way in distinct])[numbers[givers]]
        hand_offs.append(
            StageHandOff(
                giver=flow.giver, taker=flow.taker, usd=usd, seconds=seconds, charged=usd * (months if flow.monthly else 1.0)
            )
        )
    return hand_offs
