"""Jobs that name a spot policy, on the simulated engine: the policy decides, never late, and its story says what it saved."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.adapters.engines.simulated.play import simulate
from chipwise.adapters.engines.simulated.world import Loss, Pool, Program, World
from chipwise.api.running.spot_rules import named_policies, undecided
from chipwise.catalog.offer import Purchase
from chipwise.runner.job import Phase, Spec
from chipwise.runner.played import Played
from chipwise.views.played import story
from command import Chipwise
from effort import cases
from run_jobs import SPOT_A, SPOT_B, STAYS, spec

HOUR = 3600.0
PROGRAM = Program(360, 10.0, 30)
ON_SPOT = spec(places=(SPOT_A, SPOT_B, STAYS), expected_s=HOUR, predicted={"steps": 360}, deadline=3 * HOUR)
FAST = ("greedy", "on-demand", "plain", "slack", "uniform-progress")


def play(wanted: Spec, world: World, seed: int = 0) -> Played:
    return simulate([("j1", wanted)], world, seed, policy=named_policies())


def test_each_policy_decides_in_place_of_the_plain_rule_and_says_what_it_saved() -> None:
    world = World((Pool(SPOT_A), Pool(SPOT_B), Pool(STAYS)), other=PROGRAM)
    for name in FAST:
        done = play(replace(ON_SPOT, policy=name), world)
        wanted = {Purchase.ON_DEMAND} if name == "on-demand" else {Purchase.SPOT}
        assert {purchase for purchase, hours in done.hours.items() if hours} == wanted, name
        ending = "it cost about" if name == "on-demand" else "the plain rule would have spent as much"
        assert any(f"policy {name}: $" in text and ending in text for _, text in story(done)), name


def test_a_policy_that_does_as_the_plain_rule_does_saves_nothing_whatever_the_tick() -> None:
    """The job runs and pays to the second, the plain rule is replayed in whole ticks."""
    world = World((Pool(SPOT_A), Pool(STAYS)), other=Program(1370, 10.0, 30))
    wanted = replace(ON_SPOT, expected_s=13_700.0, predicted={"steps": 1370}, deadline=40 * HOUR, policy="plain")
    [line] = [text for _, text in story(play(wanted, world)) if text.startswith("policy ")]
    assert "the plain rule would have spent as much" in line


def test_a_policy_that_lacks_what_it_needs_says_what_and_what_is_done_instead() -> None:
    lacking = {
        "it has no deadline, so the plain rule of run decides": {"deadline": None},
        "it has no estimate of its time": {"expected_s": None},
        "on-demand machines of the same kind are not among its choices, so it stays on spot": {"places": (SPOT_A,)},
        "it does not run on spot machines": {"places": (STAYS,)},
        "it has no prices": {"places": (replace(SPOT_A, usd_per_hour=None), STAYS)},
        "its work does not fit before its deadline": {"deadline": HOUR / 2},
    }
    for sentence, change in lacking.items():
        wanted = replace(ON_SPOT, policy="greedy", **change)  # type: ignore[arg-type]
        [line] = undecided("train", wanted, 0.0)
        assert line.startswith("train: the policy greedy has nothing to decide: ")
        assert sentence in line, sentence
    assert undecided("train", replace(ON_SPOT, policy="greedy"), 0.0) == []
    assert undecided("train", ON_SPOT, 0.0) == []


def test_a_command_with_a_policy_hears_at_once_that_there_is_nothing_to_decide(chipwise: Chipwise) -> None:
    done = chipwise("run", "--simulate", "--policy", "greedy", "--", "sleep", "1")
    assert done.code == 0
    assert "has nothing to decide: it does not run on spot machines" in " ".join(done.out.split())
    assert "nothing to compare" not in done.out


def test_the_learned_policy_takes_spot_and_goes_on_demand_in_time() -> None:
    shut = ((600.0, 3 * HOUR),)
    world = World((Pool(SPOT_A, closed=shut), Pool(STAYS)), losses=(Loss(600.0),), other=PROGRAM)
    done = play(replace(ON_SPOT, places=(SPOT_A, STAYS), policy="learned-survival", deadline=2 * HOUR), world)
    assert done.courses[0].job.phase is Phase.DONE
    assert done.late == ()
    assert done.hours[Purchase.SPOT] > 0
    assert done.hours[Purchase.ON_DEMAND] > 0


def test_a_job_without_a_policy_has_no_such_line() -> None:
    done = play(ON_SPOT, World((Pool(SPOT_A), Pool(STAYS)), other=PROGRAM))
    assert not any("the plain rule" in text for _, text in story(done))


def test_a_policy_without_a_deadline_leaves_it_to_the_plain_rule() -> None:
    done = play(replace(ON_SPOT, policy="on-demand", deadline=None), World((Pool(SPOT_A), Pool(STAYS)), other=PROGRAM))
    assert set(done.hours) == {Purchase.SPOT}
    assert any("decided nothing: it has no deadline" in text for _, text in story(done))


@settings(max_examples=cases(12))
@given(
    name=st.sampled_from(FAST),
    losses=st.lists(st.tuples(st.floats(0, 2 * HOUR), st.sampled_from([0.0, 120.0])), max_size=4),
    closed=st.lists(st.tuples(st.floats(0, 2 * HOUR), st.floats(60, HOUR)), max_size=2),
    slack_s=st.floats(700, 3 * HOUR),
    rate=st.floats(0, 6),
    seed=st.integers(0, 99),
)
def test_no_policy_is_late_when_the_time_on_machines_that_stay_fits(
    name: str, losses: list[tuple[float, float]], closed: list[tuple[float, float]], slack_s: float, rate: float, seed: int
) -> None:
    shut = tuple((since, since + lasts) for since, lasts in closed)
    spot = tuple(Pool(where, interruptions_per_hour=rate, closed=shut) for where in (SPOT_A, SPOT_B))
    world = World((*spot, Pool(STAYS)), losses=tuple(Loss(at, notice) for at, notice in losses), other=PROGRAM)
    done = play(replace(ON_SPOT, policy=name, deadline=HOUR + slack_s), world, seed)
    assert done.courses[0].job.phase is Phase.DONE
    assert done.late == ()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("gredy", "Did you mean greedy?"),
        ("mine.py", "run takes policies by name"),
        (
            "patient-zones",
            "is a policy for spot machines in several zones, not for spot machines in one zone. For these there are",
        ),
        ("fifo", "is a policy for the order of a queue"),
    ],
)
def test_a_policy_that_is_not_there_ends_in_a_sentence(chipwise: Chipwise, name: str, sentence: str) -> None:
    done = chipwise("run", "--simulate", "--policy", name, "--", "true")
    assert done.code == 2
    assert sentence in done.err
