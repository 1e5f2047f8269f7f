"""What cannot run here is refused in words."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from chipwise.api.config import Config
from chipwise.api.running import place, submitting
from chipwise.api.wiring import Session
from chipwise.errors import BadInput
from chipwise.run.job import Needs, Spec
from chipwise.run.queue import Rules, Share


def test_one_is_one_and_two_are_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("config", "data"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("CHIPWISE_GPUS", "none")
    engine = place.local_engine(Session(Config(tmp_path / "config", tmp_path / "data"), date(2026, 11, 15), []))
    with pytest.raises(BadInput, match="a needs 1 GPU, and this machine gives 0"):
        submitting.checked(Spec(("true",), "a", needs=Needs(1)), engine, Rules())
    with pytest.raises(BadInput, match="a needs 2 GPUs, and this machine gives 0"):
        submitting.checked(Spec(("true",), "a", needs=Needs(2)), engine, Rules())
    with pytest.raises(BadInput, match="a needs 1 CPU, and team x may hold 0"):
        submitting.checked(Spec(("true",), "a", team="x"), engine, Rules({"x": Share(cpus=0)}))
