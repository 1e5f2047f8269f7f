"""A deployment on a service that is paid per use: what the plan reckoned for it heads the files, in place of the machine's
price, with what the plan itself would take."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, sqrt

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
    for one in deployment.services:
        mine = (one.kind, one.provider, one.name) == ("serverless", deployment.node.provider, name)
        fits = chip in one.chips if chip is not None else not one.chips
        if mine and fits and all(word in one.hardware for word in words):
            return replace(deployment, on=one)
    blank = Service("serverless", deployment.node.provider, name, hardware or chip or "", None)
    return replace(deployment, on=blank)


def most_instances(deployment: Deployment, otherwise: int) -> int:
    """Of what the plan has up on average, and three deviations of chance above it; never fewer than the machines would be."""
    scaling, on = deployment.scaling, deployment.on
    least = scaling.most if scaling is not None else otherwise
    if on is None or not on.instances:
        return least
    return max(least, ceil(on.instances + 3 * sqrt(on.instances)) + 1)


def told(deployment: Deployment, on: Service) -> list[str]:
    """What the service is expected to cost and do, and whether the plan takes it."""
    if on.usd is None:
        first = "Expected: paid for the seconds in which it works; the plan has no price for it."
    else:
        first = f"Expected: {usd(on.usd)} a month for the plan's traffic, paid per use{_starts(on)}."
    return [first, _taken(deployment, on)]


def _starts(on: Service) -> str:
    if not on.cold_share:
        return ""
    kept = f", with {on.warm} kept warm" if on.warm else ""
    wait = ""
    if on.cold_start_s is not None:
        low, middle, high = on.cold_start_s
        wait = f" of about {middle:.0f} s ({low:.0f} to {high:.0f})"
    share = f"{on.cold_share:.0%}" if on.cold_share >= 0.01 else "fewer than 1%"
    return f"{kept}; {share} of the requests wait for a start{wait}"


def _taken(deployment: Deployment, on: Service) -> str:
    told, node = deployment.predicted, deployment.node
    many = f"{deployment.machines} x {node.machine} ({node.provider} {node.region}, {deployment.purchase})"
    own = told.usd if told.followed_usd is None else told.followed_usd
    machines = deployment.best or f"{many} for {usd(own)} a {told.per}"
    if deployment.service is None:
        cost = f"; this service costs {usd(on.usd)} a month at the same traffic" if on.usd is not None else ""
        return f"The plan takes {machines}{cost}."
    if deployment.service == on:
        return f"It is what the plan takes; its best machines would be {machines}."
    other = deployment.service
    paid = "by the token, with nothing to deploy" if other.kind == "per token" else "per use"
    return f"The plan takes {other.title}, paid {paid}: {usd(other.usd or 0.0)} a month; its best machines would be {machines}."


def missed(on: Service) -> list[str]:
    return [f"It does not keep what the workload asks for: {'; '.join(on.refused)}."] if on.refused else []
