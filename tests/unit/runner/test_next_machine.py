"""Where the next attempt goes: the best place first, another after bad luck there."""

from __future__ import annotations

from dataclasses import replace

from chipwise.runner.events import Ended, Placed
from chipwise.runner.job import Job, MachinePlace, Outcome
from chipwise.runner.next_machine import place, rest_s
from chipwise.runner.policy import NeverLate
from run_jobs import SPOT_A, SPOT_B, STAYS, added, queued, running, spec

PLACES = (SPOT_A, SPOT_B, STAYS)


def job(**asked: object) -> Job:
    return queued(wanted=spec("train", **{"places": PLACES, **asked}))


def lost(held: Job, where: MachinePlace, at: float = 0.0, outcome: Outcome = Outcome.LOST) -> Job:
    return added(running(held, where, at=at), Ended(len(held.attempts) + 1, outcome), at=at + 1.0)


def never_came(held: Job, where: MachinePlace, at: float = 0.0) -> Job:
    number = len(held.attempts) + 1
    return added(held, Placed(number, where), Ended(number, Outcome.LEFT), at=at)


def goes(held: Job, now: float = 0.0, offers: tuple[MachinePlace, ...] | None = None) -> MachinePlace | None:
    found = place(held, NeverLate(), now, offers)
    return found[0] if found is not None else None


def test_a_job_without_places_goes_where_its_engine_likes() -> None:
    assert place(queued(), NeverLate(), 0.0) == (MachinePlace(), "")


def test_the_first_place_is_the_best() -> None:
    assert goes(job()) == SPOT_A
    assert goes(lost(job(), SPOT_A)) == SPOT_A


def test_a_job_lost_twice_moves_to_another_zone_and_says_why() -> None:
    twice = lost(lost(job(), SPOT_A), SPOT_A, at=5.0)
    found = place(twice, NeverLate(), 10.0)
    assert found is not None
    assert found[0] == SPOT_B
    assert "eu-west-1a" in found[1]


def test_a_place_where_no_machine_came_is_left_at_once() -> None:
    assert goes(never_came(job(), SPOT_A)) == SPOT_B


def test_where_all_places_are_unlucky_the_one_longest_ago_is_next() -> None:
    seen: list[MachinePlace | None] = []
    held = replace(job(), spec=replace(job().spec, places=(SPOT_A, SPOT_B)))
    for turn in range(6):
        where = goes(held, float(turn))
        assert where is not None
        seen.append(where)
        held = never_came(held, where, at=float(turn + 1))
    assert seen == [SPOT_A, SPOT_B] * 3


def test_a_place_whose_price_changed_is_the_same_place() -> None:
    dearer = replace(SPOT_A, usd_per_hour=0.35)
    assert goes(job(), offers=(dearer, STAYS)) == dearer
    twice = lost(lost(job(), replace(SPOT_A, usd_per_hour=0.2)), SPOT_A, at=5.0)
    assert goes(twice) == SPOT_B


def test_the_zone_that_it_got_counts_for_the_place_that_left_it_open() -> None:
    anywhere, far = replace(SPOT_A, zone=""), replace(SPOT_A, zone="", region="eu-north-1")
    held = job(places=(anywhere, far, STAYS))
    held = lost(lost(held, replace(anywhere, zone="a")), replace(anywhere, zone="b"))
    assert goes(held) == far
    assert goes(lost(job(places=(anywhere, far)), replace(anywhere, zone="a"))) == anywhere  # once is no bad luck yet


def test_only_what_can_be_had_is_taken() -> None:
    assert goes(job(), offers=(SPOT_B, STAYS)) == SPOT_B
    assert goes(job(), offers=()) is None


def test_without_spot_on_offer_a_job_with_time_waits_and_one_without_pays() -> None:
    assert goes(job(deadline=1e6, expected_s=100.0), offers=(STAYS,)) is None
    assert goes(job(deadline=500.0, expected_s=100.0), offers=(STAYS,)) == STAYS


def test_the_deadline_decides_where_it_goes() -> None:
    assert goes(job(deadline=4000.0, expected_s=3600.0)) == STAYS
    assert goes(job(deadline=40_000.0, expected_s=3600.0)) == SPOT_A


def test_what_is_left_is_reckoned_by_what_is_saved() -> None:
    held = job(expected_s=1000.0, predicted={"steps": 100})
    gone = added(running(held, SPOT_A), Ended(1, Outcome.LOST, step=50, saved=40))
    assert rest_s(held) == 1000.0
    assert rest_s(gone) == 600.0
    assert rest_s(gone, steps=75) == 250.0
    assert rest_s(job()) is None


def test_a_measured_time_to_restart_is_used() -> None:
    tight = job(deadline=3700.0, expected_s=3600.0, predicted={"restart_s": 20.0})
    assert goes(tight) == SPOT_A
