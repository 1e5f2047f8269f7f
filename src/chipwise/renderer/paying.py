"""How a plan pays for what is deployed, as far as that is more than one machine type bought one way.

Layers of a load over time, services that are paid per use, mixes of machine types. What files cannot hold is told in a note.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from chipwise.catalog.region import readable
from chipwise.planner.explain.reason_words import words
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.load import LoadPlan
from chipwise.planner.values.plan import Plan
from chipwise.renderer.deployment import MachineLayer, Reservation, Scaling, Service
from chipwise.text import usd
from chipwise.units import HOUR, MONTH
from chipwise.workload.common import Common
from chipwise.workload.reservation import ReservationKind

OWNED = "owned"
WORTH = 0.995  # of the money: what saves less is not told


def load_of(plan: Plan, chosen: Choice) -> LoadPlan | None:
    """The plan's load over time, where it is carried by the chosen machine; of several ways to buy it, by the first."""
    load = plan.load
    if load is None or next((one for one in plan.choices if one.where == load.title), None) != chosen:
        return None
    return load


def layers_of(load: LoadPlan | None) -> tuple[MachineLayer, ...]:
    """Empty where one way to buy carries all of it."""
    if load is None or len(load.layers) < 2:
        return ()
    return tuple(
        MachineLayer(OWNED, layer.machines, layer.owned) if layer.owned else MachineLayer(layer.name, layer.machines)
        for layer in load.layers
    )


def purchase_of(load: LoadPlan | None, chosen: Choice) -> str:
    """Over time another way than for the peak at all times may be the cheapest for all machines."""
    if load is None or len(load.layers) != 1 or load.layers[0].owned:
        return chosen.purchase
    return load.layers[0].name


def followed_usd(load: LoadPlan | None, chosen: Choice) -> float | None:
    always = chosen.usd if chosen.over_time is None else chosen.over_time.always_cost.usd
    return load.usd if load is not None and load.usd < WORTH * always else None


def followed(
    scaling: Scaling | None, load: LoadPlan | None, inside: Fraction, stated: tuple[int | None, int | None]
) -> Scaling | None:
    """Copies between the fewest and the most that the load takes in its hours, where it varies; `inside`: copies that one
    machine holds, or the part of one; `stated`: what the user says of both, which counts."""
    counts = [machines for machines, _ in load.steps if machines] if load is not None else []
    layers = layers_of(load)
    if scaling is None or not counts or (len(set(counts)) < 2 and not layers):
        return scaling
    rented = sum(one.machines for one in layers if one.purchase != OWNED) if layers else max(counts)
    committed = sum(one.machines for one in layers if one.committed)
    maximum = max(stated[1] or int(rented * inside), 1)
    minimum = min(max(stated[0] or int(min(counts) * inside), int(committed * inside), 1), maximum)
    reason = (
        "Machines under a commitment, paid for whether they run or not"
        if committed * inside >= minimum
        else "The quietest hours of the load"
    )
    if stated[0] and stated[0] == minimum and committed * inside < minimum:
        reason = "The fewest that the workload asks for"
    return replace(scaling, minimum=minimum, usual=min(max(scaling.usual, minimum), maximum), maximum=maximum, reason=reason)


def around_the_clock_usd(purchase: str, usd: float, usd_per_hour: float, seconds: float) -> float:
    """Of a month in which machines run for `seconds` by the plan. A promised term is paid for every hour already."""
    if purchase not in ("spot", "on-demand"):
        return usd
    return usd + usd_per_hour * max(MONTH - seconds, 0.0) / HOUR


def services_of(plan: Plan) -> tuple[Service, ...]:
    return tuple(
        Service(
            kind=service.kind,
            provider=service.provider,
            name=service.name,
            hardware=service.hardware,
            usd=service.usd,
            cold_share=service.cold_share,
            cold_start_s=service.cold_start_s,
            refused=tuple(map(words, service.refused)),
            chips=service.chips,
            warm=service.warm,
            at_once=service.at_once,
            instances=service.instances,
        )
        for service in plan.services
    )


def service_of(plan: Plan) -> Service | None:
    """What is cheaper than the plan's machines."""
    index = next((at for at, one in enumerate(plan.services) if one is plan.service), None)
    return services_of(plan)[index] if index is not None else None


def best_of(plan: Plan, chosen: Choice) -> str:
    """The plan's first machines, where others were chosen."""
    winner = plan.winner
    if winner is None or winner == chosen:
        return ""
    load = load_of(plan, winner)
    amount = followed_usd(load, winner) or winner.usd
    return (
        f"{winner.machines} x {winner.machine} ({winner.provider} {readable(winner.region)}, {purchase_of(load, winner)})"
        f" for {usd(amount)} a {plan.per}"
    )


def notes_of(plan: Plan, chosen: Choice) -> tuple[str, ...]:
    return (*_other_machine(plan, chosen), *_owned(plan, chosen), *_mix(plan, chosen))


def _other_machine(plan: Plan, chosen: Choice) -> tuple[str, ...]:
    """Over its hours a load may be cheapest on another machine than for its peak."""
    load = plan.load
    if load is None or chosen != plan.winner or load.title == chosen.where or load.usd >= WORTH * chosen.usd:
        return ()
    rank = next((rank for rank, one in enumerate(plan.choices, start=1) if one.where == load.title), None)
    command = f" --choice {rank} writes that." if rank is not None else ""
    layers = ", ".join(f"{one.machines} {one.name}" for one in load.layers)
    note = (
        f"Over the hours of the load {load.title} ({layers}) costs {usd(load.usd)} a month; these files are for the best"
        f" machine for the peak, {usd(chosen.usd)} if it runs through all its hours.{command}"
    )
    return (note,)


def _owned(plan: Plan, chosen: Choice) -> tuple[str, ...]:
    owned = [one for one in layers_of(load_of(plan, chosen)) if one.purchase == OWNED and one.location]
    return tuple(
        f"{layer.machines} x {layer.location}, owned, carry the base of the load; these files are for what is rented beyond."
        for layer in owned
    )


def _mix(plan: Plan, chosen: Choice) -> tuple[str, ...]:
    mix = plan.mix
    if mix is None or len(mix.members) < 2:
        return ()
    members = ", ".join(f"{one.machines} x {one.title}, {one.purchase}" for one in mix.members)
    note = (
        f"The plan's mix by request size ({members}) costs {usd(mix.usd)} a month; these files hold one machine type,"
        f" {usd(chosen.usd)}. For the mix, render each type with --chip CHIP and send it the requests of its sizes."
    )
    return (note,)


def reservation_of(work: Common) -> Reservation | None:
    """Capacity that is held already, as the workload names it."""
    reservation = work.reservation
    return Reservation(reservation.id, reservation.kind is ReservationKind.CAPACITY_BLOCK) if reservation is not None else None
