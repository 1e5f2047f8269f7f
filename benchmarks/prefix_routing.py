"""Cache hits of routing policies on recorded conversations, with four replicas: prefix affinity against round robin.

python benchmarks/run.py prefix_routing      $CHIPWISE_TRACES names the folder of traces

The trace is Mooncake's (github.com/kvcache-ai/Mooncake, FAST25-release/traces/conversation_trace.jsonl, Apache-2.0): an hour
of arrivals, lengths, and blocks of 512 tokens by identity. The weight of recent load is chosen on the first half hour: the
largest whose hits are within 1% of the most, at an imbalance of at most MOST_IMBALANCE. Larger ones protect a service whose
requests all share a prompt. Everything else is measured on the second half hour, with empty caches.
A replica keeps its last CACHE_BLOCKS blocks, while the policy assumes its own number of them, and works off tokens at one rate,
60% of which is needed on average. Imbalance is the busiest replica's work over the mean, of the whole half hour.
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

from chipwise.serving.policies.prefix_affinity import RECENT_WEIGHT, PrefixAffinity
from chipwise.serving.policy import Policy, RouteQuery
from chipwise.serving.replica import Address, Replica
from chipwise.serving.routing import policy_named
from figure import Figure

REPLICAS = 4
BLOCK_TOKENS = 512
CACHE_BLOCKS = (2000, 3000, 10_000)  # of each replica
JUDGED = 3000  # round robin hits 9.7% with it
BUSY = 0.6
MOST_IMBALANCE = 1.1
AS_GOOD = 0.99  # of the most hits
WEIGHTS = (0.0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
TRACE = Path("load_mooncake") / "conversation_trace.jsonl.gz"
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


def chosen_weight(requests: Sequence[Request]) -> float:
    outcomes = {weight: play(requests, PrefixAffinity(recent_weight=weight), JUDGED) for weight in WEIGHTS}
    hits = {weight: outcome.hit_share for weight, outcome in outcomes.items() if outcome.imbalance <= MOST_IMBALANCE}
    return max((weight for weight, share in hits.items() if share >= AS_GOOD * max(hits.values())), default=float("nan"))


def figures() -> Iterator[Figure]:
    folder = os.environ.get("CHIPWISE_TRACES")
    path = Path(folder or "") / TRACE
    if not folder or not path.exists():
        print(f"prefix_routing: $CHIPWISE_TRACES has no {TRACE}, so nothing is measured", file=sys.stderr)
        return
    requests = read(path)
    middle = (requests[0].at_s + requests[-1].at_s) / 2.0
    first = [request for request in requests if request.at_s < middle]
    second = requests[len(first) :]
    weight = chosen_weight(first)
    yield Figure("prefix_routing_weight_chosen_on_first_half", weight, "weight", {})
    yield Figure("prefix_routing_weight_shipped", RECENT_WEIGHT, "weight", {"min": weight, "max": weight})
    for cache_blocks in CACHE_BLOCKS:
        chance = random.Random(1)
        outcomes = {
            name: play(second, policy_named(name, chance.random), cache_blocks)
            for name in ("round-robin", "least-work", "two-choices", "prefix-affinity")
        }
        for name, outcome in outcomes.items():
            yield Figure(f"{name} hits, {cache_blocks} blocks", outcome.hit_share, "share", {})
        ours, plain = outcomes["prefix-affinity"], outcomes["round-robin"]
        is_judged = cache_blocks == JUDGED
        ratio = ours.hit_share / plain.hit_share
        yield Figure(f"prefix_routing_gain_{cache_blocks}", ratio, "times", {"min": 1.8} if is_judged else {})
        limit = {"max": MOST_IMBALANCE} if is_judged else {}
        yield Figure(f"prefix_routing_imbalance_{cache_blocks}", ours.imbalance, "times", limit)
