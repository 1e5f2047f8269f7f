"""What is read from objects of the API: states, exit codes, reasons and notices. They are as a real server writes them."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.adapters.engines.kubernetes.kinds import CLUSTER_QUEUE, EVENT, JOB, LOCAL_QUEUE, NODE, POD, WORKLOAD
from chipwise.adapters.engines.kubernetes.machines import GOING, place_of
from chipwise.adapters.engines.kubernetes.picture import Picture, seconds
from chipwise.adapters.engines.kubernetes.reading import LEAVE, Times, lacks_image, part_of, sight
from chipwise.adapters.engines.kubernetes.story import amount, next_message, why_waiting
from chipwise.catalog.offer import Purchase
from chipwise.runner.engine import Sight, State
from chipwise.runner.events import Placed, Submitted, after, first
from chipwise.runner.job import Job, MachinePlace, Spec
from patience import slowness

AT = "2026-11-01T10:00:0{}Z"
NOW = seconds("2026-11-01T10:00:30Z") or 0.0
JOB_1 = after(first("j", Submitted(Spec(("x",), "j", "kubernetes")), 0.0), Placed(1, MachinePlace()), 0.0)
OWN = {"chipwise.dev/job": "j", "chipwise.dev/attempt": "1"}


def _job(*conditions: tuple[str, str, str], notes: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    told = [
        {"type": kind, "status": "True", "reason": why, "message": text, "lastTransitionTime": AT.format(9)}
        for kind, why, text in conditions
    ]
    meta = {"name": "j-a1", "uid": "job", "labels": dict(OWN), "annotations": notes or {}}
    return {
        "metadata": meta,
        "spec": spec,
        "status": {"startTime": AT.format(0), "completionTime": AT.format(8), "conditions": told},
    }


def _pod(
    name: str, phase: str, code: int | None = None, *, index: int = 0, lost: str = "", why: str = "Error", **more: Any
) -> dict[str, Any]:
    state: dict[str, Any] = {"running": {"startedAt": AT.format(2)}} if phase == "Running" else {}
    if code is not None:
        state = {"terminated": {"exitCode": code, "reason": why, "startedAt": AT.format(2), "finishedAt": AT.format(5)}}
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": AT.format(1)}] if phase != "Pending" else []
    if lost:
        conditions.append({"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet", "message": lost})
    notes = {"batch.kubernetes.io/job-completion-index": str(index)}
    meta = {
        "name": name,
        "uid": name,
        "labels": dict(OWN),
        "annotations": notes,
        "creationTimestamp": AT.format(0),
        **more.pop("meta", {}),
    }
    statuses = [{"name": "main", "image": "i", "state": state}] if state else []
    status = {"phase": phase, "conditions": conditions, "containerStatuses": statuses, **more}
    return {"metadata": meta, "spec": {"nodeName": "n" if phase != "Pending" else ""}, "status": status}


def _see(
    job: dict[str, Any] | None, *pods: dict[str, Any], extra: tuple[tuple[Any, dict[str, Any]], ...] = (), now: float = NOW
) -> Sight | None:
    picture = Picture()
    if job is not None:
        picture.put(JOB, job)
    for pod in pods:
        picture.put(POD, pod)
    for kind, one in extra:
        picture.put(kind, one)
    return sight(picture, part_of(picture, ("j", 1), JOB), JOB_1, Times(now, now + 30.0))


def _must(found: Sight | None) -> Sight:
    assert found is not None
    return found


COMPLETE, FAILED = ("Complete", "", ""), ("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")


def test_a_complete_job_has_exited_with_0_and_says_nothing_else() -> None:
    found = _must(_see(_job(COMPLETE), _pod("p", "Succeeded", 0)))
    assert (found.state, found.code, found.reason) == (State.EXITED, 0, "")
    assert (found.since, found.until) == (seconds(AT.format(2)), seconds(AT.format(8)))


def test_a_job_is_not_over_while_a_pod_of_it_runs_whatever_its_conditions_say() -> None:
    for condition in (COMPLETE, FAILED):
        assert _must(_see(_job(condition), _pod("p", "Running"))).state is State.RUNNING
    assert _must(_see(None, _pod("p", "Running"))).state is State.RUNNING
    assert _see(None, _pod("p", "Failed", 1)) is None


@given(st.integers(1, 255), st.integers(0, 3))
def test_a_failure_is_told_with_its_code_and_which_of_several_it_was(code: int, index: int) -> None:
    pods = [_pod(f"p{n}", "Failed" if n == index else "Succeeded", code if n == index else 0, index=n) for n in range(4)]
    found = _must(_see(_job(FAILED, completions=4), *pods))
    assert (found.state, found.code) == (State.EXITED, code)
    assert found.reason == f"pod {index} of 4 ended with code {code}"
    alone = _must(_see(_job(FAILED, completions=1), _pod("p", "Failed", code)))
    assert (alone.code, alone.reason) == (code, "")


def test_a_lost_machine_is_told_from_a_failure_of_the_program() -> None:
    lost = _must(_see(_job(FAILED), _pod("p", "Failed", 137, lost="node n is shutting down")))
    assert (lost.state, lost.reason) == (State.LOST, "p: node n is shutting down")
    evicted = _must(_see(_job(FAILED), _pod("p", "Failed", reason="Evicted", message="the node was low on memory")))
    assert (evicted.state, evicted.reason) == (State.LOST, "p: the node was low on memory")
    assert "memory than its limit" in _must(_see(_job(FAILED), _pod("p", "Failed", 137, why="OOMKilled"))).reason


def test_pods_that_a_job_removes_when_one_has_failed_are_not_taken_for_the_reason() -> None:
    """They end later, with 143, or with 75 where they save and exit."""
    meta = {"deletionTimestamp": AT.format(9), "deletionGracePeriodSeconds": 5}
    removed = [_pod(f"r{n}", "Failed", code, index=n, meta=meta) for n, code in ((1, 143), (2, 75))]
    lost = _must(_see(_job(FAILED, completions=3), _pod("p", "Failed", 137, lost="node n is shutting down"), *removed))
    assert (lost.state, lost.reason) == (State.LOST, "p: node n is shutting down")
    own = _must(_see(_job(FAILED, completions=3), _pod("p", "Failed", 3), *removed))
    assert (own.state, own.code, own.reason) == (State.EXITED, 3, "pod 0 of 3 ended with code 3")


def test_a_command_that_is_not_there_is_127_however_the_runtime_says_it() -> None:
    assert _must(_see(_job(FAILED), _pod("p", "Failed", 128, why="StartError"))).code == 127


def test_one_that_was_asked_to_leave_tells_with_what_it_left_and_its_own_deadline_is_another_thing() -> None:
    late = ("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
    asked = _must(_see(_job(late, notes={LEAVE: "1"}), _pod("p0", "Succeeded", 0), _pod("p1", "Failed", 75)))
    assert (asked.state, asked.code, asked.reason) == (State.EXITED, 75, "")
    own = _must(_see(_job(late), _pod("p", "Failed", 143)))
    assert (own.code, own.reason.startswith("longer than its Job may take")) == (124, True)


def test_between_the_end_of_its_pods_and_the_word_of_its_job_one_that_leaves_is_not_waiting() -> None:
    assert _must(_see(_job(notes={LEAVE: "1"}), _pod("p", "Failed", 75))).state is State.RUNNING
    assert _must(_see(_job(notes={LEAVE: "1"}))).state is State.RUNNING
    assert _must(_see(_job(), _pod("p", "Succeeded", 0))).state is State.RUNNING
    again = _must(_see(_job(), _pod("p", "Failed", 3)))
    assert (again.state, again.reason) == (State.PENDING, "p ended with code 3; its Job starts another")
    final = _must(_see(_job(backoffLimit=0), _pod("p", "Failed", 3)))
    assert (final.state, final.reason) == (State.PENDING, "p ended with code 3")


def test_the_code_of_a_pod_that_is_gone_is_remembered() -> None:
    picture, pod = Picture(), _pod("p", "Failed", 75)
    picture.put(JOB, _job(("Failed", "DeadlineExceeded", ""), notes={LEAVE: "1"}))
    picture.put(POD, pod)
    picture.remove(POD, pod)
    assert _must(sight(picture, part_of(picture, ("j", 1), JOB), JOB_1, Times(NOW, NOW))).code == 75


def test_what_is_deleted_does_not_come_back_by_an_answer_that_was_late() -> None:
    picture, job = Picture(), _job()
    picture.remove(JOB, job)
    picture.put(JOB, job)
    assert picture.by_name(JOB, "j-a1") is None


def test_an_answer_that_a_watch_has_overtaken_changes_nothing() -> None:
    """Else a Job that failed at once would look as it did when we asked it to leave, for ever."""
    picture, old, new = Picture(), _job(), _job(FAILED)
    old["metadata"]["resourceVersion"], new["metadata"]["resourceVersion"] = "99", "100"
    picture.put(JOB, new)
    picture.put(JOB, old)
    found = picture.by_name(JOB, "j-a1")
    assert found is not None
    assert found["metadata"]["resourceVersion"] == "100"


def test_a_list_that_lacks_something_means_that_it_is_gone() -> None:
    picture = Picture()
    picture.put(POD, _pod("p", "Running"))
    picture.listed(POD, [_pod("q", "Running")])
    assert [one["metadata"]["name"] for one in picture.pods(("j", 1))] == ["q"]


# Notices and machines


@pytest.mark.parametrize("taint", GOING)
def test_a_node_that_will_go_gives_notice(taint: str) -> None:
    node = {"metadata": {"name": "n", "uid": "n"}, "spec": {"taints": [{"key": taint, "effect": "NoSchedule"}]}}
    found = _must(_see(_job(), _pod("p", "Running"), extra=((NODE, node),)))
    assert (found.state, found.leave_by) == (State.RUNNING, NOW + 30.0)
    assert "node n is about to be removed" in found.reason
    alone = _must(_see(_job(backoffLimitPerIndex=3), _pod("p", "Running"), extra=((NODE, node),)))
    assert alone.leave_by is None  # its pods do not need each other: the Job replaces the one


def test_a_notice_with_a_time_says_when() -> None:
    node = {
        "metadata": {"name": "n", "uid": "n"},
        "spec": {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "value": "1793527300"}]},
    }
    assert _must(_see(_job(), _pod("p", "Running"), extra=((NODE, node),))).leave_by == 1793527300.0
    pod = _pod("p", "Running", lost="preempted by another", meta={"deletionTimestamp": AT.format(9)})
    assert _must(_see(_job(), pod)).leave_by == seconds(AT.format(9))
    assert _must(_see(_job(suspend=True), pod)).leave_by is None  # Kueue takes it back and lets it in again


def test_the_machine_is_told_as_the_plan_calls_it() -> None:
    labels = {
        "node.kubernetes.io/instance-type": "g6.xlarge",
        "topology.kubernetes.io/zone": "eu-west-1a",
        "karpenter.sh/capacity-type": "spot",
    }
    node = {"metadata": {"name": "n", "uid": "n", "labels": labels}, "spec": {"providerID": "aws:///eu-west-1a/i-1"}}
    planned = MachinePlace(Purchase.SPOT, "aws", "eu-west-1", "", "g6.xlarge", 0.3)
    assert place_of(node, (planned,)) == MachinePlace(Purchase.SPOT, "aws", "", "eu-west-1a", "g6.xlarge", 0.3)
    assert place_of({"metadata": {"name": "n"}, "spec": {}}, ()) is None
    rack = {"metadata": {"name": "n", "labels": {"node.kubernetes.io/instance-type": "dgx"}}, "spec": {}}
    assert place_of(rack, ()) == MachinePlace(Purchase.OWNED, machine="dgx")


# Why it waits


def _workload(
    name: str, owner: str, created: int, message: str = "", priority: int = 0, *conditions: dict[str, str]
) -> dict[str, Any]:
    held = [{"type": "QuotaReserved", "status": "False", "message": message}] if message else []
    meta = {"name": name, "uid": name, "creationTimestamp": AT.format(created), "ownerReferences": [{"uid": owner}]}
    return {
        "metadata": meta,
        "spec": {"queueName": "team-a", "priority": priority},
        "status": {"conditions": [*held, *conditions]},
    }


SHORT = "insufficient unused quota for {} in flavor f, {} more needed"
FULL = f"couldn't assign flavors to pod set main: {SHORT.format('cpu', 8)}, {SHORT.format('nvidia.com/gpu', 4)}"


def _queued(*more: tuple[Any, dict[str, Any]], message: str = FULL) -> str:
    job = _job(suspend=True)
    job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "team-a"
    return _must(_see(job, extra=((WORKLOAD, _workload("w", "job", 5, message)), *more))).reason


def test_a_full_queue_is_told_with_its_numbers_and_who_is_ahead() -> None:
    quota = [
        {"name": "f", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "8"}, {"name": "cpu", "nominalQuota": "64"}]}
    ]
    used = [{"name": "f", "resources": [{"name": "nvidia.com/gpu", "total": "8"}, {"name": "cpu", "total": "7500m"}]}]
    queues = (
        (LOCAL_QUEUE, {"metadata": {"name": "team-a", "uid": "l"}, "spec": {"clusterQueue": "cq"}}),
        (
            CLUSTER_QUEUE,
            {
                "metadata": {"name": "cq", "uid": "c"},
                "spec": {"resourceGroups": [{"flavors": quota}]},
                "status": {"flavorsReservation": used},
            },
        ),
    )
    admitted = {"type": "QuotaReserved", "status": "True"}
    others = (
        (WORKLOAD, _workload("earlier", "a", 3, "full")),
        (WORKLOAD, _workload("dearer", "b", 9, "full", 7)),
        (WORKLOAD, _workload("later", "c", 8, "full")),
        (WORKLOAD, _workload("runs", "d", 1, "", 0, admitted)),
    )
    assert _queued(*queues, *others) == "waiting: team-a has 8 of 8 GPUs in use; 2 jobs ahead"
    assert _queued(*queues, *others[:1]) == "waiting: team-a has 8 of 8 GPUs in use; 1 job ahead"
    assert _queued(*queues, *others, message="") == "waiting: team-a has 8 of 8 GPUs in use; 2 jobs ahead"  # not tried yet
    assert _queued().startswith("waiting in queue team-a: couldn't assign flavors")  # the queue may not be read
    assert _queued(message="LocalQueue team-a doesn't exist") == "waiting in queue team-a: LocalQueue team-a doesn't exist"


def test_a_job_that_nobody_lets_in_says_so() -> None:
    assert "suspended" in _must(_see(_job(suspend=True))).reason


_NO_ROOM = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. preemption: 0/2"
_COMING = "Pod should schedule on: nodeclaim/a"
PENDING = {
    "no scheduler yet": ("", None, "waiting for the scheduler"),
    "no room": (_NO_ROOM, None, "no node fits: of 2 nodes 2 Insufficient nvidia.com/gpu"),
    "no volume": (
        "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
        None,
        "its volume does not exist: nothing provides the claim (kubectl get pvc, storageclass)",
    ),
    "a machine comes": ("none", ("Nominated", _COMING), f"a machine is being provisioned: {_COMING}"),
}


@pytest.mark.parametrize(("message", "event", "wanted"), PENDING.values(), ids=PENDING)
def test_why_a_pod_waits_is_told(message: str, event: tuple[str, str] | None, wanted: str) -> None:
    pod = _pod("p", "Pending")
    if message:
        pod["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "message": message}]
    extra = ()
    if event is not None:
        about = {"kind": "Pod", "name": "p"}
        extra = ((EVENT, {"metadata": {"uid": "e"}, "reason": event[0], "message": event[1], "involvedObject": about}),)  # type: ignore[assignment]
    found = _must(_see(_job(), pod, extra=extra))
    assert (found.state, found.reason) == (State.PENDING, wanted)


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff", "InvalidImageName"])
def test_an_image_that_cannot_be_had_is_waited_for_a_while_and_then_no_more(reason: str) -> None:
    pod = _pod("p", "Pending")
    pod["spec"]["nodeName"] = "n"
    pod["status"]["containerStatuses"] = [{"image": "i:1", "state": {"waiting": {"reason": reason, "message": "not found"}}}]
    assert _must(_see(_job(), pod)).reason == f"its image i:1 cannot be pulled: {reason}: not found"
    picture = Picture()
    picture.put(JOB, _job())
    picture.put(POD, pod)
    part = part_of(picture, ("j", 1), JOB)
    assert lacks_image(part)
    later = _must(sight(picture, part, JOB_1, Times(NOW, NOW, given_up=True)))
    assert (later.state, later.code) == (State.EXITED, 127)
    assert "cannot be pulled" in later.reason


def test_quantities_are_read_as_the_api_writes_them() -> None:
    assert [amount(text) for text in ("8", "7500m", "2Gi", "1k", "x", None)] == [8, 7.5, 2**31, 1000, 0, 0]


@given(st.text(max_size=300))
def test_whatever_a_message_says_it_becomes_one_short_line(text: str) -> None:
    pod = _pod("p", "Pending")
    pod["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "message": text}]
    picture = Picture()
    told = why_waiting(picture, _job(), [pod])
    assert "\n" not in told
    assert len(told) < 400


def test_a_look_at_a_thousand_jobs_is_quick() -> None:
    picture = Picture()
    jobs: list[Job] = []
    for number in range(1000):
        job, pod = _job(), _pod(f"p{number}", "Running")
        for one in (job, pod):
            one["metadata"]["labels"]["chipwise.dev/job"] = f"j{number}"
        job["metadata"] |= {"name": f"j{number}-a1", "uid": f"u{number}"}
        picture.put(JOB, job)
        picture.put(POD, pod)
        jobs.append(after(first(f"j{number}", Submitted(JOB_1.spec), 0.0), Placed(1, MachinePlace()), 0.0))
    began = time.process_time()
    seen = [sight(picture, part_of(picture, (job.id, 1), JOB), job, Times(NOW, NOW)) for job in jobs]
    assert {one.state for one in seen if one is not None} == {State.RUNNING}
    assert time.process_time() - began < slowness()


def test_a_look_at_a_thousand_jobs_in_one_queue_is_quick_and_each_knows_its_place() -> None:
    picture = Picture()
    jobs: list[Job] = []
    for number in range(1000):
        job = _job(suspend=True)
        job["metadata"] |= {"name": f"j{number}-a1", "uid": f"u{number}"}
        job["metadata"]["labels"] |= {"chipwise.dev/job": f"j{number}", "kueue.x-k8s.io/queue-name": "team-a"}
        picture.put(JOB, job)
        picture.put(WORKLOAD, _workload(f"w{number:04}", f"u{number}", 1, "full"))
        jobs.append(after(first(f"j{number}", Submitted(JOB_1.spec), 0.0), Placed(1, MachinePlace()), 0.0))
    began = time.process_time()
    seen = [_must(sight(picture, part_of(picture, (job.id, 1), JOB), job, Times(NOW, NOW))).reason for job in jobs]
    assert time.process_time() - began < slowness()
    assert seen[0] == "waiting in queue team-a: full"
    assert seen[999] == "waiting in queue team-a: full; 999 jobs ahead"


def test_numbers_that_change_for_a_thousand_waiting_jobs_are_told_a_few_dozen_times_and_other_words_at_once() -> None:
    last, told = None, []
    for second in range(100_000):  # more than a day, and another number each second
        last = next_message(last, f"waiting; {100_000 - second} jobs ahead", float(second))
        told.append(last.text)
    assert 50 < len(set(told)) < 150
    assert told[6] != told[0]  # soon at first
    assert next_message(last, "admitted by queue team-a", 100_000.0).text == "admitted by queue team-a"
