"""What the network of a machine carries: all day, and to the internet.

Small machines of clouds have credits for more than their baseline, which a stream that never ends spends in minutes: the
baseline counts. EC2 gives a machine of fewer than 32 vCPUs at most 5 Gbit/s to the internet and to other regions, and larger
ones half of their network, at least as much (documentation of EC2, instance network bandwidth, read 2026-11). Other providers
state no such bound, so their network counts in full.
"""

from __future__ import annotations

from chipwise.catalog.machine import Machine

UNSTATED = 1.25e8  # bytes/s: 1 Gbit/s, which every machine has
_BOUNDED, _VCPUS, _SMALL, _SHARE = "aws", 32.0, 6.25e8, 0.5


def lasting(machine: Machine) -> float:
    """Bytes per second in each direction that are there all day."""
    return machine.network_baseline_bytes_per_s or machine.network_bytes_per_s or UNSTATED


def outward(machine: Machine) -> float:
    """The same to the internet."""
    inside = lasting(machine)
    if machine.provider != _BOUNDED:
        return inside
    if (machine.vcpus or 0.0) < _VCPUS:
        return min(inside, _SMALL)
    return min(inside, max(_SHARE * inside, _SMALL))


def is_bounded(machine: Machine) -> bool:
    return outward(machine) < lasting(machine)
