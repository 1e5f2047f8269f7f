"""A deployment on a service that is paid per use: what the plan reckoned for it heads the files, in place of the machine's
price, with what the plan itself would take."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, sqrt

from chipwise.catalog.region import readable
from chipwise.renderer.deployment import Deployment, Service
from chipwise.text import usd

# Targets that write a service for who calls it, by its name in the table of services.
WRITERS = {
    "Cloud Run GPU": "serverless",
    "Cloud Run": "serverless",
    "Container Apps serverless GPU": "serverless",
    "SageMaker Serverless Inference": "serverless",
    "SageMaker real-time or asynchronous endpoint": "sagemaker",
}


def writer(kind: str, name: str) -> str:
    """What to do for a service, in a sentence."""
    if kind == "per token":
        return "There is nothing to deploy for it."
    return f"--to {WRITERS[name]} writes such a service." if name in WRITERS else "No target writes it."


def sold_as(deployment: Deployment, name: str, hardware: str = "", *words: str) -> Deployment:
    """`name` as the table of services has it; `words`: what else its hardware must say. One that the plan did not reckon has
    no price."""
    chip = deployment.node.chip if deployment.node.accelerated else None
    for service in deployment.services:
        matches = (service.provider, service.name) == (deployment.node.provider, name)
        fits = chip in service.chips if chip is not None else not service.chips
        if matches and fits and all(word in service.hardware for word in words):
            return replace(deployment, host_service=service)
    blank = Service(kind="serverless", provider=deployment.node.provider, name=name, hardware=hardware or chip or "", usd=None)
    return replace(deployment, host_service=blank)


def most_instances(deployment: Deployment, otherwise: int) -> int:
    """Of what the plan has up on average, and three deviations of chance above it; never fewer than the machines would be."""
    scaling, service = deployment.scaling, deployment.host_service
    minimum = scaling.maximum if scaling is not None else otherwise
    if service is None or not service.instances:
        return minimum
    return max(minimum, ceil(service.instances + 3 * sqrt(service.instances)) + 1)


def expectations(deployment: Deployment, service: Service) -> list[str]:
    """What the service is expected to cost and do, and how that compares with the plan's machines."""
    if service.usd is None:
        first = "Expected: paid for the seconds in which it works; the plan has no price for it."
    else:
        first = f"Expected: {usd(service.usd)} a month for the plan's traffic, paid per use{_starts(service)}."
    return [first, _comparison(deployment, service)]


def _starts(service: Service) -> str:
    if not service.cold_share:
        return ""
    warm = f", with {service.warm} kept warm" if service.warm else ""
    wait = ""
    if service.cold_start_s is not None:
        low, middle, high = service.cold_start_s
        wait = f" of about {middle:.0f} s ({low:.0f} to {high:.0f})"
    share = f"{service.cold_share:.0%}" if service.cold_share >= 0.01 else "fewer than 1%"
    return f"{warm}; {share} of the requests wait for a start{wait}"


def _comparison(deployment: Deployment, service: Service) -> str:
    predicted, node = deployment.predicted, deployment.node
    described = f"{deployment.machines} x {node.machine} ({node.provider} {readable(node.region)}, {deployment.purchase})"
    own = predicted.usd if predicted.followed_usd is None else predicted.followed_usd
    machines = deployment.best or f"{described} for {usd(own)} a {predicted.per}"
    if deployment.service is None:
        cost = f"; this service costs {usd(service.usd)} a month at the same traffic" if service.usd is not None else ""
        return f"The plan takes {machines}{cost}."
    if deployment.service == service:
        return f"It is cheaper than the plan's machines, {machines}."
    chosen = deployment.service
    paid = "by the token, with nothing to deploy" if chosen.kind == "per token" else "per use"
    return f"Cheaper still is {chosen.title}, paid {paid}: {usd(chosen.usd or 0.0)} a month; the plan takes {machines}."


def missed(on: Service) -> list[str]:
    return [f"It does not keep what the workload asks for: {'; '.join(on.refused)}."] if on.refused else []
