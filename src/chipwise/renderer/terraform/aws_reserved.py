"""Capacity of AWS that is held already: what a launch template says so that its machines start in it and nowhere else."""

from __future__ import annotations

from chipwise.renderer.deployment import Deployment
from chipwise.renderer.terraform.hcl import Block, Nested, Raw, Value, variable
from chipwise.renderer.yaml_text import Noted


def block(deployment: Deployment) -> bool:
    """Held for a stated time, which is bought as a market of its own."""
    return deployment.reservation is not None and deployment.reservation.block


def variables(deployment: Deployment) -> list[Block]:
    reservation = deployment.reservation
    if reservation is None:
        return []
    begun = " Apply it when the block has begun." if reservation.block else ""
    about = (
        f"Where machines start: {reservation.title}, of {deployment.node.machine}. The first subnet must be in its zone.{begun}"
    )
    check = ('startswith(var.capacity_reservation_id, "cr-")', "Give the id of a capacity reservation, cr-...")
    return [variable("capacity_reservation_id", "string", about, reservation.id, check)]


def template(deployment: Deployment) -> dict[str, Value]:
    """For the body of a launch template."""
    if deployment.reservation is None:
        return {}
    target: Value = Nested({"capacity_reservation_id": Raw("var.capacity_reservation_id")})
    reason = "Without it an instance would start beside what is held, or not at all."
    body: dict[str, Value] = {
        "capacity_reservation_specification": Noted(Nested({"capacity_reservation_target": target}), reason)
    }
    if block(deployment):
        body["instance_market_options"] = Nested({"market_type": "capacity-block"})
    return body
