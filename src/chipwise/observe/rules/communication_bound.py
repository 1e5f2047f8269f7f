"""Communication-bound: devices or machines wait for each other's data."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.observe.evidence import Evidence, ObservedDevice
from chipwise.observe.finding import Finding
from chipwise.observe.judging import Explains, Signs, fact, over_devices, removed, severity
from chipwise.text import decimal_size

ABOUT = "Devices or machines wait for data of each other."
EXPLAINS = Explains.ARITHMETIC
LINK = 0.15  # of a device's link, both directions
LINK_BYTES_PER_S = 20e9  # where the chip is not known
NETWORK_BYTES_PER_S = 200e6
FILLED = 0.6


def examine(evidence: Evidence) -> Iterator[Finding]:
    signs = over_devices(evidence, _between_devices) or _between_machines(evidence)
    if signs is None:
        return
    yield Finding(
        rule="communication-bound",
        severity=severity(signs.lost_share, signs.confidence),
        cause="Devices wait for each other's data: communication takes a large share of every step.",
        evidence=signs.facts,
        span_s=evidence.window_s,
        confidence=signs.confidence,
        lost_share=signs.lost_share,
        speedup=removed(signs.lost_share, least_share=0.3),
        next_step="Overlap gradients with the backward pass, accumulate over more steps, split the model less.",
        source=signs.source,
    )


def _between_devices(device: ObservedDevice) -> Signs | None:
    """The kernels of collectives run all the time and use a few multiprocessors only."""
    sent, received = device.or_zero("nvlink_sent"), device.or_zero("nvlink_received")
    total = device.chip.link_bytes_per_s if device.chip and device.chip.link_bytes_per_s else None
    moved = sent + received
    share = moved / total if total else None
    if (share is None and moved < LINK_BYTES_PER_S) or (share is not None and share < LINK):
        return None
    tensor, memory, filled = device.while_active("tensor_active"), device.while_active("dram_active"), device.filled
    if filled is None or filled >= FILLED or (tensor or 0.0) >= 0.5 or (memory or 0.0) >= 0.6:
        return None
    facts = (
        fact(device, "nvlink_sent", f"{device.label}: {{}} sent to other devices"),
        fact(device, "sm_active", "multiprocessors {} used meanwhile"),
    )
    return Signs(1 - max(filled, tensor or 0.0), 0.85, facts)


def _between_machines(evidence: Evidence) -> Signs | None:
    sent, received = evidence.host.or_zero("network_sent"), evidence.host.or_zero("network_received")
    active = evidence.active
    ranks = len(evidence.ranks) > 1 or bool(evidence.devices)
    if min(sent, received) < NETWORK_BYTES_PER_S or not 0.5 <= sent / received <= 2 or not ranks:
        return None
    used, cores = evidence.program.mean("cpu"), evidence.cores
    tensor = [share for device in evidence.devices if (share := device.mean("tensor_active")) is not None]
    if tensor:
        lost = 1 - max(tensor)
    elif active is not None:
        lost = 1 - active
    elif used is not None and cores:
        lost = 1 - min(used / cores, 1.0)
    else:
        return None
    if lost < 0.3:
        return None
    facts = (
        fact(evidence.host, "network_sent", f"{decimal_size(sent)}/s sent over the network", sent),
        fact(evidence.host, "network_received", f"{decimal_size(received)}/s received", received),
    )
    return Signs(lost * 0.8, 0.8, facts)
