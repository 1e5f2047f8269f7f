"""Recorded arrivals: the load that a trace beside a workload file stands for."""

from __future__ import annotations

import csv
import math
from datetime import UTC, datetime

from chipwise.errors import InvalidFile, Problem
from chipwise.workload.demand import Trace, TraceFormat

_LONGEST_TRACE = 5_000_000  # rows


def recorded_load(trace: Trace, path: str) -> dict[str, float]:
    """Mean rate and lengths of recorded arrivals."""
    file = trace.beside(path)
    azure = trace.format is TraceFormat.AZURE_LLM
    names = ("TIMESTAMP", "ContextTokens", "GeneratedTokens") if azure else ("arrival", "input_tokens", "output_tokens")
    first, last, count, sums = math.inf, -math.inf, 0, [0.0, 0.0]
    with file.open(encoding="utf-8-sig", newline="") as lines:
        for row in csv.DictReader(lines):
            try:
                moment = _moment(row[names[0]])
                tokens = [float(row.get(name) or 0.0) for name in names[1:]]
            except (KeyError, TypeError, ValueError) as error:
                told = f"this row has no {', '.join(names)} that can be read"
                raise InvalidFile(str(file), [Problem("", told, count + 2)]) from error
            first, last, count = min(first, moment), max(last, moment), count + 1
            sums = [total + one for total, one in zip(sums, tokens, strict=True)]
            if count >= _LONGEST_TRACE:
                break
    if count < 2 or not math.isfinite(last - first) or last <= first:
        raise InvalidFile(str(file), [Problem("", "a trace needs two arrivals at different times")])
    means = {
        name: float(max(round(total / count), 1)) for name, total in zip(("input_tokens", "output_tokens"), sums, strict=True)
    }
    return {"rate": (count - 1) / (last - first)} | {name: mean for name, mean in means.items() if mean > 1}


def _moment(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return datetime.fromisoformat(text.strip()[:26]).replace(tzinfo=UTC).timestamp()
