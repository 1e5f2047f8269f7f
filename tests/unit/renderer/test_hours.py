"""Hours of a plan: whatever is deployed keeps them, or says that it does not and what it costs as it is written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender
from chipwise.renderer.named_targets import files, target, target_names
from chipwise.renderer.paying import around_the_clock_usd
from chipwise.units import HOUR, MONTH
from deployments import deployment
from fixed_deployments import CASES

SERVE, TRAIN, BATCH = CASES["serve"], CASES["train"], CASES["batch"]
ALWAYS = "around the clock, as these files run it"
KEEP = {"ecs", "keda", "kubernetes", "kueue", "terraform"}  # by clocks of their own
PASSIVE = {  # they start nothing
    "diagram", "dockerfile", "eksctl", "external-secrets", "gateway", "github-actions", "karpenter", "mlflow", "monitoring",
    "serverless",
}  # fmt: skip
AT_NIGHT = "0 22 * * 1,2,3,4,5"


def texts(name: str, planned: Deployment) -> str:
    return "\n".join(file.text for file in files(name, target(name), planned))


@pytest.mark.parametrize("example", ["stream", "serve"])
def test_machines_of_ec2_are_told_with_what_they_cost_until_they_are_ended(example: str) -> None:
    planned = deployment(example, "clouds=[aws]", "purchase=[on-demand]")
    predicted = planned.predicted
    assert planned.stops
    always = predicted.usd + predicted.usd_per_hour * (MONTH - predicted.seconds) / HOUR
    assert always > 1.5 * predicted.usd
    text = texts("ec2", planned)
    assert f"Expected: ${always:,.0f} a month {ALWAYS}; ${predicted.followed_usd or predicted.usd:,.0f}" in text
    assert "These files keep no clock" in text.replace("\n# ", " ")
    assert f"# CRON_TZ={planned.time_zone}\n# {planned.starts} python launch.py --up\n" in text
    assert f"# {planned.stops} python launch.py --down\n" in text


@pytest.mark.parametrize("name", target_names())
def test_a_target_keeps_the_hours_of_a_service_or_says_what_it_costs_without(name: str) -> None:
    try:
        text = texts(name, SERVE)
    except CannotRender:
        return
    assert (ALWAYS in text) == (name not in KEEP | PASSIVE)
    assert ("keep no clock" in text.replace("\n# ", " ")) == (name not in KEEP | PASSIVE)
    if name in KEEP:
        assert SERVE.stops in text or "cron(0 22 ? * MON,TUE,WED,THU,FRI,SAT *)" in text


@pytest.mark.parametrize("name", ["kubernetes", "keda", "kueue", "ecs", "terraform"])
def test_hours_whose_end_no_clock_can_say_are_kept_by_nobody(name: str) -> None:
    assert ALWAYS in texts(name, replace(SERVE, starts="*/90 7 * * 1", stops=""))


def test_clocks_of_aws_cannot_say_all_that_cron_can() -> None:
    assert ALWAYS in texts("ecs", replace(SERVE, starts="0 7 1 * 1", stops="0 22 1 * 1"))


@pytest.mark.parametrize("cloud", ["gcp", "azure"])
def test_terraform_keeps_hours_on_aws_alone(cloud: str) -> None:
    assert ALWAYS in texts("terraform", deployment("serve", f"clouds=[{cloud}]"))


def test_of_an_endpoint_one_machine_stays_and_is_paid_for() -> None:
    predicted = replace(SERVE.predicted, usd=100.0, always_usd=300.0)
    planned = replace(SERVE, software=replace(SERVE.software, secrets=()), machines=2, predicted=predicted)
    text = texts("sagemaker", planned)
    assert f"Expected: $200 a month {ALWAYS}; $100" in text
    assert "1 machine runs on outside them" in text.replace("\n# ", " ")


@pytest.mark.parametrize("name", target_names())
def test_a_job_that_a_clock_starts_is_started_by_it_or_says_that_it_is_not(name: str) -> None:
    job = replace(BATCH, starts=AT_NIGHT) if name in ("serverless",) else replace(TRAIN, starts=AT_NIGHT)
    try:
        text = texts(name, job)
    except CannotRender:
        return
    assert ALWAYS not in text  # it ends by itself
    if name not in PASSIVE:
        assert AT_NIGHT in text, "as a clock, or in a note"


def test_what_is_promised_for_a_term_is_paid_around_the_clock_anyway() -> None:
    assert around_the_clock_usd("reserved-1y", 500.0, 2.0, 100 * HOUR) == 500.0
    assert around_the_clock_usd("on-demand", 500.0, 2.0, 100 * HOUR) == 500.0 + 2.0 * 630
    assert around_the_clock_usd("spot", 500.0, 2.0, 2 * MONTH) == 500.0


def test_what_always_runs_or_is_no_service_has_no_such_cost() -> None:
    assert ALWAYS not in texts("ec2", CASES["small"])
    assert ALWAYS not in texts("ec2", TRAIN)
    sessions = CASES["notebooks"]
    assert sessions.form is Form.SESSIONS
    assert ALWAYS not in texts("ray", sessions)
