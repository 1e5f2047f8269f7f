"""Health of a cluster's nodes, as Kubernetes lists it (`kubectl get nodes -o json`): conditions, devices that went missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from chipwise.observe.health.verdict import Blame, Condition, JobEffect, Sign, Verdict, worst

MOST_NODES = 50_000
# Conditions whose status True is bad, as Kubernetes and node problem detectors of clouds set them; others are not judged.
_BAD = {
    "GPUMissing": Condition.DRAIN,
    "NVLinkStatusInactive": Condition.DRAIN,
    "XIDErrors": Condition.WATCH,
    "IBLinkFlapping": Condition.WATCH,
    "NeuronHealth": Condition.DRAIN,
    "KernelDeadlock": Condition.DRAIN,
    "ReadonlyFilesystem": Condition.DRAIN,
    "MemoryPressure": Condition.WATCH,
    "DiskPressure": Condition.WATCH,
    "PIDPressure": Condition.WATCH,
    "NetworkUnavailable": Condition.DRAIN,
}
# Conditions whose status False is bad.
_GOOD = {"Ready": Condition.DRAIN, "AcceleratedHardwareReady": Condition.DRAIN}
# What Kubernetes itself acts on: it taints such nodes, and evicts pods from some.
_ITS_OWN = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
READ = (*_BAD, *_GOOD)  # conditions that are judged
_DEVICES = ("nvidia.com/gpu", "amd.com/gpu", "aws.amazon.com/neuron", "aws.amazon.com/neuroncore", "habana.ai/gaudi")


def verdicts(listing: object) -> tuple[Verdict, ...]:
    """Of a list of nodes; what is none of it is left out."""
    items = listing.get("items") if isinstance(listing, Mapping) else None
    nodes = items if isinstance(items, list) else []
    return tuple(_verdict(node) for node in nodes[:MOST_NODES] if isinstance(node, Mapping))


def judged_apart(node: Mapping[str, Any]) -> tuple[Verdict, Verdict]:
    """By its conditions, without those that Kubernetes acts on itself; and by devices that its plugin took out of service."""
    return _judged(node, tuple(_of_conditions(node, without=_ITS_OWN))), _judged(node, tuple(_of_devices(node)))


def devices_left(node: Mapping[str, Any]) -> int | None:
    """Of the accelerators that it has; None: none, or nobody counts them."""
    status = _mapping(node, "status")
    counts = [_count(_mapping(status, "allocatable").get(device)) for device in _DEVICES]
    return max((count for count in counts if count is not None), default=None)


def _verdict(node: Mapping[str, Any]) -> Verdict:
    return _judged(node, (*_of_conditions(node), *_of_devices(node)))


def _judged(node: Mapping[str, Any], signs: tuple[Sign, ...]) -> Verdict:
    name = _text(_mapping(node, "metadata").get("name")) or "a node"
    state = worst(*(sign.state for sign in signs)) if signs else Condition.FINE
    reasons = [sign.reason for sign in signs if sign.state is state]
    reason = "; ".join(reasons[:3]) or "nothing is wrong"
    return Verdict(device=f"node:{name}", state=state, reason=reason, signs=signs, name=name)


def _of_conditions(node: Mapping[str, Any], without: Sequence[str] = ()) -> Iterator[Sign]:
    conditions = _mapping(node, "status").get("conditions")
    for condition in conditions if isinstance(conditions, list) else []:
        if not isinstance(condition, Mapping):
            continue
        kind, value = _text(condition.get("type")), condition.get("status")
        state = _BAD.get(kind) if value == "True" else _GOOD.get(kind) if value == "False" else None
        if (kind, value) == ("Ready", "Unknown"):  # its kubelet went silent: Kubernetes calls it not ready too
            state = _GOOD["Ready"]
        if state is not None and kind not in without:
            cause = _text(condition.get("reason"))
            words = f"condition {kind} is {value}{f' ({cause})' if cause else ''}"
            yield Sign(state, words, Blame.DEVICE, JobEffect.MAY_DIE)


def _of_devices(node: Mapping[str, Any]) -> Iterator[Sign]:
    status = _mapping(node, "status")
    capacity, usable = _mapping(status, "capacity"), _mapping(status, "allocatable")
    for device in _DEVICES:
        built, left = _count(capacity.get(device)), _count(usable.get(device))
        if built is not None and left is not None and left < built:
            words = f"{built - left} of {built} devices ({device}) are taken out of service by the device plugin"
            yield Sign(Condition.DRAIN, words, Blame.DEVICE, JobEffect.MAY_DIE)


def _mapping(content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    inner = content.get(key)
    return inner if isinstance(inner, Mapping) else {}


def _text(value: object) -> str:
    return "".join(letter for letter in value[:200] if letter.isprintable()) if isinstance(value, str) else ""


def _count(value: object) -> int | None:
    text = str(value) if isinstance(value, str | int) else ""
    return int(text) if text.isdecimal() and len(text) < 6 else None
