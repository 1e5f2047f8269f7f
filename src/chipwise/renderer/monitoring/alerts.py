"""Alerts from what was wanted and planned: answers later than the goals, requests that wait, replicas and machines that are
missing or idle, faults of chips, and money. Each waits as long as the cluster itself takes to set it right (a machine comes,
weights load), so that nobody is called for what is on its way."""

from __future__ import annotations

import math

from chipwise.renderer.cluster.pod import Object, meta
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.launch.timing import progress_seconds, ready_seconds
from chipwise.renderer.monitoring import measures
from chipwise.renderer.yaml_text import Noted, Yaml

RULES = "monitoring.coreos.com/v1"
CHOSEN = "Where Prometheus takes monitors and rules by label (kube-prometheus-stack: release), add that label here."
QUEUED = 5  # requests that wait: one more replica is on its way above it, as in --to keda
IDLE = 0.05  # of the time: below it nobody works with the chips
SLOW_S, WAIT_S = 600, 1800  # goals missed; pods without a machine
IDLE_S = {Form.JOB: 900, Form.SERVICE: 7200}
LOOK_BACK = 1.25  # of the predicted time, in which the run of a job is looked at
SAMPLES = 500  # of the predicted time, by which the time of a run is counted
WEEK_S = 7 * 86400
PAID_S = 3600  # more machines than planned for so long: a rollout has one more for a while
_WORDS = {"ttft": "First tokens", "tpot": "Tokens", "latency": "Answers"}
_NAMES = {"ttft": "FirstTokenLate", "tpot": "TokensSlow", "latency": "AnswersLate"}


def prometheus_rule(deployment: Deployment) -> Object:
    rules = [*_service(deployment), *_job(deployment), *_hardware(deployment), *_money(deployment)]
    return {
        "apiVersion": RULES,
        "kind": "PrometheusRule",
        "metadata": Noted(meta(deployment), CHOSEN),
        "spec": {"groups": [{"name": deployment.name, "rules": rules}]},
    }


def _alert(name: str, query: str, wait_s: float, severity: str, sentence: str) -> Object:
    return {
        "alert": name,
        "expr": query,
        "for": f"{math.ceil(wait_s / 60)}m",
        "labels": {"severity": severity},
        "annotations": {"summary": sentence},
    }


def _service(deployment: Deployment) -> list[Yaml]:
    if deployment.form is not Form.SERVICE or deployment.scaling is None:
        return []
    name, minimum = deployment.name, deployment.scaling.minimum
    answering, wanted = measures.replicas(deployment)
    fewer = _alert(
        "ReplicasMissing",
        f"{answering} < {minimum} and on (namespace) {wanted} > 0",
        progress_seconds(deployment),
        "critical",
        f"{name}: {{{{ $value }}}} replicas answer; the plan has at least {minimum}.",
    )
    reason = "As long as one takes to end and the next to come up. Outside its hours none is wanted, and none is missed."
    return [*_goals(deployment), *_queue(deployment, wanted), Noted(fewer, reason)]


def _goals(deployment: Deployment) -> list[Yaml]:
    engine = measures.engine_of(deployment)
    rules: list[Yaml] = []
    for goal, seconds in deployment.goals.items():
        query, kind = measures.time_query(deployment, goal), measures.percentile(goal)[0]
        if query is None or engine is None:
            continue
        planned = deployment.predicted.latency.get(goal)
        expected = f"; the plan expects {planned:g} s" if planned is not None else ""
        sentence = f"{deployment.name}: {goal} is {{{{ $value | humanizeDuration }}}}, above its goal of {seconds:g} s."
        rank = goal.rpartition("p")[2].replace(".", "_")
        alert = _alert(f"{_NAMES[kind]}P{rank}", f"{query} > {seconds:g}", SLOW_S, "critical", sentence)
        reason = f"{_WORDS[kind]} by the goal of the workload{expected}. The name is from {engine.source}."
        rules.append(Noted(alert, f"{reason}\nBetween bounds of the engine's buckets the percentile is interpolated."))
    return rules


def _queue(deployment: Deployment, wanted: str) -> list[Yaml]:
    engine = measures.engine_of(deployment)
    if engine is None:
        return []
    name = deployment.name
    waits = _alert(
        "RequestsWait",
        f"{measures.total(deployment, engine.waiting)} > {QUEUED}",
        ready_seconds(deployment),
        "warning",
        f"{name}: {{{{ $value }}}} requests wait, longer than a replica takes to come.",
    )
    unread = _alert(
        "MetricsMissing",
        f"{measures.unread(deployment, engine)} and on () ({wanted} > 0)",
        progress_seconds(deployment),
        "warning",
        f"{name}: nothing reads the engine's metrics, so no other alert about its answers can fire.",
    )
    return [
        Noted(waits, "After the time in which a new replica comes: until then the autoscaler is at work."),
        Noted(unread, "Silence is no proof: without metrics the alerts above say nothing."),
    ]


def _job(deployment: Deployment) -> list[Yaml]:
    if deployment.form is not Form.JOB:
        return []
    inside, name, high = measures.namespace_label(deployment), deployment.name, deployment.predicted.high_s
    failed = _alert(
        "JobFailed",
        f'kube_job_failed{{{inside},condition="true"}} == 1',
        SLOW_S,
        "critical",
        f"{name}: job {{{{ $labels.job_name }}}} failed for good.",
    )
    late = _alert(
        "JobLate",
        f"({_run_s(deployment)} > {high:.0f}) and on (namespace, job_name) kube_job_status_active{{{inside}}} > 0",
        SLOW_S,
        "warning",
        f"{name}: has run for {{{{ $value | humanizeDuration }}}}, longer than the plan's upper bound.",
    )
    waits = _alert(
        "PodsWait",
        f'sum(kube_pod_status_phase{{{inside},phase="Pending"}}) > 0',
        WAIT_S,
        "warning",
        f"{name}: {{{{ $value }}}} pods have no machine.",
    )
    reason = (
        "The upper end of the predicted time. Only time in which the job has pods counts, over restarts, and not while it is\n"
        "paused or suspended. A Job that was deleted and made again begins at zero: so does each try of a JobSet, which makes\n"
        "its Jobs again. Prometheus must keep as much as the window holds."
    )
    return [failed, Noted(late, reason), waits]


def _run_s(deployment: Deployment) -> str:
    """Seconds in which a Job had pods, by samples of the one that is there now: its start time is reset by every pause."""
    inside, per_job = measures.namespace_label(deployment), "max by (namespace, job_name)"
    high = deployment.predicted.high_s
    step = max(math.ceil(high / SAMPLES / 60), 1) * 60
    active = f"{per_job} (kube_job_status_active{{{inside}}} > bool 0)"
    this_run = f"({per_job} (kube_job_created{{{inside}}}) == bool {per_job} (kube_job_created{{{inside}}} @ end()))"
    return f"sum_over_time(({active} * {this_run})[{_seen_s(deployment)}s:{step}s]) * {step}"


def _seen_s(deployment: Deployment) -> int:
    """How far back a run is looked at: longer than the predicted time, and longer still where it pauses outside its hours."""
    running = math.ceil(LOOK_BACK * deployment.predicted.high_s) + SLOW_S
    share = 1.0 if deployment.hours is None else deployment.hours.share
    return running if share >= 1 else math.ceil(running / share) + WEEK_S


def _hardware(deployment: Deployment) -> list[Yaml]:
    chips, name = measures.chips_of(deployment), deployment.name
    if chips is None:
        return []
    idle_s = IDLE_S.get(deployment.form, IDLE_S[Form.SERVICE])
    idle = _alert(
        "ChipsIdle", f"{chips.busy} < {IDLE}", idle_s, "warning", f"{name}: chips are held and paid for, and do nothing."
    )
    faults = _alert("ChipFault", chips.faults, 0, "critical", f"{name}: {chips.fault_words}. Drain and replace the machine.")
    rules: list[Yaml] = [idle, faults]
    if deployment.node.vendor == "NVIDIA":
        reason = "The last XID error of a chip. Those of programs are left out: bad memory access and their own stop."
        rules[1] = Noted(faults, reason)
    return rules


def _money(deployment: Deployment) -> list[Yaml]:
    planned = deployment.predicted.usd_per_hour
    if planned <= 0:
        return []
    query = f"{measures.machines_query(deployment)} * {measures.machine_usd(deployment):.4g} > {planned * 1.001:.4g}"
    alert = _alert(
        "CostAbovePlan",
        query,
        PAID_S,
        "warning",
        f"{deployment.name}: machines for {{{{ $value }}}} dollars an hour are held; the plan has {planned:.4g}.",
    )
    price = f"{deployment.node.machine} at the plan's {measures.machine_usd(deployment):.4g} dollars an hour"
    reason = f"Machines with pods of it, each {price}.\nIt is no bill: prices of the day and pods of others are not in it."
    return [Noted(alert, reason)]
