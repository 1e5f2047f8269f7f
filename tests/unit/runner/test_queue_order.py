"""The queue of our own devices in the order of a queue policy."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from chipwise.api.running.place import rules
from chipwise.api.session.wiring import open_session
from chipwise.errors import InvalidFile
from chipwise.runner.engine import Room
from chipwise.runner.queue import Rules, Share, admit
from chipwise.runner.queue_order import order
from run_jobs import asking

TWO = Room((0, 1), tuple(range(8)))


def by(name: str, **more: object) -> Rules:
    rank, is_strict = order(import_module(f"chipwise.scale.policies.{name}").begin)
    return Rules(order=rank, is_strict=is_strict, **more)  # type: ignore[arg-type]


def started(named: Rules) -> list[str]:
    jobs = [
        asking("long", at=0.0, gpus=1, expected_s=9000.0, deadline=1e6),
        asking("large", at=1.0, gpus=4, expected_s=100.0),
        asking("soon", at=2.0, gpus=1, expected_s=5000.0, deadline=6000.0),
        asking("short", at=3.0, gpus=1, expected_s=50.0),
    ]
    return [seat.job.id for seat in admit(jobs, TWO, named, 10.0)]


def test_who_starts_follows_the_policy() -> None:
    assert started(by("fifo")) == ["long", "soon"]  # one that can never fit keeps nobody waiting
    assert started(by("shortest_estimate")) == ["short", "soon"]
    assert started(by("deadline")) == ["soon", "long"]


def test_nobody_overtakes_under_fifo_and_short_ones_do_under_backfill() -> None:
    holder = asking("holder", at=0.0, gpus=2, expected_s=100.0)
    short = asking("short", at=1.0, gpus=1, expected_s=10.0)
    room = Room((0,), tuple(range(8)))
    assert [seat.job.id for seat in admit([holder, short], room, by("backfill"), 10.0)] == ["short"]
    two = [asking("first", at=0.0, gpus=1, expected_s=100.0), holder, short]
    assert [seat.job.id for seat in admit(two, TWO, by("fifo"), 10.0)] == ["first"]


def test_quotas_hold_under_every_policy() -> None:
    jobs = [asking(f"j{at}", at=float(at), gpus=1, team="a", expected_s=10.0) for at in range(3)]
    assert len(admit(jobs, TWO, by("shortest_estimate", teams={"a": Share(gpus=1)}), 10.0)) == 1


def test_the_configuration_names_the_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHIPWISE_CONFIG_DIR", str(tmp_path))
    session = open_session()
    session.config.queue.parent.mkdir(parents=True, exist_ok=True)
    session.config.queue.write_text("policy: shortest-estimate\n")
    assert rules(session).order is not None
    session.config.queue.write_text("policy: fair-share\n")
    assert rules(session).order is None
    session.config.queue.write_text("policy: shortest\n")
    with pytest.raises(InvalidFile, match="No queue policy is called 'shortest'"):
        rules(session)
