"""The page of sayings: a verdict for every claim, and numbers that are those of today's facts and model."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import claims  # noqa: E402
from sayings import peaks  # noqa: E402
from sayings.bench import Bench  # noqa: E402
from sayings.judging import Number, Varied, judge  # noqa: E402

PAGE = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
CHEAP = ("cloud-always-dearer", "decode-is-bandwidth")  # the others plan for seconds each
LONGEST = ("ten-to-thirty-percent",)  # plans every file there is, for minutes: of it the files are counted


def test_every_claim_has_a_verdict_of_its_own_rules() -> None:
    for claim in claims.claims():
        _, _, after = PAGE.partition(f"\n## {claim['saying']}\n")
        verdict = after.partition("**Verdict: ")[2].partition(".**")[0]
        assert verdict in claim["verdicts"], claim["name"]
    assert set(claims.CLAIMS) == {claim["name"] for claim in claims.claims()}


@pytest.mark.parametrize("name", CHEAP)
def test_a_claim_on_the_page_is_what_facts_and_model_say_now(name: str) -> None:
    claim = next(one for one in claims.claims() if one["name"] == name)
    made = "\n".join(claims.section(claim, claims.CLAIMS[name](Bench(), claim)))
    assert made in PAGE, "stale: run .venv/bin/python tools/claims.py (minutes)"


def test_the_page_predicted_as_many_files_as_there_are() -> None:
    assert f"predictions for each of {len(peaks.workload_files())} files" in PAGE, "stale: run tools/claims.py (minutes)"


@pytest.mark.e2e
@pytest.mark.parametrize("name", [name for name in claims.CLAIMS if name not in (*CHEAP, *LONGEST)])
def test_a_claim_that_plans_for_long_is_what_facts_and_model_say_now(name: str) -> None:
    test_a_claim_on_the_page_is_what_facts_and_model_say_now(name)


def rule(values: dict[str, float]) -> str:
    return "true" if all(one >= 0.5 for one in values.values()) else "false"


def test_a_band_over_the_threshold_makes_it_depend() -> None:
    sure = judge(rule, {"a": Number(0.7, 0.6, 0.8)})  # type: ignore[arg-type]
    assert (sure.plain, sure.verdict) == ("true", "true")
    wide = judge(rule, {"a": Number(0.7, 0.4, 0.8)})  # type: ignore[arg-type]
    assert (wide.plain, wide.verdict) == ("true", "depends")


def test_an_assumption_that_turns_it_over_makes_it_depend() -> None:
    found = judge(rule, {"a": Number.exact(0.7)}, (Varied("dearer", {"a": Number.exact(0.3)}), Varied("quality")))  # type: ignore[arg-type]
    assert (found.plain, found.verdict) == ("true", "depends")
    assert found.hangs == ("dearer: false (median 0.30).", "quality: not varied.")


def test_a_ratio_adds_bands_in_quadrature() -> None:
    one = Number(2.0, 1.0, 4.0).over(Number.exact(1.0))
    assert (one.low, one.high) == pytest.approx((1.0, 4.0))
    both = Number(2.0, 1.0, 4.0).over(Number(1.0, 0.5, 2.0))
    assert both.high == pytest.approx(2.0 * 2.0**2**0.5)
