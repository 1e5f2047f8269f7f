"""What pods told of their steps: of messages as our library writes them, and of whatever else may stand there."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chipwise.adapters.engines.kubernetes.kinds import DEPLOYMENT, JOB, POD
from chipwise.adapters.engines.kubernetes.picture import Picture
from chipwise.adapters.engines.kubernetes.progress_reports import ProgressReport, latest_report, parse_report
from chipwise.adapters.engines.kubernetes.reading import LEAVE, Times, part_of, sight, with_steps
from chipwise.job.progress import Progress
from chipwise.runner.engine import Sight, State
from chipwise.runner.events import Leaving, Placed, Submitted, after, first
from chipwise.runner.job import Job, LeaveReason, MachinePlace, Outcome, Spec
from chipwise.runner.recovery import outcome_of

AT = "2026-11-01T10:00:0{}Z"
OWN = {"chipwise.dev/job": "j", "chipwise.dev/attempt": "1"}
JOB_1 = after(first("j", Submitted(Spec(("x",), "j", "kubernetes")), 0.0), Placed(1, MachinePlace()), 0.0)
LATE = ("Failed", "DeadlineExceeded")


def _message(step: int, attempt: int = 1, **more: object) -> str:
    return json.dumps({"chipwise": 1, "attempt": attempt, "step": step, **more})


def _end(code: int, message: str = "", at: int = 5) -> dict[str, Any]:
    said = {"message": message} if message else {}
    return {"terminated": {"exitCode": code, "reason": "Error", "finishedAt": AT.format(at), **said}}


def _pod(name: str, state: dict[str, Any], phase: str = "Failed", index: int = 0, **more: Any) -> dict[str, Any]:
    meta = {"name": name, "uid": name, "labels": dict(OWN)}
    meta |= {"annotations": {"batch.kubernetes.io/job-completion-index": str(index)}}
    return {"metadata": meta, "spec": {}, "status": {"phase": phase, "containerStatuses": [{"state": state, **more}]}}


def _job(
    condition: tuple[str, str] = ("Failed", "BackoffLimitExceeded"), *, asked: bool = False, **spec: Any
) -> dict[str, Any]:
    kind, why = condition
    meta = {"name": "j-a1", "uid": "job", "labels": dict(OWN), "annotations": {LEAVE: "1"} if asked else {}}
    said = {"type": kind, "status": "True", "reason": why, "message": "", "lastTransitionTime": AT.format(9)}
    return {"metadata": meta, "spec": spec, "status": {"conditions": [said]}}


def _see(main: dict[str, Any], *pods: dict[str, Any], gone: tuple[dict[str, Any], ...] = ()) -> Sight:
    picture = Picture()
    picture.put(JOB, main)
    for pod in (*pods, *gone):
        picture.put(POD, pod)
    for pod in gone:
        picture.remove(POD, pod)
    found = sight(picture, part_of(picture, ("j", 1), JOB), JOB_1, Times(0.0, 30.0))
    assert found is not None
    return found


# One message

NUMBERS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([2**63, 2**53 + 1, -1, 10**400, 1e308, "7", [], {}])
)
ANYTHING = st.recursive(NUMBERS | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


@given(st.integers(0, 2**53), st.none() | st.integers(0, 2**53), st.none() | st.floats(1e-6, 1e6))
def test_what_the_library_writes_is_read_as_it_was_meant(
    tmp_path_factory: pytest.TempPathFactory, step: int, saved: int | None, rate: float | None
) -> None:
    path = tmp_path_factory.mktemp("pod") / "log"
    path.touch()
    with patch.dict("os.environ", {"CHIPWISE_TERMINATION_MESSAGE": str(path), "CHIPWISE_ATTEMPT": "3"}):
        writer = Progress(None, 0, 0)
        writer.steady = rate
        writer.tell(step, saved, 1e9 / 3, now=True)
    assert parse_report(path.read_text(), 3) == ProgressReport(step, saved, rate)
    assert parse_report(path.read_text() + "\nTraceback: of somebody who added to it", 3) == ProgressReport(step, saved, rate)
    assert parse_report(path.read_text(), 4) is None


@given(st.text() | st.binary().map(lambda raw: raw.decode("utf-8", "replace")) | ANYTHING)
def test_no_message_of_another_program_says_anything(message: object) -> None:
    assert parse_report(message, 1) is None
    assert parse_report(json.dumps(message), 1) is None


FIELDS = ("chipwise", "attempt", "step", "saved_step", "resumed_step", "steady", "at")


@given(st.dictionaries(st.sampled_from(FIELDS), ANYTHING))
@example({"step": 2**53 + 1})
@example({"saved_step": 0})
@example({"step": 1, "steady": 1e308})
def test_whatever_our_fields_hold_only_numbers_that_a_record_takes_come_out(fields: dict[str, object]) -> None:
    found = parse_report(json.dumps({"chipwise": 1, "attempt": 1, **fields}), 1)
    if found is None:
        return
    steps = [one for one in (found.step, found.saved, found.resumed) if one is not None]
    assert steps
    assert all(type(one) is int and 0 <= one <= 2**53 for one in steps)
    assert found.rate is None or (type(found.rate) is float and 0 < found.rate <= 1e18)


BEGUN = '{"chipwise": 1, "attempt": 1, "step": '


@pytest.mark.parametrize(
    "message",
    [
        None,
        7,
        b"{}",
        "{" * 5000,
        BEGUN + "[" * 4000,
        BEGUN + "9" * 4200 + "}",
        BEGUN + "NaN}",
        BEGUN + "1e3}",
        BEGUN + "true}",
        BEGUN + "3" + " " * 5000 + "}",
        '{"step": 3, "attempt": 1}',
        '{"chipwise": true, "attempt": true, "step": 3}',
        '{"chipwise": 2, "attempt": 1, "step": 3}',
    ],
)
def test_hostile_messages_say_nothing(message: object) -> None:
    assert parse_report(message, 1) is None


@given(st.integers(0, 10**15), st.integers(0, 600))
def test_a_message_that_is_cut_off_says_nothing_or_all(step: int, at: int) -> None:
    whole = _message(step, saved_step=step).ljust(511) + "\n"
    assert parse_report(whole[:at], 1) in (None, ProgressReport(step, step))


# A pod


def test_a_container_that_was_started_again_has_told_what_its_newest_run_that_told_did() -> None:
    again = _pod("p", {"running": {}}, "Running", lastState=_end(1, _message(4)))
    assert latest_report(again, 1) == ProgressReport(4)
    assert latest_report(_pod("p", _end(1, _message(6), 8), lastState=_end(1, _message(4), 2)), 1) == ProgressReport(6)
    assert latest_report(_pod("p", _end(1, _message(6), 5), lastState=_end(1, _message(4), 5)), 1) == ProgressReport(6)
    assert latest_report(_pod("p", _end(137), lastState=_end(1, _message(4), 2)), 1) == ProgressReport(4)
    assert latest_report(_pod("p", {"waiting": {}}, "Pending"), 1) is None


def test_of_several_containers_the_one_that_tells_is_heard() -> None:
    pod = _pod("p", _end(0, "proxy: bye"))
    pod["status"]["containerStatuses"].append({"state": _end(3, _message(8))})
    assert latest_report(pod, 1) == ProgressReport(8)


# An attempt


def test_a_failure_is_told_with_its_step_and_what_another_attempt_goes_on_from() -> None:
    found = _see(_job(), _pod("p", _end(3, _message(17, saved_step=10, steady=2.5))))
    assert (found.state, found.code, found.step, found.saved, found.rate) == (State.EXITED, 3, 17, 10, 2.5)


def test_the_first_pod_of_several_tells_whoever_ended_last_and_others_where_it_does_not() -> None:
    pods = [_pod(f"p{n}", _end(1, _message(100 + n), 5 + n), index=n) for n in range(3)]
    assert _see(_job(completions=3), *pods).step == 100
    assert _see(_job(completions=3), *pods[1:]).step == 102
    assert _see(_job(completions=3), _pod("q", _end(1), index=0), *pods[1:]).step == 102


def test_the_newest_pod_of_an_attempt_tells_and_those_that_are_gone_are_remembered() -> None:
    old, new = _pod("old", _end(1, _message(4), 2)), _pod("new", _end(1, _message(9), 7))
    assert _see(_job(), new, gone=(old,)).step == 9
    assert _see(_job(), gone=(old, new)).step == 9
    assert _see(_job(), _pod("mute", _end(137), index=0), gone=(old,)).step == 4


def test_what_another_attempt_told_is_not_taken_for_this_one() -> None:
    assert _see(_job(), _pod("p", _end(1, _message(4, attempt=2)))).step is None
    other = _pod("p", _end(1, _message(4, attempt=2)))
    other["metadata"]["labels"]["chipwise.dev/attempt"] = "2"
    assert _see(_job(), other).step is None


def test_a_message_of_ours_is_no_reason_for_a_command_that_was_not_found() -> None:
    assert _see(_job(), _pod("p", _end(127, _message(4)))).reason == ""
    assert "no such file" in _see(_job(), _pod("p", _end(127, "exec: no such file"))).reason


def _leaving() -> Job:
    return after(JOB_1, Leaving(1, 60.0, LeaveReason.NOTICE), 0.0)


def test_one_that_was_asked_to_leave_and_ends_with_0_is_done_where_it_tells_its_steps() -> None:
    for main in (_job(LATE, asked=True), _job(("Complete", ""))):
        tells, mute = _see(main, _pod("p", _end(0, _message(40)), "Succeeded")), _see(main, _pod("p", _end(0), "Succeeded"))
        assert outcome_of(_leaving(), tells) is Outcome.DONE
        assert outcome_of(_leaving(), mute) is Outcome.LEFT
    left = _see(_job(LATE, asked=True), _pod("p", _end(75, _message(30))))
    assert (outcome_of(_leaving(), left), left.step) == (Outcome.LEFT, 30)


def test_a_job_of_which_a_pod_went_without_a_word_is_not_done() -> None:
    """Its first pod had done its part, and tells its steps; nobody knows of the second."""
    done, mute = _pod("p0", _end(0, _message(40)), "Succeeded"), _pod("p1", {"running": {}}, index=1)
    found = _see(_job(LATE, asked=True, completions=2), done, gone=(mute,))
    assert outcome_of(_leaving(), found) is Outcome.LEFT
    counted = _job(LATE, asked=True, completions=2)
    counted["status"]["succeeded"] = 2  # its Job knows
    assert outcome_of(_leaving(), _see(counted, done, gone=(mute,))) is Outcome.DONE


def test_a_pod_that_failed_and_was_replaced_does_not_speak_for_the_one_that_was_done() -> None:
    pods = _pod("p-old", _end(3, _message(7), 2)), _pod("p-new", _end(0, _message(40), 6), "Succeeded")
    found = _see(_job(LATE, asked=True), *pods)
    assert (found.code, found.step) == (0, 40)
    assert outcome_of(_leaving(), found) is Outcome.DONE


def test_a_service_tells_no_steps_and_is_never_done() -> None:
    picture = Picture()
    meta = {"name": "j-a1", "uid": "d", "labels": dict(OWN), "annotations": {LEAVE: "1"}, "generation": 2}
    picture.put(DEPLOYMENT, {"metadata": meta, "spec": {"replicas": 0}, "status": {"observedGeneration": 2}})
    picture.put(POD, _pod("p", _end(0, _message(40)), "Succeeded"))
    part = part_of(picture, ("j", 1), DEPLOYMENT)
    found = sight(picture, part, JOB_1, Times(0.0, 30.0))
    assert found is not None
    assert (found.state, found.code, found.step) == (State.EXITED, 0, None)
    assert with_steps(Sight(State.LOST), part).step is None
