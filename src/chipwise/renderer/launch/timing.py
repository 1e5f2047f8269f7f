"""How long things take while a service changes: to answer what it began, to come up, to be replaced. Time-outs of rollouts,
probes and drains are made from these, so that none of them ends what is only slow."""

from __future__ import annotations

import math

from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.launch.health import MACHINE_S, start_seconds

FORGET_S = 15  # until the balancer sends a pod that ends no more requests
MARGIN = 1.25  # over the predicted time of the longest answer
SPARE_S = 15  # between the end of the last answer and the kill
STEADY_S = 10  # ready for so long before it counts
SHORTEST_S = 15.0  # of an answer, where nothing is predicted
DRAINS = (0, 18)  # the release of vLLM that learned --shutdown-timeout; before, it drops what it works on at once


def drain_seconds(longest_s: float | None) -> int:
    """For answers that were begun."""
    return math.ceil(MARGIN * max(longest_s or 0.0, SHORTEST_S))


def drains(engine: str, version: str) -> bool:
    """Whether the engine, told to end, first ends what it began. A program of the user's own is expected to."""
    if engine != "vllm":
        return True
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    return len(numbers) == 2 and numbers >= DRAINS


def before_stop_seconds(deployment: Deployment) -> int:
    """From the moment that no request comes any more until it is told to end."""
    software = deployment.software
    if drains(software.engine, software.version):
        return FORGET_S
    return FORGET_S + drain_seconds(deployment.predicted.longest_s)


def grace_seconds(deployment: Deployment) -> int:
    """From the decision to end a replica until it is killed."""
    return FORGET_S + drain_seconds(deployment.predicted.longest_s) + SPARE_S


def ready_seconds(deployment: Deployment) -> int:
    """From the order of a machine to the first answer."""
    return MACHINE_S + start_seconds(deployment)


def progress_seconds(deployment: Deployment) -> int:
    """The longest time in which a rollout of a service shows nothing: one replica ends, and the next comes up."""
    return grace_seconds(deployment) + ready_seconds(deployment) + STEADY_S


def rollout_seconds(deployment: Deployment) -> int:
    """Of a whole rollout, replica by replica, at the most that there ever are."""
    assert deployment.form is Form.SERVICE
    copies = deployment.scaling.maximum if deployment.scaling is not None else 1
    return copies * progress_seconds(deployment)
