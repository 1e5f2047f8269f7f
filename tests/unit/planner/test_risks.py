"""One short line under the answer says what may go wrong with it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import yaml

from chipwise.api.session.wiring import open_session
from chipwise.api.verbs import plan
from chipwise.money.cost import Cost
from chipwise.planner.explain.risks import risk_line
from chipwise.planner.values.load import OverTime
from chipwise.planner.values.plan import Plan, Service

SERVE = {
    "kind": "serve",
    "name": "chat",
    "model": "llama-3.1-8b",
    "arrival": {"rate": 2},
    "input_tokens": 500,
    "output_tokens": 200,
    "replicas": {"min": 2},
    "limits": {"clouds": ["lambda", "aws"]},
}


@cache
def planned() -> Plan:
    found = plan(open_session(), "case.yaml", None, text=yaml.safe_dump(SERVE))
    return replace(found, choices=tuple(one for one in found.choices if one.provider == "lambda"), services=(), load=None)


def with_winner(**changes: Any) -> Plan:
    found = planned()
    assert found.winner is not None
    calm: dict[str, Any] = {"replicas": 2, "memory_share": 0.5, "purchase": "on-demand"}
    return replace(found, choices=(replace(found.winner, **(calm | changes)), *found.choices[1:]))


def test_four_bits_on_chips_of_amd_need_a_library_that_was_not_tried_there() -> None:
    text = "kind: finetune\nmodel: llama-3.1-8b\nmethod: {}\noptimizer: {}\nsamples: 1000 samples\nlimits: {{chips: [{}]}}\n"

    def risks(method: str, optimizer: str, chip: str) -> str:
        return risk_line(plan(open_session(), "case.yaml", None, text=text.format(method, optimizer, chip)))

    assert "MI300X runs ROCm, not CUDA: bitsandbytes, which this needs, was not tried there" in risks(
        "qlora", "adamw", "mi300x"
    )
    assert "bitsandbytes" in risks("lora", "adamw-8bit", "mi300x")
    assert risks("lora", "adamw", "mi300x").endswith("MI300X runs ROCm, not CUDA.")
    assert "bitsandbytes" not in risks("qlora", "adamw", "l40s")


def test_an_answer_without_risks_has_no_line() -> None:
    assert risk_line(with_winner()) == ""


@pytest.mark.parametrize(
    ("changes", "risk"),
    [
        (
            {"purchase": "spot", "interruptions": 2.4},
            "about 2.4 spot interruptions a month expected, each time 1 of 2 missing for 10 min",
        ),
        ({"needs_porting": True, "chip": "TPU v5e", "family": "Google TPU"}, "TPU v5e needs porting to JAX or PyTorch/XLA"),
        ({"needs_porting": True, "chip": "Inferentia2", "family": "AWS Inferentia"}, "needs porting to the Neuron SDK"),
        ({"chip": "MI300X", "family": "AMD CDNA3"}, "MI300X runs ROCm, not CUDA"),
        ({"latency": {"tpot p50": 2.22}}, "2.22 s a token is slower than people read: set --tpot"),
        ({"latency": {"ttft p50": 40.0, "tpot p50": 0.2}}, "the first token comes after 40 s: set --ttft"),
        ({"latency": {"latency p50": 90.0}}, "an answer takes 90 s: set --latency"),
        ({"load_chance": 0.81}, "the machines have an 81% chance of carrying the load"),
        ({"load_chance": 0.75}, "the machines have a 75% chance of carrying the load"),
        ({"memory_share": 0.97}, "97% of a chip's memory"),
        ({"replicas": 1}, "one copy, no redundancy: downtime during restarts"),
        ({"is_arm": True}, "its processor is Arm: images for x86 do not start"),
        (
            {"provider": "aws", "machine": "p5.48xlarge", "machines": 2},
            "the default quota of aws is 0 of 384 vCPUs: request an increase first",
        ),
        (
            {"provider": "gcp", "machine": "tpu-v6e-128", "chip": "TPU-v6e", "machines": 1},
            "gcp must grant a quota of 128 TPU-v6e chips first",
        ),
        (
            {"provider": "gcp", "machine": "ct6e-standard-1t", "chip": "TPU-v6e", "machines": 1},
            "gcp must grant a quota of 1 TPU-v6e chip first",
        ),
    ],
)
def test_each_risk_is_in_the_line(changes: dict[str, Any], risk: str) -> None:
    line = risk_line(with_winner(**changes))
    assert line.startswith("Risks: ")
    assert risk in line


@pytest.mark.parametrize("kind", ["transcode", "stream"])
def test_a_single_machine_of_anything_live_has_no_redundancy(kind: str) -> None:
    one_machine = replace(with_winner(machines=1), kind=kind)
    assert risk_line(one_machine) == "Risks: one machine, no redundancy: downtime during restarts."
    assert risk_line(replace(with_winner(machines=2), kind=kind)) == ""
    assert risk_line(replace(one_machine, per="job")) == ""


def test_video_on_amd_is_encoded_by_another_interface_than_that_of_nvidia() -> None:
    """No program of theirs is in CUDA; what changes is the encoder that is called."""
    archive = replace(with_winner(chip="Radeon-Pro-V520", family="AMD RDNA1"), kind="transcode", per="job")
    assert risk_line(archive) == "Risks: Radeon-Pro-V520 encodes by VA-API or AMF, not by NVENC."


def test_one_copy_at_night_is_a_risk_by_day_too() -> None:
    night = OverTime(fewest=1, machine_hours=900.0, always_cost=Cost.of(()), always_kg=1.0)
    line = risk_line(with_winner(replicas=4, machines=4, over_time=night))
    assert "one copy at the quietest hours, no redundancy: downtime during restarts" in line
    assert risk_line(with_winner(replicas=8, machines=4, over_time=night)) == ""


def test_many_losses_of_spot_machines_are_a_plain_number() -> None:
    line = risk_line(with_winner(purchase="spot", interruptions=219.7, machines=3, replicas=3))
    assert "about 220 spot interruptions a month expected, each time 1 of 3 missing for 10 min or more" in line


def test_a_load_that_is_not_surely_carried_is_a_risk() -> None:
    assert "carrying the load" not in risk_line(with_winner(load_chance=0.93))
    line = risk_line(with_winner(load_chance=0.8, request_chance=0.95))
    assert "the machines have an 80% chance of carrying the load" in line
    line = risk_line(with_winner(load_chance=0.8, request_chance=0.7))
    assert "the latency goals have a 70% chance of being met: measure before you rely on them" in line


def test_the_line_stays_short_with_all_risks_at_once() -> None:
    worst = with_winner(
        purchase="spot",
        interruptions=123.4,
        needs_porting=True,
        memory_share=0.99,
        replicas=1,
        provider="aws",
        machine="p5.48xlarge",
    )
    assert len(risk_line(worst)) <= 3 * 78
    assert "spot" in risk_line(worst)
    assert "porting" in risk_line(worst)


def test_beside_a_service_the_risks_are_those_of_the_machines() -> None:
    service = Service("per token", "p", "s", "", 0.01, None, "", (), ())
    assert risk_line(replace(with_winner(replicas=1), services=(service,))).startswith("Risks of the machines: ")


def test_a_service_that_retires_the_model_is_a_risk() -> None:
    service = Service("per token", "p", "s", "", 0.01, None, "", (), (), retires="2027-03-30")
    alone = risk_line(replace(with_winner(), services=(service,)))
    assert alone == "Risks: p s stops serving this model on 2027-03-30."
    both = risk_line(replace(with_winner(replicas=1), services=(service,)))
    assert both.startswith("Risks: p s stops serving this model on 2027-03-30. If you rent machines: one copy")


@pytest.mark.parametrize("lesser", [{"is_arm": True}, {"chip": "MI300X", "family": "AMD CDNA3"}])
def test_an_outage_comes_before_what_is_put_right_once(lesser: dict[str, Any]) -> None:
    """One copy is down at every restart; an image is built once."""
    line = risk_line(with_winner(replicas=1, machines=1, **lesser))
    assert line.startswith("Risks: one copy, no redundancy")
    assert ";" in line
