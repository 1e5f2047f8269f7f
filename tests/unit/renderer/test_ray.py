"""Ray: head and workers of the plan, a launcher for programs that know nothing of Ray, and what is left to others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from chipwise.planner.values.split import GenerationSplit
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.targets import ray
from fixed_deployments import BATCH, CASES, DEVICE, HPC, NEURON, NOTEBOOKS, PIPELINE, SERVE, TPU, TRAIN
from scripts import constants


def objects(planned: Deployment) -> dict[str, Any]:
    return {one["kind"]: one for file in ray.render(planned) for one in yaml.safe_load_all(file.text)}


def cluster(planned: Deployment) -> Any:
    found = objects(planned)
    if "RayService" in found:
        return found["RayService"]["spec"]["rayClusterConfig"]
    return found["RayCluster"]["spec"] if "RayCluster" in found else found["RayJob"]["spec"]["rayClusterSpec"]


def test_the_head_does_no_work_and_takes_no_chip() -> None:
    for planned in (TRAIN, SERVE, NEURON, NOTEBOOKS):
        head = cluster(planned)["headGroupSpec"]
        assert head["rayStartParams"]["num-cpus"] == "0"
        asked = head["template"]["spec"]["containers"][0]["resources"]["limits"]
        assert set(asked) == {"memory"}


def test_the_head_of_a_spot_job_stands_on_a_machine_that_stays() -> None:
    wanted = str(cluster(TRAIN)["headGroupSpec"]["template"]["spec"]["affinity"])
    assert "on-demand" in wanted
    assert "'spot'" not in wanted
    assert "affinity" not in cluster(SERVE)["headGroupSpec"]["template"]["spec"]


def test_the_head_stands_on_the_processor_of_its_image() -> None:
    for arch in ("amd64", "arm64"):
        planned = replace(SERVE, node=replace(SERVE.node, arch=arch))
        assert cluster(planned)["headGroupSpec"]["template"]["spec"]["nodeSelector"] == {"kubernetes.io/arch": arch}


def test_an_upgrade_of_a_service_has_room_for_a_second_cluster() -> None:
    [group] = cluster(SERVE)["workerGroupSpecs"]
    hard = objects(SERVE)["ResourceQuota"]["spec"]["hard"]
    each = group["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]
    assert int(hard["requests.nvidia.com/gpu"]) == 2 * group["maxReplicas"] * each
    assert int(hard["pods"]) >= 2 * (group["maxReplicas"] + 1)
    assert int(objects(TRAIN)["ResourceQuota"]["spec"]["hard"]["requests.nvidia.com/gpu"]) == 16, "a job is not upgraded"


@pytest.mark.parametrize(("planned", "many"), [(TRAIN, 2), (NEURON, 4), (BATCH, 16)], ids=["train", "neuron", "batch"])
def test_a_job_has_the_plans_machines_or_replicas_as_workers(planned: Deployment, many: int) -> None:
    [group] = cluster(planned)["workerGroupSpecs"]
    assert (group["replicas"], group["minReplicas"], group["maxReplicas"]) == (many, many, many)
    assert "enableInTreeAutoscaling" not in cluster(planned)


def test_workers_that_meet_do_not_have_to_stand_with_the_head() -> None:
    [group] = cluster(TRAIN)["workerGroupSpecs"]
    rules = group["template"]["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert all(rule["labelSelector"]["matchLabels"]["ray.io/node-type"] == "worker" for rule in rules)


def test_a_service_scales_between_its_bounds() -> None:
    [group] = cluster(SERVE)["workerGroupSpecs"]
    assert (group["minReplicas"], group["maxReplicas"]) == (2, 12)
    serving = yaml.safe_load(objects(SERVE)["RayService"]["spec"]["serveConfigV2"])
    [config] = serving["applications"][0]["args"]["llm_configs"]
    assert config["engine_kwargs"] == {"quantization": "fp8", "max_model_len": 8192, "max_num_seqs": 128}
    assert config["deployment_config"]["autoscaling_config"]["max_replicas"] == 12


def test_a_replica_larger_than_a_machine_takes_several_workers() -> None:
    large = replace(SERVE, node=replace(SERVE.node, chips=8), chips_each=8, split=GenerationSplit(tp=8, pp=2, replicas=2))
    [group] = cluster(large)["workerGroupSpecs"]
    assert (group["minReplicas"], group["maxReplicas"]) == (4, 24)


def test_a_slice_of_a_tpu_is_one_worker_of_several_hosts() -> None:
    [group] = cluster(TPU)["workerGroupSpecs"]
    assert (group["numOfHosts"], group["replicas"]) == (8, 1)


def test_chips_that_kuberay_does_not_count_are_told_to_ray() -> None:
    [group] = cluster(NEURON)["workerGroupSpecs"]
    assert group["rayStartParams"] == {"resources": '"{\\"neuron_cores\\": 32}"'}
    [group] = cluster(NOTEBOOKS)["workerGroupSpecs"]
    assert group["rayStartParams"] == {"num-gpus": "1"}


def test_the_launcher_is_a_program_that_starts_torchrun_on_every_machine() -> None:
    told = constants(objects(TRAIN)["ConfigMap"]["data"]["launch.json"])
    assert told["WORKERS"] == 2
    assert told["BUNDLE"] == {"CPU": 1, "GPU": 8}
    assert told["COMMAND"].startswith("torchrun --nnodes=2 --nproc-per-node=8")


def test_one_machine_needs_no_launcher_and_runs_on_a_worker() -> None:
    found = objects(replace(TRAIN, machines=1))
    assert "ConfigMap" not in found
    assert found["RayJob"]["spec"]["entrypointNumGpus"] == 8


def test_a_clock_keeps_its_time_zone() -> None:
    found = objects(replace(TRAIN, starts="0 20 1 * *", time_zone="Europe/Berlin"))
    assert found["RayCronJob"]["spec"]["schedule"] == "CRON_TZ=Europe/Berlin 0 20 1 * *"


@pytest.mark.parametrize(
    "planned", [PIPELINE, DEVICE, HPC, replace(SERVE, model=None)], ids=["pipeline", "device", "mpi", "own"]
)
def test_what_ray_cannot_do_is_refused_with_another_way(planned: Deployment) -> None:
    with pytest.raises(CannotRender) as refused:
        ray.render(planned)
    assert refused.value.remedy


def test_an_application_of_the_users_own_is_served() -> None:
    own = replace(
        SERVE, model=None, software=replace(SERVE.software, is_custom=True, command=("serve", "run", "shop.app:main"))
    )
    serving = yaml.safe_load(objects(own)["RayService"]["spec"]["serveConfigV2"])
    assert serving["applications"][0]["import_path"] == "shop.app:main"
    assert "args" not in serving["applications"][0]


def test_arguments_of_an_application_are_kept_as_text_and_options_of_its_command_refused() -> None:
    def applications(*words: str) -> list[dict[str, Any]]:
        software = replace(SERVE.software, is_custom=True, command=("serve", "run", "shop.app:main", *words))
        service = objects(replace(SERVE, model=None, software=software))["RayService"]
        found: list[dict[str, Any]] = yaml.safe_load(service["spec"]["serveConfigV2"])["applications"]
        return found

    assert applications("size=large", "home=${HOME}")[0]["args"] == {"size": "large", "home": "${HOME}"}
    with pytest.raises(CannotRender, match="'--blocking' is an option of `serve run`"):
        applications("--blocking")


def test_no_container_may_become_root() -> None:
    for planned in CASES.values():
        try:
            made = cluster(planned)
        except (CannotRender, KeyError):
            continue
        for group in (made["headGroupSpec"], *made["workerGroupSpecs"]):
            spec = group["template"]["spec"]
            if planned.node.kind == "tpu" and group in made["workerGroupSpecs"]:
                continue  # their devices belong to root
            assert spec["securityContext"]["runAsNonRoot"] is True
            assert all(one["securityContext"]["allowPrivilegeEscalation"] is False for one in spec["containers"])


def test_a_slice_of_tpus_that_serves_is_found_by_its_labels() -> None:
    served = replace(SERVE, node=replace(TPU.node, chips=4), alternatives=(), chips_each=4)
    workers = cluster(served)["workerGroupSpecs"][0]["template"]["spec"]
    assert "affinity" not in workers
    assert workers["nodeSelector"]


@pytest.mark.parametrize("planned", [TRAIN, BATCH, replace(TRAIN, machines=1)], ids=["train", "batch", "one machine"])
def test_a_setting_that_ray_would_fill_in_stays_text(planned: Deployment) -> None:
    env = (("LITERAL", "${HOME}/$USER $(NAME)"), ("PLAIN", "1"))
    planned = replace(planned, software=replace(planned.software, env=env))
    job = objects(planned)["RayJob"]["spec"]
    assert yaml.safe_load(job["runtimeEnvYAML"])["env_vars"] == {"PLAIN": "1"}
    [worker] = job["rayClusterSpec"]["workerGroupSpecs"][0]["template"]["spec"]["containers"]
    values = {one["name"]: one.get("value") for one in worker["env"]}
    assert values["LITERAL"] == "${HOME}/$USER $$(NAME)"  # as Kubernetes reads it
    assert "PLAIN" not in values
