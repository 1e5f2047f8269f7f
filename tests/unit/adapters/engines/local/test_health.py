"""What a service says to its check, and what is told of it meanwhile."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from chipwise.adapters.engines.local import engine as local
from chipwise.adapters.engines.local import folder, health, processes
from chipwise.runner.engine import Sight
from chipwise.runner.job import Attempt, Job, Lack, MachinePlace, Phase, Spec

URL = "http://127.0.0.1:8000/health"


def test_where_nobody_asks_nothing_is_told() -> None:
    assert health.Health("").standing() == {}


def test_what_comes_instead_of_an_answer_is_told_at_once_and_then_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    asked = health.Health(URL)
    assert asked.standing() == {"url": URL, "answered": None, "instead": ""}
    asked.last = "Connection refused"
    assert asked.standing()["instead"] == "Connection refused"
    asked.last = "status 503"  # the first change: it listens now
    assert asked.standing()["instead"] == "status 503"
    asked.last = "status 502"
    assert asked.standing()["instead"] == "status 503"
    now[0] += health.TOLD_AGAIN_S + 1.0
    assert asked.standing()["instead"] == "status 502"
    asked.last = "status 503"
    assert asked.standing()["instead"] == "status 502"
    asked.answered = 7.0
    assert asked.standing() == {"url": URL, "answered": 7.0, "instead": ""}


def test_nobody_there_is_told_in_words() -> None:
    assert health._failure("http://127.0.0.1:1/") == "Connection refused"


def test_what_is_no_address_is_a_failure_and_does_not_end_the_asking() -> None:
    assert health._failure("http://[::1/") == "Invalid IPv6 URL"


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (None, ""),
        ({"url": URL, "answered": None, "instead": ""}, f"it does not pass its health check yet ({URL})"),
        ({"url": URL, "answered": None, "instead": "status 503"}, f"it does not pass its health check yet ({URL}: status 503)"),
        ({"url": URL, "answered": 7.0, "instead": ""}, ""),
        ({"url": 3, "answered": "x", "instead": []}, "it does not pass its health check yet"),
    ],
)
def test_a_service_that_runs_and_does_not_answer_is_seen_so(tmp_path: Path, told: dict[str, object] | None, said: str) -> None:
    sight = _seen(tmp_path, told)
    assert (sight.reason, sight.lack) == (said, Lack.CHECK if said else None)


def test_a_machine_that_goes_away_is_told_before_anything_else(tmp_path: Path) -> None:
    wish = {"by": 9.0, "reason": "spot goes", "notice": True}
    sight = _seen(tmp_path, {"url": URL, "answered": None, "instead": ""}, wish)
    assert (sight.leave_by, sight.reason, sight.lack) == (9.0, "spot goes", None)


def _seen(root: Path, told: dict[str, object] | None, wish: dict[str, object] | None = None) -> Sight:
    """Of an attempt whose supervisor is this process."""
    engine = local.connect(local.Config(root, place="here"))
    at = engine.folder("j1", 1)
    at.mkdir(parents=True)
    folder.write(at, folder.STATE, {"pid": os.getpid(), "identity": processes.identity(os.getpid()), "begun": 1.0})
    for name, content in ((folder.HEALTH, told), (folder.LEAVE, wish)):
        if content is not None:
            folder.write(at, name, content)
    job = Job("j1", Spec(("true",), "j1", service=True), 0.0, phase=Phase.RUNNING, attempts=(Attempt(1, MachinePlace()),))
    return engine.look([job], 5.0).attempts[("j1", 1)]
