"""What a plan says beyond one machine type, bought one way, in one place, and a target leaves out: one line each, which names
what is missing and how to get it. A target says what it holds of it in `EXPRESSES`; one that says nothing holds none of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from chipwise.catalog.region import readable
from chipwise.planner.values.split import Streams, width
from chipwise.renderer.deployment import TPU_HOST, Deployment, Form
from chipwise.renderer.file import CannotRender
from chipwise.renderer.launch import nodes
from chipwise.renderer.layout import most_machines, replica_machines
from chipwise.text import plural

LAYERS, REGIONS, STREAMS, RESERVATIONS = "layers", "regions", "streams", "reservations"
PULLS = "pulls"  # images of a registry that asks who it is
GROUPS = "groups"  # replicas of a service that stand on several machines
SLICES, CLAIMS = "slices", "claims"  # a part of a chip for each copy of a service; chips by claims
HOURS, NO_RUN = "hours", "no run"  # what keeps a schedule by clocks of its own; what starts nothing that could run on
_LAYERED = {"aws": "karpenter, kueue, eksctl or terraform"}  # elsewhere kueue counts them apart


def refuse_large_copies(target: str, deployment: Deployment, expresses: Collection[str]) -> None:
    """A copy of a model that is larger than a machine starts on several that find each other: a target that starts machines
    one by one would start parts of it that wait for the rest for ever."""
    for stage in (deployment, *deployment.stages):
        machines = replica_machines(stage) if stage.form is not Form.PIPELINE else 1
        if machines == 1 or NO_RUN in expresses or (stage.form is Form.SERVICE and GROUPS in expresses):
            continue
        chips = stage.node.chips if stage.node.kind != "tpu" else min(stage.node.chips, TPU_HOST)
        host = stage.node.machine if stage.node.kind != "tpu" else f"a host of {stage.node.machine}"
        ways = "Use --to kubernetes or kueue (a LeaderWorkerSet) or ray, or plan" if stage.form is Form.SERVICE else "Plan"
        raise CannotRender(
            f"One copy of the model takes {width(stage.split)} chips, and {host} has {chips}: {target} does not start"
            f" {machines} machines that find each other.",
            remedy=f"{ways} for a chip with more memory (--chip CHIP) or a smaller number format (--limit precision=fp8).",
        )


def refuse_parts(target: str, deployment: Deployment, expresses: Collection[str]) -> None:
    """A target that does not know of slices would hand out whole chips, and pay for them."""
    for stage in (deployment, *deployment.stages):
        sliced = stage.form is Form.SERVICE and bool(stage.node.profile)
        if sliced and not {SLICES, NO_RUN} & set(expresses):
            raise CannotRender(
                f"Each copy is to have a slice {stage.node.profile} of a GPU, and {target} hands out whole ones.",
                remedy="Use --to kubernetes or kueue, or leave program.slice out.",
            )
        if stage.claims and CLAIMS not in expresses and not (NO_RUN in expresses and target != "karpenter"):
            reason = "brings no machine for them" if target == "karpenter" else "does not write them"
            raise CannotRender(
                f"Chips are to be handed out by claims, and {target} {reason}.",
                remedy="Use --to kubernetes on nodes that are there, or leave program.devices out.",
            )


def refuse_reservation(target: str, deployment: Deployment, expresses: Collection[str], starts_machines: bool) -> None:
    """Machines that start beside the capacity that is held for them are paid for twice, or cannot be had."""
    for stage in (*deployment.stages, *(() if deployment.stages else (deployment,))):
        reservation, node = stage.reservation, stage.node
        if reservation is None:
            continue
        if node.provider != "aws":
            raise CannotRender(
                f"The workload names {reservation.title} of AWS, and the plan takes {node.machine} of {node.provider}.",
                remedy="Plan with --cloud aws, or leave `reservation` out.",
            )
        if stage.losable or len(stage.rented) > 1:
            bought = " + ".join(one.title for one in stage.rented) or stage.purchase
            raise CannotRender(
                f"The workload names {reservation.title}, and the plan buys {bought}: a machine is held, or it is spot.",
                remedy="Plan with --on-demand, or leave `reservation` out.",
            )
        if starts_machines and RESERVATIONS not in expresses:
            raise CannotRender(
                f"{target} would start machines beside {reservation.title}.",
                remedy="Use --to karpenter, eksctl or terraform, which start them in it.",
            )


def _reservation(deployment: Deployment) -> tuple[str, ...]:
    reservation, node = deployment.reservation, deployment.node
    if reservation is None:
        return ()
    paid = "paid when it was bought" if reservation.block else "paid whether machines run in it or not"
    ends = " EC2 ends its machines 30 minutes before the block does (60 for UltraServers)." if reservation.block else ""
    machine_count = most_machines(deployment)
    waits = (
        " Copies beyond what it holds wait until others go: lower the maximum to what it has room for."
        if deployment.form is Form.SERVICE and machine_count > deployment.machines
        else ""
    )
    note = (
        f"Machines start in {reservation.title} alone, which must be of {node.machine} in {node.region} and hold"
        f" {plural(machine_count, 'machine')}, {paid}; the price here is that of machines by the hour.{waits}{ends}"
    )
    return (note,)


def with_notes(deployment: Deployment, expresses: Collection[str]) -> Deployment:
    """The deployment with a note on each part of the plan that the target leaves out, and so each stage of a pipeline."""
    noted = replace(deployment, stages=tuple(with_notes(one, expresses) for one in deployment.stages))
    if deployment.form is Form.PIPELINE:
        return noted
    left = (
        *_reservation(deployment),
        *_pull_secret(deployment, expresses),
        *_streams(deployment, expresses),
        *_layers(deployment, expresses),
        *_regions(deployment, expresses),
    )
    unread = nodes.unread(deployment) if NO_RUN not in expresses else ""
    noted = replace(noted, notes=(*deployment.notes, *left, *((unread,) if unread else ())))
    ends_known = deployment.form is not Form.SERVICE or bool(deployment.stops)
    if NO_RUN in expresses or (HOURS in expresses and ends_known):
        return noted
    return without_hours(noted)


def without_hours(deployment: Deployment, staying: int | None = None) -> Deployment:
    """The deployment with a note that its files do not keep its hours, and what a service then costs. `staying`: machines that
    run on outside them; None: all."""
    if not deployment.starts or deployment.form not in (Form.JOB, Form.SERVICE):
        return deployment
    zone, predicted = deployment.time_zone, deployment.predicted
    if deployment.form is Form.JOB:
        note = f"By the plan a clock starts it (cron: {deployment.starts}, {zone}); these files start it when they are called."
        return replace(deployment, notes=(*deployment.notes, note))
    ends = f" to {deployment.stops}" if deployment.stops else ""
    runs = "machines run" if staying is None else f"{staying} machine{' runs' if staying == 1 else 's run'}"
    note = (
        f"The plan pays for its hours only (cron: {deployment.starts}{ends}, {zone}). These files keep no clock:"
        f" {runs} on outside them, and {'is' if staying == 1 else 'are'} paid for, until they are ended."
        " --to kubernetes, or terraform on AWS, keeps hours that begin and end at a stated time."
    )
    written = None
    if predicted.always_usd is not None:
        share = 1.0 if staying is None else min(staying / max(deployment.machines, 1), 1.0)
        written = predicted.usd + (predicted.always_usd - predicted.usd) * share
    return replace(deployment, notes=(*deployment.notes, note), written_usd=written)


def _streams(deployment: Deployment, expresses: Collection[str]) -> tuple[str, ...]:
    if STREAMS in expresses or not deployment.streams:
        return ()
    per_chip = deployment.split.per_chip if isinstance(deployment.split, Streams) else 1
    note = (
        f"{deployment.streams} streams, {per_chip} on each chip: these files tell the program nothing of them, and it must find"
        " its own. --to kubernetes, kueue or compose gives each its source and targets, and starts all of them."
    )
    return (note,)


def _pull_secret(deployment: Deployment, expresses: Collection[str]) -> tuple[str, ...]:
    name = deployment.software.pull_secret
    if not name or PULLS in expresses or NO_RUN in expresses:
        return ()
    return (f"Clusters pull the image by the secret {name}; here the machine itself must be signed in to the registry.",)


def _layers(deployment: Deployment, expresses: Collection[str]) -> tuple[str, ...]:
    if LAYERS in expresses or len(deployment.rented) < 2:
        return ()
    layers = "; ".join(one.title for one in deployment.rented)
    note = (
        f"The plan buys these machines in layers, from the base up: {layers}. These files do not tell them apart;"
        f" --to {_LAYERED.get(deployment.node.provider, 'kueue')} does."
    )
    return (note,)


def _regions(deployment: Deployment, expresses: Collection[str]) -> tuple[str, ...]:
    """A target that holds all regions does so with one machine type, and only where its own region is one of them."""
    stands, node = deployment.stands, deployment.node
    alike = all((one.provider, one.machine) == (node.provider, node.machine) for one in stands)
    inside = any((one.provider, one.region) == (node.provider, node.region) for one in stands)
    if not stands or (REGIONS in expresses and alike and inside):
        return ()
    places = ", ".join(
        f"{one.provider} {readable(one.region)} ({one.machines} x {one.machine}, {one.share:.0%})" for one in stands
    )
    place = (
        f"{node.region} alone" if inside else f"{node.region}, where one region alone is cheapest, and which is none of them"
    )
    note = (
        f"To reach its users the plan is in {len(stands)} regions: {places}. These files are for {place};"
        " render once for each with --region REGION."
    )
    return (note,)
