"""Slower than predicted, and no cause is known: said so."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.observe.evidence import Evidence
from chipwise.observe.finding import Fact, Finding, Severity
from chipwise.observe.judging import Explains
from chipwise.predictor.interval import Interval
from chipwise.text import number

ABOUT = "Slower than predicted, and nothing that was sampled explains it."
EXPLAINS = Explains.REST
RATES = ("step", "tokens")  # of the program, per second


def examine(evidence: Evidence) -> Iterator[Finding]:
    for name in RATES:
        measured, predicted = evidence.program.mean(name), evidence.predicted.get(name)
        if measured is None or predicted is None or measured <= 0 or measured >= predicted[0]:
            continue
        low, value, high = predicted
        unit = "steps/s" if name == "step" else "tokens/s"
        lost = 1 - measured / value
        yield Finding(
            rule="slower-than-predicted",
            severity=Severity.WARNING if lost >= 0.1 else Severity.NOTE,
            cause="It is slower than predicted, and no cause is known.",
            evidence=(
                Fact(f"program.{name}", measured, unit, f"{number(measured)} {unit} measured"),
                Fact(f"predicted.{name}", value, unit, f"{number(value)} predicted ({number(low)} to {number(high)})"),
            ),
            span_s=evidence.window_s,
            confidence=0.5,
            lost_share=lost,
            speedup=Interval(low=max(low / measured, 1.0), value=value / measured, high=high / measured),
            next_step="Profile some steps (torch.profiler, nsys); if the program is right, calibrate: chipwise calibrate.",
        )
        return
