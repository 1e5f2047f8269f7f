"""Compose files: one machine, its chips handed over, nothing writable that need not be, and `$` stays text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.targets.compose import render
from fixed_deployments import AZURE, BATCH, DEVICE, HPC, NEURON, NOTEBOOKS, PIPELINE, SERVE, TPU, TRAIN

ONE = replace(TRAIN, machines=1)


def main(what: Deployment) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(render(what)[0].text)["services"]["main"]
    return found


@pytest.mark.parametrize("what", [SERVE, AZURE, BATCH, DEVICE, ONE], ids=lambda what: what.name)
def test_the_container_can_do_little(what: Deployment) -> None:
    made = main(what)
    assert made["user"] == "10001:10001"
    assert made["read_only"] is True
    assert made["cap_drop"] == ["ALL"]
    assert made["security_opt"] == ["no-new-privileges:true"]


def test_every_chip_of_the_machine_is_handed_over() -> None:
    (wanted,) = main(ONE)["deploy"]["resources"]["reservations"]["devices"]
    assert wanted == {"driver": "nvidia", "count": 8, "capabilities": ["gpu"]}
    assert main(replace(NEURON, machines=1))["devices"] == [f"/dev/neuron{at}" for at in range(16)]


def test_replicas_of_one_machine_take_a_chip_each() -> None:
    (wanted,) = main(BATCH)["deploy"]["resources"]["reservations"]["devices"]
    assert wanted["device_ids"] == ["${GPU0:-0}"]


def test_replicas_on_other_chips_take_their_own_as_well() -> None:
    """A copy that sees all chips takes the first of them, as every other does."""
    neuron = replace(BATCH, node=NEURON.node, chips_each=2)
    assert main(neuron)["devices"] == ["/dev/neuron${GPU0:-0}", "/dev/neuron${GPU1:-1}"]
    amd = replace(neuron, node=replace(ONE.node, vendor="AMD", chip="MI300X"))
    assert main(amd)["environment"]["HIP_VISIBLE_DEVICES"] == "${GPU0:-0},${GPU1:-1}"
    assert "HIP_VISIBLE_DEVICES" not in main(replace(amd, chips_each=0))["environment"]


def test_amd_chips_are_device_files() -> None:
    amd = replace(ONE, node=replace(ONE.node, vendor="AMD", chip="MI300X"))
    assert main(amd)["devices"] == ["/dev/kfd", "/dev/dri"]


def test_services_come_back_and_jobs_end() -> None:
    assert main(SERVE)["restart"] == "unless-stopped"
    assert main(DEVICE)["restart"] == "unless-stopped"
    assert main(ONE)["restart"].startswith("on-failure")


def test_secrets_are_files_and_never_values() -> None:
    whole = yaml.safe_load(render(SERVE)[0].text)
    assert whole["secrets"] == {"hub-token-token": {"file": "./secrets/hub-token/token"}}
    assert "HF_TOKEN" not in whole["services"]["main"]["environment"]
    assert "$$(cat /run/secrets/hub-token-token)" in whole["services"]["main"]["entrypoint"][2]


def test_a_dollar_stays_text() -> None:
    made = main(replace(ONE, software=replace(ONE.software, command=("run", "${HOME}"), env=(("A", "$B"),))))
    assert made["command"] == ["run", "$${HOME}"]
    assert made["environment"]["A"] == "$$B"


def test_a_service_is_open_to_its_own_machine_only() -> None:
    assert main(SERVE)["ports"] == ["127.0.0.1:8000:8000"]


def test_parts_of_a_batch_are_named_by_the_one_who_starts_them() -> None:
    made = main(BATCH)
    assert made["environment"]["PART"].startswith("${PART:?")
    assert "parts=$${PARTS:-1}" in made["command"][0]


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (TRAIN, "2 machines"),
        (HPC, "4 machines"),
        (TPU, "8 hosts"),
        (NOTEBOOKS, "starts and stops"),
        (PIPELINE, "one machine"),
        (replace(SERVE, node=replace(SERVE.node, kind="fpga")), "loaded into it"),
    ],
)
def test_what_one_machine_cannot_run_is_refused(what: Deployment, why: str) -> None:
    with pytest.raises(CannotRender, match=why) as caught:
        render(what)
    assert caught.value.remedy
