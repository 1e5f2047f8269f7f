"""Synchronisation: the host waits for the device in every step, and the device then waits for the host."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.observe.evidence import Evidence, ObservedDevice
from chipwise.observe.finding import Finding
from chipwise.observe.judging import Explains, fact, removed, severity
from chipwise.observe.waiting import FEEDING_BYTES_PER_S, READING_BYTES_PER_S, SPINNING, is_transferring

ABOUT = "The program waits for the device in every step, and the device then waits for the program."
EXPLAINS = Explains.WAITING
LEAST_LOSS, MOST_LOSS = 0.1, 0.75  # less is not worth a word, more has other causes
LARGE = 0.5  # of the multiprocessors while kernels run: those are no tiny kernels


def examine(evidence: Evidence) -> Iterator[Finding]:
    active, thread = evidence.active, evidence.program.mean("cpu_highest_thread")
    data_wait = evidence.program.mean("data_wait")
    if active is None or thread is None or thread < SPINNING or any(map(is_transferring, evidence.devices)):
        return
    lost = 1 - active
    filled = [fill for device in evidence.devices if (fill := device.filled) is not None]
    if not filled or not LEAST_LOSS <= lost <= MOST_LOSS or sum(filled) / len(filled) < LARGE:
        return
    if data_wait is not None and data_wait >= 0.5 * lost:
        return
    confidence = 0.8 if data_wait is not None or not _is_fed(evidence) else 0.4
    device: ObservedDevice = evidence.devices[0]
    yield Finding(
        rule="synchronisation",
        severity=severity(lost, confidence),
        cause="The program waits for the device in every step; the device then waits until new kernels are started.",
        evidence=(
            fact(device, "graphics_active", f"{device.label}: kernels ran {{}} of the time"),
            fact(device, "sm_active", "large ones: multiprocessors {} used over all time"),
            fact(evidence.program, "cpu_highest_thread", "one thread of the program used {} of a core, no data was read"),
        ),
        span_s=evidence.window_s,
        confidence=confidence,
        lost_share=lost,
        speedup=removed(lost, least_share=0.4),
        next_step="Remove .item(), .cpu(), print(loss) and torch.cuda.synchronize() from the step; read losses every 50 steps.",
    )


def _is_fed(evidence: Evidence) -> bool:
    received = sum(device.or_zero("pcie_received") for device in evidence.devices)
    return received >= FEEDING_BYTES_PER_S or evidence.program.or_zero("io_read") >= READING_BYTES_PER_S
