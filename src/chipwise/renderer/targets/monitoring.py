"""Monitoring: what Prometheus reads of a deployment, alerts from its goals and its plan, and a dashboard that shows both."""

from __future__ import annotations

from chipwise.renderer.cluster import monitors
from chipwise.renderer.cluster.accelerators import resource_of
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.launch.health import listens
from chipwise.renderer.monitoring import alerts, dashboard, exporters, measures
from chipwise.renderer.refusals import one_stage
from chipwise.renderer.yaml_text import Yaml, document

FITS = "jobs and services on a cluster: monitors, alerts from goals and plan, a dashboard with predicted lines"
EXPRESSES = frozenset({"layers", "streams", "groups", "no run"})  # it watches what other targets wrote
WRITES = ("rules.yaml", "dashboard.yaml")
MANIFESTS = True


def render(deployment: Deployment) -> list[File]:
    match deployment.form:
        case Form.PIPELINE:
            raise CannotRender("Each stage has goals of its own.", remedy=f"Take {one_stage(deployment)}.")
        case Form.DEVICES:
            raise CannotRender(
                f"{deployment.node.chip} is an edge device; Prometheus of a cluster does not reach it.",
                remedy="Take --to compose, and an exporter beside it.",
            )
    resource_of(deployment.node)  # raises for what Kubernetes cannot hand out
    files = []
    install = exporters.install(deployment)
    if install:
        files.append(File("exporter.yaml", document(exporters.values(deployment), title=heading(deployment, install))))
    read: list[Yaml] = []
    if deployment.form is Form.SERVICE and listens(deployment):
        read += monitors.engine(deployment)
    if deployment.node.kind == "neuron":
        read.append(exporters.neuron_monitor())
    if read:
        about = "What Prometheus reads. The same as monitoring.yaml of --to keda: apply one of them."
        files.append(File("monitors.yaml", document(*read, title=heading(deployment, about))))
    rules = alerts.prometheus_rule(deployment)
    files.append(File("rules.yaml", document(rules, title=heading(deployment, "\n".join(_about(deployment))))))
    about_lines = "Measured lines, and dashed what the plan expects and the workload wants."
    files.append(File("dashboard.yaml", document(dashboard.config_map(deployment), title=heading(deployment, about_lines))))
    return files


def _about(deployment: Deployment) -> list[str]:
    """What the alerts need, and what they cannot see."""
    lines = ["Alerts from the goals and the plan. Needs the Prometheus operator and kube-state-metrics."]
    engine = measures.engine_of(deployment)
    unseen = [goal for goal in deployment.goals if measures.time_query(deployment, goal) is None]
    if deployment.form is Form.SERVICE and unseen:
        program = deployment.software.engine or "a program of your own"
        lines.append(f"No alert for {', '.join(unseen)}: we know no histogram of it that {program} publishes.")
    if engine is not None and deployment.software.engine == "sglang" and "--enable-metrics" not in deployment.software.command:
        lines.append("SGLang publishes nothing without --enable-metrics: add it to its command.")
    if deployment.node.accelerated and measures.chips_of(deployment) is None:
        lines.append(f"No alert for idle or faulty chips: we know no exporter for {deployment.node.chip} to read here.")
    return lines
