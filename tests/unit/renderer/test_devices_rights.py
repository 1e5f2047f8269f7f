"""Pods run with the groups, limits and rights that their devices need, and no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import yaml

from chipwise.renderer.deployment import Deployment
from chipwise.renderer.named_targets import files, target
from fixed_deployments import CASES

TPU, SERVE, TRAIN = CASES["tpu"], CASES["serve"], CASES["train"]
AMD = replace(
    SERVE,
    node=replace(SERVE.node, provider="azure", chip="MI300X", vendor="AMD", machine="ND96is-MI300X-v5", capability=None),
)


def objects(name: str, planned: Deployment) -> list[dict[str, Any]]:
    return [one for file in files(name, target(name), planned) for one in yaml.safe_load_all(file.text)]


def pod(planned: Deployment) -> dict[str, Any]:
    kinds = ("Job", "Deployment")
    return dict(next(one for one in objects("kubernetes", planned) if one["kind"] in kinds)["spec"]["template"]["spec"])


def level(planned: Deployment) -> str:
    namespace = next(one for one in objects("kubernetes", planned) if one["kind"] == "Namespace")
    return str(namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"])


def test_amd_pods_are_in_the_groups_of_their_devices() -> None:
    assert pod(AMD)["securityContext"]["supplementalGroups"] == [44, 109]
    assert pod(AMD)["securityContext"]["runAsNonRoot"] is True
    assert level(AMD) == "restricted", "groups are allowed there"
    assert "supplementalGroups" not in pod(SERVE)["securityContext"]


def test_tpu_pods_lock_the_memory_that_their_driver_needs() -> None:
    spec = pod(TPU)
    [main] = spec["containers"]
    assert main["command"][:3] == ["/bin/sh", "-c", 'ulimit -l 68719476736 && exec "$@"']
    assert main["command"][4:] == list(TPU.software.command) or "python" in main["command"]
    assert spec["securityContext"]["runAsUser"] == 0
    assert "runAsNonRoot" not in spec["securityContext"]
    assert main["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["SYS_RESOURCE"]}
    assert level(TPU) == "privileged", "restricted would refuse the pod"


def test_compose_runs_tpus_as_root_and_amd_by_number() -> None:
    [service] = objects("compose", AMD)[0]["services"].values()
    assert service["group_add"] == ["video", "${RENDER_GROUP:-109}"]
    single = replace(TPU, node=replace(TPU.node, machine="tpu-v6e-4", chips=4), chips_each=4)
    [service] = objects("compose", single)[0]["services"].values()
    assert service["user"] == "0:0"


def test_files_say_who_hands_out_chips_that_they_bring_no_plugin_for() -> None:
    for name in ("kubernetes", "kueue"):
        text = "".join(file.text for file in files(name, target(name), AMD))
        assert "AMD's device plugin" in text
    assert "AMD's" not in "".join(file.text for file in files("kubernetes", target("kubernetes"), SERVE))
