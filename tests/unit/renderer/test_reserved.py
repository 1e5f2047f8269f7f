"""Capacity that is held already: machines start in it and nowhere else, or the target says that it cannot."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import yaml

from chipwise.api.render import RenderRequest, deployment_of
from chipwise.errors import InvalidFile
from chipwise.files.source import read_text
from chipwise.renderer.deployment import Deployment, MachineLayer, Reservation
from chipwise.renderer.file import CannotRender
from chipwise.renderer.layout import candidates, most_machines
from chipwise.renderer.layouts.laying import lay_out
from chipwise.renderer.left_out import with_notes
from chipwise.renderer.named_targets import files, target, target_names
from chipwise.workload.parse import parse
from deployments import EXAMPLES
from deployments import few_session as session
from fixed_deployments import CASES
from hcl_reading import blocks

BLOCK = Reservation("cr-0123456789abcdef0", block=True)
HELD = Reservation("cr-0123456789abcdef0", block=False)
TRAIN = replace(CASES["train"], purchase="on-demand", reservation=BLOCK)
SERVE = replace(CASES["serve"], reservation=HELD)


def objects(name: str, what: Deployment) -> dict[str, Any]:
    texts = [file.text for file in files(name, target(name), what) if file.path.endswith(".yaml")]
    return {one["kind"]: one for text in texts for one in yaml.safe_load_all(text)}


def test_karpenter_selects_the_reservation_and_its_pool_takes_no_other_machine() -> None:
    made = objects("karpenter", TRAIN)
    assert made["EC2NodeClass"]["spec"]["capacityReservationSelectorTerms"] == [{"id": BLOCK.id}]
    assert "placementGroupSelector" not in made["EC2NodeClass"]["spec"], "machines of a block stand together"
    requirements = {one["key"]: one["values"] for one in made["NodePool"]["spec"]["template"]["spec"]["requirements"]}
    assert requirements["karpenter.sh/capacity-type"] == ["reserved"]
    assert requirements["node.kubernetes.io/instance-type"] == [TRAIN.node.machine]


def test_pods_run_on_what_is_held() -> None:
    job = objects("kubernetes", TRAIN)["Job"]
    terms = job["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    found = [one["matchExpressions"][1] for one in terms["nodeSelectorTerms"]]
    assert [(one["key"], one["values"]) for one in found] == [
        ("karpenter.sh/capacity-type", ["reserved"]),
        ("eks.amazonaws.com/capacityType", ["CAPACITY_BLOCK"]),
    ]


def test_pods_of_a_block_are_told_before_it_ends() -> None:
    kept = objects("kubernetes", replace(TRAIN, reservation=HELD))["Job"]["spec"]["template"]["metadata"]
    assert kept["annotations"] == {"karpenter.sh/do-not-disrupt": "true"}
    assert "annotations" not in objects("kubernetes", TRAIN)["Job"]["spec"]["template"]["metadata"]


def test_no_other_machine_type_stands_in() -> None:
    alike = replace(TRAIN, alternatives=(replace(TRAIN.node, machine="p5.4xlarge"),))
    assert len(candidates(replace(alike, reservation=None))) == 2
    assert candidates(alike) == (TRAIN.node,)


def test_eksctl_names_the_target_and_for_a_block_its_market() -> None:
    group = objects("eksctl", TRAIN)["ClusterConfig"]["managedNodeGroups"][1]
    assert group["capacityReservation"] == {"capacityReservationTarget": {"capacityReservationID": BLOCK.id}}
    assert group["instanceMarketOptions"] == {"marketType": "capacity-block"}
    assert group["instanceType"] == TRAIN.node.machine
    assert len(group["availabilityZones"]) == 1
    held = objects("eksctl", SERVE)["ClusterConfig"]["managedNodeGroups"][1]
    assert "instanceMarketOptions" not in held
    assert held["instanceTypes"] == [SERVE.node.machine]


def _terraform(what: Deployment, folder: str = "") -> str:
    return "\n".join(file.text for file in files("terraform", target("terraform"), what) if file.path == f"{folder}main.tf")


def test_terraform_writes_it_into_the_launch_template() -> None:
    text = _terraform(TRAIN)
    assert 'market_type = "capacity-block"' in text
    assert "capacity_reservation_id = var.capacity_reservation_id" in text
    assert "aws_placement_group" not in text
    assert "market_type" not in _terraform(SERVE)


def test_a_group_of_held_machines_has_one_template_and_no_mix() -> None:
    text = _terraform(SERVE)
    assert "mixed_instances_policy" not in text
    assert "var.subnet_ids[0]" in text
    assert "mixed_instances_policy" in _terraform(replace(SERVE, reservation=None))


def test_a_node_group_of_a_block_says_so_and_takes_its_type_from_the_template() -> None:
    text = _terraform(TRAIN, "eks/")
    assert '= "CAPACITY_BLOCK"' in text
    assert "instance_types" not in text
    assert '= "ON_DEMAND"' in _terraform(SERVE, "eks/")


def test_terraform_parses() -> None:
    for what in (TRAIN, SERVE):
        for file in files("terraform", target("terraform"), what):
            if file.path.endswith(".tf"):
                assert list(blocks(file.text))


def test_the_heading_says_what_must_hold_and_what_the_price_is_of() -> None:
    text = files("karpenter", target("karpenter"), TRAIN)[0].text
    assert "capacity block cr-0123456789abcdef0" in text
    assert "by the hour" in text.replace("\n# ", " ")


@pytest.mark.parametrize("name", [name for name in target_names() if getattr(target(name), "STARTS_MACHINES", False)])
def test_who_would_start_machines_beside_it_refuses(name: str) -> None:
    with pytest.raises(CannotRender, match="beside the capacity block") as caught:
        files(name, target(name), TRAIN)
    assert "karpenter" in str(caught.value.remedy)


def test_another_cloud_spot_and_layers_are_refused() -> None:
    elsewhere = replace(SERVE, node=replace(SERVE.node, provider="gcp"))
    with pytest.raises(CannotRender, match="of AWS, and the plan takes"):
        files("kubernetes", target("kubernetes"), elsewhere)
    with pytest.raises(CannotRender, match="spot"):
        files("karpenter", target("karpenter"), replace(TRAIN, purchase="spot"))
    layers = (MachineLayer("reserved-1y", 2), MachineLayer("on-demand", 1))
    with pytest.raises(CannotRender, match="2 reserved-1y"):
        files("karpenter", target("karpenter"), replace(SERVE, layers=layers))


def test_the_workload_names_it() -> None:
    text = read_text(str(EXAMPLES / "train" / "workload.yaml"))
    work = parse(text + "\nreservation: cr-0123456789abcdef0\n")
    assert work.reservation is not None
    assert str(work.reservation.kind) == "on-demand"
    with pytest.raises(InvalidFile, match="not a capacity reservation"):
        parse(text + "\nreservation: {id: my-block, kind: capacity-block}\n")


def test_it_changes_no_plan() -> None:
    path = str(EXAMPLES / "train" / "workload.yaml")
    text = read_text(path)
    held = "\nreservation: {id: cr-0123456789abcdef0, kind: capacity-block}\n"
    planned, same = (deployment_of(session(), path, RenderRequest(text=one)) for one in (text, text + held))
    assert same.reservation == BLOCK
    assert replace(same, reservation=None) == planned


def test_the_note_has_the_most_that_is_ever_asked_for_and_what_waits() -> None:
    text = files("karpenter", target("karpenter"), SERVE)[0].text.replace("\n# ", " ")
    most = most_machines(SERVE)
    assert most > SERVE.machines
    assert f"hold {most} machines" in text
    assert "lower the maximum" in text
    assert "lower the maximum" not in files("karpenter", target("karpenter"), TRAIN)[0].text.replace("\n# ", " ")


def test_machines_beside_it_need_a_change_of_the_pods_too() -> None:
    text = files("karpenter", target("karpenter"), TRAIN)[0].text
    assert "here and in the pods' nodeAffinity" in text


def test_a_node_group_is_applied_when_its_block_has_begun_and_frees_room_before_it_fills_it() -> None:
    text = _terraform(TRAIN, "eks/")
    assert "0 until the block begins" not in text
    assert "when the block has begun" in text
    assert "updateStrategy=MINIMAL" in text
    group = text[text.index('resource "aws_eks_node_group"') :]
    assert "create_before_destroy" not in group, "there is no room for both"
    assert "create_before_destroy" in _terraform(replace(SERVE, reservation=None), "eks/")


@pytest.mark.parametrize(
    ("layout", "path"), [("helm", "chart/values-prod.yaml"), ("kustomize", "overlays/prod/kustomization.yaml")]
)
def test_headings_of_a_layout_say_it_too(layout: str, path: str) -> None:
    module = target("kubernetes")
    noted = partial(with_notes, expresses=module.EXPRESSES)
    tree = lay_out(layout, partial(files, "kubernetes", module), SERVE, {"prod": SERVE}, noted=noted)
    text = next(file.text for file in tree if file.path == path)
    assert HELD.id in text
