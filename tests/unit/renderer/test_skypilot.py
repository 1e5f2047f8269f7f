"""SkyPilot tasks: its names of chips and places, recovery where machines are taken away, and services that grow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from chipwise.planner.values.split import Runs
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.launch.sky_chips import accelerator
from chipwise.renderer.targets.skypilot import render
from fixed_deployments import AZURE, BATCH, DEVICE, HPC, NEURON, NOTEBOOKS, PIPELINE, SERVE, TPU, TRAIN


def task(what: Deployment) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(render(what)[0].text)
    return found


@pytest.mark.parametrize(
    ("what", "named"),
    [(TRAIN, "H100:8"), (SERVE, "L40S:1"), (NEURON, "Trainium:16"), (TPU, "tpu-v6e-32:1"), (AZURE, "A100-80GB:1"), (HPC, None)],
    ids=lambda one: one.name if isinstance(one, Deployment) else str(one),
)
def test_chips_have_skypilots_names(what: Deployment, named: str | None) -> None:
    assert accelerator(what.node, what.node.chips) == named


@pytest.mark.parametrize(
    ("machine", "chip", "chips", "named"),
    [
        ("ct6e-standard-1t", "TPU-v6e", 1, "tpu-v6e-1:1"),
        ("ct5lp-hightpu-4t", "TPU-v5e", 4, "tpu-v5litepod-4:1"),
        ("ct5p-hightpu-4t", "TPU-v5p", 4, "tpu-v5p-8:1"),
        ("tpu-v5p-16", "TPU-v5p", 8, "tpu-v5p-16:1"),
    ],
)
def test_machines_of_tpus_are_rented_by_the_names_of_their_slices(machine: str, chip: str, chips: int, named: str) -> None:
    """A type of machine that it does not know ends the whole task as it is read, whatever stands beside it."""
    assert accelerator(replace(TPU.node, machine=machine, chip=chip, chips=chips), chips) == named


def on_a_tpu(chips: int = 1, each: int = 1) -> Deployment:
    node = replace(TPU.node, machine=f"ct6e-standard-{chips}t", chip="TPU-v6e", chips=chips)
    software = replace(SERVE.software, image="vllm/vllm-tpu:v0.26.0")
    same = replace(node, machine=f"tpu-v6e-{chips}")
    return replace(SERVE, node=node, chips_each=each, software=software, alternatives=(same,))


def test_an_image_runs_on_a_tpu_by_docker_because_skypilot_starts_none_there() -> None:
    made = task(on_a_tpu())
    assert "image_id" not in made["resources"]
    assert made["resources"]["accelerators"] == "tpu-v6e-1:1", "one chip, once"
    words = made["run"].replace("\\\n", " ").split()
    start = words.index("docker")
    assert words[start - 2 : start + 2] == ["sudo", "--preserve-env", "docker", "run"]
    assert "--privileged" in words
    image = words.index("vllm/vllm-tpu:v0.26.0")
    assert words[image - 1 : image + 2] == ["vllm", "vllm/vllm-tpu:v0.26.0", "serve"]
    assert {words[at + 1] for at, word in enumerate(words) if word == "--env"} >= set(made["envs"])
    assert "/models:/models" in words


@pytest.mark.parametrize("what", [on_a_tpu(4, 1), replace(SERVE, node=replace(NEURON.node, chips=6), chips_each=2)])
def test_copies_that_the_engine_does_not_deal_chips_to_are_refused(what: Deployment) -> None:
    with pytest.raises(CannotRender, match="starts one on a machine"):
        render(what)


def test_spot_jobs_recover_and_may_take_what_there_is() -> None:
    wanted = task(TRAIN)["resources"]
    assert wanted["use_spot"] is True
    assert wanted["job_recovery"]["max_restarts_on_errors"] == 3
    assert [one["accelerators"] for one in wanted["any_of"]] == ["H100:8", "H200:8"]


def test_machines_meet_by_skypilots_numbers() -> None:
    made = task(TRAIN)
    assert made["num_nodes"] == 2
    assert '--node-rank="$SKYPILOT_NODE_RANK"' in made["run"]


def test_machines_without_a_chip_are_asked_for_by_type() -> None:
    assert task(HPC)["resources"]["instance_type"] == "hpc7a.96xlarge"
    assert "mpirun --host" in task(HPC)["run"]


def test_a_service_grows_with_its_rate() -> None:
    service = task(SERVE)["service"]
    policy = service["replica_policy"]
    assert (policy["min_replicas"], policy["max_replicas"]) == (2, 12)
    assert SERVE.scaling is not None
    assert policy["target_qps_per_replica"] < (SERVE.scaling.per_replica or 0.0)
    assert service["readiness_probe"]["path"] == "/health"
    assert task(SERVE)["resources"]["ports"] == 8000
    assert "dynamic_ondemand_fallback" in task(AZURE)["service"]["replica_policy"], "spot"


def test_secrets_are_asked_for_at_launch() -> None:
    assert task(TRAIN)["secrets"] == {"HF_TOKEN": None}
    assert "--secret HF_TOKEN" in render(TRAIN)[0].text


def test_checkpoints_outlive_the_machine() -> None:
    mounts = task(TRAIN)["file_mounts"]
    assert mounts["/checkpoints"]["mode"] == "MOUNT_CACHED"
    assert mounts["/data"]["source"] == "s3://legal-text/tokens/"
    assert "/models" not in mounts, "fetched to the machine's own disk"


def test_independent_machines_are_jobs_of_their_own() -> None:
    files = {one.path: one.text for one in render(BATCH)}
    assert "seq 0 3" in files["submit.sh"]
    assert "PART=$((${MACHINE:-0} * 4 + chip))" in files["task.yaml"]
    assert "num_nodes" not in task(BATCH)


def test_runs_of_a_simulation_are_jobs_of_their_own() -> None:
    files = {one.path: one.text for one in render(replace(HPC, runs=6))}
    assert '--env RUN="$at"' in files["submit.sh"]


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (PIPELINE, "not one SkyPilot task"),
        (NOTEBOOKS, "starts and stops"),
        (DEVICE, "devices of your own"),
        (replace(SERVE, node=replace(SERVE.node, provider="crusoe")), "does not rent from crusoe"),
        (replace(SERVE, software=replace(SERVE.software, port=None, health=None)), "readiness probe"),
        (replace(HPC, split=Runs(at_once=2, chips_each=4), node=TRAIN.node), "machines of its own"),
    ],
)
def test_what_it_cannot_run_is_refused(what: Deployment, why: str) -> None:
    with pytest.raises(CannotRender, match=why) as caught:
        render(what)
    assert caught.value.remedy


def test_a_replica_is_a_whole_machine_and_answers_for_its_copies_on_one_port() -> None:
    """AWS has no machine with two H100, and eight for one copy would leave six idle."""
    assert SERVE.scaling is not None
    node = replace(SERVE.node, machine="p5.48xlarge", chip="H100-SXM", chips=8)
    other = replace(node, machine="p5.4xlarge", chips=1)
    made = task(replace(SERVE, node=node, chips_each=2, alternatives=(other,)))
    assert made["resources"]["accelerators"] == "H100:8"
    policy = made["service"]["replica_policy"]
    assert (policy["min_replicas"], policy["max_replicas"]) == (1, 3), "four copies on each"
    assert policy["target_qps_per_replica"] == pytest.approx(
        4 * task(SERVE)["service"]["replica_policy"]["target_qps_per_replica"], 0.02
    )
    assert "--data-parallel-size 4" in made["run"]
    tgi = replace(SERVE.software, engine="tgi")
    with pytest.raises(CannotRender, match="4 copies on one"):
        render(replace(SERVE, node=node, chips_each=2, software=tgi))
