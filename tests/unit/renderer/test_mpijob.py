"""A program of MPI over several machines: a rank for each core or chip, all machines of the plan and no more, and no root."""

from __future__ import annotations

from dataclasses import replace
from datetime import time
from typing import Any

import pytest
import yaml

from chipwise.planner.values.split import Runs
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.open_hours import OpenHours, Weekly
from chipwise.renderer.targets import dockerfile, mpijob
from fixed_deployments import CASES

HPC, TRAIN = CASES["hpc"], CASES["train"]
TRAINED = replace(TRAIN, software=replace(TRAIN.software, framework="mpi", command=("python", "train.py")))


def every(planned: Deployment) -> list[dict[str, Any]]:
    return [one for file in mpijob.render(planned) for one in yaml.safe_load_all(file.text)]


def spec(planned: Deployment) -> dict[str, Any]:
    return dict(next(one["spec"] for one in every(planned) if one["kind"] == "MPIJob"))


def pod(planned: Deployment, role: str) -> dict[str, Any]:
    return dict(spec(planned)["mpiReplicaSpecs"][role]["template"]["spec"])


def script(planned: Deployment, role: str) -> str:
    return str(pod(planned, role)["containers"][0]["command"][-1])


@pytest.mark.parametrize(("planned", "slots"), [(HPC, 192), (TRAINED, 8)], ids=["cores", "chips"])
def test_a_rank_for_each_core_or_chip_of_every_machine(planned: Deployment, slots: int) -> None:
    made = spec(planned)
    assert made["slotsPerWorker"] == slots
    roles = made["mpiReplicaSpecs"]
    assert made["runLauncherAsWorker"] is True
    assert roles["Launcher"]["replicas"] + roles["Worker"]["replicas"] == planned.machines
    assert f"exec mpirun -np {slots * planned.machines} --hostfile /etc/mpi/hostfile" in script(planned, "Launcher")


def test_ranks_of_other_machines_see_every_setting() -> None:
    names = {one["name"] for one in pod(TRAINED, "Launcher")["containers"][0]["env"]}
    assert {"FI_PROVIDER", "HF_TOKEN", "HOME"} <= names
    assert all(f"-x {name} " in script(TRAINED, "Launcher").replace("\\\n   ", "") for name in names)


def test_both_roles_ask_for_a_whole_machine() -> None:
    launcher, worker = (pod(TRAINED, role)["containers"][0]["resources"] for role in ("Launcher", "Worker"))
    assert launcher == worker
    assert worker["limits"]["nvidia.com/gpu"] == 8


def test_the_quota_of_the_queue_is_what_all_machines_ask_for() -> None:
    [queue] = [one for one in every(HPC) if one["kind"] == "ClusterQueue"]
    [group] = queue["spec"]["resourceGroups"]
    cpu = next(one for one in group["flavors"][0]["resources"] if one["name"] == "cpu")
    asked = pod(HPC, "Worker")["containers"][0]["resources"]["requests"]["cpu"]
    assert int(cpu["nominalQuota"]) == int(asked) * HPC.machines
    names = {one["metadata"]["name"] for one in every(HPC) if one["kind"] == "LocalQueue"}
    [job] = [one for one in every(HPC) if one["kind"] == "MPIJob"]
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] in names


@pytest.mark.parametrize("role", ["Launcher", "Worker"])
def test_neither_role_is_root(role: str) -> None:
    made = pod(HPC, role)
    assert made["securityContext"]["runAsNonRoot"] is True
    assert made["containers"][0]["securityContext"]["capabilities"]["drop"] == ["ALL"]
    assert "StrictHostKeyChecking yes" in script(HPC, role)
    assert "restartPolicy" not in made, "the operator sets it, and warns where a pod says it"


def test_a_command_that_starts_ranks_itself_is_left_as_it_is() -> None:
    planned = replace(HPC, software=replace(HPC.software, command=("mpirun", "-np", "96", "./solver")))
    assert script(planned, "Launcher").endswith("exec mpirun -np 96 ./solver\n")
    settings = {one["name"]: one.get("value") for one in pod(planned, "Launcher")["containers"][0]["env"]}
    assert settings["PRTE_MCA_prte_default_hostfile"] == "/etc/mpi/hostfile"


def test_the_image_has_what_machines_reach_each_other_by() -> None:
    text = dockerfile.render(HPC)[0].text
    assert "openssh-client openssh-server" in text
    alone = replace(HPC, machines=1, split=Runs(at_once=1, chips_each=1))
    assert "openssh" not in dockerfile.render(alone)[0].text


@pytest.mark.parametrize("case", ["serve", "batch", "train", "notebooks", "device", "pipeline", "tpu"])
def test_what_is_no_program_of_mpi_is_refused_with_a_remedy(case: str) -> None:
    with pytest.raises(CannotRender) as refused:
        mpijob.render(CASES[case])
    assert refused.value.remedy


@pytest.mark.parametrize(
    ("planned", "reason"),
    [
        (replace(HPC, machines=1, split=Runs(at_once=1, chips_each=1)), "one machine"),
        (replace(HPC, runs=8), "8 runs"),
        (replace(HPC, software=replace(HPC.software, command=("srun", "./solver"))), "Slurm"),
    ],
)
def test_what_it_cannot_hold_is_said(planned: Deployment, reason: str) -> None:
    with pytest.raises(CannotRender, match=reason):
        mpijob.render(planned)


def test_hours_that_no_clock_keeps_are_said() -> None:
    planned = replace(HPC, hours=OpenHours(Weekly(time(22), (1, 2)), Weekly(time(6), (2, 3)), "Europe/Berlin"))
    text = "".join(file.text for file in mpijob.render(planned))
    assert """'{"spec": {"runPolicy": {"suspend": true}}}'""" in text
