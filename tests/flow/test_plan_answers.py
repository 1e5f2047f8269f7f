"""Answers of `chipwise plan` that somebody acts on: what would help, what it costs in time, and why something lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command import Chipwise

TIGHT = """kind: serve
name: rag
model: llama-3.1-70b
arrival: {{rate: 6 req/s}}
input_tokens: 1000
output_tokens: 250
goals: {{ttft: 1s, tpot: 60ms, budget: $16k/month, objective: {objective}}}
limits: {{clouds: [aws, azure, gcp]}}
"""
CAMERAS = """kind: serve
name: cameras
model: resnet50
arrival: {rate: 30 frames/s, burstiness: 0}
devices: 40
precision: int8
goals: {latency: {p99: 33ms}}
limits: {where: edge, power_watts: 15}
"""
CHAT = ("plan", "llama-3.1-8b", "--serve", "--input", "1000", "--output", "300")
CIRCUITS = (
    "kind: hybrid\nname: qaoa\niterations: 100\nquantum: {qubits: 16, shots: 1000, circuits: 8}\ngoals: {deadline: 24h}\n"
)


def flat(text: str) -> str:
    return " ".join(text.split())


def asked(chipwise: Chipwise, *arguments: str) -> dict[str, Any]:
    view: dict[str, Any] = json.loads(chipwise(*arguments, "--json").out)
    return view


def test_what_would_help_does_not_depend_on_the_objective(chipwise: Chipwise, tmp_path: Path) -> None:
    remedies = {}
    for objective in ("cost", "balanced", "carbon"):
        path = tmp_path / f"{objective}.yaml"
        path.write_text(TIGHT.format(objective=objective))
        remedies[objective] = {one["remedy"] for one in asked(chipwise, "plan", str(path))["missing"]}
    assert any("--commit 3y" in text for text in remedies["cost"])
    assert remedies["balanced"] == remedies["carbon"] == remedies["cost"]


def test_a_device_that_limits_of_clouds_do_not_concern_says_what_it_lacks(chipwise: Chipwise, tmp_path: Path) -> None:
    path = tmp_path / "cameras.yaml"
    path.write_text(CAMERAS)
    answer = asked(chipwise, "plan", str(path), "--why", "coral")["why"]
    assert (answer["outcome"], answer["reason"]["kind"], answer["refused"]) == ("unable", "too-slow", [])


def test_what_a_limit_excludes_is_told_with_the_best_it_could_do(chipwise: Chipwise) -> None:
    view = asked(chipwise, *CHAT, "--rps", "5", "--cloud", "aws", "--why", "gcp")
    told = view["why"]["text"][0]
    assert view["why"]["outcome"] == "refused by limits"
    assert "Without them, at best " in told
    assert told.endswith((" than the answer.", ", after porting."))


@pytest.mark.parametrize(("name", "subject"), [("bedrock", "service aws bedrock"), ("deepinfra", "service deepinfra")])
def test_a_service_is_found_by_any_word_of_its_name(chipwise: Chipwise, name: str, subject: str) -> None:
    answer = asked(chipwise, *CHAT, "--rps", "5", "--why", name)["why"]
    assert answer["subject"] == subject
    assert f"Paid per token, {subject.removeprefix('service ')} costs $" in answer["text"][1]


def test_a_quantum_device_is_found_by_its_maker(chipwise: Chipwise, tmp_path: Path) -> None:
    path = tmp_path / "qaoa.yaml"
    path.write_text(CIRCUITS)
    answer = asked(chipwise, "plan", str(path), "--why", "ionq")["why"]
    assert answer["subject"].startswith("aws braket IonQ")
    assert (answer["outcome"], answer["reason"]["kind"]) == ("misses a goal", "misses-deadline")


def test_an_own_machine_without_a_price_says_what_to_state(chipwise: Chipwise, tmp_path: Path) -> None:
    inventory = tmp_path / "servers.csv"
    inventory.write_text("name,chip,chips,count,region\nold-box,v100-32,8,1,DE\n")
    assert chipwise("catalog", "import", str(inventory)).code == 0
    told = asked(chipwise, *CHAT, "--rps", "5", "--why", "old-box")["why"]["text"][0]
    assert told.startswith("machine onprem old-box: no price: state its hourly cost")


@pytest.mark.parametrize(("model", "tokens"), [("llama-3.1-405b", "15T"), ("llama-3.1-70b", "15T")])
def test_a_job_that_nothing_does_within_a_month_is_not_given_to_chips_that_take_decades(
    chipwise: Chipwise, model: str, tokens: str
) -> None:
    words = ("plan", model, "--train", "--tokens", tokens, "--json")
    plan, asked = (json.loads(chipwise(*words, *more).out) for more in ([], ["--large"]))
    fastest = min(choice["seconds"]["value"] for choice in plan["front"])
    assert plan["winner"]["seconds"]["value"] <= 1.5 * fastest
    larger = plan["larger"]
    assert larger["seconds"]["value"] < plan["winner"]["seconds"]["value"]
    assert "Nothing of up to 512 chips (64 machines of 8) does it within 30 d. With --large, " in plan["headline"]
    assert f"({larger['machines']} x {larger['provider']} {larger['machine']}" in plan["headline"]
    assert (asked["winner"]["machine"], asked["winner"]["machines"]) == (larger["machine"], larger["machines"])
