"""Spot policies by name for whoever leads jobs. They compute with arrays, so they are imported when a job first needs one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.runner.named_policies import NamedPolicies

if TYPE_CHECKING:
    from chipwise.scale.spot import Begin


def named_policies() -> NamedPolicies:
    return NamedPolicies(lookup=_lookup)


def _lookup(name: str) -> Begin:
    from chipwise.api.policies import spot_policy

    return spot_policy(name)
