"""Which replicas may get a request: pools by model, the share of a canary, and policies by name."""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

from chipwise.errors import UnknownName
from chipwise.serving import policies
from chipwise.serving.policy import Draw, Policy
from chipwise.serving.replica import Replica
from chipwise.spelling import nearest


@dataclass(frozen=True, slots=True)
class ReplicaPool:
    """Replicas that serve the same models."""

    name: str
    replicas: tuple[Replica, ...]
    policy: Policy
    models: frozenset[str] = frozenset()  # empty: any
    canary_share: float = 0.0  # of the requests, to replicas that are canaries
    parks_s: float | None = None  # how long a request may wait while no replica is there; None: no longer than any other
    served: str = ""  # what clients call the model, where replicas that sleep cannot be asked

    @property
    def is_asleep(self) -> bool:
        """It has no replica because nobody asked, and gets one with the next request."""
        return self.parks_s is not None and all(replica.is_draining for replica in self.replicas)

    @property
    def waking_s(self) -> float:
        """How long a request may wait because no replica is there; 0: there is one, or none would come."""
        return (self.parks_s or 0.0) if all(replica.is_away or replica.is_draining for replica in self.replicas) else 0.0

    def candidates(self, now: float, tried_replicas: Sequence[Replica], draw: Draw) -> list[Replica]:
        """Replicas that may take a request; the canary's where chance says so, and the others where no such one may."""
        able = [replica for replica in self.replicas if replica.may_take(now)]
        if tried_replicas:
            able = [replica for replica in able if replica not in tried_replicas]
        if not self.canary_share:
            return able
        wants_canary = draw() < self.canary_share
        return [replica for replica in able if replica.is_canary == wants_canary] or able


def policy_names() -> list[str]:
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(policies.__path__))


def policy_named(name: str, draw: Draw) -> Policy:
    names = policy_names()
    if name not in names:
        raise UnknownName("routing policy", name, nearest(name, names), known=names)
    policy: Policy = import_module(f"chipwise.serving.policies.{name.replace('-', '_')}").policy(draw)
    return policy
