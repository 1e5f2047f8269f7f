"""A comparison that would take hours or all memory is refused before it begins."""

from __future__ import annotations

import pytest

from chipwise.errors import BadInput
from chipwise.scale.simulator.size import check_flags, check_size
from chipwise.scale.spot import SpotJob


def job(deadline_h: float = 70.0, tick_h: float = 1 / 6) -> SpotJob:
    return SpotJob(work_h=48.0, deadline_h=deadline_h, restart_h=0.02, spot_usd=1.0, on_demand_usd=3.0, tick_h=tick_h)


def test_the_public_evaluation_is_small() -> None:
    check_flags(180, job().ticks)
    check_size([(job(), 180)] * 6, policies=20)


@pytest.mark.parametrize(
    ("jobs", "reason"),
    [
        ([(job(tick_h=1e-5), 1)], "ticks, and the limit"),
        ([(job(), 100_000)], "states, and the limit"),
        ([(job(), 10_000)] * 100, "steps, and the limit"),
    ],
)
def test_what_takes_too_long_is_refused_with_the_number(jobs: list[tuple[SpotJob, int]], reason: str) -> None:
    with pytest.raises(BadInput, match=f"too large: .*{reason}"):
        check_size(jobs, policies=4)
