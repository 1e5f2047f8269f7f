"""Services that are paid per use: their own price heads their files, and all others say what is cheaper than machines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chipwise.renderer.deployment import Deployment, Service
from chipwise.renderer.file import CannotRender
from chipwise.renderer.heading import heading
from chipwise.renderer.named_targets import files, target
from chipwise.renderer.sold import most_instances, sold_as
from fixed_deployments import CASES

L4 = ("L4",)
CLOUD_RUN = Service(
    "serverless", "gcp", "Cloud Run GPU", "NVIDIA L4, no zonal redundancy", 222.8, 0.85, (11.0, 41.0, 336.0), (), L4, 1, 4, 9.0
)
TOKENS = Service("per token", "deepinfra", "deepinfra", "turbo", 16.61)


def on_l4(**other: object) -> Deployment:
    serve = CASES["serve"]
    node = replace(serve.node, provider="gcp", region="us-east4", machine="g2-standard-4", chip="L4")
    software = replace(serve.software, image="registry.example/vllm:cu12", secrets=())
    run = {"Cloud Run": {"accelerator": "nvidia-l4", "driver": "535", "least vcpus": "4", "least memory GiB": "16"}}
    made = replace(serve, node=node, software=software, platforms=run, machines=1, stops="", starts="")
    return replace(made, **other)  # type: ignore[arg-type]


def head(name: str, deployment: Deployment) -> str:
    text = files(name, target(name), deployment)[0].text
    return " ".join(line.removeprefix("# ") for line in text.splitlines()[:14] if line.startswith("# "))


def test_a_service_is_headed_by_its_own_price_and_start() -> None:
    told = head("serverless", on_l4(services=(CLOUD_RUN,), service=CLOUD_RUN))
    assert "serve on gcp Cloud Run GPU (NVIDIA L4, no zonal redundancy) in us-east4" in told
    assert "Expected: $223 a month for the plan's traffic, paid per use, with 1 kept warm; 85% of the requests wait" in told
    assert "a start of about 41 s (11 to 336)" in told
    assert "It is cheaper than the plan's machines, 1 x g2-standard-4" in told


def test_a_service_that_the_plan_does_not_take_says_what_it_does() -> None:
    told = head("serverless", on_l4(services=(CLOUD_RUN,)))
    assert "The plan takes 1 x g2-standard-4 (gcp us-east4, on-demand) for $1,534 a month; this service costs $223" in told
    assert "Cheaper still is deepinfra (turbo), paid by the token, with nothing to deploy: $16.61 a month" in head(
        "serverless", on_l4(services=(CLOUD_RUN,), service=TOKENS)
    )


def test_the_best_machines_are_the_plans_own_where_the_service_is_of_another_cloud() -> None:
    best = "2 x g6e.xlarge (aws eu-south-2, on-demand) for $1,534 a month"
    told = head("serverless", on_l4(services=(CLOUD_RUN,), service=CLOUD_RUN, best=best))
    assert f"It is cheaper than the plan's machines, {best}" in told


def test_goals_that_a_service_misses_are_told() -> None:
    late = replace(CLOUD_RUN, refused=("ttft p95 is 82 s, the goal 800 ms",))
    assert "It does not keep what the workload asks for: ttft p95 is 82 s, the goal 800 ms." in head(
        "serverless", on_l4(services=(late,))
    )


def test_a_price_of_other_hardware_is_not_taken() -> None:
    other = replace(CLOUD_RUN, chips=("H100-SXM",))
    told = head("serverless", on_l4(services=(other, replace(CLOUD_RUN, hardware="NVIDIA L4, zonal redundancy"))))
    assert "the plan has no price for it" in told


def test_what_the_price_keeps_warm_is_kept_warm() -> None:
    text = files("serverless", target("serverless"), on_l4(services=(CLOUD_RUN,)))[0].text
    assert "autoscaling.knative.dev/minScale: '1'" in text
    assert "containerConcurrency: 4" in text
    assert most_instances(sold_as(on_l4(services=(CLOUD_RUN,)), "Cloud Run GPU"), 1) >= 9 + 3 * 3


def test_an_answer_longer_than_a_call_may_last_is_refused_with_the_number() -> None:
    slow = on_l4()
    slow = replace(slow, predicted=replace(slow.predicted, latency={"latency p99": 4000.0}))
    with pytest.raises(CannotRender, match="Cloud Run gives a call 3,600 s; this one takes up to 4,000 s"):
        files("serverless", target("serverless"), slow)


def test_files_of_machines_say_that_the_plan_takes_tokens() -> None:
    told = " ".join(heading(replace(CASES["serve"], service=TOKENS)).split())
    assert "Cheaper than these machines ($1,534 a month) is deepinfra (turbo), paid by the token: $16.61 a month." in told
    assert "There is nothing to deploy for it" in told


def test_files_of_machines_say_where_the_service_is_written() -> None:
    told = " ".join(heading(replace(CASES["serve"], service=CLOUD_RUN)).split())
    assert "--to serverless writes such a service" in told
    elsewhere = replace(CLOUD_RUN, provider="modal", name="Functions")
    assert "No target writes it." in " ".join(heading(replace(CASES["serve"], service=elsewhere)).split())


def test_a_long_note_is_not_cut() -> None:
    note = "word " * 80 + "end."
    assert heading(replace(CASES["serve"], notes=(note,))).endswith("end.")
    assert all(len(line) <= 160 for line in heading(replace(CASES["serve"], notes=(note,))).splitlines())
