"""What a pod's program told of its steps: `chipwise.job` writes it as the container's termination message. Pure.

A message may be anybody's: another library's error, the end of a log where the container asks for that, or what a hostile
program made up. What is not of our form, is cut off, or is of another attempt, says nothing; a field that holds no number which
a record takes is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from chipwise.runner.writing import LARGEST_COUNT, LARGEST_NUMBER

from .kinds import Object

MESSAGE = "CHIPWISE_TERMINATION_MESSAGE"  # a setting of the pod: where its program is to write
PATH = "/dev/termination-log"  # where a container's message is, unless it names another file
FORM = 1
MESSAGE_BYTES = 4096  # that a kubelet reads


@dataclass(frozen=True, slots=True)
class ProgressReport:
    step: int | None  # None: its program saves by hand and counts no steps
    saved: int | None = None
    rate: float | None = None
    resumed: int | None = None


def parse_report(message: object, attempt: int) -> ProgressReport | None:
    """By its first line: who adds to the file after us does not make it another's."""
    if not isinstance(message, str) or not message.startswith("{"):
        return None
    try:
        report = json.loads(message[:MESSAGE_BYTES].partition("\n")[0])
    except (ValueError, RecursionError):
        return None
    if not isinstance(report, dict) or _integer(report.get("chipwise")) != FORM or _integer(report.get("attempt")) != attempt:
        return None
    step, saved = _integer(report.get("step")), _integer(report.get("saved_step"))
    resumed = _integer(report.get("resumed_step"))
    if step is None and saved is None and resumed is None:
        return None
    return ProgressReport(step, saved, _rate(report.get("steady")), resumed)


def latest_report(pod: Object, attempt: int) -> ProgressReport | None:
    """The newest word of its containers, be it of one that has been started again since."""
    ends = sorted(_ends(pod), key=lambda one: str(one.get("finishedAt", "")), reverse=True)
    return next((report for one in ends if (report := parse_report(one.get("message"), attempt)) is not None), None)


def _ends(pod: Object) -> Iterator[Mapping[str, Any]]:
    """Of ends within one second the later one comes first."""
    for field in ("state", "lastState"):
        for status in (pod.get("status") or {}).get("containerStatuses") or ():
            yield (status.get(field) or {}).get("terminated") or {}


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_COUNT else None


def _rate(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        rate = float(value)
    except OverflowError:
        return None
    return rate if 0 < rate <= LARGEST_NUMBER else None
