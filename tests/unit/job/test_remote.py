"""An object store keeps the same promises without renames, through fsspec."""

from __future__ import annotations

import logging
import sys
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import chipwise.job as job
from chipwise.errors import MissingExtra, TryLater
from chipwise.job.checkpoints import Checkpoints
from chipwise.job.errors import Fenced
from chipwise.job.opening import open_store
from chipwise.job.remote import Remote

fsspec = pytest.importorskip("fsspec", reason="fsspec: not installed")


@pytest.fixture
def url() -> Iterator[str]:
    place = f"memory://{uuid.uuid4().hex}/run"
    yield place
    files = fsspec.filesystem("memory")
    if files.exists(place):
        files.rm(place, recursive=True)


def names(url: str) -> list[str]:
    return sorted(open_store(url).names())


def test_steps_go_on_from_an_object_store(url: str) -> None:
    state: dict[str, Any] = {"w": np.zeros(4), "n": 0}
    for step in job.steps(state, total=20, every=4, directory=url):
        state["w"] += step
        if step == 13:
            break
    again: dict[str, Any] = {"w": np.zeros(4), "n": 0}
    rest = []
    for step in job.steps(again, total=20, every=4, directory=url):
        again["w"] += step
        rest.append(step)
    assert rest[0] in (4, 8, 12)  # the last that was not skipped
    assert again["w"].tolist() == [sum(range(20))] * 4
    assert len([name for name in names(url) if name.endswith("manifest.json")]) == 2
    assert len([name for name in names(url) if name.endswith("state")]) == 2


def test_an_object_that_was_cut_leads_to_the_checkpoint_before(url: str, caplog: pytest.LogCaptureFixture) -> None:
    with Checkpoints(url) as kept:
        for step in (1, 2):
            kept.save(step, {"n": step}, wait=True)
    files = fsspec.filesystem("memory")
    newest = next(name for name in names(url) if "step-000000000002" in name and name.endswith("state"))
    files.pipe(f"{url}/{newest}", files.cat(f"{url}/{newest}")[:-3])
    with caplog.at_level(logging.WARNING):
        found = Checkpoints(url).load()
    assert found is not None
    assert found.step == 1
    assert newest in caplog.text


def test_the_fence_holds_without_locks(url: str) -> None:
    old, new = Checkpoints(url, attempt=1), Checkpoints(url, attempt=2)
    old.save(1, {"n": 1}, wait=True)
    new.load()
    with pytest.raises(Fenced):
        old.save(2, {"n": 1}, wait=True)
    new.close()
    old.close()


def test_a_store_that_fails_is_told_in_one_sentence(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Checkpoints(url)
    kept.save(1, {"n": 1}, wait=True)

    def fails(*_: Any, **__: Any) -> Any:
        raise RuntimeError("503 slow down")

    monkeypatch.setattr(kept.store._files, "open", fails)  # type: ignore[attr-defined]
    with pytest.raises(TryLater, match=r"Could not write memory://.*503 slow down"):
        kept.save(2, {"n": 2}, wait=True)
    monkeypatch.undo()
    kept.close()
    found = Checkpoints(url).load()
    assert found is not None
    assert found.step == 1


def test_what_is_not_installed_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingExtra, match=r"chipwise\[checkpoint\]"):
        Checkpoints("s3://bucket/run")


def test_credentials_in_a_url_are_not_repeated() -> None:
    assert open_store("memory://name:secret@host/run").location == "memory://host/run"


def test_an_unknown_kind_of_url_is_refused() -> None:
    with pytest.raises(TryLater, match="nonsense://x/y cannot be opened"):
        open_store("nonsense://x/y")


class AnsweredError(Exception):
    """As libraries for HTTP raise it."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


@pytest.mark.parametrize(
    ("cause", "is_known"),
    [
        (None, True),
        (FileNotFoundError("a"), True),
        (AnsweredError(404), True),
        (AnsweredError(410), True),
        (AnsweredError(403), False),
        (AnsweredError(503), False),
        (ConnectionRefusedError("nobody listens"), False),
        (TimeoutError("silent"), False),
    ],
)
def test_a_store_that_nobody_reached_is_not_called_empty_handed(
    url: str, monkeypatch: pytest.MonkeyPatch, cause: BaseException | None, is_known: bool
) -> None:
    """fsspec's HTTP says "not found" of refused connections and of servers that fail."""
    remote = Remote(url, "A hand-off")

    def info(path: str) -> None:
        raise FileNotFoundError(path) from cause

    monkeypatch.setattr(remote._files, "info", info)
    if is_known:
        assert remote.lacks() == f"{remote.location} is not there"
    else:
        with pytest.raises(TryLater, match=f"Could not look at .*{cause}"):
            remote.lacks()
