"""Deployments that fit a function: a small model, one machine, a few minutes."""

from __future__ import annotations

from dataclasses import replace

from chipwise.planner.values.split import UNSPLIT
from chipwise.renderer.deployment import Deployment, Form, Node
from chipwise.renderer.platforms import platforms
from chipwise.units import GIB
from deployments import session

PLACES = {
    "aws": Node("aws", "eu-north-1", "c8g.large", "Graviton4", "cpu", "AWS", 0, vcpus=2, memory_bytes=4 * GIB, arch="arm64"),
    "gcp": Node("gcp", "europe-west4", "g2-standard-4", "L4", "gpu", "NVIDIA", 1, 8.9, vcpus=4, memory_bytes=16 * GIB),
    "azure": Node("azure", "westus3", "Standard_NC4as_T4_v3", "T4", "gpu", "NVIDIA", 1, 7.5, vcpus=4, memory_bytes=28 * GIB),
}


def small(planned: Deployment, trigger: str | None = None, provider: str = "aws", seconds: float = 120.0) -> Deployment:
    """`planned`, on one small machine of the provider, with 0.5 GiB of weights, done within a few minutes."""
    node = PLACES[provider]
    model = replace(planned.model, weight_bytes=0.5 * GIB) if planned.model is not None else None
    return replace(
        planned,
        node=node,
        machines=1,
        alternatives=(),
        model=model,
        trigger=trigger,
        chips_each=node.chips,
        split=UNSPLIT,
        volumes=(),
        software=replace(planned.software, image="team/program:1", command=("python", "label.py"), is_custom=True, driver=""),
        predicted=replace(planned.predicted, seconds=seconds, low_s=seconds, high_s=seconds),
        scaling=planned.scaling if planned.form is Form.SERVICE else None,
        platforms=platforms(session().catalog.rows("runtimes"), node),
    )
