"""Alerts ask for names that engines and exporters publish, with the goals and figures of the plan; the dashboard shows both."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import time
from typing import Any

import pytest
import yaml

from chipwise.adapters.probes import nvidia
from chipwise.observe.exposition import exposed
from chipwise.observe.sample import Recording
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.launch.timing import progress_seconds
from chipwise.renderer.open_hours import OpenHours, Weekly
from chipwise.renderer.targets import argo_rollouts, keda, kserve, kubernetes, monitoring
from fixed_deployments import CASES
from nvml_stand_in import Nvml

SERVE, TRAIN, NEURON = CASES["serve"], CASES["train"], CASES["neuron"]
# Histograms, gauges and counters of vllm/v1/metrics/loggers.py in each of vLLM 0.11.0, 0.16.0 and 0.32.0.
VLLM = {
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "vllm:kv_cache_usage_perc",
    "vllm:generation_tokens_total",
    "vllm:time_to_first_token_seconds_bucket",
    "vllm:request_time_per_output_token_seconds_bucket",
    "vllm:e2e_request_latency_seconds_bucket",
}


def made(planned: Deployment, path: str) -> list[dict[str, Any]]:
    return [one for file in monitoring.render(planned) if file.path == path for one in yaml.safe_load_all(file.text)]


def rules(planned: Deployment) -> dict[str, dict[str, Any]]:
    [rule] = made(planned, "rules.yaml")
    return {one["alert"]: one for group in rule["spec"]["groups"] for one in group["rules"]}


def board(planned: Deployment) -> dict[str, Any]:
    [held] = made(planned, "dashboard.yaml")
    assert held["metadata"]["labels"]["grafana_dashboard"] == "1"
    [text] = held["data"].values()
    return dict(json.loads(text))


def queries(planned: Deployment) -> list[str]:
    shown = [target["expr"] for panel in board(planned)["panels"] for target in panel["targets"]]
    return [one["expr"] for one in rules(planned).values()] + shown


def on(planned: Deployment, **changed: Any) -> Deployment:
    return replace(planned, node=replace(planned.node, **changed))


def test_every_goal_has_an_alert_at_its_own_percentile_and_seconds() -> None:
    alerts = rules(SERVE)
    assert SERVE.goals == {"ttft p95": 1.0, "tpot p95": 0.07, "latency p99": 17.8}
    first = alerts["FirstTokenLateP95"]["expr"]
    assert first.startswith("histogram_quantile(0.95, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket{")
    assert first.endswith(" > 1")
    assert alerts["TokensSlowP95"]["expr"].endswith(" > 0.07")
    assert alerts["AnswersLateP99"]["expr"].startswith("histogram_quantile(0.99, ")
    assert alerts["AnswersLateP99"]["expr"].endswith(" > 17.8")


def test_only_names_that_vllm_publishes_are_asked_for() -> None:
    asked = {name for query in queries(SERVE) for name in re.findall(r"vllm:\w+", query)}
    assert asked == VLLM


@pytest.mark.parametrize("case", sorted(set(CASES) - {"pipeline", "device"}))
def test_a_query_asks_for_its_own_namespace_alone_and_its_brackets_close(case: str) -> None:
    planned = CASES[case]
    for query in queries(planned):
        assert query.count("(") == query.count(")")
        assert query.count("{") == query.count("}")
        assert query.startswith("vector(") or f'namespace="{planned.name}"' in query, query


def test_nobody_is_called_for_a_replica_that_is_on_its_way() -> None:
    alert = rules(SERVE)["ReplicasMissing"]
    assert int(alert["for"].removesuffix("m")) * 60 >= progress_seconds(SERVE)
    assert "< 2 and" in alert["expr"], "the plan's least"
    assert alert["expr"].endswith("> 0"), "outside its hours none is wanted"


@pytest.mark.parametrize("target", [kubernetes, argo_rollouts, kserve])
def test_replicas_are_counted_whatever_keeps_them(target: Any) -> None:
    """A Deployment, a Rollout and KServe's Deployment (NAME-predictor) each name their ReplicaSets after themselves."""
    documents = [one for file in target.render(SERVE) for one in yaml.safe_load_all(file.text)]
    kinds = {"Deployment", "Rollout", "InferenceService"}
    [holder] = [one for one in documents if one["kind"] in kinds and one["metadata"].get("namespace") != "kube-system"]
    name = holder["metadata"]["name"] + ("-predictor" if holder["kind"] == "InferenceService" else "")
    for alert in ("ReplicasMissing", "MetricsMissing"):
        patterns = re.findall(r'replicaset=~"([^"]+)"', rules(SERVE)[alert]["expr"])
        assert patterns
        for pattern in patterns:
            assert re.fullmatch(pattern, f"{name}-6d4f9b7c58")
            assert not re.fullmatch(pattern, f"{name}-gateway-6d4f9b7c58"), "one of another's"


def test_groups_are_counted_by_their_leaders() -> None:
    query = rules(CASES["wide"])["ReplicasMissing"]["expr"]
    assert 'kube_statefulset_status_replicas_ready{namespace="large-chat",statefulset="large-chat"} < 2' in query


def test_silence_of_the_engine_is_an_alert() -> None:
    assert rules(SERVE)["MetricsMissing"]["expr"].startswith("absent(vllm:num_requests_running{")


def test_a_job_is_late_after_the_upper_end_of_its_prediction() -> None:
    alerts = rules(TRAIN)
    assert f"> {TRAIN.predicted.high_s:.0f})" in alerts["JobLate"]["expr"]
    assert {"JobFailed", "PodsWait", "ChipsIdle", "ChipFault", "CostAbovePlan"} <= set(alerts)
    assert not {"RequestsWait", "ReplicasMissing", "MetricsMissing"} & set(alerts)


def test_a_job_that_pauses_by_plan_is_not_late_for_it() -> None:
    """Samples of a run count, and the window holds as many weeks as the run takes in its hours."""
    query = rules(TRAIN)["JobLate"]["expr"]
    assert "start_time" not in query, "wall time"
    [(seen, step, times)] = re.findall(r"\)\[(\d+)s:(\d+)s\]\) \* (\d+) >", query)
    assert step == times
    assert int(seen) > TRAIN.predicted.high_s
    night = OpenHours(Weekly(time(20), (1, 2, 3, 4, 5)), Weekly(time(6), (2, 3, 4, 5, 6)), "Europe/Berlin")
    nights = replace(TRAIN, hours=night)
    [longer] = re.findall(r"\)\[(\d+)s:", rules(nights)["JobLate"]["expr"])
    assert int(longer) > int(seen) * 168 / 50, "50 of the week's 168 hours"


def test_a_job_that_was_made_again_does_not_inherit_the_time_of_the_one_before() -> None:
    assert "== bool max by (namespace, job_name) (kube_job_created{" in rules(TRAIN)["JobLate"]["expr"]
    assert "@ end())" in rules(TRAIN)["JobLate"]["expr"]


def test_faults_of_programs_call_nobody() -> None:
    query = rules(SERVE)["ChipFault"]["expr"]
    assert "DCGM_FI_DEV_XID_ERRORS" in query
    assert query.endswith("!= 0 != 13 != 31 != 43 != 45")


def test_each_vendor_is_asked_by_the_names_of_its_exporter() -> None:
    amd = on(SERVE, vendor="AMD", chip="MI300X", machine="Standard_ND96isr_MI300X_v5", provider="azure")
    assert "gpu_gfx_activity" in rules(amd)["ChipsIdle"]["expr"]
    assert made(amd, "exporter.yaml")[0]["serviceMonitor"]["honorLabels"] is False
    assert "neuroncore_utilization_ratio and on (node) kube_pod_info" in rules(NEURON)["ChipsIdle"]["expr"]
    [monitor] = made(NEURON, "monitors.yaml")
    assert monitor["spec"]["podMetricsEndpoints"][0]["relabelings"][0]["targetLabel"] == "node"
    assert "ChipsIdle" not in rules(CASES["tpu"])
    sliced = rules(on(SERVE, profile="3g.20gb"))["ChipsIdle"]["expr"]
    assert "DCGM_FI_PROF_GR_ENGINE_ACTIVE" in sliced, "a slice has no DCGM_FI_DEV_GPU_UTIL"


def test_the_exporter_reaches_the_machines_of_the_plan() -> None:
    [values] = made(TRAIN, "exporter.yaml")
    [term] = values["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert "p5.48xlarge" in term["matchExpressions"][0]["values"]
    assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in values["tolerations"]


def test_money_is_machines_times_the_price_of_one() -> None:
    query = rules(SERVE)["CostAbovePlan"]["expr"]
    price, limit = re.findall(r"\* ([\d.]+) > ([\d.]+)$", query)[0]
    assert float(price) * 2 <= float(limit) < float(price) * 3, "the planned two call nobody, a third does"


def test_the_dashboard_has_predicted_lines_beside_measured_ones() -> None:
    panels = {one["title"]: {line["legendFormat"]: line["expr"] for line in one["targets"]} for one in board(SERVE)["panels"]}
    assert panels["ttft p95"]["predicted"] == "vector(0.5)"
    assert panels["ttft p95"]["goal"] == "vector(1)"
    assert "vllm:time_to_first_token_seconds_bucket" in panels["ttft p95"]["measured"]
    assert panels["dollars an hour"]["planned"] == "vector(3.92)"
    assert panels["replicas"]["planned at most"] == "vector(12)"


def test_where_no_exporter_of_the_vendor_is_the_dashboard_reads_what_watch_serves() -> None:
    published = exposed(nvidia.connect(nvml=Nvml()).read(0.0), Recording("", labels={"job": "train-7f3a"}))
    queries = " ".join(line["expr"] for panel in board(TRAIN)["panels"] for line in panel["targets"])
    read = set(re.findall(r"chipwise_\w+", queries))
    assert len(read) == 3
    assert all(f"{name}{{" in published for name in read)
    [pattern] = set(re.findall(r'exported_job=~"([^"]*)"', queries))
    assert re.fullmatch(pattern, f"{TRAIN.name}-7f3a")
    assert "DCGM_FI_DEV_GPU_UTIL" in queries


def test_panels_do_not_cover_each_other() -> None:
    places = [(one["gridPos"]["x"], one["gridPos"]["y"]) for one in board(SERVE)["panels"]]
    assert len(set(places)) == len(places)
    assert len(board(SERVE)["uid"]) <= 40


def test_goals_that_nothing_publishes_are_named() -> None:
    tgi = replace(SERVE, software=replace(SERVE.software, engine="tgi"))
    text = next(file.text for file in monitoring.render(tgi) if file.path == "rules.yaml")
    assert "No alert for ttft p95" in text
    assert "FirstTokenLateP95" not in text
    sglang = replace(SERVE, software=replace(SERVE.software, engine="sglang"))
    assert any("--enable-metrics" in file.text for file in monitoring.render(sglang))


def test_tei_is_asked_by_its_own_names() -> None:
    tei = replace(SERVE, software=replace(SERVE.software, engine="tei"), goals={"latency p99": 0.1})
    alerts = rules(tei)
    assert alerts["AnswersLateP99"]["expr"].startswith("histogram_quantile(0.99, sum by (le) (rate(te_request_duration_bucket{")
    assert alerts["RequestsWait"]["expr"].startswith("sum(te_queue_size{")
    assert alerts["MetricsMissing"]["expr"].startswith('absent(up{namespace="chat-api"} == 1)'), "its metrics come by requests"
    assert not any("sum({" in query or "rate({" in query for query in queries(tei)), "a name that is not there"


def test_the_monitor_is_that_of_keda() -> None:
    scaled = [one for file in keda.render(SERVE) if file.path == "monitoring.yaml" for one in yaml.safe_load_all(file.text)]
    assert made(SERVE, "monitors.yaml") == scaled


@pytest.mark.parametrize("case", ["pipeline", "device"])
def test_what_is_not_watched_is_refused_with_a_remedy(case: str) -> None:
    with pytest.raises(CannotRender) as refused:
        monitoring.render(CASES[case])
    assert refused.value.remedy
