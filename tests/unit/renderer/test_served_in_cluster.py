"""What a cluster is given of a service, and which options of `chipwise serve` mean something there."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from chipwise.errors import BadInput
from chipwise.files.source import NamedText
from chipwise.renderer.file import CannotRender
from chipwise.renderer.served import ServeRequest
from chipwise.renderer.served_in_cluster import check_request, in_cluster, version_of
from chipwise.runner.submission.serving import RolloutOptions, ScalingOptions, ServeOptions, check_in_cluster
from chipwise.serving.service import ReplicaNeeds, ServiceDoor, ServiceRecord, read_service, written
from fixed_deployments import CASES

SERVICE = replace(CASES["serve"], starts="", stops="", hours=None)
GROUPED, JOB = CASES["wide"], CASES["train"]


def _kinds(deployment: Any) -> dict[str, Any]:
    version = version_of(deployment, 1, 0.0, "", ReplicaNeeds(), "")
    assert version.in_cluster is not None
    return {str(item["kind"]): item for item in version.in_cluster.objects}


def test_a_version_has_the_objects_that_render_writes_without_what_surrounds_them() -> None:
    kinds = _kinds(in_cluster(SERVICE, "chat", None))
    assert {"Deployment", "Service", "HorizontalPodAutoscaler", "NetworkPolicy"} <= kinds.keys()
    assert not {"Namespace", "PriorityClass", "ResourceQuota"} & kinds.keys()
    assert {item["metadata"]["name"] for item in kinds.values() if item["kind"] != "PersistentVolumeClaim"} == {"chat"}
    assert kinds["Deployment"]["spec"]["template"]["spec"]["serviceAccountName"] == "chat"


def test_a_replica_over_several_machines_is_a_group_and_names_no_priority_class() -> None:
    template = _kinds(in_cluster(GROUPED, "wide", None))["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]
    assert all("priorityClassName" not in template[pod]["spec"] for pod in ("leaderTemplate", "workerTemplate"))


def test_replicas_that_are_asked_for_go_over_those_of_the_plan() -> None:
    fixed = _kinds(in_cluster(SERVICE, "chat", (3, None)))
    assert fixed["Deployment"]["spec"]["replicas"] == 3
    assert "HorizontalPodAutoscaler" not in fixed
    scaler = _kinds(in_cluster(SERVICE, "chat", (2, 7)))["HorizontalPodAutoscaler"]["spec"]
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (2, 7)
    with pytest.raises(BadInput, match=r"one replica stays at least.*render --to keda"):
        in_cluster(SERVICE, "chat", (0, 4))


def test_what_answers_at_no_port_is_no_service() -> None:
    with pytest.raises(CannotRender, match="answers at no port"):
        in_cluster(JOB, "x", None)
    with pytest.raises(CannotRender, match=r"answers at no port.*program.port"):
        in_cluster(replace(SERVICE, software=replace(SERVICE.software, port=None)), "x", None)


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (ServeRequest(("tiny.gguf",)), "tiny.gguf is none"),
        (ServeRequest(()), "nothing is none"),
        (ServeRequest(("python", "x.yaml"), is_command=True), "python x.yaml is none"),
        (ServeRequest(("chat.yaml",), weights="a.gguf"), "what --weights says"),
        (ServeRequest(("chat.yaml",), at_once=4), "what --at-once says"),
        (ServeRequest(("chat.yaml",), components={"flash-attn": ""}), "what --with says"),
        (ServeRequest(("chat.yaml",), flags=("-x",)), "what --flags says"),
    ],
)
def test_what_would_be_passed_over_in_a_cluster_is_refused(request_: ServeRequest, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        check_request(request_, {})


@pytest.mark.parametrize(
    ("options", "typed"),
    [({"port": 1}, "port"), ({"settings": ("A=1",)}, "env"), ({"key_file": "k"}, "key-file"), ({"idle": 3.0}, "idle")],
)
def test_options_of_one_machine_are_refused_by_the_names_that_were_typed(options: dict[str, Any], typed: str) -> None:
    request = ServeRequest((NamedText("text", "kind: serve"),), name="x", environment="prod")
    check_request(request, ServeOptions(replicas=2, ready_within=5.0, team="t", namespace="n").of_this_machine)
    with pytest.raises(BadInput, match=f"what --{typed} says"):
        check_request(request, ServeOptions(**options).of_this_machine)


def test_rules_of_scaling_and_shares_are_the_clusters_own() -> None:
    check_in_cluster(ScalingOptions())
    check_in_cluster(RolloutOptions())
    with pytest.raises(BadInput, match="its own autoscaler"):
        check_in_cluster(ScalingOptions(policy="hpa:60"))
    with pytest.raises(BadInput, match="argo-rollouts"):
        check_in_cluster(RolloutOptions(instant=True))


def test_the_record_of_a_service_in_a_cluster_is_read_back_whole() -> None:
    version = version_of(in_cluster(SERVICE, "chat", None), 1, 5.0, "", ReplicaNeeds(team="t"), "prod")
    service = ServiceRecord("chat", ServiceDoor("chat.team.svc", 80), (version,), place="kubernetes:x/team")
    read = read_service(json.loads(json.dumps(written(service))))
    assert read.place == service.place
    assert read.versions[0].in_cluster is not None
    assert json.dumps(written(read)) == json.dumps(written(service))
