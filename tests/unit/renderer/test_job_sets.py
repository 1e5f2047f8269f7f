"""Training as a JobSet and as a TrainJob: names that are really given, restarts of all together, one rank for each chip."""

from __future__ import annotations

from dataclasses import replace
from datetime import time
from typing import Any

import pytest
import yaml

from chipwise.planner.values.split import SampleTrainingSplit
from chipwise.renderer.cluster.accelerators import pod_chips
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.layout import pods
from chipwise.renderer.open_hours import OpenHours, Weekly
from chipwise.renderer.quoting import LONGEST_NAME
from chipwise.renderer.targets import jobset, kueue, trainjob
from fixed_deployments import CASES

TRAIN, NEURON = CASES["train"], CASES["neuron"]
OWN = replace(TRAIN, software=replace(TRAIN.software, command=("bash", "start.sh"), is_custom=True))
RESERVED = {"PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"}  # of Trainer 2.2


def made(target: Any, planned: Deployment, kind: str) -> dict[str, Any]:
    every = [one for file in target.render(planned) for one in yaml.safe_load_all(file.text)]
    return next(one for one in every if one["kind"] == kind)


def child(planned: Deployment) -> dict[str, Any]:
    [job] = made(jobset, planned, "JobSet")["spec"]["replicatedJobs"]
    assert job["replicas"] == 1
    return dict(job["template"]["spec"])


def main(planned: Deployment) -> dict[str, Any]:
    [container] = child(planned)["template"]["spec"]["containers"]
    return dict(container)


def test_pods_meet_at_the_name_that_the_controller_gives_the_first() -> None:
    script = main(TRAIN)["command"][-1]
    assert "--rdzv-endpoint=llama-8b-legal-node-0-0.llama-8b-legal.llama-8b-legal.svc:29500" in script
    network = made(jobset, TRAIN, "JobSet")["spec"]["network"]
    assert network["enableDNSHostnames"] is True
    assert "subdomain" not in network, "its own is the name of the set"
    assert "subdomain" not in child(TRAIN)["template"]["spec"], "the controller sets it"
    kinds = {one["kind"] for file in jobset.render(TRAIN) for one in yaml.safe_load_all(file.text)}
    assert "Service" not in kinds, "the controller makes it"


def test_the_longest_name_of_a_pod_fits() -> None:
    assert LONGEST_NAME + len("-node-0-9999-abcde") <= 63


def test_a_command_of_the_user_finds_its_place() -> None:
    settings = {one["name"]: one for one in main(OWN)["env"]}
    assert settings["HEAD_ADDRESS"]["value"].startswith("llama-8b-legal-node-0-0.llama-8b-legal.")
    assert settings["NODES"]["value"] == "2"
    assert "job-completion-index" in settings["NODE_RANK"]["valueFrom"]["fieldRef"]["fieldPath"]


def test_a_lost_machine_restarts_all_and_does_not_count() -> None:
    spec, job = made(jobset, TRAIN, "JobSet")["spec"], child(TRAIN)
    assert job["backoffLimit"] == 0
    [rule] = job["podFailurePolicy"]["rules"]
    assert rule["action"] == "FailJob", "with the reason that the set's rule asks for"
    rules = {one["name"]: one for one in spec["failurePolicy"]["rules"]}
    assert rules["LostMachine"]["onJobFailureReasons"] == ["PodFailurePolicy"]
    assert rules["LostMachine"]["action"] == "RestartJobSetAndIgnoreMaxRestarts"
    assert rules["DeadlinePassed"]["action"] == "FailJobSet"
    assert spec["failurePolicy"]["maxRestarts"] == 6, "spot"
    assert "ttlSecondsAfterFinished" not in job, "a child that is gone would be started again"
    assert spec["ttlSecondsAfterFinished"] == 86400


@pytest.mark.parametrize("planned", [TRAIN, NEURON, CASES["tpu"]], ids=["train", "neuron", "tpu"])
def test_there_is_a_pod_for_each_machine(planned: Deployment) -> None:
    job = child(planned)
    assert job["completions"] == job["parallelism"] == pods(planned)
    assert job["completionMode"] == "Indexed"
    limits = main(planned)["resources"]["limits"]
    assert pod_chips(planned) in limits.values()


@pytest.mark.parametrize(("target", "kind"), [(jobset, "JobSet"), (trainjob, "TrainJob")])
def test_it_waits_in_the_queue_that_kueue_has(target: Any, kind: str) -> None:
    queue = made(kueue, TRAIN, "LocalQueue")["metadata"]["name"]
    labels = made(target, TRAIN, kind)["metadata"]["labels"]
    assert labels["kueue.x-k8s.io/queue-name"] == queue
    assert "suspend" not in made(target, TRAIN, kind)["spec"], "Kueue suspends it; without Kueue it runs"


def runtime(planned: Deployment) -> dict[str, Any]:
    return dict(made(trainjob, planned, "ClusterTrainingRuntime")["spec"])


def test_the_runtime_has_the_names_that_the_controller_looks_for() -> None:
    spec = runtime(TRAIN)
    [job] = spec["template"]["spec"]["replicatedJobs"]
    assert job["name"] == "node"
    assert job["template"]["metadata"]["labels"] == {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    [container] = job["template"]["spec"]["template"]["spec"]["containers"]
    assert container["name"] == "node"
    assert spec["mlPolicy"]["torch"] == {}
    assert "completions" not in job["template"]["spec"], "numNodes says how many"


@pytest.mark.parametrize("planned", [TRAIN, NEURON], ids=["train", "neuron"])
def test_ranks_are_the_ways_of_the_plan(planned: Deployment) -> None:
    job = made(trainjob, planned, "TrainJob")["spec"]
    trainer = job["trainer"]
    assert trainer["numNodes"] == pods(planned)
    assert trainer["numProcPerNode"] == planned.node.chips * planned.node.ways
    assert trainer["command"][:2] == ["torchrun", "train.py"], "torchrun reads the rest from PET_ settings"
    assert job["runtimeRef"]["name"] == made(trainjob, planned, "ClusterTrainingRuntime")["metadata"]["name"]


@pytest.mark.parametrize("planned", [TRAIN, OWN], ids=["torchrun", "own"])
def test_no_setting_is_lost_or_said_twice_or_the_controllers(planned: Deployment) -> None:
    [job] = runtime(planned)["template"]["spec"]["replicatedJobs"]
    [container] = job["template"]["spec"]["template"]["spec"]["containers"]
    below = {one["name"] for one in container["env"]}
    above = {one["name"] for one in made(trainjob, planned, "TrainJob")["spec"]["trainer"]["env"]}
    assert not below & above
    assert not (below | above) & RESERVED
    assert {one["name"] for one in main(planned)["env"]} <= below | above


def test_torchrun_waits_for_machines_that_come_late() -> None:
    settings = {one["name"]: one.get("value") for one in made(trainjob, TRAIN, "TrainJob")["spec"]["trainer"]["env"]}
    assert settings["PET_RDZV_CONF"] == "timeout=7200"


def test_samples_are_trained_too() -> None:
    planned = replace(TRAIN, split=SampleTrainingSplit(16, 64, 1))
    assert made(jobset, planned, "JobSet")


@pytest.mark.parametrize("target", [jobset, trainjob])
@pytest.mark.parametrize("case", ["serve", "batch", "hpc", "notebooks", "device", "pipeline"])
def test_what_is_no_training_is_refused_with_a_remedy(target: Any, case: str) -> None:
    with pytest.raises(CannotRender) as refused:
        target.render(CASES[case])
    assert refused.value.remedy


def test_other_frameworks_take_the_set() -> None:
    with pytest.raises(CannotRender) as refused:
        trainjob.render(CASES["tpu"])
    assert "jobset" in str(refused.value)


@pytest.mark.parametrize(("target", "resource"), [(jobset, "jobset"), (trainjob, "trainjob")])
def test_hours_that_no_clock_keeps_are_said(target: Any, resource: str) -> None:
    hours = OpenHours(Weekly(time(22), (1, 2)), Weekly(time(6), (2, 3)), "Europe/Berlin")
    planned = replace(TRAIN, hours=hours, time_zone=hours.time_zone)
    text = "".join(file.text for file in target.render(planned))
    assert "cron, Europe/Berlin: from 0 22 * * 1,2 to 0 6 * * 2,3" in text
    assert f"kubectl patch {resource} {TRAIN.name}" in text
    assert "cron" not in "".join(file.text for file in target.render(TRAIN))


@pytest.mark.parametrize(("purchase", "seconds"), [("spot", "110"), ("on-demand", "290")])
def test_torchrun_gives_its_processes_the_grace_of_the_pod(purchase: str, seconds: str) -> None:
    planned = replace(TRAIN, purchase=purchase)
    settings = {one["name"]: one.get("value") for one in main(planned)["env"]}
    assert settings["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] == seconds


def test_the_deadline_of_a_train_job_is_said_as_its_controller_counts_it() -> None:
    text = "".join(file.text for file in trainjob.render(TRAIN))
    assert "from its creation: waiting for machines counts" in text
