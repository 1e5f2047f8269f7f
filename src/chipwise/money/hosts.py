"""Which part of a host a rented machine is: the part of making the host that it answers for.

A virtual machine is compared with the largest size of its family in the catalog, which counts as a whole host (a metal size
where there is one). Its share is the larger of its shares of vCPUs and of memory, as accounts of cloud emissions allocate; its
interval goes from the smallest to the largest of its shares of vCPUs, memory and chips. A family is a provider's machines with
one chip and, where sizes stand behind a dot (g4dn.xlarge), with one name before it. Machines that somebody owns, and
families of one size, are whole hosts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from chipwise.catalog.machine import Machine


class HostShare(NamedTuple):
    """Of one host; `of` is the machine that counts as the whole one, empty where it is this one."""

    share: float = 1.0
    low: float = 1.0
    high: float = 1.0
    of: str = ""


WHOLE_HOST = HostShare()


def host_shares(machines: Sequence[Machine]) -> tuple[HostShare, ...]:
    """In the order of the machines."""
    largest: dict[tuple[str, str, str], Machine] = {}
    for machine in machines:
        known = largest.get(_family(machine))
        if not _owned(machine) and (known is None or _size(machine) > _size(known)):
            largest[_family(machine)] = machine
    return tuple(WHOLE_HOST if _owned(one) else _share(one, largest[_family(one)]) for one in machines)


def _owned(machine: Machine) -> bool:
    return bool(machine.owned) or machine.full_usd_per_hour is not None or machine.energy_usd_per_hour is not None


def _family(machine: Machine) -> tuple[str, str, str]:
    name, dot, _ = machine.name.rpartition(".")
    return machine.provider, machine.chip or "", name if dot else ""


def _size(machine: Machine) -> tuple[float, float, float]:
    return machine.chips or 0.0, machine.vcpus or 0.0, machine.memory_bytes or 0.0


def _share(machine: Machine, host: Machine) -> HostShare:
    if machine.key == host.key:
        return WHOLE_HOST
    parts = [
        min(own / total, 1.0) if own and total else None
        for own, total in (
            (machine.vcpus, host.vcpus),
            (machine.memory_bytes, host.memory_bytes),
            (machine.chips, host.chips),
        )
    ]
    counted = [one for one in parts[:2] if one is not None] or [one for one in parts if one is not None]
    known = [one for one in parts if one is not None]
    return HostShare(max(counted), min(known), max(known), host.name) if known else WHOLE_HOST
