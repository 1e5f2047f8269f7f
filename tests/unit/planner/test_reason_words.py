"""Reasons against services that are paid per use, in words."""

from __future__ import annotations

import json

import pytest

from chipwise.planner.explain.reason_words import words
from chipwise.planner.reasons import Beaten, Reason, reason_data
from chipwise.planner.reasons.abilities import NoSpeed, OtherFormat
from chipwise.planner.reasons.goals import MissesLatency
from chipwise.planner.reasons.limits import Barred, Misplaced, OtherWeights, RetiredService, RuleKind
from chipwise.planner.reasons.sizes import DoesNotFit, ShortContext

SAID: list[tuple[Reason, str]] = [
    (Barred(RuleKind.RENTED, "aws"), "is rented, and only own machines are asked for"),
    (
        Barred(RuleKind.PURCHASE, "aws", ("reserved-1y", "spot")),
        "is paid per use, and machines bought as reserved-1y or spot are asked for",
    ),
    (Barred(RuleKind.CLOUD, "modal", ("aws", "gcp")), "modal is not in --cloud (aws, gcp)"),
    (Barred(RuleKind.AVOIDED_CLOUD, "modal"), "modal is to be avoided"),
    (Barred(RuleKind.PROGRAMME, "modal", ("hipaa",)), "modal is not known to take part in hipaa"),
    (Barred(RuleKind.CHIP, "fal", ("H100-SXM",), ("L4", "A10G")), "runs on L4 or A10G; asked for H100-SXM"),
    (Barred(RuleKind.CHIP, "fal", ("H100-SXM",)), "which chip it runs on is not stated; asked for H100-SXM"),
    (Barred(RuleKind.AVOIDED_CHIP, "fal", chips=("T4",)), "may run on T4, which is to be avoided"),
    (
        Misplaced(RuleKind.COUNTRY, "aws", "us-east-1", ("USA",), ("DEU",), certain=True),
        "runs in aws us-east-1; asked for DEU",
    ),
    (
        Misplaced(RuleKind.COUNTRY, "aws", "", ("DEU", "USA"), ("AUT", "BEL", "DEU", "FRA", "ITA")),
        "its region is not stated (aws, whose regions are in DEU, USA); asked for AUT, BEL, DEU, FRA, ...",
    ),
    (Misplaced(RuleKind.REGION, "fal", "", ()), "its region is not stated or not asked for (fal)"),
    (Misplaced(RuleKind.AVOIDED_COUNTRY, "fal", "", ()), "may run in a country to be avoided (fal)"),
    (Misplaced(RuleKind.AVOIDED_REGION, "aws", "us-east-1", ("USA",)), "may run in a region to be avoided (aws us-east-1)"),
    (OtherWeights("deepseek-v3"), "is another training of the shape of deepseek-v3"),
    (RetiredService("2026-07-07"), "was retired 2026-07-07"),
    (OtherFormat("fp4", ("bf16", "fp8"), True), "is served in fp4; asked for bf16, fp8"),
    (OtherFormat("fp8", ("bf16", "fp16"), False), "is served in fp8; the weights are published in bf16: --precision fp8"),
    (NoSpeed(("B300", "H200")), "no speed is stated of B300 or H200"),
    (NoSpeed(), "no speed is known of its processor"),
    (DoesNotFit("llama", "1 x L4", "bf16", 3.25e9), "llama in bf16 does not fit 1 x L4: 3.0 GiB a chip are missing"),
    (DoesNotFit("resnet", "T4"), "resnet does not fit T4"),
    (ShortContext(8192.0, 131072.0), "takes 8,192 tokens; 131,072 must be accepted"),
    (MissesLatency("ttft p90", 3.0, 0.8), "ttft p90 is 3 s, the goal 800 ms"),
    (
        MissesLatency("ttft p99", 82.0, 0.8, 0.25, (20.0, 60.0, 100.0)),
        "25% of the requests meet a cold start of 60 s (20 s to 100 s): ttft p99 is 82 s, the goal 800 ms",
    ),
]


@pytest.mark.parametrize(("reason", "said"), SAID)
def test_a_refused_service_is_told_with_the_limit_and_the_number(reason: Reason, said: str) -> None:
    assert words(reason) == said
    assert json.loads(json.dumps(reason_data(reason)))["kind"]


def test_of_balanced_goals_all_three_are_told_and_what_it_is_worse_in_first() -> None:
    lost = Beaten(objective="balanced", per="job", usd=92, best_usd=100, seconds=3600, best_s=7200, kg=30, best_kg=10)
    said = "3.0x more CO2e (30 kg against 10 kg), 8% cheaper ($92.00 a job against $100), 50% faster (1 h against 2 h)"
    assert words(lost) == said
    service = Beaten(objective="balanced", per="month", usd=92, best_usd=100, seconds=1, best_s=1, kg=30, best_kg=10)
    assert words(service) == "3.0x more CO2e (30 kg against 10 kg), 8% cheaper ($92.00 a month against $100)"
