"""Routing policies as decisions: who gets a request, given what is known."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from chipwise.errors import UnknownName
from chipwise.serving.breaker import CLOSED, BreakerRule
from chipwise.serving.policies.prefix_affinity import PrefixAffinity
from chipwise.serving.policy import RouteQuery
from chipwise.serving.replica import Address, Replica
from chipwise.serving.routing import ReplicaPool, policy_named, policy_names


def replicas(*tokens: float) -> list[Replica]:
    return [Replica(f"r{number}", Address("127.0.0.1", number), tokens=load) for number, load in enumerate(tokens)]


@pytest.mark.parametrize("name", policy_names())
def test_every_policy_chooses_a_candidate_whatever_is_asked(name: str) -> None:
    chance = random.Random(3)
    policy = policy_named(name, chance.random)
    for _ in range(200):
        candidates = replicas(*(chance.choice((0.0, 10.0, 1e6)) for _ in range(chance.randint(1, 5))))
        blocks = tuple(chance.sample(range(20), chance.randint(0, 5)))
        ask = RouteQuery(100.0, 50.0, blocks, 16.0, chance.choice(("", "a", "b")))
        assert policy.choose(ask, candidates) in candidates


def test_unknown_policies_are_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="round-robin"):
        policy_named("round-robbin", random.random)


def test_round_robin_is_even() -> None:
    policy, candidates = policy_named("round-robin", random.random), replicas(0, 0, 0)
    assert set(Counter(policy.choose(RouteQuery(1, 1), candidates).name for _ in range(30)).values()) == {10}


def test_least_work_takes_the_least_busy_and_turns_among_equals() -> None:
    policy = policy_named("least-work", random.random)
    assert policy.choose(RouteQuery(1, 1), replicas(5, 3, 4)).name == "r1"
    candidates = replicas(1, 1, 1)
    assert {policy.choose(RouteQuery(1, 1), candidates).name for _ in range(3)} == {"r0", "r1", "r2"}


def test_two_choices_never_takes_the_busiest() -> None:
    policy, candidates = policy_named("two-choices", random.Random(1).random), replicas(1, 2, 3)
    assert "r2" not in {policy.choose(RouteQuery(1, 1), candidates).name for _ in range(200)}


def test_a_session_stays_until_its_replica_is_far_busier_and_only_its_own_sessions_move() -> None:
    policy, candidates = policy_named("session-affinity", random.random), replicas(0, 0, 0, 0)
    homes = {name: policy.choose(RouteQuery(1, 1, session=name), candidates) for name in map(str, range(200))}
    assert all(policy.choose(RouteQuery(1, 1, session=name), candidates) is home for name, home in homes.items())
    assert min(Counter(home.name for home in homes.values()).values()) > 25
    left = candidates[:3]
    moved = [name for name, home in homes.items() if policy.choose(RouteQuery(1, 1, session=name), left) is not home]
    assert all(homes[name] is candidates[3] for name in moved)
    homes["1"].tokens = 1000.0
    assert policy.choose(RouteQuery(1, 1, session="1"), candidates) is not homes["1"]


def test_a_prompt_goes_where_its_prefix_is_unless_that_replica_is_too_busy() -> None:
    policy, candidates = PrefixAffinity(), replicas(0, 0, 0)
    ask = RouteQuery(4000.0, 10.0, (1, 2, 3, 4), 1000.0)
    home = policy.choose(ask, candidates)
    policy.choose(RouteQuery(4000.0, 10.0, (7, 8, 9), 1000.0), candidates)
    assert policy.choose(RouteQuery(5000.0, 10.0, (1, 2, 3, 4, 5), 1000.0), candidates) is home
    home.tokens = 100_000.0
    assert policy.choose(ask, candidates) is not home


def test_a_prefix_that_all_share_does_not_gather_everything_on_one_replica() -> None:
    policy, candidates = PrefixAffinity(), replicas(0, 0, 0, 0)
    counts = Counter(policy.choose(RouteQuery(2000.0, 100.0, (1, 1000 + n), 1000.0), candidates).name for n in range(2000))
    assert max(counts.values()) < 1.1 * 500


def test_a_replica_that_joins_is_not_flooded() -> None:
    policy, candidates = PrefixAffinity(), replicas(0, 0, 0, 0)
    for number in range(400):
        policy.choose(RouteQuery(1000.0, 100.0, (number,), 1000.0), candidates[:3])
    counts = Counter(policy.choose(RouteQuery(1000.0, 100.0, (1000 + n,), 1000.0), candidates).name for n in range(100))
    assert counts["r3"] < 40


def test_what_a_cache_has_dropped_is_not_counted_on() -> None:
    policy, candidates = PrefixAffinity(cache_blocks=10), replicas(0, 0)
    home = policy.choose(RouteQuery(1000.0, 0.0, (1,), 1000.0), candidates)
    for number in range(100, 140):
        policy.choose(RouteQuery(1000.0, 0.0, (number,), 1000.0), [home])
    assert policy.choose(RouteQuery(1000.0, 0.0, (1,), 1000.0), candidates) is not home


def test_canaries_get_their_share_and_broken_ones_nothing() -> None:
    members = replicas(0, 0)
    members[1].is_canary = True
    chance = random.Random(1)
    pool = ReplicaPool("main", tuple(members), policy_named("round-robin", chance.random), canary_share=0.1)
    names = [pool.candidates(0.0, (), chance.random)[0].name for _ in range(2000)]
    assert 150 < names.count("r1") < 250
    for _ in range(5):
        members[1].breaker = members[1].breaker.failed(BreakerRule(), 0.0)
    assert {pool.candidates(0.0, (), chance.random)[0].name for _ in range(50)} == {"r0"}


def test_a_breaker_opens_after_failures_in_a_row_and_closes_after_one_trial() -> None:
    rule = BreakerRule(failures=3, open_s=2.0, longest_open_s=6.0)
    breaker = CLOSED
    for _ in range(3):
        assert breaker.allows(0.0)
        breaker = breaker.failed(rule, 0.0)
    assert not breaker.allows(1.9)
    assert breaker.allows(2.0)
    trial = breaker.sent()
    assert not trial.allows(2.0)  # one at a time
    assert trial.given_up().allows(2.0)
    again = trial.failed(rule, 2.0)
    assert not again.allows(5.9)
    assert again.allows(6.0)
    assert again.sent().failed(rule, 6.0).open_until == 12.0  # at most six seconds
