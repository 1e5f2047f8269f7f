"""AWS Batch: single, array and multi-node jobs, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chipwise.render.file import CannotRender
from chipwise.render.targets import batch
from deployments import deployment
from hostile import TEXTS, hostile
from scripts import accepted, constants, literals, same_files, texts

ON_AWS = "clouds=[aws]"
TRAIN = deployment("train", ON_AWS)


@pytest.mark.parametrize("name", ["finetune", "batch", "hpc", "render", "hybrid"])
def test_scripts_compile_are_formatted_and_do_not_change(name: str, tmp_path: Path) -> None:
    planned = deployment(name, ON_AWS)
    accepted(batch.render(planned), tmp_path)
    assert same_files(batch.render, planned)


def test_programs_apart_are_an_array_of_which_each_gets_its_chips() -> None:
    planned = deployment("batch", ON_AWS)
    said = constants(texts(batch.render(planned))["batch_job.py"])
    assert (said["NODES"], said["PARTS"]) == (1, 4096)
    needs = {one["type"]: one["value"] for one in said["CONTAINER"]["resourceRequirements"]}
    assert needs["GPU"] == "1"
    assert planned.node.vcpus is not None
    assert int(needs["VCPU"]) * 8 <= planned.node.vcpus
    assert said["STRATEGY"] == "SPOT_PRICE_CAPACITY_OPTIMIZED"


def test_one_program_over_several_machines_is_a_multinode_job() -> None:
    said = constants(texts(batch.render(replace(TRAIN, purchase="on-demand")))["batch_job.py"])
    assert (said["NODES"], said["PARTS"], said["EFA_INTERFACES"]) == (TRAIN.machines, 1, TRAIN.node.interfaces)
    assert '--node-rank="$AWS_BATCH_JOB_NODE_INDEX"' in said["CONTAINER"]["command"][2]
    assert len(said["CONTAINER"]["linuxParameters"]["devices"]) == TRAIN.node.interfaces


def test_a_multinode_job_on_spot_is_refused_because_batch_has_none() -> None:
    with pytest.raises(CannotRender, match="full price only") as refused:
        batch.render(TRAIN)
    assert "interruptible=false" in str(refused.value.remedy)


def test_an_image_of_others_is_wrapped_because_batch_cannot_put_its_entry_point_aside() -> None:
    files = texts(batch.render(deployment("batch", ON_AWS)))
    assert files["Dockerfile"].endswith("ENTRYPOINT []\n")
    assert constants(files["batch_job.py"])["IMAGE"] is None


def test_services_and_other_clouds_are_refused_with_what_can() -> None:
    for planned, what in ((deployment("serve", ON_AWS), "ecs"), (deployment("serve", "clouds=[gcp]"), "clouds=[aws]")):
        with pytest.raises(CannotRender) as refused:
            batch.render(planned)
        assert what in str(refused.value.remedy)


def test_more_parts_than_an_array_holds_are_refused_with_the_number() -> None:
    with pytest.raises(CannotRender, match="10,000 parts; the plan has 80,000"):
        batch.render(replace(deployment("batch", ON_AWS), machines=10_000))


def test_secrets_are_handed_over_by_reference() -> None:
    planned = deployment("finetune", ON_AWS)
    named = replace(planned, software=replace(planned.software, secrets=(("TOKEN", "hub", "token"),)))
    said = constants(texts(batch.render(named))["batch_job.py"])
    assert said["SECRETS"] == [["TOKEN", "hub", "token"]]


@pytest.mark.parametrize("text", TEXTS)
def test_hostile_text_is_a_literal(text: str) -> None:
    found = literals(texts(batch.render(hostile(deployment("finetune", ON_AWS), text)))["batch_job.py"])
    assert {text, f"--a={text}", f"x{text}"} <= found
