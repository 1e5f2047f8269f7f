"""Kubernetes manifests say what the plan says: how many pods, what each asks for, and which machines will do."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import Any

import pytest
import yaml

from chipwise.planner.values.split import Runs
from chipwise.renderer.cluster.accelerators import memory_request
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.layout import candidates, meets, pods, uses_efa
from chipwise.renderer.targets import argo, kubernetes, kueue
from deployments import deployment as on_all_offers
from deployments import on_few_offers as deployment
from fixed_deployments import CASES

AWS = "clouds=[aws]"
MACHINE = "node.kubernetes.io/instance-type"
TRAIN, HPC = CASES["train"], CASES["hpc"]


def made(planned: Deployment, file: str = "") -> list[dict[str, Any]]:
    files = [one for one in kubernetes.render(planned) if not file or one.path == file]
    return [one for each in files for one in yaml.safe_load_all(each.text)]


def one(planned: Deployment, kind: str) -> dict[str, Any]:
    return next(it for it in made(planned) if it["kind"] == kind)


def requests(job: dict[str, Any]) -> dict[str, Any]:
    container = job["spec"]["template"]["spec"]["containers"][0]
    return dict(container["resources"]["requests"])


def test_independent_workers_get_a_pod_for_each_chip() -> None:
    planned = deployment("batch", AWS)
    job = one(planned, "Job")
    assert job["spec"]["completions"] == planned.machines * planned.node.chips == pods(planned)
    assert requests(job)["nvidia.com/gpu"] == 1
    assert "vpc.amazonaws.com/efa" not in requests(job), "nobody to talk to"
    assert "podAffinity" not in job["spec"]["template"]["spec"]["affinity"]


def test_machines_that_work_together_meet_in_one_zone_on_one_type() -> None:
    alone = deployment("train", AWS)
    planned = replace(alone, alternatives=(replace(alone.node, machine="p5en.48xlarge"),))
    assert meets(planned)
    assert uses_efa(planned)
    job = one(planned, "Job")
    rules = job["spec"]["template"]["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert [rule["topologyKey"] for rule in rules] == ["topology.kubernetes.io/zone", MACHINE]
    assert requests(job)["vpc.amazonaws.com/efa"] == planned.node.interfaces
    assert "hugepages-2Mi" not in requests(job), "Karpenter brings no machine to a pod that asks for huge pages"


def test_a_stand_in_has_room_for_what_the_pod_asks_for() -> None:
    planned = deployment("train", AWS)
    asked = requests(one(planned, "Job"))
    for node in candidates(planned):
        assert node.vcpus is not None
        assert node.memory_bytes is not None
        assert int(asked["cpu"]) < node.vcpus
        assert int(asked["memory"].removesuffix("Gi")) * 2**30 < node.memory_bytes
        assert node.interfaces >= asked["vpc.amazonaws.com/efa"]


def test_paid_by_the_hour_only_machines_with_the_same_chip_stand_in() -> None:
    planned = on_all_offers("serve", AWS)
    assert not planned.spot
    assert {node.chip for node in candidates(planned)} == {planned.node.chip}
    affinity = one(planned, "Deployment")["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    [preferred] = affinity["preferredDuringSchedulingIgnoredDuringExecution"]
    assert preferred["preference"]["matchExpressions"][0]["values"] == [planned.node.machine]


def test_volumes_of_pods_on_several_machines_are_shared() -> None:
    claims = [it for it in made(deployment("train", AWS)) if it["kind"] == "PersistentVolumeClaim"]
    assert claims
    assert all(claim["spec"]["accessModes"] == ["ReadWriteMany"] for claim in claims)


def plugins(planned: Deployment) -> dict[str, dict[str, Any]]:
    return {it["metadata"]["name"]: it for it in made(planned, "devices.yaml") if it["kind"] == "DaemonSet"}


def config(planned: Deployment) -> Any:
    [found] = [it for it in made(planned, "devices.yaml") if it["kind"] == "ConfigMap"]
    return yaml.safe_load(found["data"]["config.yaml"])


def test_gpus_and_fabric_each_have_their_plugin_on_the_machines_of_the_plan() -> None:
    planned = deployment("train", AWS)
    found = plugins(planned)
    assert set(found) == {"nvidia-device-plugin", "aws-efa-k8s-device-plugin"}
    for daemon in found.values():
        affinity = daemon["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
        [term] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        assert term["matchExpressions"][0]["values"] == [node.machine for node in candidates(planned)]


def test_neuron_has_its_own_plugin_with_its_rights() -> None:
    planned = deployment("serve", AWS, "chips=[inferentia2]")
    assert set(plugins(planned)) == {"neuron-device-plugin"}
    assert {it["kind"] for it in made(planned, "devices.yaml")} == {
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "DaemonSet",
    }


def test_a_machine_without_chips_and_a_cluster_of_google_need_no_plugin() -> None:
    assert not plugins(deployment("hybrid", AWS, "chips=[graviton4]"))
    assert not plugins(deployment("train", "clouds=[gcp]", "chips=[h100]"))


def test_turns_on_a_gpu_are_a_resource_of_their_own() -> None:
    planned = deployment("serve", AWS)
    shared = replace(planned, node=replace(planned.node, sharing="turns", users_per_chip=4))
    turns = config(shared)["sharing"]["timeSlicing"]
    assert turns["resources"] == [{"name": "nvidia.com/gpu", "replicas": 4}]
    assert turns["renameByDefault"]
    assert turns["failRequestsGreaterThanOne"]
    asked = requests(one(shared, "Deployment"))
    assert asked["nvidia.com/gpu.shared"] == 1
    assert "nvidia.com/gpu" not in asked


def test_processes_together_on_a_gpu_go_through_mps() -> None:
    planned = deployment("serve", AWS)
    shared = replace(planned, node=replace(planned.node, sharing="mps", users_per_chip=60))
    assert config(shared)["sharing"]["mps"]["resources"] == [{"name": "nvidia.com/gpu", "replicas": 48}]


def test_slices_of_a_gpu_are_asked_for_by_their_profile() -> None:
    planned = deployment("serve", AWS)
    sliced = replace(planned, node=replace(planned.node, sharing="slices", users_per_chip=7, profile="1g.10gb"))
    assert config(sliced)["flags"]["migStrategy"] == "mixed"
    assert requests(one(sliced, "Deployment"))["nvidia.com/mig-1g.10gb"] == 1
    daemon = plugins(sliced)["nvidia-device-plugin"]["spec"]["template"]["spec"]["containers"][0]
    assert {"name": "NVIDIA_MIG_MONITOR_DEVICES", "value": "all"} in daemon["env"]


def test_the_file_of_plugins_says_which_node_image_has_the_driver() -> None:
    [text] = [file.text for file in kubernetes.render(deployment("train", AWS)) if file.path == "devices.yaml"]
    assert "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/nvidia/recommended/image_id" in text
    assert "driver 580" in text


@pytest.mark.parametrize(("example", "remedy"), [("pipeline", "argo"), ("interactive", "jupyterhub"), ("stream", "ec2")])
def test_what_it_cannot_express_it_hands_to_who_can(example: str, remedy: str) -> None:
    with pytest.raises(CannotRender) as refused:
        kubernetes.render(deployment(example))
    assert remedy in str(refused.value.remedy)


def mpi(planned: Deployment, **changed: Any) -> Deployment:
    return replace(planned, software=replace(planned.software, framework="mpi"), **changed)


SIX_RUNS = mpi(
    TRAIN,
    name="wing",
    machines=3,
    purchase="on-demand",
    split=Runs(at_once=4, chips_each=4),
    runs=6,
    alternatives=(),
)


def test_runs_inside_a_machine_are_pods_of_their_own_with_ranks_on_their_chips() -> None:
    job = one(SIX_RUNS, "Job")["spec"]
    assert (job["completions"], job["parallelism"]) == (6, 4)
    [main] = job["template"]["spec"]["containers"]
    assert main["command"] == ["mpirun", "-np", "4", "--bind-to", "none", *SIX_RUNS.software.command]
    assert main["resources"]["limits"]["nvidia.com/gpu"] == 4
    [run] = [it for it in main["env"] if it["name"] == "RUN"]
    assert "job-completion-index" in run["valueFrom"]["fieldRef"]["fieldPath"]
    assert "podAffinity" not in job["template"]["spec"]["affinity"], "runs do not speak to each other"
    assert not [it for it in made(SIX_RUNS, "workload.yaml") if it["kind"] == "Service"]
    [quota] = [it for it in made(SIX_RUNS) if it["kind"] == "ResourceQuota"]
    assert quota["spec"]["hard"]["requests.nvidia.com/gpu"] == "16"


def test_no_more_runs_at_a_time_than_machines_have_chips_for() -> None:
    odd = replace(SIX_RUNS, split=Runs(at_once=4, chips_each=6))
    assert one(odd, "Job")["spec"]["parallelism"] == 3


def test_a_run_on_processors_takes_a_machine_and_as_many_ranks_as_it_has_cores() -> None:
    plain = replace(HPC, split=Runs(at_once=4, chips_each=1), runs=8)
    job = one(plain, "Job")["spec"]
    assert (job["completions"], job["parallelism"]) == (8, 4)
    assert job["template"]["spec"]["containers"][0]["command"] == ["mpirun", *HPC.software.command]


def test_a_command_that_starts_ranks_by_itself_is_left_alone() -> None:
    own = replace(SIX_RUNS, software=replace(SIX_RUNS.software, command=("mpirun", "./solver")))
    assert one(own, "Job")["spec"]["template"]["spec"]["containers"][0]["command"] == ["mpirun", "./solver"]


@pytest.mark.parametrize("target", [kubernetes, kueue, argo])
def test_ranks_over_several_machines_are_left_to_who_can_start_them(target: Any) -> None:
    with pytest.raises(CannotRender, match="needs an MPI launcher") as refused:
        target.render(HPC)
    assert "slurm" in str(refused.value.remedy)


def test_runs_over_several_machines_each_are_refused() -> None:
    several = replace(TRAIN, machines=4, split=Runs(at_once=2, chips_each=16), runs=6)
    with pytest.raises(CannotRender, match="6 runs"):
        kubernetes.render(several)


def test_a_command_of_ours_finds_its_files_in_a_claim_that_says_where_they_lie() -> None:
    planned = CASES["batch"]
    assert planned.volume("data").url == "gs://archive/documents/"  # type: ignore[union-attr]
    assert "archive-summaries-data" in {it["metadata"]["name"] for it in made(planned) if it["kind"] == "PersistentVolumeClaim"}
    [main] = one(planned, "Job")["spec"]["template"]["spec"]["containers"]
    assert "/data" in {it["mountPath"] for it in main["volumeMounts"]}
    [text] = [file.text for file in kubernetes.render(planned) if file.path == "workload.yaml"]
    assert text.count("# Fill it from gs://archive/documents/ first") == 2


def test_a_program_of_the_users_own_reads_the_object_store_itself() -> None:
    own = replace(CASES["batch"], software=replace(CASES["batch"].software, is_custom=True))
    assert "archive-summaries-data" not in str(made(own))


@pytest.mark.parametrize(
    ("planned", "wanted"),
    [
        (TRAIN, [("169.254.170.23/32", 80)]),
        (CASES["batch"], [("169.254.169.252/32", 988), ("169.254.169.254/32", 80)]),
        (CASES["azure"], []),
    ],
    ids=["aws", "gcp", "azure"],
)
def test_pods_reach_what_gives_them_their_clouds_credentials(planned: Deployment, wanted: list[tuple[str, int]]) -> None:
    rules = one(planned, "NetworkPolicy")["spec"]["egress"]
    blocks = [
        (to["ipBlock"]["cidr"], port["port"])
        for rule in rules
        for to in rule.get("to", ())
        if "ipBlock" in to
        for port in rule["ports"]
    ]
    assert blocks == wanted


def test_the_first_pod_hosts_the_meeting_point_and_the_others_wait_for_a_machine() -> None:
    [main] = one(TRAIN, "Job")["spec"]["template"]["spec"]["containers"]
    shell, flag, script = main["command"]
    assert (shell, flag) == ("/bin/sh", "-c")
    assert "is_host=$host,join_timeout=7200,read_timeout=7200" in script
    assert "--node-rank" not in script, "c10d gives the ranks itself"
    for index, host in (("0", "true"), ("1", "false")):
        said = script.replace("exec torchrun", "echo")
        ran = subprocess.run(
            [shell, flag, said], env={"JOB_COMPLETION_INDEX": index}, capture_output=True, text=True, check=True
        )
        assert f"is_host={host}," in ran.stdout
        assert ran.stdout.strip().endswith("train.py --config legal.yaml")


def test_pods_that_meet_may_all_fail_with_a_lost_one_more_often_on_spot() -> None:
    planned = TRAIN
    assert one(planned, "Job")["spec"]["backoffLimit"] == 6 * pods(planned)
    assert one(replace(planned, purchase="on-demand"), "Job")["spec"]["backoffLimit"] == 3 * pods(planned)


@pytest.mark.parametrize("planned", [CASES["batch"], SIX_RUNS], ids=["replicas", "runs"])
def test_a_part_that_fails_does_not_end_the_others(planned: Deployment) -> None:
    job = one(planned, "Job")["spec"]
    assert "backoffLimit" not in job
    assert job["backoffLimitPerIndex"] == (6 if planned.spot else 3)
    assert 1 <= job["maxFailedIndexes"] < job["completions"]


def test_hours_of_a_job_pause_it_and_do_not_begin_it_again() -> None:
    planned = deployment("render", AWS)
    assert (planned.starts, planned.stops) == ("", "")
    assert any("Mon-Fri 19:00-07:00 Europe/Rome" in note for note in planned.notes)
    job = one(planned, "Job")
    assert job["spec"]["suspend"] is True
    assert "ttlSecondsAfterFinished" not in job["spec"], "the clocks would not find it"
    clocks = {it["metadata"]["name"]: it["spec"] for it in made(planned) if it["kind"] == "CronJob"}
    name = planned.name
    assert {key: it["schedule"] for key, it in clocks.items()} == {
        f"{name}-open": "0 19 * * 1,2,3,4,5",
        f"{name}-close": "0 7 * * 2,3,4,5,6",
    }
    for key, suspended in ((f"{name}-open", "false"), (f"{name}-close", "true")):
        words = clocks[key]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["command"]
        assert words[:4] == ["kubectl", "patch", "job", name]
        assert words[-1] == f'--patch={{"spec": {{"suspend": {suspended}}}}}'
    [rule] = one(planned, "Role")["rules"]
    assert (rule["resources"], rule["resourceNames"], rule["verbs"]) == (["jobs"], [name], ["get", "patch"])


@pytest.mark.parametrize("target", [kueue, argo])
def test_hours_of_a_job_are_a_note_where_no_clock_is_written(target: Any) -> None:
    text = "".join(file.text for file in target.render(deployment("render", AWS)))
    assert "Cron" not in text
    assert "Mon-Fri 19:00-07:00 Europe/Rome" in text


def test_a_job_by_cron_begins_anew_each_time() -> None:
    planned = deployment("finetune", AWS)
    assert (planned.starts, planned.hours) == ("0 20 1 * *", None)
    assert one(planned, "CronJob")["spec"]["schedule"] == "0 20 1 * *"


def test_a_user_without_a_passwd_entry_has_a_name() -> None:
    [main] = one(TRAIN, "Job")["spec"]["template"]["spec"]["containers"]
    assert {"name": "USER", "value": "app"} in main["env"]


@pytest.mark.parametrize(("listed_gib", "pods_get_gib"), [(8, 6), (16, 13), (2048, 1843)])
def test_what_a_small_node_keeps_for_itself_is_not_asked_for(listed_gib: int, pods_get_gib: int) -> None:
    """Of 16 GiB a virtual machine shows 14.8; its kubelet keeps 893 MiB with 58 pods, and 100 free; daemons want some, too."""
    planned = deployment("train", AWS)
    node = replace(planned.node, memory_bytes=listed_gib * 2.0**30)
    assert memory_request(replace(planned, node=node)) == f"{pods_get_gib}Gi"


def test_copies_that_share_a_machine_are_not_spread_over_machines() -> None:
    """Karpenter takes such a wish for a demand, and starts a machine for each of them."""
    alone = CASES["serve"]
    several = replace(alone, node=replace(alone.node, chips=4))
    assert (alone.per_machine, several.per_machine) == (1, 4)
    assert "topologySpreadConstraints" not in one(several, "Deployment")["spec"]["template"]["spec"]
    spread = one(alone, "Deployment")["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert [rule["topologyKey"] for rule in spread] == ["topology.kubernetes.io/zone", "kubernetes.io/hostname"]
