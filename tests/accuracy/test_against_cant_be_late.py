"""The spot simulator against the public evaluation of spot with a deadline: 1,080 scenarios of real traces.

The traces are not part of the repository. $CHIPWISE_TRACES names their folder; without it these tests are skipped.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chipwise.scale.questions.spot import SpotQuestion, simulate_spot

TRACES = Path(os.environ.get("CHIPWISE_TRACES", "build/traces")) / "spot_adrs_windows"
pytestmark = pytest.mark.skipif(not TRACES.is_dir(), reason="the public traces are not here: $CHIPWISE_TRACES is not set")


def test_greedy_costs_what_was_published_and_the_bound_is_known() -> None:
    (answer,) = simulate_spot(SpotQuestion(policies=("greedy",), trace=TRACES), lambda done, total, what: None)
    assert (answer.scenarios, answer.late) == (1080, 0)
    assert round(answer.mean_usd, 2) == 119.03
    assert round(answer.mean_usd / answer.ratio_to_bound, 2) == 92.16


def test_the_learned_rule_is_below_what_was_published() -> None:
    (answer,) = simulate_spot(SpotQuestion(policies=("learned-survival",), trace=TRACES), lambda done, total, what: None)
    assert answer.late == 0
    assert answer.mean_usd < 95.35  # the best that was published, with late runs
