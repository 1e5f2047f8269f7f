"""A dashboard of Grafana: what is measured, and beside it what the plan expects and what the workload wants.

Its JSON is in a ConfigMap with the label by which the sidecar of Grafana's chart finds dashboards.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from chipwise.renderer.cluster.pod import Object, labels
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.monitoring import measures
from chipwise.renderer.monitoring.exporters import SPACE
from chipwise.renderer.quoting import dns_name
from chipwise.renderer.yaml_text import Noted

SCHEMA = 39  # of Grafana 10.4 and newer, which bring older ones up to date by themselves
WIDTH, HEIGHT = 12, 8  # of a panel; a row is 24 wide
SOURCE = {"type": "prometheus", "uid": "${source}"}


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    unit: str
    lines: tuple[tuple[str, str], ...]  # what it is called, and its query


def config_map(deployment: Deployment) -> Object:
    name = f"{dns_name(deployment.name, 50)}-dashboard"
    label = Noted("1", "By this label the sidecar of Grafana's chart finds it; SPACE is its namespace.".replace("SPACE", SPACE))
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": SPACE, "labels": labels(deployment) | {"grafana_dashboard": label}},
        "data": {f"{name}.json": json.dumps(dashboard(deployment), indent=1) + "\n"},
    }


def dashboard(deployment: Deployment) -> Object:
    source: Object = {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    return {
        "uid": dns_name(deployment.name, 40),
        "title": deployment.name,
        "tags": ["chipwise", deployment.kind],
        "schemaVersion": SCHEMA,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [source]},
        "panels": [_drawn(panel, number) for number, panel in enumerate(panels(deployment))],
    }


def panels(deployment: Deployment) -> list[Panel]:
    return [*_times(deployment), *_load(deployment), *_copies(deployment), *_chips(deployment), *_money(deployment)]


def _times(deployment: Deployment) -> list[Panel]:
    drawn: list[Panel] = []
    for goal in dict.fromkeys((*deployment.goals, *deployment.predicted.latency)):
        query = measures.time_query(deployment, goal)
        if query is None:
            continue
        lines = [("measured", query)]
        if goal in deployment.predicted.latency:
            lines.append(("predicted", constant(deployment.predicted.latency[goal])))
        if goal in deployment.goals:
            lines.append(("goal", constant(deployment.goals[goal])))
        drawn.append(Panel(goal, "s", tuple(lines)))
    return drawn


def _load(deployment: Deployment) -> list[Panel]:
    engine, scaling = measures.engine_of(deployment), deployment.scaling
    if engine is None or scaling is None:
        return []
    running = [("in work", measures.total(deployment, engine.running))] if engine.running else []
    running.append(("waiting", measures.total(deployment, engine.waiting)))
    if engine.running and scaling.concurrency is not None and scaling.token_s is None:
        running.append(("predicted at the planned peak", constant(scaling.concurrency * scaling.usual)))
    drawn = [Panel("requests", "short", tuple(running))]
    if engine.tokens:
        rate = f"sum(rate({engine.tokens}{{{measures.namespace_label(deployment)}}}[{measures.WINDOW}]))"
        drawn.append(Panel("tokens a second", "short", (("measured", rate),)))
    if engine.cache:
        cache = f"max({engine.cache}{{{measures.namespace_label(deployment)}}})"
        drawn.append(Panel("KV cache of the fullest replica", "percentunit", (("measured", cache),)))
    return drawn


def _copies(deployment: Deployment) -> list[Panel]:
    scaling = deployment.scaling
    if deployment.form is not Form.SERVICE or scaling is None:
        return []
    answering, wanted = measures.replicas(deployment)
    lines = [("answering", answering), ("wanted", wanted), ("planned at least", constant(scaling.minimum))]
    lines += [("planned at its peak", constant(scaling.usual)), ("planned at most", constant(scaling.maximum))]
    return [Panel("replicas", "short", tuple(lines))]


def _chips(deployment: Deployment) -> list[Panel]:
    chips = measures.chips_of(deployment)
    if chips is None:
        return []

    def measured(query: str, joined: str, metric: str) -> str:
        return f"{query} or {measures.own_query(deployment, joined, metric)}"

    busy = measured(chips.busy, "avg", "busy_ratio")
    drawn = [Panel("chips at work", "percentunit", (("measured", busy),))]
    if chips.memory:
        memory = measured(chips.memory, "sum", "memory_used_bytes")
        drawn.append(Panel("memory of chips", "bytes", (("measured", memory),)))
    if chips.watts:
        lines = [("chips, measured", measured(chips.watts, "sum", "power_watts"))]
        if deployment.predicted.watts:
            lines.append(("whole machines, predicted", constant(deployment.predicted.watts)))
        drawn.append(Panel("power", "watt", tuple(lines)))
    return drawn


def _money(deployment: Deployment) -> list[Panel]:
    planned = deployment.predicted.usd_per_hour
    machines = measures.machines_query(deployment)
    lines = [("machines held", machines), ("planned", constant(deployment.machines))]
    paid = [("machines held", f"{machines} * {measures.machine_usd(deployment):.4g}"), ("planned", constant(planned))]
    return [Panel("machines", "short", tuple(lines)), Panel("dollars an hour", "currencyUSD", tuple(paid))]


def constant(value: float) -> str:
    return f"vector({value:.6g})"


def _drawn(panel: Panel, number: int) -> Object:
    dashes = {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [10, 10]}}
    expected = [legend for legend, query in panel.lines if query.startswith("vector(")]
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": SOURCE,
        "gridPos": {"x": number % 2 * WIDTH, "y": number // 2 * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "min": 0},
            "overrides": [{"matcher": {"id": "byName", "options": one}, "properties": [dashes]} for one in expected],
        },
        "targets": [
            {"refId": chr(ord("A") + letter), "datasource": SOURCE, "expr": query, "legendFormat": legend}
            for letter, (legend, query) in enumerate(panel.lines)
        ],
    }
