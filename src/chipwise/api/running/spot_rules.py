"""Spot policies by name for whoever leads jobs. They compute with arrays, so they are imported when a job first needs one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.runner.job import Spec
from chipwise.runner.named_policies import NamedPolicies
from chipwise.runner.next_machine import restart_s

if TYPE_CHECKING:
    from chipwise.scale.spot import Begin


def named_policies() -> NamedPolicies:
    return NamedPolicies(lookup=_lookup)


def undecided(title: str, spec: Spec, now: float) -> list[str]:
    """Where a job names a policy that has nothing to decide: why, and what happens instead."""
    if not spec.policy:
        return []
    from chipwise.runner.spot_choices import lack

    reason = lack(spec, now, restart_s(spec))
    return [f"{title}: the policy {spec.policy} has nothing to decide: {reason}."] if reason else []


def _lookup(name: str) -> Begin:
    from chipwise.scale.policy_files import spot_policy

    return spot_policy(name)
