"""A service's objects: whose they are, what a later version may change of them, and what is read from them."""

from __future__ import annotations

from typing import Any

import pytest

from chipwise.adapters.engines.kubernetes.kinds import AUTOSCALER, DEPLOYMENT, GROUPS, SERVICE, ObjectKind
from chipwise.adapters.engines.kubernetes.served_objects import (
    SERVICE_LABEL,
    VERSION_LABEL,
    begun_with,
    changed,
    served_objects,
)
from chipwise.adapters.engines.kubernetes.served_sight import pool_of, service_sight
from chipwise.errors import BadInput
from chipwise.renderer.cluster.groups import LEADS
from chipwise.serving.cluster import Ailment, ClusterSight
from chipwise.serving.engine import ReplicaRequest
from chipwise.serving.service import ClusterVersion, ReplicaNeeds, ServiceVersion

NAME = "app.kubernetes.io/name"
HOLDER: dict[str, Any] = {
    "kind": "Deployment",
    "metadata": {"name": "chat", "namespace": "chat", "labels": {NAME: "chat"}},
    "spec": {
        "selector": {"matchLabels": {NAME: "chat"}},
        "template": {"metadata": {"labels": {NAME: "chat"}}, "spec": {"containers": [{"name": "main", "image": "a:1"}]}},
    },
}
DOOR = {"kind": "Service", "metadata": {"name": "chat"}, "spec": {"selector": {NAME: "chat"}}}
SCALER = {"kind": "HorizontalPodAutoscaler", "metadata": {"name": "chat"}, "spec": {"minReplicas": 2, "maxReplicas": 4}}
VOLUME = {"kind": "PersistentVolumeClaim", "metadata": {"name": "chat-data"}, "spec": {}}
LOOPS = {"name": "main", "ready": False, "restartCount": 3, "lastState": {"terminated": {"exitCode": 2}}}
NO_IMAGE = {"name": "main", "image": "a:2", "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}
NOWHERE = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."}


def _version(*objects: dict[str, Any], number: int = 1, **parts: Any) -> ServiceVersion:
    needs = ReplicaNeeds(team="search", labels=("stage=try",))
    part = ClusterVersion("a:1", objects, 60.0, **parts)
    return ServiceVersion(number, "vllm", ReplicaRequest("m", "m"), 0.0, needs, part)


def _made(*objects: dict[str, Any], **parts: Any) -> dict[str, Any]:
    made = served_objects("chat", _version(*objects, **parts), "team", "r1")
    return {kind.name: body for kind, body in made}


def test_all_that_is_made_is_found_by_its_labels_and_takes_its_own_pods_alone() -> None:
    made = _made(HOLDER, DOOR, SCALER)
    for body in made.values():
        labels = body["metadata"]["labels"]
        assert (labels[SERVICE_LABEL], labels["chipwise.dev/record"], labels["chipwise.dev/team"]) == ("chat", "r1", "search")
        assert body["metadata"]["namespace"] == "team"
    spec = made["Deployment"]["spec"]
    assert spec["selector"]["matchLabels"] == {NAME: "chat", SERVICE_LABEL: "chat", "chipwise.dev/record": "r1"}
    assert made["Service"]["spec"]["selector"] == spec["selector"]["matchLabels"]
    own = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"].items() <= own.items()
    assert own[VERSION_LABEL] == "1", "which no selector has: a later version keeps its pods"
    assert HOLDER["metadata"]["namespace"] == "chat", "what was rendered stays as it is"


def test_a_claim_that_somebody_fills_is_not_found_among_what_goes_with_the_service() -> None:
    assert SERVICE_LABEL in _made(HOLDER, VOLUME)["PersistentVolumeClaim"]["metadata"]["labels"]
    assert SERVICE_LABEL not in _made(HOLDER, VOLUME, lasting=("chat-data",))["PersistentVolumeClaim"]["metadata"]["labels"]


def test_a_kind_that_is_not_served_is_refused() -> None:
    with pytest.raises(BadInput, match="a CronJob, which `serve` does not apply"):
        _made(HOLDER, {"kind": "CronJob", "metadata": {"name": "chat"}})


def test_it_begins_with_the_replicas_that_its_autoscaler_would_make() -> None:
    made = dict(begun_with(served_objects("chat", _version(HOLDER, SCALER), "team", "r1")))
    assert made[DEPLOYMENT]["spec"]["replicas"] == 2
    assert "replicas" not in dict(begun_with(served_objects("chat", _version(HOLDER), "team", "r1")))[DEPLOYMENT]["spec"]


@pytest.mark.parametrize(
    ("kind", "body", "former", "kept"),
    [
        (DEPLOYMENT, HOLDER, {"replicas": 5, "template": {}}, {"replicas": 5}),
        (AUTOSCALER, SCALER, {"minReplicas": 3, "maxReplicas": 9}, {"minReplicas": 3, "maxReplicas": 9}),
        (SERVICE, DOOR, {"clusterIP": "10.0.0.1"}, {"selector": {NAME: "chat"}}),
    ],
)
def test_a_version_changes_what_it_says_and_not_how_many_there_are(
    kind: ObjectKind, body: dict[str, Any], former: dict[str, Any], kept: dict[str, Any]
) -> None:
    meta = {"name": "chat", "uid": "u", "resourceVersion": "7", "annotations": {"of-the-controller": "1"}}
    result = changed(kind, {"metadata": meta, "spec": former}, body)
    assert kept.items() <= result["spec"].items()
    assert (result["metadata"]["uid"], result["metadata"]["resourceVersion"]) == ("u", "7")
    assert result["metadata"]["annotations"] == {"of-the-controller": "1"}


def _pod(name: str, *containers: dict[str, Any], version: int = 1, ready: bool = False, **more: Any) -> dict[str, Any]:
    labels = {SERVICE_LABEL: "chat", VERSION_LABEL: str(version), **more.pop("labels", {})}
    conditions = [{"type": "Ready", "status": str(ready)}, *more.pop("conditions", ())]
    status = {"phase": "Running" if ready else "Pending", "conditions": conditions, "containerStatuses": list(containers)}
    meta = {"name": name, "uid": name, "labels": labels}
    return {"metadata": meta, "spec": {"nodeName": "" if more.pop("nowhere", False) else "n"}, "status": status | more}


def _main(version: int = 1, wanted: int = 2, generation: int = 1, seen: int = 1, **status: Any) -> dict[str, Any]:
    meta = {"name": "chat", "uid": "main", "generation": generation, "labels": {VERSION_LABEL: str(version)}}
    return {"metadata": meta, "spec": {"replicas": wanted}, "status": {"observedGeneration": seen, **status}}


def _see(main: dict[str, Any] | None, *pods: dict[str, Any], kind: ObjectKind = DEPLOYMENT, scaler: Any = None) -> ClusterSight:
    return service_sight(kind, main, scaler, pods, (), "")


def test_a_change_that_its_controller_has_not_seen_is_not_taken_for_done() -> None:
    counts = {"updatedReplicas": 2, "availableReplicas": 2, "replicas": 2}
    pods = [_pod("a", ready=True), _pod("b", ready=True)]
    assert _see(_main(**counts), *pods).is_complete
    assert not _see(_main(generation=2, **counts), *pods).is_complete
    stuck: dict[str, Any] = {"conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]}
    assert _see(_main(**stuck)).is_stuck
    assert not _see(_main(generation=2, **stuck)).is_stuck, "it is of the version before"


def test_of_several_troubles_the_one_that_somebody_must_mend_is_told() -> None:
    nowhere = _pod("a", nowhere=True, conditions=[NOWHERE])
    assert _trouble(nowhere) == (Ailment.NO_NODE, "no node fits: of 3 nodes 3 Insufficient nvidia.com/gpu")
    assert _trouble(nowhere, _pod("b", LOOPS))[0] is Ailment.CRASHES
    ailment, text = _trouble(nowhere, _pod("b", LOOPS), _pod("c", NO_IMAGE))
    assert (ailment, text) == (Ailment.IMAGE, "its image a:2 cannot be pulled: ErrImagePull: not found")


def test_what_ails_the_version_before_does_not_fail_the_one_that_replaces_it() -> None:
    assert _see(_main(version=2), _pod("a", LOOPS)).trouble is None
    trouble = _see(_main(version=2), _pod("a", NO_IMAGE), _pod("b", LOOPS, version=2)).trouble
    assert trouble is not None
    assert trouble.ailment is Ailment.CRASHES


def _trouble(*pods: dict[str, Any]) -> tuple[Ailment, str]:
    trouble = _see(_main(), *pods).trouble
    assert trouble is not None
    return trouble.ailment, trouble.text


def test_a_claim_without_a_volume_is_no_lack_of_machines() -> None:
    unbound = NOWHERE | {"message": "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."}
    assert _trouble(_pod("a", nowhere=True, conditions=[unbound]))[0] is Ailment.NO_VOLUME


def test_pods_that_the_cluster_refuses_are_told_with_its_words() -> None:
    refused = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: pods=1"}
    trouble = _see(_main(conditions=[refused])).trouble
    assert trouble is not None
    assert (trouble.ailment, trouble.text) == (Ailment.REFUSED, "its pods are refused: exceeded quota: pods=1")


def test_where_its_autoscaler_wants_more_it_is_not_complete_yet() -> None:
    counts = {"updatedReplicas": 1, "availableReplicas": 1, "replicas": 1}
    sight = _see(_main(wanted=1, **counts), _pod("a", ready=True), scaler=SCALER)
    assert (sight.wanted, sight.fewest_replicas, sight.most_replicas, sight.is_complete) == (2, 2, 4, False)


def test_of_a_group_the_leader_is_the_replica() -> None:
    leads = {name: str(value) for name, value in LEADS.items()}
    pods = [_pod("a-0", ready=True, labels=leads), _pod("a-0-1", ready=True), _pod("b-0", labels=leads, version=2)]
    sight = _see(_main(version=2), *pods, kind=GROUPS)
    assert (sight.updated, sight.available, sight.total) == (1, 1, 2)
    assert [replica.name for replica in sight.replicas] == ["a-0", "b-0"]


def test_what_is_gone_is_told_so_and_a_pool_is_found_by_the_pods_that_it_takes() -> None:
    assert _see(None).kind == ""
    pool = {"metadata": {"name": "p"}, "spec": {"selector": {"matchLabels": {SERVICE_LABEL: "chat"}}}}
    assert pool_of([pool], [_pod("a")]) == "p"
    assert pool_of([{**pool, "spec": {"selector": {"matchLabels": {SERVICE_LABEL: "other"}}}}], [_pod("a")]) == ""
    assert pool_of([{"metadata": {"name": "p"}}], [_pod("a")]) == "", "one without a selector takes nothing"
