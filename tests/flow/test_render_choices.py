"""What the plan recommends is what is rendered, or is told; what stands in the way of files is told before a plan is made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chipwise.api import render as rendering
from chipwise.api import verbs
from chipwise.api.catalog.check import check
from chipwise.cli.main import main
from chipwise.planner.values.mix import Member, Mix
from chipwise.planner.values.plan import Plan
from chipwise.planner.values.split import GenerationSplit
from deployments import EXAMPLES
from deployments import few_session as session

CHAT = """
kind: serve
name: little-chat
model: llama-3.1-8b
arrival: {rate: %s}
input_tokens: {mean: 1100}
output_tokens: {mean: 240}
context: 8192
program: {image: "registry.example/vllm:cu12"}
goals: {ttft: {p50: 60s}, objective: cost}
limits: {clouds: [%s]}
"""
PIPELINE = """
kind: pipeline
name: little
stages:
  - {kind: batch, name: embed, model: llama-3.1-8b, items: 10k, input_tokens: {mean: 500}, output_tokens: {mean: 100}}
  - {kind: serve, name: chat, model: llama-3.1-8b, arrival: {rate: 0.01 req/s}, input_tokens: {mean: 1100},
     output_tokens: {mean: 240}}
goals: {objective: cost}
limits: {clouds: [aws]}
"""


def written(folder: Path, text: str) -> str:
    path = folder / "workload.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_service_by_the_token_is_not_rendered_in_silence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unchecked = "ttft: {p50: 60s}, "  # of what is paid by the token no latency is known: with goals it does not lead
    path = written(tmp_path, CHAT.replace(unchecked, "") % ("0.01 req/s", "aws"))
    assert main(["render", path, "--to", "vllm"]) == 0
    shown = capsys.readouterr()
    assert "Cheaper still is aws bedrock, paid by the token: $" in shown.err
    assert "--choice 1 says that this is meant" in shown.err
    assert "There is nothing to deploy for it" in " ".join(shown.out.replace("#", " ").split())
    assert main(["render", path, "--to", "vllm", "--choice", "1"]) == 0
    assert capsys.readouterr().err == ""


def test_a_serverless_service_is_rendered_as_the_plan_takes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, CHAT % ("0.0015 req/s", "gcp"))
    found = session()
    made = rendering.render(found, path, ("serverless",))["serverless"][0].text
    assert "serve on gcp Cloud Run GPU (NVIDIA L4, no zonal redundancy)" in made
    assert "It is cheaper than the plan's machines" in made.replace("\n# ", " ")
    assert main(["render", path, "--to", "serverless"]) == 0
    assert capsys.readouterr().err == ""


def test_a_stage_on_a_service_has_files_of_a_machine_that_say_so(tmp_path: Path) -> None:
    path = written(tmp_path, PIPELINE)
    made = rendering.deployment_of(session(), path)
    chat = next(one for one in made.stages if one.title == "chat")
    assert chat.service is not None
    assert chat.service.kind == "per token"
    assert chat.purchase not in ("per token", "serverless")
    assert chat.node.vcpus is not None  # a machine of the catalog, not the name of a service
    assert any("Stage chat takes" in note for note in made.notes)
    assert made.service is None


def nothing_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("planned before it was told")

    monkeypatch.setattr(verbs, "plan_any_checked", fail)
    monkeypatch.setattr(rendering, "plan_any_checked", fail)


@pytest.mark.parametrize("command", [("render", "--to"), ("plan", "--render")])
def test_a_place_that_cannot_be_written_to_is_told_before_planning(
    command: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing_is_planned(monkeypatch)
    verb, option = command
    (tmp_path / "file").write_text("mine")
    workload = str(EXAMPLES / "serve" / "workload.yaml")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        assert main([verb, workload, option, "kubernetes", "--out", str(out)]) == 2
        assert f"{tmp_path / 'file'} is a file" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("command", [("render", "--to"), ("plan", "--render")])
def test_files_that_are_there_are_told_before_planning(
    command: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing_is_planned(monkeypatch)
    verb, option = command
    (tmp_path / "workload.yaml").write_text("mine")
    workload = str(EXAMPLES / "serve" / "workload.yaml")
    assert main([verb, workload, option, "kubernetes", "--out", str(tmp_path)]) == 2
    assert "workload.yaml in" in capsys.readouterr().err
    (tmp_path / "kubernetes").mkdir()
    (tmp_path / "kubernetes" / "workload.yaml").write_text("mine")
    assert main([verb, workload, option, "kubernetes", option, "dockerfile", "--out", str(tmp_path)]) == 2
    assert "kubernetes/workload.yaml in" in capsys.readouterr().err


def test_files_that_may_be_overwritten_are_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("mine")
    workload = str(EXAMPLES / "hpc" / "workload.yaml")
    assert main(["render", workload, "--to", "dockerfile", "--out", str(tmp_path), "--force"]) == 0
    assert (tmp_path / "Dockerfile").read_text() != "mine"


def test_a_mix_of_machine_types_is_told() -> None:
    path = str(EXAMPLES / "serve" / "workload.yaml")
    checked = check(session(), path, None, text=None)
    plan = verbs.plan_any_checked(session(), path, checked, None, 5)
    assert isinstance(plan, Plan)
    two = tuple(
        Member(
            "aws",
            machine,
            "eu-south-2",
            chip,
            1,
            "on-demand",
            "fp8",
            GenerationSplit(1, 1, 1),
            many,
            500.0,
            0.7,
            (),
            "interpolated",
        )
        for machine, chip, many in (("g6e.xlarge", "L40S", 1), ("g6.xlarge", "L4", 3))
    )
    mixed = Mix(two, 1000.0, None, (), True, 2, 1)
    made = rendering.deployment_from(session(), checked.workload, replace(plan, mix=mixed))
    told = next(note for note in made.notes if "mix by request size" in note)
    assert "3 x aws g6.xlarge in eu-south-2, on-demand" in told
    assert "these files hold one machine type" in told
    alone = rendering.deployment_from(session(), checked.workload, replace(plan, mix=replace(mixed, members=two[:1])))
    assert not any("mix by request size" in note for note in alone.notes)
