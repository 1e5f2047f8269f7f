"""What cannot run here is refused in words."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from chipwise.api.running import place, submitting
from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.errors import BadInput
from chipwise.runner.abilities import OnThisMachine
from chipwise.runner.job import Needs, Spec
from chipwise.runner.queue import Rules, Share


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OnThisMachine:
    for name in ("config", "data"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("CHIPWISE_GPUS", "none")
    return place.engine_here(Session(Config(tmp_path / "config", tmp_path / "data"), date(2026, 11, 15), []))


def test_one_is_one_and_two_are_two(engine: OnThisMachine) -> None:
    with pytest.raises(BadInput, match="a needs 1 GPU, and this machine has 0"):
        submitting.checked(Spec(("true",), "a", needs=Needs(1)), engine, Rules())
    with pytest.raises(BadInput, match="a needs 2 GPUs, and this machine has 0"):
        submitting.checked(Spec(("true",), "a", needs=Needs(2)), engine, Rules())
    with pytest.raises(BadInput, match="a needs 1 CPU, and team x may use 0"):
        submitting.checked(Spec(("true",), "a", team="x"), engine, Rules({"x": Share(cpus=0)}))


@pytest.mark.parametrize("url", ["file:///", "file:////", "/", "file://elsewhere/a"])
def test_checkpoints_that_no_program_could_keep_are_refused_before_it_runs(engine: OnThisMachine, url: str) -> None:
    with pytest.raises(BadInput, match="Allowed: a folder, as file:///path or a path"):
        submitting.checked(Spec(("true",), "a", checkpoints=url), engine, Rules())


@pytest.mark.parametrize("url", ["", "kept", "/kept/here", "file:///kept", "s3://bucket/kept", "nonsense://x"])
def test_where_checkpoints_are_kept_elsewhere_its_program_finds_out(engine: OnThisMachine, url: str) -> None:
    assert submitting.checked(Spec(("true",), "a", checkpoints=url), engine, Rules()).checkpoints == url


def test_who_asks_for_no_gpu_on_a_machine_with_gpus_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(Config(tmp_path / "config", tmp_path / "data"), date(2026, 11, 15), [])
    monkeypatch.setenv("CHIPWISE_GPUS", "0,1")
    assert place.unseen_gpus(session, 0) == "It sees no GPU of the 2 here: --gpus 1 reserves one."
    assert place.unseen_gpus(session, 1) == ""
    monkeypatch.setenv("CHIPWISE_GPUS", "none")
    assert place.unseen_gpus(session, 0) == ""
