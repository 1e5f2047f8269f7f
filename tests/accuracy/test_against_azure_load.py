"""Our scaling rule on a real hour of requests: Azure's conversation trace of 2023, which none of its settings was chosen on.

The trace is not part of the repository. $CHIPWISE_TRACES names its folder; without it these tests are skipped.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chipwise.scale.questions.scaling import ServeQuestion, simulate_serve

TRACES = Path(os.environ.get("CHIPWISE_TRACES", "build/traces")) / "load_azure_llm_2023"
pytestmark = pytest.mark.skipif(not TRACES.is_dir(), reason="the public traces are not here: $CHIPWISE_TRACES is not set")


def test_ours_keeps_99_percent_below_1_2_times_the_clairvoyant_plan_and_below_every_hpa_that_does() -> None:
    hpas = tuple(f"hpa:{target}" for target in range(50, 91, 5))
    question = ServeQuestion(policies=("learned-headroom", *hpas), trace=TRACES)
    (ours, *others), _ = simulate_serve(question, lambda done, total, what: None)
    assert ours.within_goal is not None
    assert ours.within_goal >= 0.99
    assert ours.ratio_to_bound < 1.2
    assert ours.replica_hours <= min(other.replica_hours for other in others if (other.within_goal or 0.0) >= 0.99)
