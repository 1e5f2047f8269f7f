"""Workflows: pinned actions, few rights, no stored keys, and only names of our own where GitHub reads expressions."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
import yaml

from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.targets.github_actions import render
from fixed_deployments import AZURE, BATCH, DEVICE, NOTEBOOKS, PIPELINE, SERVE, TPU, TRAIN


def workflow(what: Deployment) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(render(what)[0].text)
    return found


ALL = pytest.mark.parametrize("what", [TRAIN, SERVE, AZURE, TPU, BATCH, DEVICE], ids=lambda what: what.name)


@ALL
def test_actions_are_pinned_by_commit_with_their_version_behind(what: Deployment) -> None:
    lines = [line for line in render(what)[0].text.splitlines() if "uses:" in line]
    assert lines
    assert all(re.fullmatch(r" +uses: [\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line) for line in lines)


@ALL
def test_rights_are_given_job_by_job(what: Deployment) -> None:
    made = workflow(what)
    assert made["permissions"] == {}
    assert all(job["permissions"]["contents"] == "read" for job in made["jobs"].values())
    assert all(job["timeout-minutes"] <= 60 for name, job in made["jobs"].items() if name != "deploy")
    assert all(job["timeout-minutes"] <= 360 for job in made["jobs"].values())


@ALL
def test_no_secret_but_githubs_own_is_read(what: Deployment) -> None:
    assert set(re.findall(r"secrets\.(\w+)", render(what)[0].text)) <= {"GITHUB_TOKEN"}


def test_clouds_are_entered_by_identity() -> None:
    assert workflow(TRAIN)["jobs"]["deploy"]["permissions"]["id-token"] == "write"
    assert "packages" in workflow(DEVICE)["jobs"]["image"]["permissions"], "devices pull from GitHub's registry"
    assert "deploy" not in workflow(DEVICE)["jobs"]


def test_a_job_that_costs_money_is_started_by_hand() -> None:
    assert "workflow_dispatch" in workflow(TRAIN)["on"]
    assert "workflow_dispatch" in workflow(TRAIN)["jobs"]["deploy"]["if"]
    assert "workflow_dispatch" not in workflow(SERVE)["on"]


def test_what_was_tried_is_what_runs() -> None:
    assert workflow(TRAIN)["jobs"]["image"]["outputs"]["image"].endswith("steps.push.outputs.digest }}")
    assert "import torch" in str(workflow(TRAIN)["jobs"]["image"]["steps"])


def test_a_failed_rollout_goes_back() -> None:
    assert "rollout undo" in str(workflow(SERVE)["jobs"]["deploy"]["steps"][-1])


@pytest.mark.parametrize("what", [TRAIN, SERVE, AZURE], ids=lambda what: what.name)
def test_the_namespace_is_there_before_anything_is_compared_with_it(what: Deployment) -> None:
    runs = [one.get("run", "") for one in workflow(what)["jobs"]["deploy"]["steps"]]
    made = next(at for at, run in enumerate(runs) if "apply" in run and "namespace.yaml" in run)
    compared = next(at for at, run in enumerate(runs) if "kubectl diff" in run)
    rolled = next(at for at, run in enumerate(runs) if "apply" in run and "workload.yaml" in run)
    assert made < compared < rolled


def test_finished_images_are_not_built() -> None:
    assert set(workflow(SERVE)["jobs"]) == {"check", "deploy"}


def test_arm_machines_get_images_built_on_arm() -> None:
    assert workflow(DEVICE)["jobs"]["image"]["runs-on"] == "ubuntu-24.04-arm"


def test_no_text_of_a_user_is_an_expression() -> None:
    hostile = replace(TRAIN, title="${{ secrets.X }}", labels={"a": "${{ secrets.X }}"}, description="${{ secrets.X }}")
    assert "secrets.X" not in str(workflow(hostile)), "in comments alone"


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (PIPELINE, "each stage"),
        (NOTEBOOKS, "hub"),
        (replace(SERVE, node=replace(SERVE.node, provider="runpod")), "nothing to build"),
    ],
)
def test_what_it_cannot_roll_out_is_refused(what: Deployment, why: str) -> None:
    with pytest.raises(CannotRender, match=why) as caught:
        render(what)
    assert caught.value.remedy
