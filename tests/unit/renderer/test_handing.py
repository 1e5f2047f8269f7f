"""What a stage hands on is what its command writes, and what it is handed is where its command looks."""

from __future__ import annotations

from dataclasses import replace

import yaml

from chipwise.renderer.deployment import Deployment, HandOff
from chipwise.renderer.launch.handing import arrives_at, leaves_from, written_by
from chipwise.renderer.named_targets import files, target
from deployments import on_few_offers
from fixed_deployments import CASES, PIPELINE

SUMMARIES = replace(CASES["batch"], name="news-summarise", title="Summarise all", namespace="news", purchase="on-demand")
LEARN = replace(CASES["train"], name="news-learn", title="Learn", namespace="news", node=SUMMARIES.node, alternatives=())
STAGES = replace(
    PIPELINE, name="news", title="news", stages=(SUMMARIES, LEARN), hand_offs=(HandOff("Summarise all", "Learn", 2e9, "jsonl"),)
)


def texts(name: str, planned: Deployment) -> dict[str, str]:
    return {file.path: file.text for file in files(name, target(name), planned)}


def test_a_command_of_ours_hands_on_what_it_writes() -> None:
    assert written_by(SUMMARIES) == "/data/answers"
    assert leaves_from(SUMMARIES, STAGES.hand_offs[0]) == "/data/answers"
    assert leaves_from(LEARN, HandOff("Learn", "Serve it", None)) == "/hand-offs/out/serve-it", "a program of the user's own"
    assert arrives_at("Summarise all") == "/hand-offs/in/summarise-all", "by the name that the files have"


def test_argo_takes_it_from_there() -> None:
    [workflow] = [text for path, text in texts("argo", STAGES).items() if path.endswith("workflow.yaml")]
    templates = {one["name"]: one for one in next(yaml.safe_load_all(workflow))["spec"]["templates"]}
    publish = templates["summarise-all-publish"]
    [artifact] = publish["outputs"]["artifacts"]
    assert artifact["path"] == "/data/answers"
    assert {"name": "data", "mountPath": "/data"} in publish["container"]["volumeMounts"]
    [taken] = templates["learn-fetch"]["inputs"]["artifacts"]
    assert taken["path"] == "/hand-offs/in/summarise-all"


def test_slurm_binds_one_directory_at_both_ends() -> None:
    made = texts("slurm", STAGES)
    assert '"$STORE/hand-offs/summarise-all-learn:/data/answers"' in made["summarise-all.sbatch"]
    assert '"$STORE/hand-offs/summarise-all-learn:/hand-offs/in/summarise-all"' in made["learn.sbatch"]
    assert "HAND_OFFS_IN=/hand-offs/in" in made["learn.sbatch"]


def test_triton_serves_what_the_stage_before_it_leaves() -> None:
    """Nobody else fills a volume in between."""
    planned = on_few_offers("pipeline")
    served = next(one for one in planned.stages if one.software.engine == "triton")
    [given] = [one for one in planned.hand_offs if one.target == served.title]
    folder = arrives_at(given.source)
    assert f"--model-repository={folder}" in served.software.command
    assert "models" not in [one.name for one in served.volumes]
    assert any(given.source in note and folder in note for note in served.notes)
    [workflow] = [text for path, text in texts("argo", planned).items() if path.endswith("workflow.yaml") and folder in text]
    assert f"path: {folder}" in workflow, "that is where it arrives"
