"""Rows that no factor was fitted on: models measured on a real H200 to check the model. The rest is in docs/accuracy.md."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from chipwise.api.wiring import open_session
from chipwise.calibrate.measurements import DATA, read
from chipwise.calibrate.score import figures as score
from chipwise.calibrate.score import predict
from chipwise.perf.model import packaged
from figure import Figure


def figures() -> Iterator[Figure]:
    rows = read(DATA / "check.jsonl").rows
    answers = predict(rows, open_session().parts, packaged())
    found = score(rows, answers)
    assert found is not None
    yield Figure("h200_unseen_median_ape", found.median_ape, "1", {"max": 0.07})
    yield Figure("h200_unseen_p90_ape", found.p90_ape, "1", {"max": 0.20})
    yield Figure("h200_unseen_coverage", found.interval_coverage, "1", {"min": 0.75})
    yield Figure("h200_unseen_interval_width", found.interval_width, "1", {"max": 0.5})
    peaks = [abs((one.peak_gb or 0.0) / row.number("peak_gb", 1.0) - 1.0) for row, one in zip(rows, answers, strict=True)]
    yield Figure("h200_unseen_peak_memory_median", float(np.median(peaks)), "1", {"max": 0.05})
    yield Figure("h200_unseen_peak_memory_p90", float(np.quantile(peaks, 0.9)), "1", {"max": 0.05})
