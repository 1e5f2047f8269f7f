"""A pod that asks for more than its machine has is placed nowhere, and waits without an error."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.hardware import machines_for, machines_named
from chipwise.auditor.machines import pools
from chipwise.auditor.pods import ACCELERATORS, Pod, node_labels, pods_of
from chipwise.auditor.quantity import quantity
from chipwise.auditor.source import Located, Sources, line_of, listed, look, mapped
from chipwise.auditor.terraform import inner, rows_of, text_of
from chipwise.catalog.machine import Machine
from chipwise.text import gib

ABOUT = "pods fit on the machine that they name"
_GPUS = re.compile(r'"?type"?\s*[=:]\s*"GPU"\s*,\s*"?value"?\s*[=:]\s*"(\d{1,3})"')
_DEVICES = ("nvidia.com/gpu", "amd.com/gpu", "aws.amazon.com/neuron", "google.com/tpu", "habana.ai/gaudi")


def check(sources: Sources) -> Iterator[Finding]:
    by_pool = {manifest.name: _pool_machines(spec) for manifest, spec in pools(sources)}
    yield from _batch(sources)
    for pod in pods_of(sources, partial=True):
        pool_names = node_labels(pod.spec).get("karpenter.sh/nodepool", ())
        machines = machines_for(pod) or tuple(one for name in pool_names for one in by_pool.get(name, ()))
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


def _pool_machines(spec: Located) -> tuple[Machine, ...]:
    """Those that a pool of Karpenter names."""
    names = [
        str(value)
        for requirement in listed(look(spec, "requirements"))
        if look(requirement, "key") == "node.kubernetes.io/instance-type" and look(requirement, "operator") == "In"
        for value in listed(look(requirement, "values"))
    ]
    return tuple(machine for name in names for machine in machines_named(name))


def _batch(sources: Sources) -> Iterator[Finding]:
    """A job of AWS Batch that asks for more GPUs than any machine of the environments has."""
    environments = [one for one in sources.blocks if one.labels[:1] == ("aws_batch_compute_environment",)]
    names = [
        text_of(name)
        for block in environments
        for resources in inner(block.body, "compute_resources")
        for name in listed(resources.get("instance_type"))
    ]
    machines = [machine for name in names for machine in machines_named(name)]
    machine_gpus = max((machine.chips or 0 for machine in machines), default=0)
    if not machine_gpus or any("." not in name for name in names):  # a family has larger ones
        return
    for block in (one for one in sources.blocks if one.labels[:1] == ("aws_batch_job_definition",)):
        for number, row in rows_of(sources, block):
            job_gpus = _GPUS.search(row)
            if job_gpus and int(job_gpus[1]) > machine_gpus:
                yield Finding(
                    rule="machine-size",
                    weight=Weight.HIGH,
                    path=block.path,
                    line=number,
                    what=f"{block.title} asks for {job_gpus[1]} GPUs, and its largest machine has {machine_gpus}",
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
    return f"{gib(amount, 0)} of memory" if name == "memory" else f"{amount:g} {name}"
