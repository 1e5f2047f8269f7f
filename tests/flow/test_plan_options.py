"""Options that people guess: each narrows a plan as its name says, over a file as over a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import chipwise as cw
from command import Chipwise

pytestmark = pytest.mark.real_catalog

ROOT = Path(__file__).resolve().parents[2]
MODEL = ("llama-3.1-8b", "--serve", "--rps", "2", "--input", "500", "--output", "100")
FILE = (str(ROOT / "examples" / "finetune" / "workload.yaml"),)


def planned(chipwise: Chipwise, *arguments: str) -> dict[str, Any]:
    done = chipwise("plan", *arguments, "--json")
    assert done.code == 0, done.err or done.out
    found: dict[str, Any] = json.loads(done.out)
    return found


@pytest.mark.parametrize("work", [MODEL, FILE], ids=["model", "file"])
@pytest.mark.parametrize(
    ("options", "key", "allowed"),
    [
        (("--cloud", "aws,gcp"), "provider", {"aws", "gcp"}),
        (("--limit", "clouds=aws,gcp"), "provider", {"aws", "gcp"}),
        (("--cloud", "aws", "--cloud", "gcp"), "provider", {"aws", "gcp"}),
        (("--region", "eu-north-1"), "region", {"eu-north-1"}),
        (("--region", "FR,germany"), "country", {"FRA", "DEU"}),
        (("--chip", "h100"), "chip", {"H100-SXM", "H100-PCIe", "H100-NVL"}),
        (("--on-demand",), "purchase", {"on-demand"}),
        (("--spot",), "purchase", {"spot"}),
    ],
)
def test_an_option_narrows_the_plan(
    chipwise: Chipwise, work: tuple[str, ...], options: tuple[str, ...], key: str, allowed: set[str]
) -> None:
    assert {choice[key] for choice in planned(chipwise, *work, *options)["choices"]} <= allowed


def test_samples_stand_in_for_tokens(chipwise: Chipwise) -> None:
    asked = ("llama-3.1-8b", "--finetune", "lora", "--seq", "1000", "--cloud", "aws")
    samples = planned(chipwise, *asked, "--samples", "50k")["winner"]
    tokens = planned(chipwise, *asked, "--tokens", "50M")["winner"]
    assert samples["usd"] == pytest.approx(tokens["usd"])


def test_a_model_is_run_over_samples(chipwise: Chipwise) -> None:
    found = planned(chipwise, "llama-3.1-8b", "--batch", "--samples", "50k", "--input", "500", "--output", "100")
    assert (found["kind"], found["per"]) == ("batch", "job")


def test_a_goal_is_the_same_in_a_file_and_as_an_option(chipwise: Chipwise, tmp_path: Path) -> None:
    file = tmp_path / "chat.yaml"
    text = "kind: serve\nname: chat\nmodel: llama-3.1-8b\narrival: 2 req/s\ninput_tokens: 500\noutput_tokens: 100\n"
    file.write_text(text + "goals: {ttft: 300ms}\n")
    stated = planned(chipwise, str(file))["winner"]
    assert "ttft p90" in stated["latency_s"]
    assert planned(chipwise, *MODEL, "--ttft", "300ms")["winner"] == stated
    file.write_text(text)
    assert planned(chipwise, str(file), "--ttft", "300ms")["winner"] == stated


def test_an_option_wins_over_an_environment(chipwise: Chipwise, tmp_path: Path) -> None:
    file = tmp_path / "work.yaml"
    file.write_text(
        "kind: finetune\nname: a\nmodel: llama-3.1-8b\nmethod: lora\nsamples: 1k\nsequence_length: 512\n"
        "environments: {prod: {limits: {clouds: aws}}}\n"
    )
    found = planned(chipwise, str(file), "-e", "prod", "--cloud", "gcp")
    assert {choice["provider"] for choice in found["choices"]} == {"gcp"}


def test_a_purchase_option_holds_for_the_load_over_time(chipwise: Chipwise, tmp_path: Path) -> None:
    file = tmp_path / "chat.yaml"
    file.write_text("kind: serve\nname: a\nmodel: llama-3.1-8b\narrival: 40 req/s\ninput_tokens: 500\noutput_tokens: 100\n")
    found = planned(chipwise, str(file), "--cloud", "aws", "--on-demand", "--chip", "l40s")
    assert {layer["name"] for layer in found["load"]["layers"]} == {"on-demand"}


@pytest.mark.parametrize("option", ["--budget", "--ttft", "--deadline", "--precision"])
def test_an_option_that_a_shell_left_empty_is_refused(chipwise: Chipwise, option: str) -> None:
    """An unset variable would drop the goal, and the plan would look as if it were met."""
    refused = chipwise("plan", "llama-3.1-8b", "--serve", "--rps", "5", option, "")
    assert refused.code == 2
    assert f"{option} is empty. Give it a value, or leave it out." in refused.err


def test_a_memory_below_zero_is_refused(chipwise: Chipwise) -> None:
    refused = chipwise("machines", "--memory", "-1GB")
    assert (refused.code, "-1GB is below zero" in refused.err) == (2, True)
    assert chipwise("machines", "--memory", "-1").code == 2


def test_fine_tuning_without_a_method_trains_adapters(chipwise: Chipwise) -> None:
    asked = ("--samples", "1k", "--seq", "512", "--cloud", "aws")
    named = planned(chipwise, "llama-3.1-8b", "--finetune", "lora", *asked)
    assert planned(chipwise, "llama-3.1-8b", "--finetune", *asked) == named
    assert cw.Session().plan("llama-3.1-8b", finetune=True, samples="1k", seq=512, cloud="aws").to_dict() == named
