"""A slice of a GPU for a service, and chips by claims: asked for by name, and refused where nothing would hand them out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from chipwise.catalog.load import load
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender
from chipwise.renderer.named_targets import files, target
from chipwise.renderer.slicing import sliced
from chipwise.workload.program import Program
from fixed_deployments import CASES

AZURE = CASES["azure"]  # one A100 of 80 GB
CATALOG = load(prices=False)
CUT = replace(AZURE, node=replace(AZURE.node, profile="2g.20gb", sharing="slices", users_per_chip=3))
CLAIMED = replace(AZURE, claims=True)
BOTH = replace(CUT, claims=True)


def every(name: str, planned: Deployment) -> list[dict[str, Any]]:
    return [one for file in files(name, target(name), planned) for one in yaml.safe_load_all(file.text)]


def pod(planned: Deployment) -> dict[str, Any]:
    [service] = [one for one in every("kubernetes", planned) if one["kind"] == "Deployment"]
    return dict(service["spec"]["template"]["spec"])


def quota(planned: Deployment) -> dict[str, str]:
    [made] = [one for one in every("kubernetes", planned) if one["kind"] == "ResourceQuota"]
    return dict(made["spec"]["hard"])


def test_a_copy_asks_for_one_slice_and_its_part_of_the_machine() -> None:
    whole, part = (pod(one)["containers"][0]["resources"]["requests"] for one in (AZURE, CUT))
    assert part["nvidia.com/mig-2g.20gb"] == 1
    assert "nvidia.com/gpu" not in part
    assert int(part["cpu"]) <= int(whole["cpu"]) / 3
    assert CUT.per_machine == 3
    assert "requests.nvidia.com/mig-2g.20gb" in quota(CUT)
    text = "".join(file.text for file in files("kubernetes", target("kubernetes"), CUT))
    assert "migStrategy: mixed" in text


@pytest.mark.parametrize(("planned", "kind"), [(CLAIMED, "gpu"), (BOTH, "mig")])
def test_a_claim_takes_the_place_of_the_plugins_resource(planned: Deployment, kind: str) -> None:
    made = pod(planned)
    [container] = made["containers"]
    assert not any(name.startswith("nvidia.com/") for name in container["resources"]["limits"])
    assert container["resources"]["claims"] == [{"name": "chips"}]
    [claim] = made["resourceClaims"]
    objects = {one["kind"]: one for one in every("kubernetes", planned)}
    template, found = objects["ResourceClaimTemplate"], objects["DeviceClass"]
    assert claim == {"name": "chips", "resourceClaimTemplateName": template["metadata"]["name"]}
    [request] = template["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"] == {"deviceClassName": found["metadata"]["name"], "count": 1}
    [selector] = found["spec"]["selectors"]
    assert f'.type == "{kind}"' in selector["cel"]["expression"]
    assert ("2g.20gb" in selector["cel"]["expression"]) is (kind == "mig")
    assert f"{found['metadata']['name']}.deviceclass.resource.k8s.io/devices" in quota(planned)
    assert "DaemonSet" not in objects, "one node has the driver or the plugin"


@pytest.mark.parametrize("name", ["compose", "terraform", "ray", "vllm", "argo-rollouts", "kserve"])
def test_what_hands_out_whole_chips_refuses_a_slice(name: str) -> None:
    with pytest.raises(CannotRender, match="slice"):
        files(name, target(name), CUT)


@pytest.mark.parametrize("name", ["compose", "karpenter", "kueue", "ray"])
def test_what_writes_no_claims_refuses_them(name: str) -> None:
    with pytest.raises(CannotRender, match="claims"):
        files(name, target(name), CLAIMED)


def test_machines_say_how_their_chips_are_cut_and_what_is_handed_out_then() -> None:
    aws = replace(CASES["serve"], node=replace(CASES["serve"].node, profile="1g.10gb", sharing="slices", users_per_chip=7))
    [pool, _, overlay] = every("karpenter", aws)
    assert pool["spec"]["template"]["metadata"]["labels"]["nvidia.com/mig.config"] == "all-1g.10gb"
    slices = str(7 * aws.node.chips)
    assert (overlay["kind"], overlay["spec"]["capacity"]) == ("NodeOverlay", {"nvidia.com/mig-1g.10gb": slices})
    [types] = [one["values"] for one in overlay["spec"]["requirements"]]
    assert aws.node.machine in types
    [cluster] = every("eksctl", aws)
    assert any(group.get("labels", {}).get("nvidia.com/mig.config") == "all-1g.10gb" for group in cluster["managedNodeGroups"])


def test_claims_are_of_nvidias_driver() -> None:
    with pytest.raises(CannotRender, match="NVIDIA"):
        files("kubernetes", target("kubernetes"), replace(CASES["neuron"], claims=True))


def cut(profile: str, weights: float = 8e9, chips: int = 1, form: Form = Form.SERVICE) -> Any:
    model = replace(AZURE.model, weight_bytes=weights) if AZURE.model is not None else None
    return sliced(AZURE.node, Program(slice=profile), form, chips, model, CATALOG)


def test_a_slice_is_one_that_the_chip_has_and_holds_the_weights() -> None:
    node = cut("2g.20gb")
    assert (node.profile, node.users_per_chip, node.parts) == ("2g.20gb", 3, 3)
    for profile, weights, chips in (("1g.24gb", 8e9, 1), ("2g.20gb", 18e9, 1), ("2g.20gb", 8e9, 2)):
        with pytest.raises(CannotRender):
            cut(profile, weights, chips)
    with pytest.raises(CannotRender, match="no service"):
        cut("2g.20gb", form=Form.JOB)
    assert sliced(AZURE.node, Program(), Form.SERVICE, 1, None, CATALOG) is AZURE.node
