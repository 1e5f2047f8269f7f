"""What a plan says beyond one machine type, bought one way, in one place, and a target leaves out: one line each, which names
what is missing and how to get it. A target says what it holds of it in `EXPRESSES`; one that says nothing holds none of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from chipwise.planner.values.split import Streams
from chipwise.renderer.deployment import Deployment, Form

LAYERS, REGIONS, STREAMS = "layers", "regions", "streams"
_LAYERED = {"aws": "karpenter, kueue, eksctl or terraform"}  # elsewhere kueue counts them apart


def with_notes(deployment: Deployment, expresses: Collection[str]) -> Deployment:
    """The deployment with a note on each part of the plan that the target leaves out, and so each stage of a pipeline."""
    noted = replace(deployment, stages=tuple(with_notes(one, expresses) for one in deployment.stages))
    if deployment.form is Form.PIPELINE:
        return noted
    left = (*_streams(deployment, expresses), *_layers(deployment, expresses), *_regions(deployment, expresses))
    return replace(noted, notes=(*deployment.notes, *left))


def _streams(deployment: Deployment, expresses: Collection[str]) -> tuple[str, ...]:
    if STREAMS in expresses or not deployment.streams:
        return ()
    per_chip = deployment.split.per_chip if isinstance(deployment.split, Streams) else 1
    note = (
        f"{deployment.streams} streams, {per_chip} on each chip: the command here is that of one, to be started once for each"
        " with its own source and target. --to kubernetes, kueue or compose starts all of them."
    )
    return (note,)


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
    places = ", ".join(f"{one.provider} {one.region} ({one.machines} x {one.machine}, {one.share:.0%})" for one in stands)
    place = (
        f"{node.region} alone" if inside else f"{node.region}, where one region alone is cheapest, and which is none of them"
    )
    note = (
        f"To reach its users the plan stands in {len(stands)} regions: {places}. These files are of {place};"
        " render once for each with --limit regions=[NAME]."
    )
    return (note,)
