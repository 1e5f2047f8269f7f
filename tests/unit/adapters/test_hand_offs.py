"""What jobs leave at a URL: looked for when they end well, by threads, without holding up a turn."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import fsspec
import pytest

from chipwise.adapters import hand_offs
from chipwise.adapters.hand_offs import (
    AGAIN_S,
    ANSWERS_WITHIN_S,
    AT_ONCE,
    LOST_OF_ONE_OWNER,
    HandOffs,
)
from chipwise.errors import BadInput, MissingExtra, NotAllowed, TryLater
from chipwise.runner.engine import Room, Seen, Sight, State
from chipwise.runner.events import Placed, Submitted, Wished, after, first
from chipwise.runner.hand_off import CODE, PATIENCE_S, TOLD_AFTER_S
from chipwise.runner.job import Job, MachinePlace, Needs, Spec, Wish
from chipwise.runner.step import step

ENDED = Sight(State.EXITED, 0, since=1.0, until=2.0)


def _job(*produces: str, id: str = "j", engine: str = "kubernetes", owner: str = "") -> Job:
    spec = Spec(("x",), "j", engine, produces=produces, owner=owner)
    return after(first(id, Submitted(spec), 0.0), Placed(1, MachinePlace()), 0.0)


def _seen(sight: Sight = ENDED, id: str = "j") -> Seen:
    return Seen(3.0, {(id, 1): sight})


def _answer(made: HandOffs, job: Job) -> Sight:
    """When nobody looks any more."""
    until = time.monotonic() + 10
    while (found := made.checked([job], _seen(id=job.id)).attempts[(job.id, 1)]).state is State.RUNNING and not found.reason:
        assert time.monotonic() < until
        time.sleep(0.01)
    return found


def _until(holds: Callable[[], bool]) -> None:
    limit = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.01)


def test_what_is_there_is_done_and_what_is_not_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hand_offs, "STORES", ("memory",))
    files = fsspec.filesystem("memory")
    files.pipe("/made/a", b"x")
    files.pipe("/made/none", b"")
    made = HandOffs()
    assert _answer(made, _job("memory://made/a", "memory://made")) == ENDED
    lost = _answer(made, _job("memory://made/a", "memory://made/b", id="k"))
    assert (lost.code, lost.reason, lost.until) == (CODE, "it ended well, but memory://made/b is not there", 2.0)
    assert _answer(made, _job("memory://made/none", id="m")).reason == "it ended well, but memory://made/none is empty"


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/shadow",
        "local:///etc/shadow",
        "s3://b::file:///etc/shadow",
        "reference://x::file:///tmp/x",
        "zip://a",
        "s3://[bad",
    ],
)
def test_a_controller_looks_at_no_file_of_its_own_whatever_the_record_says(url: str) -> None:
    """A member can write a job by direct SQL; its reason would tell which files are there that only the controller can see."""
    ended = _answer(HandOffs(look=lambda url: pytest.fail(url)), _job(url))
    assert ended.code == CODE
    assert ended.reason.startswith("it ended well, but ")
    assert "is not there" not in ended.reason


def test_nobody_looks_for_files_nor_after_one_that_failed_or_was_lost() -> None:
    made = HandOffs(look=lambda url: pytest.fail(url), looks_at=("gs://",))
    for job, sight in (
        (_job("a"), ENDED),
        (_job("gs://b/k"), ENDED),  # its machine has looked
        (_job("s3://b/k"), replace(ENDED, code=1)),
        (_job("s3://b/k"), Sight(State.LOST)),
        (_job("s3://b/k"), Sight(State.RUNNING)),
    ):
        seen = _seen(sight)
        assert made.checked([job], seen) == seen


def test_a_store_that_does_not_answer_holds_up_no_turn_and_the_job_counts_as_running() -> None:
    go = threading.Event()
    made, job = HandOffs(_after(go)), _job("s3://b/k")
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


def _after(go: threading.Event) -> Callable[[str], str]:
    def look(url: str) -> str:
        assert go.wait(20)
        return ""

    return look


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
    assert found.reason == f"it ended well, but its output could not be checked: {error}"


def test_an_attempt_that_is_over_is_forgotten_and_the_next_one_is_looked_for_anew() -> None:
    answers = iter(["b is not there", ""])
    made, job = HandOffs(look=lambda url: next(answers)), _job("s3://b/k")
    assert _answer(made, job).code == CODE
    made.checked([], Seen(3.0))
    assert _answer(made, job) == ENDED


def test_looks_that_never_come_back_are_given_up_one_by_one_and_keep_no_other_from_being_looked_for(clock: list[float]) -> None:
    go = threading.Event()

    def look(url: str) -> str:
        assert "hangs" not in url or go.wait(20)
        return ""

    made = HandOffs(look, lambda: clock[0])
    hung, good = [_job("s3://hangs/k", id=f"h{number}") for number in range(AT_ONCE)], _job("s3://b/k", id="good")
    seen = Seen(3.0, {(job.id, 1): ENDED for job in (*hung, good)})
    until = time.monotonic() + 10
    while made.checked([*hung, good], seen).attempts[("good", 1)].state is State.RUNNING:
        assert time.monotonic() < until
        time.sleep(0.01)
    clock[0] += ANSWERS_WITHIN_S + 1
    told = made.checked([*hung, good], seen).attempts
    assert told[("h0", 1)].reason == "it ended well; looks for what it made: no answer within 60 s"
    stopped = after(hung[0], Wished(Wish.STOP), 1.0)
    assert made.checked([stopped, *hung[1:]], seen).attempts[("h0", 1)].code == CODE
    clock[0] += PATIENCE_S + 1
    given_up = made.checked(hung, seen).attempts
    assert {given_up[(job.id, 1)].code for job in hung} == {CODE}
    go.set()


def test_a_store_that_hangs_for_hundreds_of_jobs_takes_no_look_from_another(clock: list[float]) -> None:
    go = threading.Event()

    def look(url: str) -> str:
        assert "hangs" not in url or go.wait(20)
        return ""

    made = HandOffs(look, lambda: clock[0])
    for number in range(100):
        hung = _job("s3://hangs/k", id=f"h{number}")
        made.checked([hung], _seen(id=hung.id))
        clock[0] += ANSWERS_WITHIN_S + 1
        made.checked([hung], _seen(id=hung.id))
    assert _answer(made, _job("s3://b/k")) == ENDED
    go.set()


def test_one_member_whose_many_stores_hang_keeps_no_other_from_being_looked_for(clock: list[float]) -> None:
    """Each at a port of its own: as a store, none of them is asked twice."""
    go = threading.Event()
    asked: list[str] = []

    def look(url: str) -> str:
        asked.append(url)
        assert "hangs" not in url or go.wait(30)
        return ""

    made = HandOffs(look, lambda: clock[0])
    hung = [_job(f"webhdfs://hangs:{port}/x", id=f"h{port}", owner="mallory") for port in range(100)]
    good = _job("s3://b/k", id="good", owner="alice")
    seen = Seen(3.0, {(job.id, 1): ENDED for job in (*hung, good)})
    _until(lambda: made.checked([*hung, good], seen).attempts[("good", 1)] == ENDED)
    for _ in range(40):  # also when as many threads were lost as one may lose
        clock[0] += ANSWERS_WITHIN_S + 1
        made.checked(hung, seen)
    assert len(asked) - 1 == LOST_OF_ONE_OWNER
    _until(lambda: made.checked([*hung, good], seen).attempts[("good", 1)] == ENDED)
    given_up = made.checked(hung, seen).attempts
    assert given_up[("h0", 1)].reason == "it ended well, but its output could not be checked: no answer within 60 s"
    assert given_up[("h99", 1)].reason == (
        "it ended well, but its output could not be checked: its store was not asked: "
        f"{LOST_OF_ONE_OWNER} earlier looks at what jobs of mallory made never came back"
    )
    go.set()


def test_members_who_wait_come_in_turn_and_nobody_fails_before_its_store_was_asked(clock: list[float]) -> None:
    go = threading.Event()

    def look(url: str) -> str:
        assert "hangs" not in url or go.wait(30)
        return ""

    made = HandOffs(look, lambda: clock[0])
    hung = [_job(f"webhdfs://hangs:{at}/x", id=f"h{at}", owner=f"m{at % 4}") for at in range(40)]
    good = _job("s3://b/k", id="good", owner="alice")
    seen = Seen(3.0, {(job.id, 1): ENDED for job in (*hung, good)})
    made.checked(hung, seen)  # they take all places
    found = made.checked([*hung, good], seen).attempts[("good", 1)]
    assert (found.state, found.code) == (State.RUNNING, None)
    clock[0] += TOLD_AFTER_S + 1
    stopped = made.checked([*hung, after(good, Wished(Wish.STOP), 1.0)], seen).attempts[("good", 1)]
    assert stopped.reason == (
        "it ended well, but its output could not be checked: its store was not asked: others are looked at before it"
    )
    clock[0] += PATIENCE_S
    assert made.checked([*hung, good], seen).attempts[("good", 1)].code != CODE, "nobody had asked its store"
    _until(lambda: made.checked([*hung, good], seen).attempts[("good", 1)] == ENDED)
    go.set()


def test_devices_of_a_program_that_ended_are_given_to_others_while_its_store_is_silent() -> None:
    go = threading.Event()
    spec = Spec(("x",), "j", "local", produces=("s3://b/k",), needs=Needs(gpus=1))
    ended = after(first("j", Submitted(spec), 0.0), Placed(1, MachinePlace(), devices=(0,)), 0.0)
    waiting = first("next", Submitted(replace(spec, produces=())), 1.0)
    jobs = {"j": ended, "next": waiting}
    room = Room(gpus=(0,), cpus=(0, 1))
    running = replace(_seen(Sight(State.RUNNING, since=1.0)), room=room)
    assert not [act for act in step(jobs, running, 3.0) if any(isinstance(event, Placed) for event in act.events)]
    seen = HandOffs(_after(go)).checked([ended], replace(_seen(), room=room))
    assert seen.attempts[("j", 1)].state is State.RUNNING, "not done, as long as nobody has seen what it made"
    placed = [event for act in step(jobs, seen, 3.0) for event in act.events if isinstance(event, Placed)]
    assert [event.devices for event in placed] == [(0,)]
    go.set()


def test_one_that_waits_long_says_so_and_can_be_stopped_without_an_answer(clock: list[float]) -> None:
    go = threading.Event()
    made, job = HandOffs(_after(go), lambda: clock[0]), _job("s3://b/k")
    assert made.checked([job], _seen()).attempts[("j", 1)].reason == "", "most answers come at once"
    clock[0] += TOLD_AFTER_S + 1
    assert made.checked([job], _seen()).attempts[("j", 1)].reason == "it ended well; looks for what it made"
    stopped = made.checked([after(job, Wished(Wish.STOP), 1.0)], _seen()).attempts[("j", 1)]
    assert (stopped.state, stopped.code) == (State.EXITED, CODE)
    assert stopped.reason == "it ended well, but its output could not be checked: its store does not answer"
    go.set()


@pytest.mark.parametrize(
    "url",
    [
        "memory://x",
        "memory://",
        "zip://x::out.zip",
        "simplecache::ftp://u:geheim@127.0.0.1/x",
        "simplecache::file:///etc/passwd",
        "a://",
        "://",
        "dir://x",
        "reference://x",
        "ftp:///x",
        "s3://",
        "s3://[bad",
        "ftp://[::1/x",
        "file:///a/b",
        "local://a",
        "s3://me:geheim@bucket/k",
        "https://a.example/x?sig=geheim",
        "nonsense://a/b",
        "zip://x::ftp://u:geheim@127.0.0.1/x",
    ],
)
def test_what_nobody_could_look_for_later_is_refused_before_anything_runs(url: str) -> None:
    with pytest.raises(BadInput) as caught:
        hand_offs.check(_job(url).spec, look=_cannot(AssertionError()), looks_at=("s3://",))
    assert "geheim" not in str(caught.value)


def test_a_store_that_could_not_be_asked_is_told_before_anything_runs_and_each_is_asked_once() -> None:
    with pytest.raises(TryLater, match="No route"):
        hand_offs.check(_job("s3://b/k").spec, look=_cannot(TryLater("No route.")))
    hand_offs.check(_job("a", "s3://b/k").spec, look=_cannot(AssertionError()), looks_at=("s3://",))
    asked: list[str] = []
    many = [f"s3://b/{number}" for number in range(400)]

    def look(url: str) -> str:
        asked.append(url)
        return ""

    hand_offs.check(_job(*many, "s3://c/k").spec, look)
    assert asked == ["s3://b/0", "s3://c/k"]


def test_a_store_that_does_not_answer_is_told_while_one_waits_and_then_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hand_offs, "TOLD_AFTER_S", 0.05)
    said: list[str] = []
    go = threading.Event()
    with pytest.raises(TryLater, match="did not answer within 0 s"):
        hand_offs.check(_job("s3://b/k").spec, look=_after(go), say=said.append, limit_s=0.05)
    assert said == ["waits for s3://b/k to answer, where what it makes is to be looked for"]
    go.set()


def test_without_what_a_store_needs_its_install_is_the_remedy() -> None:
    with pytest.raises(MissingExtra, match="A hand-off at s3://"):
        hand_offs.check(_job("s3://b/k").spec)
    with pytest.raises(NotAllowed, match=r"A hand-off at gs:// needs a library that is not here: .*gcsfs"):
        hand_offs.check(_job("gs://b/k").spec)
    with pytest.raises(TryLater, match=r"ftp://127.0.0.1:1/x cannot be opened: .*refused\. Check it"):
        hand_offs.check(_job("ftp://127.0.0.1:1/x").spec)
