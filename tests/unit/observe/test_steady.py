from __future__ import annotations

import pytest

from chipwise.observe.evidence import gather
from chipwise.observe.sample import Recording, Sample
from played_recordings import H200, played


@pytest.mark.parametrize("startup_s", [0.0, 2.0, 5.0, 8.0])
def test_start_up_and_end_are_cut_off(startup_s: float) -> None:
    evidence = gather(played({"nvidia:0": H200["matrix-products"]}, program={}, seconds=15, startup_s=startup_s))
    start, end = evidence.window_s
    assert start == pytest.approx(startup_s, abs=0.6)
    assert end == pytest.approx(14.5, abs=0.6)


def test_a_program_with_phases_that_repeat_is_kept_whole() -> None:
    levels = [0.9 if tick // 20 % 2 else 0.2 for tick in range(200)]
    samples = [Sample(0.1 * tick, "nvidia:0", {"graphics_active": level}) for tick, level in enumerate(levels)]
    start, end = gather(Recording("", samples=samples)).window_s
    assert start <= 2.1
    assert end >= 17.9


def test_steps_show_when_start_up_is_over() -> None:
    samples = [Sample(float(tick), "program", {"step": max(tick - 30, 0), "cpu": 1.0}) for tick in range(100)]
    assert gather(Recording("", samples=samples)).window_s[0] == pytest.approx(31.0, abs=1.0)
