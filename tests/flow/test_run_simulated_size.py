"""How much a simulation may take: large jobs are played as fast as small ones, and absurd ones are refused with their size."""

from __future__ import annotations

import time
from math import log
from pathlib import Path

import pytest

from chipwise.adapters.engines.simulated import play as playing
from chipwise.adapters.engines.simulated.world import Program, World
from command import ROOT, Chipwise
from patience import deadline
from run_jobs import spec

DAY = 86400.0


def test_a_job_of_months_with_a_deadline_is_not_looked_at_every_half_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    fine = 200
    monkeypatch.setattr(playing, "_FINE_TICKS", fine)
    long = World(other=Program(1000, DAY))
    done = playing.simulate([("j1", spec(deadline=80 * DAY))], long)
    span = done.until / playing.TICK_S
    assert done.turns < 2 * fine * (1 + log(span / fine)) < span / 10
    assert done.until >= 80 * DAY


@pytest.mark.parametrize(
    ("example", "small", "large"),
    [
        ("transcode", "streams: 200", "streams: 1000000"),
        ("interactive", "people: 12", "people: 1000000"),
        ("hpc", "runs: 6", "runs: 1000000"),
        ("batch", "items: 50M documents", "items: 50T documents"),
        ("serve", "rate: 12 req/s", "rate: 12M req/s"),
    ],
)
def test_a_million_of_everything_is_played_or_refused_in_seconds(
    chipwise: Chipwise, tmp_path: Path, example: str, small: str, large: str
) -> None:
    text = (ROOT / f"examples/{example}/workload.yaml").read_text()
    assert small in text
    (tmp_path / "large.yaml").write_text(text.replace(small, large))
    limit = deadline(20)
    done = chipwise("run", str(tmp_path / "large.yaml"), "--simulate")
    assert time.monotonic() < limit
    assert done.code in (0, 1, 2), done.err
    assert len(done.out + done.err) < 100_000
    assert "Traceback" not in done.err


@pytest.mark.parametrize("option", ["--machines", "--gpus", "--processes", "--cpus"])
def test_more_than_can_be_asked_for_is_refused_with_the_limit(chipwise: Chipwise, option: str) -> None:
    done = chipwise("run", "--simulate", option, "1000000", "--", "true")
    assert done.code == 2
    assert "1,024" in done.err or "1024" in done.err or "4096" in done.err
