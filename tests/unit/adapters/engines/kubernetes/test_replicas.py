"""What is said of pods of which some run and others do not: replicas of a service, and machines that wait for each other."""

from __future__ import annotations

from typing import Any

from chipwise.adapters.engines.kubernetes.kinds import CLUSTER_QUEUE, DEPLOYMENT, JOB, LOCAL_QUEUE, POD, WORKLOAD
from chipwise.adapters.engines.kubernetes.logs import of_rank
from chipwise.adapters.engines.kubernetes.picture import Picture
from chipwise.adapters.engines.kubernetes.reading import Times, part_of, sight
from chipwise.renderer.cluster.pod import QUEUE_LABEL
from chipwise.runner.engine import Sight, State
from chipwise.runner.events import Begun, Placed, Submitted, after, first
from chipwise.runner.job import Job, MachinePlace, Needs, Spec

OWN = {"chipwise.dev/job": "j", "chipwise.dev/attempt": "1"}
BEGAN = {"running": {"startedAt": "2026-11-01T10:00:02Z"}}
LOOPS = {
    "name": "main",
    "image": "i",
    "ready": False,
    "restartCount": 3,
    "state": {"waiting": {"reason": "CrashLoopBackOff"}},
    "lastState": {"terminated": {"exitCode": 2, "reason": "Error", "startedAt": "2026-11-01T10:00:02Z"}},
}
NOWHERE = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."}


def _starting(service: bool = False, machines: int = 1) -> Job:
    spec = Spec(("x",), "j", "kubernetes", service=service, needs=Needs(machines=machines))
    return after(first("j", Submitted(spec), 0.0), Placed(1, MachinePlace(), machines=machines), 0.0)


def _pod(name: str, *containers: dict[str, Any], index: int | None = None, **status: Any) -> dict[str, Any]:
    notes = {} if index is None else {"batch.kubernetes.io/job-completion-index": str(index)}
    meta = {
        "name": name,
        "uid": name,
        "labels": dict(OWN),
        "annotations": notes,
        "creationTimestamp": f"2026-11-01T10:00:0{name}Z",
    }
    phase = "Running" if containers else "Pending"
    spec = {"nodeName": "n" if containers else ""}
    return {"metadata": meta, "spec": spec, "status": {"phase": phase, "containerStatuses": list(containers), **status}}


def _runs(name: str, index: int | None = None) -> dict[str, Any]:
    return _pod(name, {"name": "main", "image": "i", "ready": True, "restartCount": 0, "state": BEGAN}, index=index)


def _waits(name: str, index: int | None = None) -> dict[str, Any]:
    return _pod(name, index=index, conditions=[NOWHERE])


def _see(job: Job, main: dict[str, Any], *pods: dict[str, Any]) -> Sight:
    picture, kind = Picture(), DEPLOYMENT if job.spec.service else JOB
    picture.put(kind, {"metadata": {"name": "j-a1", "uid": "main", "labels": dict(OWN)}, **main})
    for pod in pods:
        picture.put(POD, pod)
    found = sight(picture, part_of(picture, ("j", 1), kind), job, Times(100.0, 130.0))
    assert found is not None
    return found


def _deployment(replicas: int, serve: int) -> dict[str, Any]:
    return {"spec": {"replicas": replicas}, "status": {"availableReplicas": serve, "observedGeneration": 1}}


def test_a_replica_that_ends_again_and_again_is_told_though_its_pod_is_said_to_run() -> None:
    again = "it keeps crashing: started 4 times, last ended with code 2"
    none = _see(_starting(service=True), _deployment(1, 0), _pod("1", LOOPS))
    assert (none.state, none.reason) == (State.PENDING, again)
    some = _see(_starting(service=True), _deployment(2, 1), _runs("1"), _pod("2", LOOPS))
    assert (some.state, some.reason) == (State.RUNNING, f"1 of 2 replicas serve: {again}")
    swollen = LOOPS | {"lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
    assert "it used more memory than its limit" in _see(_starting(service=True), _deployment(1, 0), _pod("1", swollen)).reason


def test_a_replica_that_finds_no_machine_is_told_and_one_that_is_starting_is_not() -> None:
    short = _see(_starting(service=True), _deployment(2, 1), _runs("1"), _waits("2"))
    assert short.reason == "1 of 2 replicas serve: no node fits: of 3 nodes 3 Insufficient nvidia.com/gpu"
    growing = _see(_starting(service=True), _deployment(2, 1), _runs("1"), _runs("2"))
    assert (growing.state, growing.reason) == (State.RUNNING, "")


def test_pods_of_one_job_run_when_all_of_them_do_and_it_is_counted_how_many_came() -> None:
    job, body = _starting(machines=3), {"spec": {"completions": 3, "backoffLimit": 0}, "status": {}}
    two = _see(job, body, _runs("1", 0), _runs("2", 1), _waits("3", 2))
    assert (two.state, two.machines_arrived) == (State.PENDING, 2)
    assert two.reason == "2 of 3 pods run; no node fits: of 3 nodes 3 Insufficient nvidia.com/gpu"
    all_of_them = _see(job, body, _runs("1", 0), _runs("2", 1), _runs("3", 2))
    assert (all_of_them.state, all_of_them.machines_arrived) == (State.RUNNING, None)


def test_one_that_ran_and_lost_a_pod_runs_on_and_so_do_pods_that_know_nothing_of_each_other() -> None:
    job, body = _starting(machines=2), {"spec": {"completions": 2}, "status": {}}
    begun = after(job, Begun(1), 1.0)
    assert _see(begun, body, _runs("1", 0), _waits("2", 1)).state is State.RUNNING, "it may have something to save"
    alone = {"spec": {"completions": 2, "backoffLimitPerIndex": 3}, "status": {}}
    assert _see(job, alone, _runs("1", 0), _waits("2", 1)).state is State.RUNNING


def test_a_lost_pod_of_a_job_that_tries_none_again_is_not_said_to_be_followed_by_another() -> None:
    lost = {"type": "DisruptionTarget", "status": "True", "message": "shut down"}
    ended = {"name": "main", "image": "i", "state": {"terminated": {"exitCode": 137}}}
    pod = _pod("1", ended, index=0, phase="Failed", conditions=[lost])
    final = _see(_starting(), {"spec": {"backoffLimit": 0}, "status": {}}, pod)
    assert final.reason == "1: shut down"
    ignored = {"backoffLimit": 0, "podFailurePolicy": {"rules": [{"action": "Ignore"}]}}
    assert _see(_starting(), {"spec": ignored, "status": {}}, pod).reason == "1: shut down; its Job starts another"


def test_a_pod_that_a_queue_holds_back_tells_of_the_queue() -> None:
    picture, gated = Picture(), {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
    pod = _pod("1", conditions=[gated])
    pod["metadata"]["labels"][QUEUE_LABEL] = "team-a"
    short = "insufficient quota for cpu in flavor f, current podset request (4) > maximum capacity (2)"
    asked = [{"type": "QuotaReserved", "status": "False", "message": short}]
    owner = [{"uid": "1"}]
    flavors = [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": "2"}]}]
    for kind, name, rest in (
        (LOCAL_QUEUE, "team-a", {"spec": {"clusterQueue": "c"}}),
        (CLUSTER_QUEUE, "c", {"spec": {"resourceGroups": [{"flavors": flavors}]}}),
        (WORKLOAD, "w", {"spec": {"queueName": "team-a"}, "status": {"conditions": asked}}),
    ):
        picture.put(kind, {"metadata": {"name": name, "uid": name, "ownerReferences": owner}, **rest})
    picture.put(DEPLOYMENT, {"metadata": {"name": "j-a1", "uid": "main", "labels": dict(OWN)}, **_deployment(1, 0)})
    picture.put(POD, pod)
    found = sight(picture, part_of(picture, ("j", 1), DEPLOYMENT), _starting(service=True), Times(100.0, 130.0))
    assert found is not None
    assert found.reason == "waiting: team-a has 0 of 2 CPUs in use, and it asks for 4"


def test_replicas_are_counted_by_age_and_pods_of_a_job_by_their_index() -> None:
    old, young = _runs("1"), _runs("2")
    assert [of_rank([young, old], rank) for rank in (0, 1, 2)] == [[old], [young], []]
    first_pod, second = _runs("2", 0), _named(_runs("1", 1), "3")
    assert of_rank([second, first_pod], 1) == [second]
    assert of_rank([second, first_pod], None) == [first_pod, second]


def _named(pod: dict[str, Any], name: str) -> dict[str, Any]:
    return {**pod, "metadata": {**pod["metadata"], "name": name, "uid": name}}
