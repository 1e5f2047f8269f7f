"""A pod that asks for more than its machine has is placed nowhere, and waits without an error."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.hardware import machines_for
from chipwise.auditor.pods import ACCELERATORS, Pod, pods_of
from chipwise.auditor.quantity import quantity
from chipwise.auditor.source import Located, Sources, line_of, look, mapped
from chipwise.catalog.machine import Machine

ABOUT = "pods fit on the machine that they name"
_DEVICES = ("nvidia.com/gpu", "amd.com/gpu", "aws.amazon.com/neuron", "google.com/tpu", "habana.ai/gaudi")


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources, partial=True):
        machines = machines_for(pod)
        for name, wanted, place in _requested(pod) if machines else ():
            capacity = max((_has(machine, name) for machine in machines), default=0.0)
            if capacity and wanted > capacity:
                known = " or ".join(dict.fromkeys(one.name for one in machines))
                yield Finding(
                    rule="machine-size",
                    weight=Weight.HIGH,
                    path=pod.owner.path,
                    line=place,
                    what=f"{pod.owner.title} asks for {_amount(name, wanted)}, and {known} has {_amount(name, capacity)}",
                    fix="Ask for less, or name a larger machine.",
                )


def _requested(pod: Pod) -> Iterator[tuple[str, float, int]]:
    """Of its containers together, with the line of the last that asks."""
    totals, lines = dict[str, float](), dict[str, int]()
    for container in pod.mains:
        for name, value, line in _requests(container):
            totals[name], lines[name] = totals.get(name, 0.0) + value, line
    yield from ((name, total, lines[name]) for name, total in totals.items())


def _requests(container: Located) -> Iterator[tuple[str, float, int]]:
    requests, limits = look(container, "resources", "requests"), look(container, "resources", "limits")
    for name in ("cpu", "memory", *_DEVICES):
        side = requests if name in mapped(requests) else limits if name in mapped(limits) else None
        amount = quantity(look(side, name)) if side is not None else None
        if amount is not None and (name in ("cpu", "memory") or name.startswith(ACCELERATORS)):
            yield name, amount, line_of(side, name)


def _has(machine: Machine, name: str) -> float:
    if name == "cpu":
        return machine.vcpus or 0.0
    return (machine.memory_bytes or 0.0) if name == "memory" else (machine.chips or 0.0)


def _amount(name: str, amount: float) -> str:
    return f"{amount / 2**30:,.0f} GiB of memory" if name == "memory" else f"{amount:g} {name}"
