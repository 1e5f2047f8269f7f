"""Kueue's files: the quota is what the plan uses, every resource that pods name is counted, and the work names its queue."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.layout import pods, surge
from chipwise.renderer.targets import kueue
from deployments import on_few_offers as deployment

AWS = "clouds=[aws]"
CASES = [
    ("train", AWS),
    ("train",),
    ("batch",),
    ("serve", AWS),
    ("hybrid", AWS),
    ("finetune", AWS),
    ("train", "clouds=[azure]"),
]


def made(planned: Deployment) -> list[dict[str, Any]]:
    return [one for file in kueue.render(planned) for one in yaml.safe_load_all(file.text)]


def one(found: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next(it for it in found if it["kind"] == kind)


def worker(found: list[dict[str, Any]]) -> dict[str, Any]:
    work = next(it for it in found if it["kind"] in ("Job", "CronJob", "Deployment"))
    return dict(work["spec"]["jobTemplate"] if work["kind"] == "CronJob" else work)


def test_the_quota_has_room_for_the_copy_that_a_rollout_adds_at_the_maximum() -> None:
    planned = deployment("serve", "clouds=[aws]")
    assert planned.scaling is not None
    alone = replace(planned, scaling=replace(planned.scaling, minimum=1, maximum=4), layers=())
    several = replace(planned, scaling=replace(planned.scaling, minimum=2, maximum=4), layers=())
    for case, copies in ((alone, 5), (several, 4)):
        found = made(case)
        rolling = worker(found)["spec"]["strategy"]["rollingUpdate"]
        [group] = one(found, "ClusterQueue")["spec"]["resourceGroups"]
        chips = next(it for it in group["flavors"][0]["resources"] if it["name"] == "nvidia.com/gpu")
        assert rolling["maxSurge"] == copies - 4
        assert amount(chips["nominalQuota"]) == copies * case.chips_each


def amount(text: Any) -> float:
    for unit, factor in (("m", 0.001), ("Mi", 2**20), ("Gi", 2**30)):
        if str(text).endswith(unit):
            return float(str(text).removesuffix(unit)) * factor
    return float(text)


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case))
def test_the_quota_is_what_the_pods_of_the_plan_ask_for(case: tuple[str, ...]) -> None:
    planned = deployment(*case)
    found = made(planned)
    container = worker(found)["spec"]["template"]["spec"]["containers"][0]
    many = planned.scaling.maximum + surge(planned) if planned.scaling else pods(planned)
    [group] = one(found, "ClusterQueue")["spec"]["resourceGroups"]
    quota = {it["name"]: amount(it["nominalQuota"]) for it in group["flavors"][0]["resources"]}
    assert quota == pytest.approx({key: amount(value) * many for key, value in container["resources"]["requests"].items()})
    assert group["coveredResources"] == list(quota)


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case))
def test_work_waits_in_the_queue_of_its_team(case: tuple[str, ...]) -> None:
    planned = deployment(*case)
    found = made(planned)
    labels = worker(found)["metadata"]["labels"]
    assert labels["kueue.x-k8s.io/queue-name"] == one(found, "LocalQueue")["metadata"]["name"]
    assert labels["kueue.x-k8s.io/priority-class"] == one(found, "WorkloadPriorityClass")["metadata"]["name"]
    assert one(found, "LocalQueue")["spec"]["clusterQueue"] == one(found, "ClusterQueue")["metadata"]["name"]
    if planned.scaling is None:
        assert worker(found)["spec"]["suspend"] is True


def test_a_spot_plan_may_fall_back_only_where_somebody_says_so() -> None:
    planned = deployment("train", AWS)
    found, machine = made(planned), planned.node.machine.replace(".", "-")
    assert [it["metadata"]["name"] for it in found if it["kind"] == "ResourceFlavor"] == [
        f"{machine}-spot",
        f"{machine}-on-demand",
    ]
    [group] = one(found, "ClusterQueue")["spec"]["resourceGroups"]
    assert {it["nominalQuota"] for it in group["flavors"][1]["resources"]} == {"0"}


def test_the_queue_and_not_the_pod_says_how_the_machine_is_bought() -> None:
    affinity = worker(made(deployment("train", AWS)))["spec"]["template"]["spec"]["affinity"]
    assert "capacity" not in str(affinity["nodeAffinity"])


def test_slices_of_google_are_known_by_their_own_labels() -> None:
    planned = deployment("train", "chips=[TPU-v5e]")
    assert planned.node.kind == "tpu"
    labels = one(made(planned), "ResourceFlavor")["spec"]["nodeLabels"]
    assert labels["cloud.google.com/gke-tpu-accelerator"] == "tpu-v5-lite-podslice"


@pytest.mark.parametrize("example", ["pipeline", "interactive", "edge"])
def test_what_does_not_queue_is_refused(example: str) -> None:
    with pytest.raises(CannotRender) as refused:
        kueue.render(deployment(example))
    assert "--to" in str(refused.value.remedy)
