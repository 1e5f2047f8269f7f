"""JupyterHub: as many seats as the plan has, what each gets, and an end to what nobody uses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender
from chipwise.renderer.targets import jupyterhub
from fixed_deployments import CASES, NOTEBOOKS

# What the chart's own schema allows at its top (values.schema.yaml of zero-to-jupyterhub).
TOP = {"hub", "proxy", "singleuser", "cull", "scheduling", "prePuller", "ingress", "debug", "rbac", "global", "custom"}
TURNS = replace(NOTEBOOKS, node=replace(NOTEBOOKS.node, profile="", sharing="turns", users_per_chip=4))
WHOLE = replace(NOTEBOOKS, node=replace(NOTEBOOKS.node, profile="", sharing="", users_per_chip=1))


def values(planned: Deployment) -> Any:
    return yaml.safe_load(jupyterhub.render(planned)[0].text)


def test_as_many_notebooks_run_at_once_as_the_plan_has_seats() -> None:
    assert values(NOTEBOOKS)["hub"]["activeServerLimit"] == 2 * 8 * 2
    assert values(TURNS)["hub"]["activeServerLimit"] == 2 * 8 * 4
    assert values(WHOLE)["hub"]["activeServerLimit"] == 2 * 8


@pytest.mark.parametrize(
    ("planned", "resource"),
    [(NOTEBOOKS, "nvidia.com/mig-3g.20gb"), (TURNS, "nvidia.com/gpu.shared"), (WHOLE, "nvidia.com/gpu")],
    ids=["slices", "turns", "whole"],
)
def test_a_seat_asks_for_what_the_device_plugin_hands_out(planned: Deployment, resource: str) -> None:
    seat = values(planned)["singleuser"]["profileList"][0]["kubespawner_override"]
    assert seat["extra_resource_limits"] == seat["extra_resource_guarantees"] == {resource: "1"}


def test_a_notebook_without_a_chip_stands_on_the_processor_of_its_image() -> None:
    for arch in ("amd64", "arm64"):
        planned = replace(NOTEBOOKS, node=replace(NOTEBOOKS.node, arch=arch))
        plain = values(planned)["singleuser"]["profileList"][1]["kubespawner_override"]
        assert plain["node_selector"] == {"kubernetes.io/arch": arch}


def test_all_seats_of_a_machine_fit_on_it() -> None:
    for planned in (NOTEBOOKS, TURNS, WHOLE):
        seat = values(planned)["singleuser"]["profileList"][0]["kubespawner_override"]
        held = planned.node.chips * planned.node.users_per_chip
        assert planned.node.vcpus is not None
        assert planned.node.memory_bytes is not None
        assert seat["cpu_guarantee"] * held <= planned.node.vcpus
        assert float(seat["mem_limit"].removesuffix("G")) * 1e9 * held <= planned.node.memory_bytes


def test_an_idle_notebook_ends_when_the_workload_says() -> None:
    cull = values(NOTEBOOKS)["cull"]
    assert (cull["enabled"], cull["timeout"]) == (True, 2700)
    assert cull["every"] < cull["timeout"]


def test_only_keys_that_the_chart_knows_stand_at_the_top() -> None:
    assert set(values(NOTEBOOKS)) <= TOP


def test_nobody_gets_in_and_nothing_is_open_by_itself() -> None:
    found = values(NOTEBOOKS)
    assert found["hub"]["config"]["Authenticator"]["allow_all"] is False
    assert found["proxy"]["service"]["type"] == "ClusterIP"
    assert found["singleuser"]["cloudMetadata"]["blockWithIptables"] is True


def test_sharing_comes_with_the_plugins_configuration_and_a_whole_chip_needs_none() -> None:
    def plugin(planned: Deployment) -> Any:
        found = [file.text for file in jupyterhub.render(planned) if file.path == "device-plugin.yaml"]
        return yaml.safe_load(yaml.safe_load(found[0])["config"]["map"]["default"]) if found else None

    assert plugin(NOTEBOOKS)["flags"]["migStrategy"] == "mixed"
    assert plugin(TURNS)["sharing"]["timeSlicing"]["resources"] == [{"name": "nvidia.com/gpu", "replicas": 4}]
    assert plugin(WHOLE) is None


def test_anything_but_notebooks_is_refused() -> None:
    for planned in CASES.values():
        if planned.form is not Form.SESSIONS:
            with pytest.raises(CannotRender):
                jupyterhub.render(planned)
