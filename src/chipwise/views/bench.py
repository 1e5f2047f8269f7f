"""What a benchmark found, as plain data."""

from __future__ import annotations

from typing import Any

from chipwise.runner.bench.values import Allocation as Allocation
from chipwise.runner.bench.values import Result as Result
from chipwise.runner.comparing import number


def result_view(result: Result) -> dict[str, Any]:
    allocation = result.allocation
    return {
        "on": result.place.text,
        "engine": result.place.engine,
        "formula": result.formula,
        "unit": result.unit,
        "chip": allocation.chip if isinstance(allocation, Allocation) else None,
        "chips": allocation.chips if isinstance(allocation, Allocation) else None,
        "share": allocation.share if isinstance(allocation, Allocation) else None,
        "speed": result.speed,
        "speeds": result.speeds,
        "spread": result.spread,
        "predicted": result.expected,
        "low": number(result.predicted.get("throughput_low")),
        "high": number(result.predicted.get("throughput_high")),
        "provenance": result.predicted.get("provenance"),
        "why_not_predicted": result.predicted.get("why_not"),
        "ratio": result.ratio,
        "usd_per_unit": result.usd_per_unit,
        "seconds": result.seconds,
        "attempts": result.attempts,
        "why_not_measured": result.reason or None,
        "runs": [
            {
                "job": run.job,
                "speed": run.speed,
                "seconds": run.seconds,
                "steps": run.steps,
                "attempts": run.attempts,
                "usd": run.usd,
                "usd_per_hour": run.usd_per_hour,
                "jobs_beside": run.neighbours,
                "why_not_measured": run.reason or None,
            }
            for run in result.runs
        ],
    }
