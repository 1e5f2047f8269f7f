"""KEDA and the HorizontalPodAutoscaler over a service, second by second, as their sources reckon.

KEDA's composite metric is the formula of a ScaledObject over what Prometheus last read. The autoscaler looks every 15 s: an
average value of an external metric is divided by the pods that the Deployment reports (those of a rollout too, those that end
not); within the tolerance it wants as many as are reported, else the metric over its target, rounded up. Then come the
stabilisation windows and the policies of `behavior`. The service is a fluid: requests arrive at a rate, each takes its answer
time on one of the slots of a ready pod, and the rest wait.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import CodeType
from typing import Any

SYNC_S, SCRAPE_S = 15, 30
TOLERANCE = 0.1  # of a cluster that states none


def python_of(formula: str) -> str:
    """The conditional of C as Python writes it."""
    inner = formula.strip()
    for opened, letter in enumerate(inner):  # parts in brackets first
        if letter == "(":
            closed = _closing(inner, opened)
            words = ", ".join(python_of(part) for part in _parts(inner[opened + 1 : closed]))
            return _conditional(f"{inner[:opened]}\0{inner[closed + 1 :]}", f"({words})")
    return _conditional(inner, "")


def _conditional(text: str, held: str) -> str:
    if "\0" in text and "(" in text:  # more brackets behind the first
        head, tail = text.split("\0", 1)
        return python_of_tail(head, held, tail)
    matched = re.fullmatch(r"([^?]*)\?([^:]*):(.*)", text, re.DOTALL)
    written = f"(({matched[2]}) if ({matched[1]}) else ({matched[3]}))" if matched else text
    return written.replace("\0", held)


def python_of_tail(head: str, held: str, tail: str) -> str:
    written = python_of(f"{head}HELD{tail}")
    return written.replace("HELD", held)


def _closing(text: str, opened: int) -> int:
    depth = 0
    for at in range(opened, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    raise ValueError(text)


def _parts(text: str) -> list[str]:
    """Arguments of a call, at its own depth."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


@cache
def _compiled(formula: str) -> CodeType:
    """An autoscaler asks for the same one every 15 seconds."""
    return compile(python_of(formula), "formula", "eval")


def evaluate(formula: str, **signals: float) -> float:
    return float(eval(_compiled(formula), {"max": max}, dict(signals)))


@dataclass
class Service:
    """Pods by the second at which they are ready; a rollout replaces the oldest one by one."""

    slots: int
    answer_s: float
    start_s: float
    pods: list[float] = field(default_factory=list)
    ending: list[float] = field(default_factory=list)  # until when those that end go on
    grace_s: float = 60.0
    in_flight: float = 0.0
    old: int = 0  # pods that a rollout still has to replace
    surge: int = 0
    wanted: int = 0

    def set(self, replicas: int, now: float) -> None:
        self.wanted = replicas
        while len(self.pods) < replicas + (self.surge if self.old else 0):
            self.pods.append(now + self.start_s)
        while len(self.pods) > replicas + (self.surge if self.old else 0):
            self.pods.pop()
            self.ending.append(now + self.grace_s)
        self.old = min(self.old, len(self.pods))

    def roll_out(self, surge: int) -> None:
        self.old, self.surge = len(self.pods), surge

    def ready(self, now: float) -> int:
        return sum(at <= now for at in self.pods)

    def step(self, rate: float, now: float) -> None:
        self.ending = [until for until in self.ending if until > now]
        if self.old and self.ready(now) >= self.wanted + self.surge:
            self.pods.pop(0)  # an old one ends; a new one starts
            self.ending.append(now + self.grace_s)
            self.old -= 1
            if len(self.pods) < self.wanted + (self.surge if self.old else 0):
                self.pods.append(now + self.start_s)
        running = min(self.in_flight, self.ready(now) * self.slots)
        self.in_flight = max(self.in_flight + rate - running / self.answer_s, 0.0)

    def signals(self, now: float) -> dict[str, float]:
        running = min(self.in_flight, self.ready(now) * self.slots)
        return {"running": running, "waiting": self.in_flight - running, "pods": float(len(self.pods) + len(self.ending))}


@dataclass
class Autoscaler:
    """Made from the `spec` of a ScaledObject."""

    spec: Mapping[str, Any]
    replicas: int
    tolerance: float | None = None  # None: as the file says, else the cluster's
    recommended: deque[tuple[float, int]] = field(default_factory=deque)
    changed: list[tuple[float, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.least, self.most = max(int(self.spec["minReplicaCount"]), 1), int(self.spec["maxReplicaCount"])
        self.behavior = self.spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
        self.formula = self.spec["advanced"]["scalingModifiers"]["formula"]
        self.recommended.append((0.0, self.replicas))

    def sync(self, now: float, reported: int, signals: Mapping[str, float]) -> int:
        metric = evaluate(self.formula, **signals)
        stated = self.behavior["scaleDown"].get("tolerance", TOLERANCE)
        down = float(stated) if self.tolerance is None else self.tolerance
        ratio = metric / reported if reported else math.inf
        wanted = reported if 1 - down <= ratio <= 1 + TOLERANCE else math.ceil(metric)
        wanted = min(max(wanted, self.least), self.most)
        window = self.behavior["scaleDown"]["stabilizationWindowSeconds"]
        self.recommended.append((now, wanted))
        while self.recommended[0][0] < now - window:
            self.recommended.popleft()
        highest = max(each for _, each in self.recommended)
        target = wanted if wanted >= self.replicas else min(max(wanted, highest), self.replicas)
        target = self._paced(target, now)
        if target != self.replicas:
            self.changed.append((now, target - self.replicas))
            self.replicas = target
        return self.replicas

    def _paced(self, target: int, now: float) -> int:
        up = target > self.replicas
        limits: list[int] = []
        for policy in self.behavior["scaleUp" if up else "scaleDown"]["policies"]:
            moved = sum(by for at, by in self.changed if now - at < policy["periodSeconds"] and (by > 0) == up)
            start = self.replicas - moved
            by = policy["value"] if policy["type"] == "Pods" else start * policy["value"] / 100
            limits.append(math.ceil(start + by) if up else math.floor(start - by))
        return min(target, max(max(limits), self.replicas)) if up else max(target, min(min(limits), self.replicas))


def run(
    scaler: Autoscaler,
    service: Service,
    seconds: int,
    rate: Callable[[int], float],
    signals_of: Callable[[Mapping[str, float], int], Mapping[str, float]],
    rollout: tuple[int, int] | None = None,
) -> list[tuple[int, int, float]]:
    """Second, replicas wanted and requests that wait, at every look of the autoscaler. `signals_of`: from what the service
    has and the replicas last wanted to the triggers by name. `rollout`: when one begins, and pods that it may add."""
    service.pods = [0.0] * scaler.replicas
    service.wanted = scaler.replicas
    service.in_flight = rate(0) * service.answer_s
    seen, story = signals_of(service.signals(0), scaler.replicas), []
    for now in range(seconds):
        if rollout is not None and now == rollout[0]:
            service.roll_out(rollout[1])
            service.set(scaler.replicas, now)
        service.step(rate(now), now)
        if now % SCRAPE_S == 0:
            seen = signals_of(service.signals(now), scaler.replicas)
        if now % SYNC_S == 0:
            service.set(scaler.sync(now, len(service.pods), seen), now)
            story.append((now, scaler.replicas, service.signals(now)["waiting"]))
    return story
