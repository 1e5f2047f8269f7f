"""A home of its own with two CPUs and a record, and nobody who carries jobs out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from chipwise.adapters.stores.record import connect
from chipwise.api.running import place
from chipwise.api.running.held import Runtime
from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.runner.record import Record


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setenv("CHIPWISE_GPUS", "none")
    monkeypatch.setenv("CHIPWISE_CPUS", "0,1")
    monkeypatch.setattr(Runtime, "awake", lambda self, job: None)  # no controller is needed to see what is recorded
    for name in ("config", "data"):
        (tmp_path / name).mkdir()
    return Session(Config(tmp_path / "config", tmp_path / "data"), date(2026, 11, 15), [])


@pytest.fixture
def record(session: Session) -> Iterator[Record]:
    opened = connect(place.record_url(session))
    yield opened
    opened.close()
