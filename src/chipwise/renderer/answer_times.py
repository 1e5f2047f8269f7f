"""How long an answer takes, usually and at worst, and how many tokens a request may hold."""

from __future__ import annotations

import math

from chipwise.planner.values.choice import Choice
from chipwise.workload.common import Common
from chipwise.workload.demand import Length
from chipwise.workload.kinds import Serve
from chipwise.workload.model.registry import Model as Known

TOKEN_S = 0.03  # of a token after the first, where no goal asks how long it takes


def answer_s(work: Common, choice: Choice) -> float | None:
    """From request to complete answer, as far as the plan says it: at once, or by its first and its further tokens."""
    seconds_by_goal = {goal.partition(" ")[0]: seconds for goal, seconds in choice.latency.items()}
    if "latency" in seconds_by_goal or not isinstance(work, Serve) or work.output_tokens is None:
        return seconds_by_goal.get("latency")
    if not seconds_by_goal:
        return None
    return seconds_by_goal.get("ttft", 0.0) + seconds_by_goal.get("tpot", TOKEN_S) * work.output_tokens.mean


def usual_answer_s(work: Common, choice: Choice) -> float | None:
    """The same of an answer of the mean length, by the lowest percentiles that are predicted: what counts on average."""
    lowest = {
        name: min((seconds for goal, seconds in choice.latency.items() if goal.startswith(name)), default=None)
        for name in ("latency", "ttft", "tpot")
    }
    tokens = work.output_tokens if isinstance(work, Serve) else None
    token_s = TOKEN_S if token_assumed(work, choice) else lowest["tpot"]
    if tokens is not None and token_s is not None:
        by_tokens = (lowest["ttft"] or 0.0) + token_s * tokens.mean
        return by_tokens if lowest["latency"] is None else min(by_tokens, lowest["latency"])
    return lowest["latency"]


def token_assumed(work: Common, choice: Choice) -> bool:
    """The plan predicts the first token of an answer alone: how long the others take is `TOKEN_S`."""
    kinds = {goal.partition(" ")[0] for goal in choice.latency}
    return isinstance(work, Serve) and work.output_tokens is not None and kinds == {"ttft"}


def longest_s(work: Common, choice: Choice) -> float | None:
    """From request to complete answer of the longest one: by the worst latency that is predicted, and by its most tokens, each
    as long as predicted or as assumed."""
    worst = {
        name: max((seconds for goal, seconds in choice.latency.items() if goal.startswith(name)), default=None)
        for name in ("latency", "ttft", "tpot")
    }
    seconds = [worst["latency"]] if worst["latency"] is not None else []
    tokens = work.output_tokens if isinstance(work, Serve) else None
    token_s = TOKEN_S if token_assumed(work, choice) else worst["tpot"]
    if tokens is not None and token_s is not None:
        seconds.append((worst["ttft"] or 0.0) + token_s * _most_tokens(tokens))
    return max(seconds) if seconds else None


def _most_tokens(lengths: Length) -> float:
    """Of the longest, with room above means where nobody says it."""
    return lengths.max or 4 * (lengths.p95 or lengths.mean)


def longest_context(work: Common, known: Known) -> int | None:
    """Tokens of the longest request with its answer: as asked, else by the lengths that are stated, with room above means."""
    length = getattr(work, "context", None)
    if length:
        return int(length)
    lengths = [getattr(work, name, None) for name in ("input_tokens", "output_tokens")]
    stated = [_most_tokens(one) for one in lengths if one is not None]
    if not stated:
        return known.context
    wanted = max(math.ceil(sum(stated) / 1024) * 1024, 2048)
    return min(wanted, known.context) if known.context else wanted
