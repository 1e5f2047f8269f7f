"""One law of the time of a job: what is printed as nine times in ten, what a deadline is held against, and how likely it is
missed; and what a request for a spot machine waits before any of it."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.api.verbs import plan
from chipwise.planner.values.plan import Plan
from chipwise.views.plan import plan_view

ROOT = Path(__file__).resolve().parents[3]
NOWHERE = ROOT / "tests" / "cases" / "no-such-folder"
HOUR = 3600.0
TRAIN = """
kind: train
name: pretraining
model: llama-3.1-8b
tokens: 20B tokens
sequence_length: 4096
goals: {{deadline: {hours:.4f}h, confidence: {confidence}%}}
limits: {{purchase: {purchase}, chips: [b200], clouds: [gcp], chip_count: {{max: 8}}}}
"""
ARCHIVE = """
kind: batch
name: archive
model: llama-3.1-8b
items: 100M
input_tokens: 1000
output_tokens: 200
goals: {objective: balanced, deadline: 14d}
limits: {chips: [tpu-v5e], clouds: [gcp]}
"""


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(Config(NOWHERE, NOWHERE), date(2026, 11, 15), [])


def example(session: Session, name: str) -> Plan:
    return plan(session, "workload.yaml", text=(ROOT / "examples" / name / "workload.yaml").read_text(encoding="utf-8"))


def trained(session: Session, hours: float, confidence: float = 90, purchase: str = "spot") -> Plan:
    return plan(session, "workload.yaml", text=TRAIN.format(hours=hours, confidence=confidence, purchase=purchase))


def winner(found: Plan) -> dict[str, Any]:
    view: dict[str, Any] = plan_view(found)["winner"]
    return view


def test_a_job_waits_for_its_first_spot_machine_and_does_not_pay_for_it(session: Session) -> None:
    choice = winner(example(session, "finetune"))
    assert choice["purchase"] == "spot"
    assert choice["first_wait_s"] == pytest.approx(1.69 * HOUR, rel=0.01)  # 8 chips: 1.65 and 1.73 h in the two traces
    assert choice["seconds"]["value"] > 6.3 * HOUR
    assert choice["seconds"]["p90"] > 10 * HOUR
    paid = sum(line["usd"] for line in choice["lines"] if line["name"] in ("compute", "restarts"))
    hours = paid / choice["usd_per_machine_hour"] / choice["machines"]
    assert hours * HOUR < choice["seconds"]["value"] - choice["first_wait_s"]


def test_only_spot_machines_are_waited_for(session: Session) -> None:
    assert winner(trained(session, 500, purchase="on-demand"))["first_wait_s"] == 0.0
    assert winner(trained(session, 500))["first_wait_s"] > 0.0


def test_nine_times_in_ten_is_what_a_deadline_is_held_against(session: Session) -> None:
    free = winner(trained(session, 2000))
    p90 = free["seconds"]["p90"] / HOUR
    assert winner(trained(session, 1.001 * p90)) is not None
    assert winner(trained(session, 1.001 * p90))["late_probability"] == pytest.approx(0.1, abs=0.002)
    assert not plan_view(trained(session, 0.999 * p90))["fits"]


def test_the_risk_of_being_late_does_not_depend_on_the_asked_confidence(session: Session) -> None:
    expected = winner(trained(session, 2000))["seconds"]["value"] / HOUR
    risks = {asked: winner(trained(session, 1.06 * expected, asked)) for asked in (50, 55)}
    assert risks[50]["late_probability"] == pytest.approx(risks[55]["late_probability"], rel=1e-9)
    assert 0.2 < risks[50]["late_probability"] < 0.5


def test_rates_of_a_cloud_that_published_none_are_cautious_and_marked(session: Session) -> None:
    found = example(session, "render")
    choices = plan_view(found)["choices"]
    unknown = [one for one in choices if one["purchase"] == "spot" and one["provider"] not in ("aws", "gcp")]
    assert unknown
    for one in unknown:
        assert one["interruptions_assumed"]
        assert "assumed" in next(line["how"] for line in one["lines"] if line["name"] == "restarts")
        assert one["interruptions"] > 0.09 * one["machines"] * (one["seconds"]["value"] - one["first_wait_s"]) / HOUR / 3
    known = [one for one in choices if one["provider"] in ("aws", "gcp") or one["purchase"] != "spot"]
    assert not any(one["interruptions_assumed"] for one in known)


def test_pods_count_as_machines_of_eight_chips(session: Session) -> None:
    for one in plan_view(plan(session, "workload.yaml", text=ARCHIVE))["choices"]:
        assert one["machines"] * max(one["chips_per_machine"] / 8, 1) <= 64, one


def test_live_video_by_a_schedule_pays_for_the_start_of_its_machines(session: Session) -> None:
    text = (ROOT / "examples" / "transcode" / "workload.yaml").read_text(encoding="utf-8")
    text = text.replace("30 13 * * sat,sun", "30 13 * * *").replace("runs_for: 5h", "runs_for: 1h")
    choice = winner(plan(session, "workload.yaml", text=text))
    compute = next(line["usd"] for line in choice["lines"] if line["name"] == "compute")
    hours = compute / choice["usd_per_machine_hour"] / choice["machines"]
    assert hours == pytest.approx(365 / 12 * (1 + 10 / 60), rel=0.01)
