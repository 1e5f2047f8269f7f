"""The data of a plan: how much moves, and what that costs. Where its place is stated, cost and time are in every candidate
(`pricing`); where it is not, the data counts as lying next to the chips, and one line says what moving it would add."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from chipwise.money.transfer import Gravity
from chipwise.planner.explain.data_words import checkpoint_words, data_words, dominant
from chipwise.planner.explain.words import EDGE
from chipwise.planner.ground import gravity_of
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import DataMoved, Plan, Turn
from chipwise.predictor.kinds.ask import Ask, known_model
from chipwise.units import HOUR
from chipwise.workload.common import Common
from chipwise.workload.kinds import Batch, Learning, Serve
from chipwise.workload.volume import Volume, sized, volume_of

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

W = TypeVar("W", bound=Common)
WORTH_A_LINE = 0.01  # of the answer's cost: from here on the place of the data may change the answer
CENT = 0.01  # USD
SITE = "/"  # any path: a place outside all clouds


def with_sizes(known: Known, path: str, work: W) -> tuple[W, Volume]:
    """The workload with the sizes of its data filled in, and what it reads, writes and saves."""
    shape = None
    if isinstance(work, Learning | Serve | Batch) and not work.is_unknown:
        shape = known_model(Ask(known, path, "", {}), work)[2]
    return sized(work, shape), volume_of(work, shape)


def with_moving_told(known: Known, work: Common, volume: Volume, plan: Plan) -> Plan:
    """With what its data takes: in the headline where that is more than all else, as the first of what would change the answer
    where it may, else as a note."""
    winner = plan.winner
    if winner is None or winner.provider == EDGE or (volume.read is None and volume.written is None):
        return plan
    place = work.data.place if work.data is not None else None
    gravity = gravity_of(known.catalog)
    moved = _counted(gravity, volume, winner, place) if place else _elsewhere(gravity, volume, winner)
    checkpoint = checkpoint_words(volume)
    plan = replace(plan, data=moved, notes=(*plan.notes, checkpoint) if checkpoint else plan.notes)
    high = moved.usd[1] if moved.usd is not None else 0.0
    little = not moved.counted and high < (WORTH_A_LINE * winner.usd if volume.monthly else CENT)
    if dominant(plan) or little:  # the headline has it, or nobody needs it
        return plan
    if high >= WORTH_A_LINE * winner.usd and not moved.counted:
        return replace(plan, turns=(Turn("data", data_words(moved)), *plan.turns))
    return replace(plan, notes=(*plan.notes, data_words(moved)))


def _counted(gravity: Gravity, volume: Volume, winner: Choice, place: str) -> DataMoved:
    moved = gravity.both_ways(place, winner.provider, winner.region, volume.read_bytes, volume.written_bytes)
    return DataMoved(volume=volume, place=place, usd=(moved.usd, moved.usd), seconds=moved.hours * HOUR, assumed=moved.assumed)


def _elsewhere(gravity: Gravity, volume: Volume, winner: Choice) -> DataMoved:
    """From other clouds, or another region of the same; what flows month by month comes from users and goes to them."""
    if volume.monthly:
        sent = gravity.send(SITE, winner.provider, winner.region, volume.written_bytes)
        return DataMoved(volume=volume, place=None, usd=(sent.usd, sent.usd), seconds=0.0, assumed=sent.assumed)
    moves = gravity.from_elsewhere(winner.provider, winner.region, volume.read_bytes, volume.written_bytes)
    if not moves:
        return DataMoved(volume=volume, place=None, usd=None, seconds=0.0)
    costs = [cost for _, cost, _ in moves]
    return DataMoved(
        volume=volume, place=None, usd=(min(costs), max(costs)), seconds=max(hours for _, _, hours in moves) * HOUR
    )
