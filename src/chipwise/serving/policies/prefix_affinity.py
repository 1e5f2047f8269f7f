"""Match minus load: the replica that has most of the prompt in its cache, less what it is busier than the least busy one.

A replica's cache is not asked for: every block that was sent to it is assumed to be there until enough others came after it.
Load has two parts. Outstanding work counts in full, token for token. Work that was sent lately counts a little: without it a
system prompt that all requests share would send everything to one replica while the load is low. What was sent lately is halved
whenever much has been sent, so a replica that was away or is new is not flooded to make up for it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from chipwise.serving.policy import Draw, Policy, RouteQuery
from chipwise.serving.replica import Replica

ABOUT = "the replica that has most of the prompt in its cache, less its load"
CACHE_BLOCKS = 20_000  # remembered for each replica
OUTSTANDING_WEIGHT = 0.1  # tokens of cache that a token of outstanding work outweighs; replicas work on many requests at once
RECENT_WEIGHT = 0.01  # chosen on one half of a trace and measured on the other: benchmarks/prefix_routing.py
RECENT_TOKENS = 8_000_000.0  # sent to all replicas together, after which what was sent lately is halved


def policy(draw: Draw) -> Policy:
    return PrefixAffinity()


class PrefixAffinity:
    needs_blocks = True

    def __init__(self, cache_blocks: int = CACHE_BLOCKS, recent_weight: float = RECENT_WEIGHT) -> None:
        self._cache_blocks = cache_blocks
        self._recent_weight = recent_weight
        self._caches: dict[str, OrderedDict[int, None]] = {}
        self._recent: dict[str, float] = {}
        self._sent = 0.0

    def choose(self, ask: RouteQuery, candidates: Sequence[Replica]) -> Replica:
        caches, recent = self._caches, self._recent
        for replica in candidates:
            if replica.name not in caches:
                self._join(replica.name)
        least_work = min(replica.tokens for replica in candidates)
        least_recent = min(recent[replica.name] for replica in candidates)
        best, best_score, best_match = candidates[0], float("-inf"), 0.0
        for replica in candidates:
            match = _matched(ask.blocks, caches[replica.name]) * ask.block_tokens
            load = OUTSTANDING_WEIGHT * (replica.tokens - least_work)
            load += self._recent_weight * (recent[replica.name] - least_recent)
            if match - load > best_score:
                best, best_score, best_match = replica, match - load, match
        self._remember(best.name, ask, ask.tokens - min(best_match, ask.prompt_tokens))
        return best

    def _join(self, name: str) -> None:
        self._caches[name] = OrderedDict()
        self._recent[name] = sum(self._recent.values()) / len(self._recent) if self._recent else 0.0

    def _remember(self, name: str, ask: RouteQuery, work: float) -> None:
        cache = self._caches[name]
        for block in reversed(ask.blocks):  # the first is the newest: without it the others cannot be used
            cache[block] = None
            cache.move_to_end(block)
        while len(cache) > self._cache_blocks:
            cache.popitem(last=False)
        self._recent[name] += work
        self._sent += work
        if self._sent > RECENT_TOKENS:
            self._sent = 0.0
            self._recent = {other: tokens / 2.0 for other, tokens in self._recent.items()}


def _matched(blocks: Sequence[int], cache: OrderedDict[int, None]) -> int:
    for position, block in enumerate(blocks):
        if block not in cache:
            return position
    return len(blocks)
