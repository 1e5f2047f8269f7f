"""What may stand in for the plan's machine runs with the plan's settings."""

from __future__ import annotations

import pytest
import yaml

from chipwise.renderer.targets import skypilot
from deployments import deployment, session


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


def test_a_task_names_only_what_fits() -> None:
    made = {file.path: file.text for file in skypilot.render(deployment("train", "clouds=[aws]"))}
    resources = yaml.safe_load(made["task.yaml"])["resources"]
    named = [one["accelerators"] for one in resources.get("any_of", [resources])]
    assert set(named) == {"H200:8"}
