"""What is shown of what pods wrote, when the cluster gives it in pieces, goes away, or has forgotten it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from chipwise.adapters.engines.kubernetes.connection import Connection
from chipwise.adapters.engines.kubernetes.kinds import Object, ObjectKind
from chipwise.adapters.engines.kubernetes.logs import Logs
from chipwise.errors import NotFound, TryLater

KEY = ("j", 1)
AT = "2026-11-01T10:00:00Z"


class Spoken:
    """A connection that knows logs alone: each answer is pieces, the last of which may be an error."""

    def __init__(self, **answers: list[list[bytes | Exception]]) -> None:
        self.answers = answers

    def text(
        self, kind: ObjectKind, name: str, part: str, params: Mapping[str, str], patience_s: float | None = None
    ) -> Iterator[bytes]:
        said = self.answers[name]
        for one in said.pop(0) if len(said) > 1 else said[0]:
            if isinstance(one, Exception):
                raise one
            yield one


def _logs(folder: Path | None = None, **answers: list[list[bytes | Exception]]) -> Logs:
    return Logs(cast(Connection, Spoken(**answers)), folder, wait=lambda seconds: None)


def _pod(name: str, phase: str = "Running", index: int = 0) -> dict[str, Any]:
    state = {} if phase == "Pending" else {"running": {"startedAt": AT}}
    notes = {"batch.kubernetes.io/job-completion-index": str(index)}
    return {
        "metadata": {"name": name, "uid": name, "annotations": notes, "creationTimestamp": AT + name},
        "status": {"phase": phase, "containerStatuses": [{"state": state}]},
    }


def _looks(*seen: tuple[Sequence[Object], bool]) -> Any:
    rest = list(seen)
    return lambda: rest.pop(0) if len(rest) > 1 else rest[0]


def test_who_follows_waits_for_the_pod_sees_the_one_that_takes_its_place_and_ends_with_the_attempt() -> None:
    logs = _logs(a=[[b"one\n"]], b=[[b"two\n"]])
    look = _looks(
        ([_pod("a", "Pending")], False),
        ([_pod("a"), _pod("z", index=1)], False),
        ([_pod("a", "Failed"), _pod("b")], False),
        ([_pod("a", "Failed"), _pod("b", "Succeeded")], True),
    )
    assert b"".join(logs.follow(KEY, look, None)) == b"one\ntwo\n"


@pytest.mark.parametrize("cut", [[b"one\ntw", TryLater("gone")], [b"one\ntw"]], ids=["broken", "ended"])
def test_who_is_cut_off_in_the_middle_is_shown_the_rest_and_nothing_twice(cut: list[bytes | Exception]) -> None:
    logs = _logs(a=[cut, [b"one\n", b"two\nthree\n"]])
    look = _looks(([_pod("a")], False), ([_pod("a", "Succeeded")], True))
    assert b"".join(logs.follow(KEY, look, None)) == b"one\ntwo\nthree\n"


def test_a_pod_that_has_not_begun_has_written_nothing_and_is_not_asked() -> None:
    assert list(_logs().of(KEY, [_pod("a", "Pending")], None)) == []


def test_what_was_kept_is_shown_when_the_pods_are_gone(tmp_path: Path) -> None:
    logs = _logs(tmp_path, a=[[b"first\n"]], b=[[b"second\n"]])
    logs.keep(KEY, [_pod("b", index=1), _pod("a"), _pod("c", "Pending", index=2)])
    assert b"".join(logs.of(KEY, [], None)) == b"--- rank 0\nfirst\n--- rank 1\nsecond\n"
    assert b"".join(logs.of(KEY, [], 1)) == b"second\n"
    assert b"".join(logs.follow(KEY, _looks(([], True)), None)) == b"first\n"
    with pytest.raises(NotFound, match="nothing that they wrote was kept"):
        list(logs.of(("j", 2), [], None))
    assert (tmp_path / "j" / "1").stat().st_mode & 0o077 == 0


def test_a_machine_that_does_not_answer_holds_nothing_up_and_takes_nothing_away(tmp_path: Path) -> None:
    _logs(tmp_path, a=[[b"early\n"]]).keep(KEY, [_pod("a")])
    _logs(tmp_path, a=[[b"ear", TryLater("timed out")]]).keep(KEY, [_pod("a")])
    assert b"".join(_logs(tmp_path).of(KEY, [], None)) == b"early\n"


def test_of_several_pods_each_is_shown_under_its_rank_and_of_one_nothing_but_what_it_wrote() -> None:
    answers: dict[str, list[list[bytes | Exception]]] = {
        "a": [[b"one", b" more"]],
        "b": [[b"two\n", b"three\n"]],
        "c": [[]],
        "d": [[b"again\n"]],
    }
    pods = [_pod("b", index=1), _pod("a"), _pod("c", index=2), _pod("d", index=1)]
    shown = b"--- rank 0\none more\n--- rank 1\ntwo\nthree\nagain\n"
    assert b"".join(_logs(None, **answers).of(KEY, pods, None)) == shown
    assert b"".join(_logs(None, **answers).of(KEY, pods, 1)) == b"two\nthree\nagain\n"
    assert b"".join(_logs(None, **answers).of(KEY, [_pod("a"), _pod("d")], None)) == b"one moreagain\n", (
        "one that was made again"
    )


def test_replicas_are_numbered_by_age_as_they_are_asked_for() -> None:
    pods = [{**pod, "metadata": {**pod["metadata"], "annotations": {}}} for pod in (_pod("b"), _pod("c"), _pod("a", "Pending"))]
    answers: dict[str, list[list[bytes | Exception]]] = {"b": [[b"two\n"]], "c": [[b"three\n"]]}
    assert b"".join(_logs(None, **answers).of(KEY, pods, None)) == b"--- rank 1\ntwo\n--- rank 2\nthree\n"
    assert b"".join(_logs(None, **answers).of(KEY, pods, 2)) == b"three\n"
