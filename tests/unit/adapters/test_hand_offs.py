"""What jobs leave at a URL: looked for when they end well, by threads, without holding up a turn."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import fsspec  # type: ignore[import-untyped]
import pytest

from chipwise.adapters import hand_offs
from chipwise.adapters.hand_offs import AGAIN_S, AT_ONCE, CODE, PATIENCE_S, HandOffs
from chipwise.errors import BadInput, MissingExtra, TryLater
from chipwise.run.engine import Seen, Sight, State
from chipwise.run.events import Placed, Submitted, Wished, after, first
from chipwise.run.job import Job, Spec, Where, Wish

ENDED = Sight(State.EXITED, 0, since=1.0, until=2.0)


def _job(*produces: str, id: str = "j", engine: str = "kubernetes") -> Job:
    return after(first(id, Submitted(Spec(("x",), "j", engine, produces=produces)), 0.0), Placed(1, Where()), 0.0)


def _seen(sight: Sight = ENDED, id: str = "j") -> Seen:
    return Seen(3.0, {(id, 1): sight})


def _answer(made: HandOffs, job: Job) -> Sight:
    """When nobody looks any more."""
    until = time.monotonic() + 10
    while (found := made.checked([job], _seen(id=job.id)).attempts[(job.id, 1)]).state is State.RUNNING and not found.reason:
        assert time.monotonic() < until
        time.sleep(0.01)
    return found


def test_what_is_there_is_done_and_what_is_not_is_a_failure() -> None:
    files = fsspec.filesystem("memory")
    files.pipe("/made/a", b"x")
    files.pipe("/made/none", b"")
    made = HandOffs()
    assert _answer(made, _job("memory://made/a", "memory://made")) == ENDED
    lost = _answer(made, _job("memory://made/a", "memory://made/b", id="k"))
    assert (lost.code, lost.reason, lost.until) == (CODE, "it ended well, but memory://made/b is not there", 2.0)
    assert _answer(made, _job("memory://made/none", id="m")).reason == "it ended well, but memory://made/none is empty"


def test_nobody_looks_for_files_nor_after_one_that_failed_or_was_lost() -> None:
    made = HandOffs(look=lambda url: pytest.fail(url))
    for job, sight in (
        (_job("a"), ENDED),
        (_job("s3://b/k", engine="ec2"), ENDED),  # its machine has looked
        (_job("s3://b/k"), replace(ENDED, code=1)),
        (_job("s3://b/k"), Sight(State.LOST)),
        (_job("s3://b/k"), Sight(State.RUNNING)),
    ):
        seen = _seen(sight)
        assert made.checked([job], seen) == seen


def test_a_store_that_does_not_answer_holds_up_no_turn_and_the_job_counts_as_running() -> None:
    go = threading.Event()

    def look(url: str) -> str:
        assert go.wait(20)
        return ""

    made, job = HandOffs(look), _job("s3://b/k")
    begun = time.monotonic()
    for _ in range(50):
        found = made.checked([job], _seen()).attempts[("j", 1)]
        assert (found.state, found.code, found.until, found.since) == (State.RUNNING, None, None, 1.0)
    assert time.monotonic() - begun < 5
    go.set()
    assert _answer(made, job) == ENDED


def test_many_that_end_at_once_are_looked_for_a_few_at_a_time() -> None:
    at_once, most, lock = [0], [0], threading.Lock()

    def look(url: str) -> str:
        with lock:
            at_once[0] += 1
            most[0] = max(most[0], at_once[0])
        time.sleep(0.02)
        with lock:
            at_once[0] -= 1
        return ""

    made, jobs = HandOffs(look), [_job("s3://b/k", id=f"j{number}") for number in range(30)]
    seen = Seen(3.0, {(job.id, 1): ENDED for job in jobs})
    until = time.monotonic() + 20
    while any(one.state is State.RUNNING for one in made.checked(jobs, seen).attempts.values()):
        assert time.monotonic() < until
        time.sleep(0.005)
    assert 1 < most[0] <= AT_ONCE


@pytest.fixture
def clock() -> list[float]:
    return [0.0]


def _cannot(error: Exception) -> Callable[[str], str]:
    def look(url: str) -> str:
        raise error

    return look


@pytest.mark.parametrize("error", [TryLater("No route."), RuntimeError("of a library")])
def test_a_store_that_cannot_be_asked_is_asked_again_and_given_up_after_a_while(clock: list[float], error: Exception) -> None:
    asked: list[str] = []

    def look(url: str) -> str:
        asked.append(url)
        raise error

    made, job = HandOffs(look, lambda: clock[0]), _job("s3://b/k")
    found = _answer(made, job)
    assert (found.state, found.reason) == (State.RUNNING, f"it ended well; looks for what it made: {error}")
    made.checked([job], _seen())
    assert len(asked) == 1, "not at every turn"
    clock[0] += AGAIN_S + 1
    until = time.monotonic() + 10
    while len(asked) < 2 and time.monotonic() < until:
        made.checked([job], _seen())
        time.sleep(0.01)
    clock[0] += PATIENCE_S
    found = made.checked([job], _seen()).attempts[("j", 1)]
    assert (found.state, found.code) == (State.EXITED, CODE)
    assert found.reason == f"it ended well, but nobody could look for all it made: {error}"


def test_whoever_stops_it_need_not_wait_for_a_store() -> None:
    made, job = HandOffs(_cannot(TryLater("No route."))), _job("s3://b/k")
    assert _answer(made, job).ended
    stopped = made.checked([after(job, Wished(Wish.STOP), 1.0)], _seen()).attempts[("j", 1)]
    assert (stopped.state, stopped.code) == (State.EXITED, CODE), "not done, for nobody saw what it made"


def test_an_attempt_that_is_over_is_forgotten_and_the_next_one_is_looked_for_anew() -> None:
    answers = iter(["b is not there", ""])
    made, job = HandOffs(look=lambda url: next(answers)), _job("s3://b/k")
    assert _answer(made, job).code == CODE
    made.checked([], Seen(3.0))
    assert _answer(made, job) == ENDED


def test_what_nobody_could_look_for_later_is_refused_before_anything_runs() -> None:
    for url, why in (("file:///a/b", "is a file of some machine"), ("s3://me:secret@bucket/k", "would be recorded")):
        with pytest.raises(BadInput, match=why) as caught:
            hand_offs.check(_job(url, engine="ec2").spec, look=lambda url: "")
        assert "secret" not in str(caught.value)
    with pytest.raises(TryLater, match="No route"):
        hand_offs.check(_job("s3://b/k").spec, look=_cannot(TryLater("No route.")))
    with pytest.raises(TryLater, match="cannot be opened"):
        hand_offs.check(_job("nonsense://b/k").spec)
    hand_offs.check(_job("a", "s3://b/k", engine="ec2").spec, look=_cannot(AssertionError()))
    hand_offs.check(_job("memory://not/there/yet").spec)


def test_without_what_a_store_needs_its_install_is_the_remedy() -> None:
    with pytest.raises(MissingExtra, match="A hand-off at gs://"):
        hand_offs.check(_job("gs://b/k").spec)
