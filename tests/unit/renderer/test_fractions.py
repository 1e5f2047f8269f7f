"""Machines with a part of a chip (g6f of AWS): other names, another driver, and a scheduler that does not see the chip."""

from __future__ import annotations

import pytest
import yaml

from chipwise.api.render import RenderRequest, deployment_of
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.named_targets import target
from deployments import EXAMPLES, session
from fixed_deployments import CASES
from once_in_run import once_in_run

TEXT = """\
kind: serve
name: tiny
model: qwen2.5-0.5b
arrival: {rate: 0.2 req/s}
input_tokens: {mean: 200, max: 1000}
output_tokens: {mean: 50, max: 200}
context: 2048
replicas: {min: 1, max: 2}
goals: {objective: cost}
limits: {clouds: [aws], chips: [l4], interruptible: false}
"""


def tiny() -> Deployment:
    path = str(EXAMPLES / "serve" / "workload.yaml")
    return once_in_run(("fraction",), lambda: deployment_of(session(), path, RenderRequest(text=TEXT)))


def test_the_node_knows_its_part_and_its_alternatives_have_no_less() -> None:
    node = tiny().node
    assert node.machine.startswith("g6f.")
    assert (node.chips, node.share) == (1, 0.125)
    assert tiny().alternatives
    assert all(node.share <= one.share < 1 for one in tiny().alternatives), "the driver of a part is another"


def test_skypilot_names_the_part() -> None:
    [file] = target("skypilot").render(tiny())
    wanted = yaml.safe_load(file.text)["resources"]
    names = [one["accelerators"] for one in wanted.get("any_of", [wanted])]
    assert names[0] == "L4:0.125"
    assert "L4:1" not in names, "a whole chip costs several times as much"


def test_karpenter_is_shown_the_chip_that_ec2_counts_as_none() -> None:
    [file] = target("karpenter").render(tiny())
    found = {one["kind"]: one for one in yaml.safe_load_all(file.text)}
    overlay = found["NodeOverlay"]["spec"]
    assert overlay["capacity"] == {"nvidia.com/gpu": "1"}
    [types] = [one["values"] for one in overlay["requirements"]]
    assert types == [one.machine for one in (tiny().node, *tiny().alternatives)]
    [plain] = target("karpenter").render(CASES["serve"])
    assert "NodeOverlay" not in plain.text


def test_images_without_the_driver_of_a_part_are_refused() -> None:
    with pytest.raises(CannotRender, match="GRID"):
        target("ecs").render(tiny())


def test_no_public_image_is_named_for_plain_machines_with_a_part_of_a_chip() -> None:
    images = tiny().platforms["AMI"]
    assert "eks" in images
    assert not {"ec2", "ecs"} & images.keys()
