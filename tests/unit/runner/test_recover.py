"""What is tried after a loss, in the order that the job says: same place, zone, region, purchase option, fewer machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.catalog.offer import Purchase
from chipwise.runner.engine import Seen, Sight, State
from chipwise.runner.events import Begun, Ended, Leaving, Placed
from chipwise.runner.job import RECOVER, Job, MachinePlace, Move, Needs, Outcome
from chipwise.runner.next_machine import FORGOTTEN_S, PlacingChoice, barren, choose, relation, rest_s
from chipwise.runner.policy import NeverLate
from chipwise.runner.step import step
from effort import cases
from run_jobs import SPOT_A, SPOT_B, STAYS, added, queued, running, spec

ABROAD = replace(SPOT_A, region="us-east-1", zone="us-east-1a")
OTHER = replace(SPOT_A, machine="g6e.xlarge")
PLACES = (SPOT_A, SPOT_B, ABROAD, STAYS)
TO = {Move.SAME: SPOT_A, Move.ZONE: SPOT_B, Move.REGION: ABROAD, Move.PURCHASE: STAYS}


def job(*recover: Move, places: Sequence[MachinePlace] = PLACES, **asked: object) -> Job:
    return queued(wanted=spec("train", places=tuple(places), recover=recover or RECOVER, **asked))


def lost(held: Job, where: MachinePlace, at: float = 0.0, machines: int = 1) -> Job:
    number = len(held.attempts) + 1
    began = running(held, where, at=at)
    began = replace(began, attempts=(*began.attempts[:-1], replace(began.attempts[-1], machines=machines)))
    return added(began, Ended(number, Outcome.LOST), at=at + 1.0)


def none_came(held: Job, where: MachinePlace, at: float = 0.0, machines: int = 1) -> Job:
    number = len(held.attempts) + 1
    return added(held, Placed(number, where, machines=machines), Ended(number, Outcome.LEFT), at=at)


def chosen(held: Job, now: float = 10.0, offers: Sequence[MachinePlace] | None = None) -> PlacingChoice:
    found = choose(held, NeverLate(), now, offers)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("other", "move"),
    [
        (SPOT_A, Move.SAME),
        (SPOT_B, Move.ZONE),
        (OTHER, Move.ZONE),
        (ABROAD, Move.REGION),
        (STAYS, Move.PURCHASE),
        (replace(SPOT_A, usd_per_hour=9.0), Move.SAME),
        (replace(SPOT_A, zone=""), Move.SAME),
        (replace(SPOT_A, provider="gcp"), Move.REGION),
    ],
)
def test_how_far_it_is_from_one_place_to_another(other: MachinePlace, move: Move) -> None:
    assert relation(SPOT_A, other) is move
    assert relation(other, SPOT_A) is move


def test_after_one_loss_the_first_move_of_the_order_is_made() -> None:
    for first in (Move.SAME, Move.ZONE, Move.REGION):
        rest = [one for one in RECOVER if one is not first]
        assert chosen(lost(job(first, *rest), SPOT_A)).place == TO[first]


def test_each_move_is_made_when_those_before_it_had_no_luck_and_says_why() -> None:
    held = none_came(job(), SPOT_A, 1.0)
    found = chosen(held)
    assert (found.place, found.reason) == (SPOT_B, "another zone, since no machine came in eu-west-1a; policy: spot")
    held = none_came(held, SPOT_B, 2.0)
    found = chosen(held)
    assert (found.place, found.reason) == (ABROAD, "another region, since no machine came in eu-west-1b; policy: spot")
    held = none_came(held, ABROAD, 3.0)
    found = chosen(held)
    assert found.place == STAYS
    assert found.reason.startswith("another purchase option, since no machine came in us-east-1a")


def test_a_move_that_is_not_named_is_not_made() -> None:
    here = job(Move.SAME)
    assert chosen(none_came(none_came(here, SPOT_A, 1.0), SPOT_A, 2.0)).place == SPOT_A
    assert choose(lost(here, SPOT_A), NeverLate(), 10.0, (SPOT_B, ABROAD, STAYS)) is None, "it waits for its place"
    zones = job(Move.SAME, Move.ZONE)
    assert {chosen(none_came(none_came(zones, SPOT_A, 1.0), SPOT_B, 2.0)).place for _ in range(3)} == {SPOT_A}
    stay = [replace(one, purchase=Purchase.ON_DEMAND) for one in (SPOT_A, SPOT_B)]
    assert chosen(none_came(job(Move.SAME, places=stay), stay[0])).place == stay[0]


def test_what_was_lost_while_it_worked_is_no_reason_to_pay_more() -> None:
    held = job(places=(SPOT_A, STAYS))
    for at in range(6):
        held = lost(held, SPOT_A, float(at))
    assert chosen(held).place == SPOT_A


def test_with_a_deadline_the_policy_alone_says_when_to_pay_more() -> None:
    held = none_came(job(places=(SPOT_A, STAYS), deadline=1e6, expected_s=100.0), SPOT_A)
    assert chosen(held).place == SPOT_A
    late = none_came(job(Move.SAME, places=(SPOT_A, STAYS), deadline=500.0, expected_s=100.0), SPOT_A)
    assert chosen(late).place == STAYS, "the policy's word stands above the order"


def test_after_a_while_spot_machines_are_looked_for_again() -> None:
    held = none_came(job(places=(SPOT_A, STAYS)), SPOT_A, 1.0)
    assert barren(held, (SPOT_A,), 10.0)
    assert chosen(held).place == STAYS
    assert chosen(held, FORGOTTEN_S + 2.0).place == SPOT_A


def test_one_that_pays_more_for_want_of_spot_is_not_sent_back_at_once() -> None:
    held = running(none_came(job(places=(SPOT_A, STAYS), expected_s=1e5), SPOT_A, 1.0), STAYS, at=2.0)

    def leaves(now: float) -> bool:
        seen = Seen(now, {(held.id, 2): Sight(State.RUNNING, since=2.0)}, offers=(SPOT_A, STAYS))
        return any(isinstance(event, Leaving) for act in step({held.id: held}, seen, now) for event in act.events)

    assert not leaves(100.0)
    assert leaves(FORGOTTEN_S + 2.0)


# Fewer machines


def many(*recover: Move, least: int | None = 2, places: Sequence[MachinePlace] = ()) -> Job:
    return job(*recover, places=places, needs=Needs(machines=8, machines_least=least))


def test_fewer_come_last_unless_they_are_named_first() -> None:
    held = none_came(many(places=(SPOT_A, SPOT_B)), SPOT_A, 1.0, 8)
    assert chosen(held).machines == 8
    found = chosen(none_came(held, SPOT_B, 2.0, 8))
    assert found.machines == 4
    assert found.reason.endswith("continues with 4 of 8 machines, since no more came")
    first = lost(many(Move.FEWER, Move.SAME, places=(SPOT_A, SPOT_B)), SPOT_A, 1.0, 8)
    found = chosen(first)
    assert (found.place, found.machines) == (SPOT_A, 7)
    assert "since of them some were lost" in found.reason


def test_the_number_goes_down_by_half_until_it_is_to_be_had_and_never_below_the_least() -> None:
    held, had = many(), []
    for at in range(5):
        had.append(chosen(held, float(at)).machines)
        held = none_came(held, MachinePlace(), float(at), had[-1])
    assert had == [8, 4, 2, 2, 2]


def test_it_is_not_made_smaller_where_that_is_not_named_or_not_asked_for() -> None:
    assert chosen(none_came(many(Move.SAME, Move.ZONE), MachinePlace(), 1.0, 8)).machines == 8
    assert chosen(none_came(many(least=None), MachinePlace(), 1.0, 8)).machines == 8
    failed = added(many(), Placed(1, MachinePlace(), machines=8), Begun(1), Ended(1, Outcome.FAILED, 1))
    assert chosen(failed).machines == 8, "its own bug is no want of machines"
    elsewhere = none_came(many(places=(SPOT_A, SPOT_B)), SPOT_A, 1.0, 8)
    elsewhere = added(elsewhere, Placed(2, SPOT_B, machines=8), Begun(2), Ended(2, Outcome.FAILED, 1), at=2.0)
    assert chosen(elsewhere, offers=(SPOT_A,)).machines == 8


def test_a_start_long_after_asks_for_all_again_and_one_soon_after_does_not() -> None:
    held = lost(none_came(many(), MachinePlace(), 1.0, 8), MachinePlace(), 2.0, 4)
    assert chosen(held, 100.0).machines == 4
    found = chosen(held, FORGOTTEN_S + 10.0)
    assert (found.machines, found.reason) == (8, "all 8 machines again")
    never = lost(none_came(many(Move.SAME, Move.FEWER), MachinePlace(), 1.0, 8), MachinePlace(), 2.0, 4)
    assert chosen(never, FORGOTTEN_S + 10.0).machines == 4


def test_on_fewer_machines_the_rest_is_thought_to_take_longer() -> None:
    held = queued(wanted=spec("train", needs=Needs(machines=8, machines_least=2), expected_s=1000.0, predicted={"steps": 100}))
    assert rest_s(held) == 1000.0
    assert rest_s(added(held, Placed(1, MachinePlace(), machines=4)), steps=50) == 1000.0
    assert rest_s(added(held, Placed(1, MachinePlace(), machines=8)), steps=50) == 500.0


def test_a_place_that_could_not_give_eight_may_give_four() -> None:
    held = many(places=(SPOT_A, SPOT_B))
    for at, where in enumerate((SPOT_A, SPOT_B)):
        held = none_came(held, where, float(at), 8)
    found = chosen(held)
    assert (found.machines, found.place) == (4, SPOT_B), "the nearest to where it was"


@settings(max_examples=cases(80))
@given(
    st.permutations(list(Move)).flatmap(lambda moves: st.integers(0, len(moves)).map(lambda n: tuple(moves[:n]))),
    st.lists(st.tuples(st.sampled_from(["lost", "none", "failed"]), st.floats(1, 4000)), max_size=8),
    st.none() | st.integers(1, 8),
    st.booleans(),
)
def test_whatever_happens_it_goes_only_where_it_may_with_a_number_that_it_can_do_with(
    recover: tuple[Move, ...], story: list[tuple[str, float]], least: int | None, placeless: bool
) -> None:
    needs = Needs(machines=8, machines_least=least)
    held = queued(wanted=spec("train", places=() if placeless else PLACES, recover=recover, needs=needs))
    now = 0.0
    for what, lasts in story:
        found = choose(held, NeverLate(), now)
        assert found is not None, "nobody said that a place is not on offer"
        assert needs.fewest_machines <= found.machines <= 8
        last = held.attempt
        if last is not None:
            assert found.machines >= last.machines or (Move.FEWER in recover and last.outcome is not Outcome.FAILED)
            assert found.machines <= last.machines or Move.MORE in recover
            if not placeless:
                assert (move := relation(last.where, found.place)) is Move.SAME or move in recover
        number = len(held.attempts) + 1
        held = added(held, Placed(number, found.place, machines=found.machines), at=now)
        now += lasts
        if what != "none":
            held = replace(held, attempts=(*held.attempts[:-1], replace(held.attempts[-1], begun=now - lasts)))
        held = added(held, Ended(number, Outcome.FAILED if what == "failed" else Outcome.LOST), at=now)
