"""Whether a new version may replace the old one: judged request by request, with stated error rates.

Each question (does it fail more often, is its first token later, are its further tokens slower, are its answers of another
length) is a sequential probability ratio test of A. Wald (1945) between an acceptable and an unacceptable share of bad
requests: it ends as early as the answers allow, and a version like the old one is rejected with at most `false_alarm` in all,
one as bad as the unacceptable share passes with at most `missed` for each question. What counts as slow or odd is read off the
old version's own requests at the same time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from chipwise.text import duration, percent


class CanaryVerdict(StrEnum):
    GOOD = "good"
    BAD = "bad"
    UNDECIDED = "undecided"


class RequestOutcome(NamedTuple):
    failed: bool
    first_s: float | None  # to the first token; None: no stream
    per_token_s: float | None  # of those after it; None: no stream of several tokens
    total_s: float
    tokens: float


@dataclass(frozen=True, slots=True)
class CanaryRule:
    false_alarm: float = 0.01
    missed: float = 0.05
    compared: int = 50  # requests of the old version, before anything is called slow or odd
    streams: float = 0.1  # of its answers, from which on the time per token is compared
    percentile: float = 0.95  # of the old version's times, above which a request is slow
    slack: float = 1.1  # times that percentile
    failures: tuple[float, float] = (0.005, 0.05)  # beyond the old version's share: acceptable, unacceptable
    slow: tuple[float, float] = (0.07, 0.25)  # share: a little above what is so by definition, as the percentile is estimated
    odd: tuple[float, float] = (0.12, 0.4)


RULE = CanaryRule()
QUESTIONS = 4.0


@dataclass(frozen=True, slots=True)
class CanaryJudgement:
    verdict: CanaryVerdict
    requests: int  # of the new version
    reasons: tuple[str, ...] = ()


def judge(
    old: Sequence[RequestOutcome], new: Sequence[RequestOutcome], goals: Mapping[str, float], rule: CanaryRule = RULE
) -> CanaryJudgement:
    """`goals` in seconds, such as "ttft p95": what keeps them is not slow, however fast the old version is."""
    share = sum(outcome.failed for outcome in old) / len(old) if old else 0.0
    accepted, unaccepted = (share + part for part in rule.failures)
    failing = _tested((outcome.failed for outcome in new), accepted, unaccepted, rule)
    if failing is CanaryVerdict.BAD:
        failed = sum(outcome.failed for outcome in new)
        return CanaryJudgement(
            CanaryVerdict.BAD, len(new), (f"{failed} of {len(new)} requests failed ({percent(share)} before)",)
        )
    answered, known = [outcome for outcome in new if not outcome.failed], [outcome for outcome in old if not outcome.failed]
    if len(known) < rule.compared:
        return CanaryJudgement(
            CanaryVerdict.UNDECIDED, len(new), (f"{len(known)} of {rule.compared} requests to compare with",)
        )
    old_gaps = [gap for outcome in known if (gap := outcome.per_token_s) is not None]
    compares_gaps = len(old_gaps) >= rule.streams * len(known)
    if compares_gaps and len(old_gaps) < rule.compared:
        return CanaryJudgement(
            CanaryVerdict.UNDECIDED, len(new), (f"{len(old_gaps)} of {rule.compared} streams to compare with",)
        )
    first = _slow([_time(outcome) for outcome in known], [_time(outcome) for outcome in answered], _goal(goals, "ttft"), rule)
    if first.verdict is CanaryVerdict.BAD:
        reason = f"{first.bad} of {first.answers} answers came after {duration(first.limit)}"
        return CanaryJudgement(CanaryVerdict.BAD, len(new), (reason,))
    verdicts = {failing, first.verdict}
    if compares_gaps:
        new_gaps = [gap for outcome in answered if (gap := outcome.per_token_s) is not None]
        gaps = _slow(old_gaps, new_gaps, _goal(goals, "tpot"), rule)
        if gaps.verdict is CanaryVerdict.BAD:
            reason = f"{gaps.bad} of {gaps.answers} answers took over {duration(gaps.limit)} per token"
            return CanaryJudgement(CanaryVerdict.BAD, len(new), (reason,))
        verdicts.add(gaps.verdict)
    lengths = [outcome.tokens for outcome in known]
    low, high = _quantile(lengths, 0.025), _quantile(lengths, 0.975)
    odd = _tested((not low <= outcome.tokens <= high for outcome in answered), *rule.odd, rule)
    if odd is CanaryVerdict.BAD:
        count = sum(not low <= outcome.tokens <= high for outcome in answered)
        reason = f"{count} of {len(answered)} answers have fewer than {low:.0f} or more than {high:.0f} tokens"
        return CanaryJudgement(CanaryVerdict.BAD, len(new), (reason,))
    if verdicts | {odd} == {CanaryVerdict.GOOD}:
        fast = "as fast to the first token and per token" if compares_gaps else "as fast"
        reason = f"{len(new)} requests: as often right, {fast}, as long as before"
        return CanaryJudgement(CanaryVerdict.GOOD, len(new), (reason,))
    return CanaryJudgement(CanaryVerdict.UNDECIDED, len(new), (f"{len(new)} requests are too few to say",))


class _Slowness(NamedTuple):
    verdict: CanaryVerdict
    bad: int
    answers: int
    limit: float


def _slow(old: Sequence[float], new: Sequence[float], goal_s: float, rule: CanaryRule) -> _Slowness:
    limit = max(rule.slack * _quantile(old, rule.percentile), goal_s)
    late = [seconds > limit for seconds in new]
    return _Slowness(_tested(late, *rule.slow, rule), sum(late), len(late), limit)


def _tested(bad: Iterable[bool], accepted: float, unaccepted: float, rule: CanaryRule) -> CanaryVerdict:
    """What the first crossing of a bound says; later requests do not take it back."""
    alarm, missed = rule.false_alarm / QUESTIONS, rule.missed
    upper, lower = math.log((1.0 - missed) / alarm), math.log(missed / (1.0 - alarm))
    accepted, unaccepted = max(accepted, 1e-6), min(max(unaccepted, 1e-5), 1.0 - 1e-6)
    if_bad, if_fine = math.log(unaccepted / accepted), math.log((1.0 - unaccepted) / (1.0 - accepted))
    evidence = 0.0
    for is_bad in bad:
        evidence += if_bad if is_bad else if_fine
        if evidence >= upper:
            return CanaryVerdict.BAD
        if evidence <= lower:
            return CanaryVerdict.GOOD
    return CanaryVerdict.UNDECIDED


def _time(outcome: RequestOutcome) -> float:
    return outcome.total_s if outcome.first_s is None else outcome.first_s


def _goal(goals: Mapping[str, float], metric: str) -> float:
    return max((seconds for name, seconds in goals.items() if name.startswith(metric)), default=0.0)


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def read_outcomes(lines: Iterable[Mapping[str, object]], versions: Mapping[str, int]) -> dict[int, list[RequestOutcome]]:
    """Of an access log, by version. Requests that a client gave up, or that no replica got, say nothing of one."""
    outcomes: dict[int, list[RequestOutcome]] = {}
    for line in lines:
        version = versions.get(str(line.get("replica")))
        status = line.get("status")
        if version is None or not isinstance(status, int) or status == 499 or not _has_prompt(line):
            continue
        outcome = RequestOutcome(
            failed=status >= 500 or bool(line.get("error")),
            first_s=_seconds(line.get("first_token_us")),
            per_token_s=_seconds(line.get("per_token_us")),
            total_s=_number(line.get("us")) / 1e6,
            tokens=_number(line.get("answer_tokens")),
        )
        outcomes.setdefault(version, []).append(outcome)
    return outcomes


def _has_prompt(line: Mapping[str, object]) -> bool:
    from chipwise.serving.endpoints import ENDPOINTS

    endpoint = ENDPOINTS.get(str(line.get("path")))
    return endpoint is not None and endpoint.has_prompt


def _seconds(microseconds: object) -> float | None:
    return microseconds / 1e6 if isinstance(microseconds, int) else None


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
