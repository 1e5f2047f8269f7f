"""What may stand in for the plan's machine runs with the plan's settings."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from chipwise.renderer.standing_in import with_its_image
from chipwise.renderer.targets import skypilot
from deployments import deployment, session
from fixed_deployments import CASES


def memory(chip: str) -> float:
    return session().catalog.chips[chip].memory_bytes or 0.0


@pytest.mark.parametrize(
    "example", [("train", "clouds=[aws]"), ("finetune",), ("batch",), ("serve", "clouds=[aws]")], ids=lambda example: example[0]
)
def test_a_machine_that_would_run_out_of_memory_does_not_stand_in(example: tuple[str, ...]) -> None:
    """Where the plan splits another way on less memory, its own split does not fit there."""
    planned = deployment(*example)
    if planned.kind in ("train", "finetune"):
        assert all(memory(node.chip) >= memory(planned.node.chip) for node in planned.alternatives)
    chips = {node.chip for node in planned.alternatives}
    assert planned.kind not in ("train", "finetune") or "H100-SXM" not in chips or planned.node.chip != "H200"


def test_a_machine_that_the_image_has_no_code_for_does_not_stand_in() -> None:
    """TEI has an image for each generation of chips: the one of L4 ends on A10G."""
    rows, small = session().catalog.rows("images"), CASES["serve"].node
    nodes = [replace(small, machine="g6.xlarge", chip="L4"), replace(small, machine="g5.xlarge", chip="A10G", capability=8.6)]
    assert [node.chip for node in with_its_image(nodes, small, "tei", rows)] == ["L4"]
    assert [node.chip for node in with_its_image(nodes, small, "vllm", rows)] == ["L4", "A10G"]


def test_the_hosts_of_a_slice_of_tpus_share_volumes_that_several_machines_can_use() -> None:
    planned = deployment("train", "chips=[tpu-v5e]")
    assert planned.machines == 1
    assert planned.node.hosts > 1
    assert all(volume.shared for volume in planned.volumes)


def test_a_task_names_only_what_fits() -> None:
    made = {file.path: file.text for file in skypilot.render(deployment("train", "clouds=[aws]"))}
    resources = yaml.safe_load(made["task.yaml"])["resources"]
    named = [one["accelerators"] for one in resources.get("any_of", [resources])]
    assert set(named) == {"H200:8"}
