"""A device, or a machine, is held and paid for, and nothing runs."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.observe.evidence import Evidence, ObservedDevice
from chipwise.observe.finding import Fact, Finding, Severity
from chipwise.observe.judging import Explains, fact

ABOUT = "Held and paid for, and nothing runs."
EXPLAINS = Explains.WAITING
WORKING, BUSY = 0.08, 0.1  # of the time: anything ran, and what the driver calls busy
PROGRAM_IDLE = 0.15  # cores
QUIET_BYTES_PER_S = 1e6


def examine(evidence: Evidence) -> Iterator[Finding]:
    program, host = evidence.program, evidence.host
    used = program.mean("cpu")
    quiet = (
        (used is None or used < PROGRAM_IDLE)
        and program.or_zero("step") == 0
        and max(program.or_zero("disk_read"), program.or_zero("io_read")) < QUIET_BYTES_PER_S
    )
    if not quiet or (used is None and not evidence.devices):
        return
    idle_devices = [device for device in evidence.devices if device.active is not None and _is_idle(device)]
    if evidence.devices and not idle_devices:
        return
    if not evidence.devices and host.or_zero("network_received") >= QUIET_BYTES_PER_S:
        return
    lost = len(idle_devices) / len(evidence.devices) if evidence.devices else 1.0 - (used or 0.0) / (evidence.cores or 1.0)
    facts: list[Fact] = [
        fact(device, "busy" if device.mean("busy") is not None else "graphics_active", f"{device.label}: busy {{}} of the time")
        for device in idle_devices[:3]
    ]
    facts += [
        fact(device, "memory_used", f"{device.label}: {{}} of its memory are held")
        for device in idle_devices[:1]
        if device.mean("memory_used") is not None
    ]
    if used is not None:
        facts.append(fact(program, "cpu", f"the program used {used:.2f} cores", used))
    yield Finding(
        rule="idle",
        severity=Severity.WARNING,
        cause="The device is held and nothing runs on it." if evidence.devices else "The program does nothing.",
        evidence=tuple(facts),
        span_s=evidence.window_s,
        confidence=0.95 if used is not None else 0.85,
        lost_share=lost,
        speedup=None,
        next_step="Find out what it waits for (py-spy dump --pid PID); stop the job or release the machine if nothing.",
        source=idle_devices[0].name if len(idle_devices) == 1 and len(evidence.devices) > 1 else "",
    )


def _is_idle(device: ObservedDevice) -> bool:
    """By the share of the time in which anything ran: what ran before the program, or a moment of it, is not work."""
    ran = device.share_above("graphics_active" if device.has_counters else "busy", 0.002) or 0.0
    return ran < WORKING and (device.mean("busy") or 0.0) < BUSY
