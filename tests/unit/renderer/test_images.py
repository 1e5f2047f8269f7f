"""Images exist and run on the chip they are for; one whose tag was inferred says so in every file, and the audit repeats it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chipwise.auditor.auditing import audit
from chipwise.catalog.load import load
from chipwise.renderer.deployment import Node
from chipwise.renderer.file import CannotRender
from chipwise.renderer.images import image_row
from chipwise.renderer.named_targets import files, target, target_names
from fixed_deployments import CASES

ROWS = load(prices=False).rows("images")
SERVE = CASES["serve"]


def node(chip: str, kind: str = "neuron", **fields: float) -> Node:
    vendor = {"neuron": "AWS"}.get(kind, "NVIDIA")
    return replace(Node("aws", "us-east-1", "x", chip, kind, vendor, 1), **fields)  # type: ignore[arg-type]


def tag(purpose: str, where: Node) -> str:
    row = image_row(ROWS, purpose, where)
    return f"{row.image}:{row.tag}" if row is not None else ""


@pytest.mark.parametrize("chip", ["Trainium2", "Trainium3"])
def test_the_newest_vllm_of_neuron_is_for_the_newest_chips(chip: str) -> None:
    assert tag("vllm", node(chip)).endswith(":0.24.0.1.1.0-neuronx-py313-sdk2.32.0-ubuntu24.04")


@pytest.mark.parametrize("chip", ["Trainium1", "Inferentia2"])
def test_older_chips_have_the_last_release_for_them(chip: str) -> None:
    assert "sdk2.31" in tag("vllm", node(chip))


def test_the_oldest_serves_no_text_and_has_an_image_of_its_own() -> None:
    assert tag("vllm", node("Inferentia1")) == ""
    assert "pytorch-inference-neuron:1.13.1" in tag("pytorch", node("Inferentia1"))


def test_training_takes_the_last_image_under_its_name() -> None:
    assert "pytorch-training-neuronx:2.9.0-neuronx-py312-sdk2.29.0" in tag("pytorch", node("Trainium2"))


def test_ray_amd_and_tgi() -> None:
    hopper = node("H100-SXM", "gpu", capability=9.0)
    assert tag("ray-llm", hopper).endswith("-py312-cu130")
    assert tag("vllm", replace(hopper, vendor="AMD", capability=None)).startswith("vllm/vllm-openai-rocm:v")
    for capability, runs in ((7.5, False), (8.0, True), (8.6, True), (8.9, True), (9.0, True), (10.0, False), (12.0, False)):
        assert bool(tag("tgi", replace(hopper, capability=capability))) is runs, capability


def test_tgi_is_refused_on_a_chip_that_it_has_no_code_for() -> None:
    blackwell = replace(SERVE.node, chip="B200", capability=10.0)
    images = {name: image for name, image in SERVE.platforms["Images"].items() if name != "tgi"}
    with pytest.raises(CannotRender, match="B200"):
        target("tgi").render(replace(SERVE, node=blackwell, platforms=dict(SERVE.platforms) | {"Images": images}))


def test_every_row_says_how_its_tag_is_known() -> None:
    assert {row.known for row in ROWS} <= {"seen", "release", "naming", "recalled"}
    for row in ROWS:
        assert ("tag" in row.fact.inferred) == (row.known != "seen"), row
        assert row.tag != "latest", row


INFERRED = replace(SERVE, software=replace(SERVE.software, unverified="the tag follows a release that exists", secrets=()))


@pytest.mark.parametrize("name", target_names())
def test_an_inferred_tag_carries_a_check_in_every_file_that_names_it(name: str) -> None:
    try:
        made = files(name, target(name), INFERRED)
    except CannotRender:
        return
    image = INFERRED.software.image
    for file in made:
        if image in file.text and not file.path.endswith((".json", ".svg", ".mmd")):
            lines = file.text.splitlines()
            assert any(line.startswith(f"# verify: docker buildx imagetools inspect {image} (") for line in lines), file.path


def test_the_audit_reports_it_and_nothing_where_it_was_seen() -> None:
    made = [(file.path, file.text) for file in files("kubernetes", target("kubernetes"), INFERRED)]
    [finding] = [one for one in audit(made).findings if one.rule == "unverified-image"]
    assert "vllm/vllm-openai:v0.32.0" in finding.what
    assert finding.path == "workload.yaml"
    platforms = dict(SERVE.platforms) | {"Unverified": {}}
    seen = replace(INFERRED, software=replace(INFERRED.software, unverified=""), platforms=platforms)
    made = [(file.path, file.text) for file in files("kubernetes", target("kubernetes"), seen)]
    assert not [one for one in audit(made).findings if one.rule == "unverified-image"]
