"""What a submitter puts into a job's objects: a plain command in an image, or the work of a plan."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from chipwise.adapters.engines.kubernetes.kinds import DEPLOYMENT, JOB, SERVICE
from chipwise.adapters.engines.kubernetes.objects import AttemptObjects, attempt_objects
from chipwise.adapters.engines.kubernetes.plain import command_objects
from chipwise.errors import BadInput
from chipwise.renderer.cluster.work import work
from chipwise.renderer.file import CannotRender
from chipwise.runner.events import Placed, Submitted, after, first
from chipwise.runner.job import MachinePlace, Needs, Spec
from deployments import on_few_offers as deployment

IMAGE = "team/trainer:1.4"


def _spec(*words: str, **asked: Any) -> Spec:
    return Spec(words or ("python", "train.py"), "Train It", "kubernetes", **asked)


def _attempt(spec: Spec) -> AttemptObjects:
    return attempt_objects(after(first("train-k3x9q", Submitted(spec), 0.0), Placed(1, MachinePlace()), 0.0), "here", "r")


def _container(made: AttemptObjects) -> dict[str, Any]:
    [found] = made.main[1]["spec"]["template"]["spec"]["containers"]
    return dict(found)


def test_a_plain_command_is_one_job_of_one_pod_that_holds_what_was_asked_for() -> None:
    spec = _spec("python", "train.py", "$(date)", needs=Needs(gpus=2, cpus=8))
    objects = command_objects(spec, IMAGE)
    assert [one["kind"] for one in objects] == ["Job"]
    made = _attempt(replace(spec, objects=objects))
    container = _container(made)
    assert container["command"] == ["python", "train.py", "$$(date)"]  # stays text
    assert container["resources"] == {"requests": {"cpu": "8", "nvidia.com/gpu": "2"}, "limits": {"nvidia.com/gpu": "2"}}
    assert made.main[1]["spec"]["backoffLimit"] == 0  # another try is another attempt
    assert "suspend" not in made.main[1]["spec"]
    assert made.main[1]["spec"]["template"]["spec"]["tolerations"][0]["key"] == "nvidia.com/gpu"


def test_machines_of_a_plain_command_know_their_rank_and_meet_by_the_name_of_the_attempt() -> None:
    spec = _spec(needs=Needs(machines=4))
    made = _attempt(replace(spec, objects=command_objects(spec, IMAGE)))
    assert made.main[0] is JOB
    assert (made.main[1]["spec"]["completions"], made.main[1]["spec"]["parallelism"]) == (4, 4)
    env = {one["name"]: one for one in _container(made)["env"]}
    assert env["MASTER_ADDR"]["value"] == "train-k3x9q-a1-0.train-k3x9q-a1.here.svc"
    assert env["WORLD_SIZE"]["value"] == "4"
    assert "job-completion-index" in env["RANK"]["valueFrom"]["fieldRef"]["fieldPath"]
    [(kind, service)] = made.owned
    assert kind is SERVICE
    assert service["metadata"]["name"] == made.main[1]["spec"]["template"]["spec"]["subdomain"] == "train-k3x9q-a1"
    assert service["spec"]["selector"]["chipwise.dev/attempt"] == "1"


def test_an_attempt_on_fewer_machines_than_wanted_is_a_smaller_gang_that_is_told_so() -> None:
    spec = _spec("torchrun", "--nnodes=4", "train.py", needs=Needs(machines=4, machines_least=2))
    spec = replace(spec, objects=command_objects(spec, IMAGE))
    job = after(first("train-k3x9q", Submitted(spec), 0.0), Placed(1, MachinePlace(), machines=3), 0.0)
    made = attempt_objects(job, "here", "r")
    assert (made.main[1]["spec"]["completions"], made.main[1]["spec"]["parallelism"]) == (3, 3)
    assert {one["name"]: one.get("value") for one in _container(made)["env"]}["WORLD_SIZE"] == "3"
    assert _container(made)["command"] == ["torchrun", "--nnodes=3", "train.py"]


def test_a_queued_command_waits_until_kueue_lets_it_in() -> None:
    [job] = command_objects(_spec(), IMAGE, "team-a")
    assert job["spec"]["suspend"] is True
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team-a"


@pytest.mark.parametrize(
    ("image", "needs", "told"),
    [("", Needs(), "--image"), ("a b", Needs(), "is not an image"), (IMAGE, Needs(processes=8), "torchrun --nproc-per-node 8")],
)
def test_a_command_that_a_pod_cannot_run_is_refused_with_a_way_out(image: str, needs: Needs, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        command_objects(_spec(needs=needs), image)


@pytest.mark.parametrize("example", ["train", "serve"])
@pytest.mark.parametrize("queue", ["", "team-a"])
def test_the_work_of_a_plan_is_taken_by_the_engine_and_names_nothing_that_only_a_cluster_admin_makes(
    example: str, queue: str
) -> None:
    planned = replace(deployment(example, "clouds=[aws]"), starts="", stops="")
    objects = work(planned, queue, IMAGE)
    assert json.loads(json.dumps(objects)) == list(objects)  # as a record keeps it
    made = _attempt(_spec(objects=objects))
    assert made.main[0] is (JOB if example == "train" else DEPLOYMENT)
    assert _container(made)["image"] == IMAGE
    assert "priorityClassName" not in made.main[1]["spec"]["template"]["spec"]
    labels = made.main[1]["metadata"]["labels"]
    assert labels.get("kueue.x-k8s.io/queue-name", "") == queue
    assert "kueue.x-k8s.io/priority-class" not in labels
    assert {one["kind"] for one in objects} <= {
        "ServiceAccount",
        "NetworkPolicy",
        "PersistentVolumeClaim",
        "Service",
        "Job",
        "Deployment",
        "PodDisruptionBudget",
        "HorizontalPodAutoscaler",
    }


def test_work_that_a_cluster_cannot_run_for_us_is_refused_with_a_way_out() -> None:
    planned = deployment("train", "clouds=[aws]")
    built = replace(planned, software=replace(planned.software, built=True))
    with pytest.raises(CannotRender, match=r"names no image.*--image"):
        work(built)
    with pytest.raises(CannotRender, match="schedule"):
        work(replace(planned, starts="0 2 * * *"), image=IMAGE)
