"""Who runs next: devices are never given twice, quotas hold, nobody starves, and nothing depends on chance."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.runner.engine import Room
from chipwise.runner.events import Ended, Placed
from chipwise.runner.job import Job, MachinePlace, Outcome, Phase
from chipwise.runner.queue import Rules, Share, admit, why_waiting
from chipwise.runner.reservation import Seat
from effort import cases
from run_jobs import added, asking, queued, running, spec

ROOM = Room(tuple(range(8)), tuple(range(32)))
RULES = Rules({"a": Share(gpus=4, weight=3.0), "b": Share(cpus=10), "none": Share(gpus=0)})

jobs_waiting = st.lists(
    st.builds(
        lambda gpus, cpus, team, priority, at, lasts: {
            "gpus": gpus,
            "cpus": cpus,
            "team": team,
            "priority": priority,
            "at": at,
            "expected_s": lasts,
        },
        st.integers(0, 9),
        st.integers(1, 12),
        st.sampled_from(["a", "b", "c", "none", ""]),
        st.integers(-1, 1),
        st.floats(0, 100),
        st.none() | st.floats(1, 1000),
    ),
    max_size=25,
)


def made(rows: list[dict[str, object]]) -> list[Job]:
    return [asking(f"j{number}", **row) for number, row in enumerate(rows)]  # type: ignore[arg-type]


def seated(seats: list[Seat], now: float = 0.0) -> list[Job]:
    return [running(seat.job, gpus=seat.gpus, cpus=seat.cpus, at=now) for seat in seats]


def ids(seats: list[Seat]) -> list[str]:
    return [seat.job.id for seat in seats]


@settings(max_examples=cases(40))
@given(jobs_waiting, jobs_waiting)
def test_no_device_is_given_twice_and_each_gets_what_it_needs(
    before: list[dict[str, object]], rows: list[dict[str, object]]
) -> None:
    held = seated(admit(made(before), ROOM, RULES, 200.0))
    later = [replace(job, id=f"later-{job.id}") for job in made(rows)]
    seats = admit([*held, *later], ROOM, RULES, 300.0)
    gpus = [one for job in [*held, *seated(seats)] for one in job.attempts[-1].devices]
    cpus = [one for job in [*held, *seated(seats)] for one in job.attempts[-1].cpus]
    assert len(set(gpus)) == len(gpus)
    assert len(set(cpus)) == len(cpus)
    assert set(gpus) <= set(ROOM.gpus or ())
    assert all((len(seat.gpus), len(seat.cpus)) == (seat.job.spec.needs.gpus, seat.job.spec.needs.cpus) for seat in seats)


@settings(max_examples=cases(40))
@given(jobs_waiting)
def test_no_team_holds_more_than_its_quota(rows: list[dict[str, object]]) -> None:
    held: Counter[tuple[str, str]] = Counter()
    for seat in admit(made(rows), ROOM, RULES, 200.0):
        held[seat.job.spec.team, "gpus"] += len(seat.gpus)
        held[seat.job.spec.team, "cpus"] += len(seat.cpus)
    assert held["a", "gpus"] <= 4
    assert held["b", "cpus"] <= 10
    assert held["none", "gpus"] == 0


@settings(max_examples=cases(40))
@given(jobs_waiting, st.randoms(use_true_random=False))
def test_the_order_in_which_jobs_are_listed_does_not_matter(rows: list[dict[str, object]], random: Random) -> None:
    jobs = made(rows)
    shuffled = random.sample(jobs, len(jobs))
    assert admit(jobs, ROOM, RULES, 200.0) == admit(shuffled, ROOM, RULES, 200.0)


@settings(max_examples=cases(40))
@given(jobs_waiting)
def test_what_starts_has_no_better_one_of_the_same_needs_waiting_behind_it(rows: list[dict[str, object]]) -> None:
    """Of two alike in team and needs the one of higher priority, then the older, goes first."""
    jobs = [replace(job, spec=replace(job.spec, expected_s=None, longest_s=None)) for job in made(rows)]
    started = set(ids(admit(jobs, ROOM, Rules(), 200.0)))
    for one in jobs:
        for other in jobs:
            if one.spec.team == other.spec.team and one.spec.needs == other.spec.needs:
                before = (-one.spec.priority, one.submitted, one.id) < (-other.spec.priority, other.submitted, other.id)
                assert not (before and other.id in started and one.id not in started)


def test_higher_priority_goes_first_and_then_who_came_first() -> None:
    jobs = [asking("late", 8, at=5.0), asking("early", 8, at=1.0), asking("urgent", 8, at=9.0, priority=1)]
    assert ids(admit(jobs, ROOM, Rules(), 10.0)) == ["urgent"]
    assert ids(admit(jobs[:2], ROOM, Rules(), 10.0)) == ["early"]


def test_a_job_is_not_started_before_its_time() -> None:
    job = replace(asking("j1"), not_before=50.0)
    assert admit([job], ROOM, Rules(), 49.0) == []
    assert ids(admit([job], ROOM, Rules(), 50.0)) == ["j1"]


def test_a_job_that_no_machine_could_hold_keeps_nothing_from_others() -> None:
    huge = asking("huge", 9, priority=5)
    assert ids(admit([huge, asking("small", 8)], ROOM, Rules(patience_s=10.0), 1e6)) == ["small"]


def test_a_job_over_its_quota_keeps_nothing_from_others() -> None:
    over = asking("over", 8, team="a", priority=5)
    assert ids(admit([over, asking("small", 8)], ROOM, RULES, 1e6)) == ["small"]


@dataclass
class Line:
    """A machine with its queue, played with durations that are kept to."""

    room: Room
    rules: Rules
    waiting: list[Job]
    lasts: dict[str, float]
    placed: list[Job]
    begun: dict[str, float]

    def play(self, now: float) -> None:
        self.placed = [job for job in self.placed if self.begun[job.id] + self.lasts[job.id] > now]
        for seat in admit([*self.placed, *self.waiting], self.room, self.rules, now):
            self.placed.append(running(seat.job, gpus=seat.gpus, cpus=seat.cpus, at=now))
            self.begun[seat.job.id] = now
        self.waiting = [job for job in self.waiting if job.id not in self.begun]

    def run(self, until: float) -> None:
        now = 0.0
        while now <= until and (self.waiting or self.placed):
            self.play(now)
            ends = [self.begun[job.id] + self.lasts[job.id] for job in self.placed]
            now = min([end for end in ends if end > now], default=now + 1.0)


def line(jobs: list[Job], lasts: dict[str, float], room: Room = ROOM, rules: Rules | None = None) -> Line:
    return Line(room, rules or Rules(), jobs, lasts, [], {})


@settings(max_examples=cases(30))
@given(st.lists(st.tuples(st.integers(1, 8), st.integers(1, 40)), min_size=1, max_size=15), st.integers(1, 30))
def test_backfill_never_delays_the_first_that_waits_when_limits_are_true(rows: list[tuple[int, int]], first_lasts: int) -> None:
    """The first that does not fit starts no later than it would if nobody came after it."""
    ahead: list[Job] = []
    for n, (gpus, lasts_s) in enumerate(rows[:5]):
        if sum(job.spec.needs.gpus for job in ahead) + gpus <= 8:
            ahead.append(asking(f"a{n}", gpus, 0, at=-10.0, longest_s=float(lasts_s)))
    big = asking("big", 8, 0, at=-5.0, longest_s=float(first_lasts))
    behind = [asking(f"b{n}", gpus, 0, at=-1.0, longest_s=float(lasts_s)) for n, (gpus, lasts_s) in enumerate(rows[5:])]
    lasts = {job.id: job.spec.longest_s or 0.0 for job in [*ahead, big, *behind]}
    alone, crowded = line([*ahead, big], lasts), line([*ahead, big, *behind], lasts)
    alone.run(1000.0)
    crowded.run(1000.0)
    assert crowded.begun["big"] <= alone.begun["big"]


def test_backfill_uses_what_would_stand_idle() -> None:
    runs = running(asking("runs", 6, longest_s=100.0), gpus=range(6), cpus=(0,))
    big = asking("big", 8, at=1.0)
    short, long = asking("short", 2, at=2.0, longest_s=50.0), asking("long", 2, at=2.0, longest_s=500.0)
    assert ids(admit([runs, big, short], ROOM, Rules(), 10.0)) == ["short"]
    assert ids(admit([runs, big, long], ROOM, Rules(), 10.0)) == []


def test_a_later_one_goes_ahead_into_what_the_first_leaves_over() -> None:
    runs = running(asking("runs", 6, longest_s=100.0), gpus=range(6), cpus=(0,))
    first = asking("first", 6, at=1.0)
    assert ids(admit([runs, first, asking("x", 2, at=2.0), asking("y", 1, at=3.0)], ROOM, Rules(), 10.0)) == ["x"]


@settings(max_examples=cases(12))
@given(st.integers(1, 4), st.integers(2, 20), st.integers(0, 9))
def test_a_big_job_starts_within_its_patience_and_one_job_more_however_many_small_ones_come_after_it(
    size: int, lasts: int, seed: int
) -> None:
    """Nobody says how long anything takes."""
    random, rules = Random(seed), Rules(patience_s=30.0)
    big = asking("big", 8, 0, at=0.0, team="big")
    first = [asking(f"f{n}", size, 0, at=-1.0, team="x") for n in range(8 // size)]
    small = [asking(f"s{n}", size, 0, at=random.uniform(0.1, 1.0), team=random.choice("xy")) for n in range(100)]
    durations = {job.id: random.uniform(1.0, lasts) for job in [big, *first, *small]}
    played = line([big, *first, *small], durations, rules=rules)
    played.run(200.0)
    assert 0.0 < played.begun["big"] <= 30.0 + lasts + 1.0


def test_shares_follow_the_weights() -> None:
    rules = Rules({"a": Share(weight=3.0), "b": Share(weight=1.0)})
    jobs = [asking(f"{team}{n}", 1, 0, team=team) for team in "ab" for n in range(400)]
    played = line(jobs, {job.id: 1.0 + n % 7 for n, job in enumerate(jobs)}, rules=rules)
    served: Counter[str] = Counter()
    for now in range(100):
        played.play(float(now))
        served.update(job.spec.team for job in played.placed)
    assert served["a"] / served["b"] == pytest.approx(3.0, rel=0.1)


def test_teams_take_turns_where_there_is_room_for_one_job_only() -> None:
    jobs = [asking(f"{team}{n}", 8, 0, team=team, at=float(2 * n + (team == "a"))) for team in "ab" for n in range(20)]
    played = line(jobs, {job.id: 5.0 for job in jobs})
    played.run(100.0)
    teams = Counter(id[0] for id in played.begun)
    assert abs(teams["a"] - teams["b"]) <= 1


def test_a_team_that_holds_less_goes_first() -> None:
    held = running(asking("held", 4, team="a"), gpus=range(4), cpus=(0,))
    waiting = [asking("a1", 4, team="a", at=1.0), asking("b1", 4, team="b", at=2.0)]
    assert ids(admit([held, *waiting], ROOM, Rules(), 10.0)) == ["b1"]


# Why one waits, in words


def why(job: Job, *others: Job, rules: Rules | None = None, room: Room = ROOM, now: float = 100.0) -> str:
    return why_waiting(job, [job, *others], room, rules or Rules(), now)


def test_a_full_quota_is_told_with_its_numbers() -> None:
    rules = Rules({"a": Share(gpus=8)})
    held = running(asking("held", 8, team="a"), gpus=range(8), cpus=(0,))
    ahead = [asking(f"x{n}", 1, team="a", at=float(n)) for n in range(2)]
    waits = asking("j", 2, team="a", at=50.0)
    assert why(waits, held, *ahead, rules=rules, room=Room(tuple(range(16)), tuple(range(32)))) == (
        "team a: 8 of 8 GPUs in use, and 2 are needed; 2 jobs ahead"
    )


def test_the_quota_that_is_full_is_the_one_that_is_told() -> None:
    rules = Rules({"a": Share(gpus=8, cpus=4)})
    held = running(asking("held", 1, 4, team="a"), gpus=(0,), cpus=range(4))
    assert why(asking("j", 1, 1, team="a"), held, rules=rules) == "team a: 4 of 4 CPUs in use, and 1 is needed"


def test_what_can_never_start_is_told() -> None:
    assert why(asking("j", 16)) == "16 GPUs are needed, and there are 8: it cannot start here"
    assert why(asking("j", 1, team="none"), rules=RULES) == (
        "team none may use 0 GPUs, and 1 is needed: it cannot start until that is raised"
    )


def test_what_is_missing_is_told() -> None:
    held = running(asking("held", 7), gpus=range(7), cpus=(0,))
    assert why(asking("j", 2, at=5.0), held, asking("x", 2)) == "2 GPUs are needed, and 1 of 8 is free; 1 job ahead"


def test_turns_retries_and_jobs_before_are_told() -> None:
    assert why(asking("j")) == "next in the queue"
    assert why(asking("j", at=5.0), asking("x")) == "1 job ahead"
    failed = replace(asking("j"), not_before=105.0, waiting="failed: exit code 1")
    assert why(failed) == "tried again in 5 s: failed: exit code 1"
    assert why(queued("j", spec("second", after=("x",))), queued("x", spec("prepare"))) == "waits for prepare"


def test_an_engine_that_finds_machines_says_itself_why_one_waits() -> None:
    assert why(asking("j", 2), room=Room()) == "its engine is looking for machines"
    assert why(replace(asking("j", 2), waiting="no spot"), room=Room()) == "no spot"


def test_a_job_that_is_over_holds_nothing() -> None:
    ended = added(asking("j", 8), Placed(1, MachinePlace(), tuple(range(8))), Ended(1, Outcome.LOST))
    assert ended.phase is Phase.QUEUED
    assert ids(admit([ended], ROOM, Rules(), 1.0)) == ["j"]
