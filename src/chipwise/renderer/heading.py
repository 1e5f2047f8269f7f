"""What stands at the top of every rendered file: what it is of, what the plan expects of it, and what to check."""

from __future__ import annotations

from textwrap import wrap

from chipwise.catalog.region import readable, region_phrase
from chipwise.renderer import sold
from chipwise.renderer.deployment import Deployment, Service
from chipwise.renderer.quoting import one_line
from chipwise.text import duration, spent, usd

WIDTH = 120  # of a note's lines
LONGEST_NOTE = 5  # lines


def heading(deployment: Deployment, about: str = "") -> str:
    """Lines without a comment sign. Prices and dates of the day are left out, so that files change only with the plan."""
    node, predicted = deployment.node, deployment.predicted
    multiple = f"{deployment.machines} x " if deployment.machines > 1 else ""
    bought = " + ".join(one.title for one in deployment.rented) or deployment.purchase
    place = f"{multiple}{node.machine} ({node.provider} {readable(node.region)}, {bought})"
    service = deployment.host_service
    if service is not None:
        place = f"{service.title} {region_phrase(node.region)}"
    lines = [f"{deployment.title}: {deployment.kind} on {place}. Written by chipwise from the plan."]
    if about:
        lines += about.splitlines()
    if service is not None:
        lines += [line for part in sold.expectations(deployment, service) for line in wrap(part, WIDTH)]
    elif predicted.per == "job":
        between = f"{duration(predicted.low_s)} to {duration(predicted.high_s)}"
        lines.append(
            f"Expected: {duration(predicted.seconds)} ({between}), {spent(predicted.usd)}, {predicted.kg:,.1f} kg CO2e."
        )
    elif deployment.written_usd is not None:
        planned_usd = predicted.usd if predicted.followed_usd is None else predicted.followed_usd
        lines.append(
            f"Expected: {usd(deployment.written_usd)} a month around the clock, as these files run it; {usd(planned_usd)} and"
            f" {predicted.kg:,.0f} kg CO2e in the plan's hours."
        )
    elif predicted.per == "month" and predicted.followed_usd is not None:
        lines.append(
            f"Expected: {usd(predicted.followed_usd)} a month with machines that follow the load; {usd(predicted.usd)} and"
            f" {predicted.kg:,.0f} kg CO2e if those for its peak ran through all its hours."
        )
    elif predicted.per == "month":
        lines.append(f"Expected: {usd(predicted.usd)} and {predicted.kg:,.0f} kg CO2e a month.")
    notes = [*service_instead(deployment), *deployment.notes]
    lines += [line for note in notes for line in wrap(f"Note: {note}", WIDTH)[:LONGEST_NOTE]]
    return "\n".join(one_line(line) for line in lines)


def service_instead(deployment: Deployment) -> list[str]:
    """What costs less than the machines of the plan: that is not to be missed."""
    service = deployment.service
    if deployment.host_service is not None:
        return sold.missed(deployment.host_service)
    if service is None:
        return []
    own, per = deployment.predicted.usd, deployment.predicted.per
    sentence = (
        f"Cheaper than these machines ({usd(own)} a {per}) is {service.title}, paid {_paid(service)}:"
        f" {usd(service.usd or 0.0)} a {per}."
    )
    return [f"{sentence} {sold.writer(service.kind, service.name)}"]


def _paid(service: Service) -> str:
    return "by the token" if service.kind == "per token" else "per use"
