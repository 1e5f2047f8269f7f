"""A session stays with one replica while that one can take it: highest random weight of session and replica.

When a replica joins or leaves, only the sessions that it gets or had move (D. Thaler, C. Ravishankar, 1998). Requests without a
session, and those of sessions whose replica has far more work than the least busy one, go to the least busy one.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from chipwise.serving.policies.least_work import LeastWork
from chipwise.serving.policy import Draw, Policy, RouteQuery
from chipwise.serving.replica import Replica

ABOUT = "requests of one session to one replica, unless it is far busier than the others"
BOUND = 2.0  # times the mean outstanding work of the candidates


def policy(draw: Draw) -> Policy:
    return SessionAffinity()


class SessionAffinity:
    needs_blocks = False

    def __init__(self) -> None:
        self._otherwise = LeastWork()

    def choose(self, ask: RouteQuery, candidates: Sequence[Replica]) -> Replica:
        if not ask.session:
            return self._otherwise.choose(ask, candidates)
        home = max(candidates, key=lambda replica: _weight(ask.session, replica.name))
        mean = sum(replica.tokens for replica in candidates) / len(candidates)
        if home.tokens + ask.tokens > BOUND * (mean + ask.tokens):
            return self._otherwise.choose(ask, candidates)
        return home


def _weight(session: str, name: str) -> bytes:
    return blake2b(f"{session}\0{name}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
