"""Rows that no factor was fitted on: models measured on a real H200 to check the model. The rest is in docs/accuracy.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from chipwise.api.session.wiring import open_session
from chipwise.calibration.measurements import DATA, read
from chipwise.calibration.score import figures as score
from chipwise.calibration.score import predict
from chipwise.perf.model import packaged
from chipwise.perf.rows import Row
from figure import Figure


def figures() -> Iterator[Figure]:
    rows = read(DATA / "check.jsonl").rows
    plain = [row for row in rows if row.text("model").startswith("check-") and row.text("precision") not in ("tf32", "fp32")]
    other = [row for row in rows if row not in plain]  # adapters, experts, other number formats
    yield from _of(plain, "h200_unseen", {"max": 0.07}, {"max": 0.20})
    yield from _of(other, "h200_unseen_variants", {}, {})


def _of(rows: Sequence[Row], name: str, median: dict[str, float], tail: dict[str, float]) -> Iterator[Figure]:
    answers = predict(rows, open_session().parts, packaged())
    found = score(rows, answers)
    assert found is not None
    yield Figure(f"{name}_median_ape", found.median_ape, "1", median)
    yield Figure(f"{name}_p90_ape", found.p90_ape, "1", tail)
    yield Figure(f"{name}_coverage", found.interval_coverage, "1", {"min": 0.75} if median else {})
    yield Figure(f"{name}_interval_width", found.interval_width, "1", {"max": 0.5})
    peaks = [abs((one.peak_gb or 0.0) / row.number("peak_gb", 1.0) - 1.0) for row, one in zip(rows, answers, strict=True)]
    yield Figure(f"{name}_peak_memory_median", float(np.median(peaks)), "1", {"max": 0.05})
    yield Figure(f"{name}_peak_memory_p90", float(np.quantile(peaks, 0.9)), "1", {"max": 0.05})
