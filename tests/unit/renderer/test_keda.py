"""KEDA's files hold the rule: out above 5 that wait, in below 20% use for 10 minutes, and on only in its hours."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from autoscaling import evaluate
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.layout import pods
from chipwise.renderer.targets import keda
from deployments import on_few_offers as deployment

AWS = "clouds=[aws]"


def made(planned: Deployment, kind: str) -> dict[str, Any]:
    every = [one for file in keda.render(planned) for one in yaml.safe_load_all(file.text)]
    return next(one for one in every if one["kind"] == kind)


def consuming(planned: Deployment) -> Deployment:
    """With a program of the user's own, which takes its work from the queue."""
    return replace(planned, software=replace(planned.software, is_custom=True, command=("python", "consume.py")))


def test_the_rule_adds_above_five_and_takes_away_below_a_fifth() -> None:
    planned = deployment("serve", AWS)
    spec = made(planned, "ScaledObject")["spec"]
    formula = spec["advanced"]["scalingModifiers"]["formula"]
    assert planned.scaling is not None
    assert planned.scaling.concurrency is not None
    assert planned.scaling.busy is not None
    fifth, busy = 0.2 * planned.scaling.concurrency, planned.scaling.busy
    assert evaluate(formula, hours=2, waiting=6, load=4 * fifth * 1.5, copies=4) > 4
    assert evaluate(formula, hours=2, waiting=5, load=4 * fifth * 1.5, copies=4) == 4
    assert evaluate(formula, hours=2, waiting=0, load=6 * fifth * 0.9, copies=6) < 6
    assert evaluate(formula, hours=2, waiting=0, load=6 * fifth * 1.1, copies=6) == 6
    assert evaluate(formula, hours=2, waiting=0, load=5 * busy, copies=4) == 5, "before anything waits"
    assert evaluate(formula, hours=2, waiting=6, load=0, copies=4) > 4, "who waits goes first"
    assert evaluate(formula, hours=2, waiting=0, load=0, copies=2) == 2, "in its hours, never fewer than the least"
    assert evaluate(formula, hours=0, waiting=9, load=500, copies=4) == 0
    down = spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]["scaleDown"]
    assert down["stabilizationWindowSeconds"] == 600


def test_copies_are_those_that_are_wanted_and_not_pods_that_there_are() -> None:
    triggers = made(deployment("serve", AWS), "ScaledObject")["spec"]["triggers"]
    assert all(one["type"] != "kubernetes-workload" for one in triggers)
    [copies] = [one["metadata"]["query"] for one in triggers if one["name"] == "copies"]
    assert 'kube_horizontalpodautoscaler_status_desired_replicas{namespace="chat-api"' in copies


def test_a_service_with_hours_is_off_outside_them() -> None:
    planned = deployment("serve", AWS)
    spec = made(planned, "ScaledObject")["spec"]
    [cron] = [one["metadata"] for one in spec["triggers"] if one["type"] == "cron"]
    assert (cron["start"], cron["end"], cron["timezone"]) == (planned.starts, planned.stops, "Europe/Berlin")
    assert spec["minReplicaCount"] == 0
    always = made(replace(planned, starts="", stops=""), "ScaledObject")["spec"]
    assert always["minReplicaCount"] == planned.scaling.minimum if planned.scaling else False
    assert all(one["type"] != "cron" for one in always["triggers"])


def test_a_run_that_the_clock_starts_ends_after_its_time() -> None:
    spec = made(deployment("transcode", AWS), "ScaledObject")["spec"]
    [cron] = [one["metadata"] for one in spec["triggers"] if one["type"] == "cron"]
    assert (cron["start"], cron["end"]) == ("30 13 * * sat,sun", "30 18 * * sat,sun")


def test_every_name_in_the_formula_is_a_trigger() -> None:
    spec = made(deployment("serve", AWS), "ScaledObject")["spec"]
    names = {one["name"] for one in spec["triggers"]}
    assert names == {"waiting", "load", "copies", "hours"}


def test_the_queue_and_the_load_are_those_of_the_engine() -> None:
    planned = deployment("serve", AWS)
    assert planned.scaling is not None
    queries = {
        one["name"]: one["metadata"]["query"]
        for one in made(planned, "ScaledObject")["spec"]["triggers"]
        if one["type"] == "prometheus"
    }
    assert 'vllm:num_requests_waiting{namespace="chat-api"}' in queries["waiting"]
    assert "vllm:num_requests_running" in queries["load"]


def test_there_is_one_autoscaler_and_not_two() -> None:
    planned = deployment("serve", AWS)
    found = made(planned, "ScaledObject")
    assert found["metadata"]["annotations"]["scaledobject.keda.sh/transfer-hpa-ownership"] == "true"
    assert found["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["name"] == planned.name


def test_workers_come_with_the_queue_up_to_the_plan() -> None:
    planned = consuming(deployment("batch", AWS))
    spec = made(planned, "ScaledJob")["spec"]
    assert spec["maxReplicaCount"] == pods(planned)
    assert spec["triggers"][0]["metadata"]["queueLength"] == "5"
    assert (spec["jobTargetRef"]["completions"], spec["jobTargetRef"]["parallelism"]) == (1, 1)


@pytest.mark.parametrize(
    ("limits", "kind"),
    [((AWS,), "aws-sqs-queue"), (("clouds=[gcp]",), "gcp-pubsub"), (("clouds=[azure]",), "azure-servicebus")],
)
def test_the_queue_is_that_of_the_cloud(limits: tuple[str, ...], kind: str) -> None:
    assert made(consuming(deployment("batch", *limits)), "ScaledJob")["spec"]["triggers"][0]["type"] == kind


def test_our_own_program_takes_nothing_from_a_queue_and_is_refused() -> None:
    planned = deployment("batch", AWS)
    assert not planned.software.is_custom
    with pytest.raises(CannotRender, match="acknowledge") as refused:
        keda.render(planned)
    assert "program.command with a consumer of the queue" in str(refused.value.remedy)
    assert "kueue" in str(refused.value.remedy)


def test_a_worker_has_no_number_and_finds_its_volumes() -> None:
    planned = consuming(deployment("batch", AWS))
    job = made(planned, "ScaledJob")["spec"]["jobTargetRef"]
    assert "completionMode" not in job
    assert "JOB_COMPLETION_INDEX" not in keda.render(planned)[0].text
    pod = job["template"]["spec"]
    assert pod["containers"][0]["command"] == ["python", "consume.py"]
    assert pod["restartPolicy"] == "Never"
    wanted = {one["persistentVolumeClaim"]["claimName"] for one in pod["volumes"] if "persistentVolumeClaim" in one}
    every = [one for file in keda.render(planned) for one in yaml.safe_load_all(file.text)]
    assert wanted == {one["metadata"]["name"] for one in every if one["kind"] == "PersistentVolumeClaim"}


def test_what_its_hours_begin_with_comes_at_once() -> None:
    planned = deployment("serve", AWS)
    assert planned.scaling is not None
    many = replace(planned, scaling=replace(planned.scaling, minimum=8, usual=8, maximum=20))
    for what, wanted in ((many, 8), (replace(many, starts="", stops=""), 1)):
        behavior = made(what, "ScaledObject")["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
        [pods_a_minute] = [one for one in behavior["scaleUp"]["policies"] if one["type"] == "Pods"]
        assert (pods_a_minute["value"], pods_a_minute["periodSeconds"]) == (wanted, 60)


def test_prometheus_is_told_of_the_pods_that_the_rule_asks_about() -> None:
    planned = deployment("serve", AWS)
    monitor = made(planned, "PodMonitor")
    assert monitor["apiVersion"] == "monitoring.coreos.com/v1"
    assert monitor["spec"]["selector"]["matchLabels"] == {"app.kubernetes.io/name": planned.name}
    [endpoint] = monitor["spec"]["podMetricsEndpoints"]
    assert (endpoint["port"], endpoint["path"]) == ("http", "/metrics")
    triton = replace(planned, software=replace(planned.software, engine="triton"))
    [endpoint] = made(triton, "PodMonitor")["spec"]["podMetricsEndpoints"]
    assert endpoint["portNumber"] == 8002
    assert made(triton, "NetworkPolicy")["spec"]["ingress"][0]["ports"][0]["port"] == 8002


def test_who_applies_it_is_told_what_to_leave_out() -> None:
    text = keda.render(deployment("serve", AWS))[0].text
    assert "the HorizontalPodAutoscaler (KEDA makes its own)" in text
    assert "chat-api-open" in text, "the clocks of --to kubernetes would fight the hours here"


@pytest.mark.parametrize(
    ("case", "remedy"),
    [(("train", AWS), "kueue"), (("finetune", AWS), "CronJob"), (("interactive",), "jupyterhub"), (("pipeline",), "--stage")],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_what_it_cannot_express_it_hands_to_who_can(case: tuple[str, ...], remedy: str) -> None:
    with pytest.raises(CannotRender) as refused:
        keda.render(deployment(*case))
    assert remedy in str(refused.value.remedy)
