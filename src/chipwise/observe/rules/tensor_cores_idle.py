"""Matrix units idle while the other arithmetic works: a precision or a shape that they do not take."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.catalog.chip import Chip, Precision
from chipwise.observe.evidence import Evidence, ObservedDevice
from chipwise.observe.finding import Finding
from chipwise.observe.judging import Explains, Signs, fact, over_devices, removed, severity

ABOUT = "Arithmetic runs beside the matrix units: 32-bit precision or odd shapes."
EXPLAINS = Explains.ARITHMETIC
IDLE, WORKING = 0.1, 0.25  # of the time while kernels run: matrix units, other arithmetic
FILLED = 0.6
USUAL_GAIN = 4.0  # of matrix units over others where the chip is not known


def examine(evidence: Evidence) -> Iterator[Finding]:
    signs = over_devices(evidence, _judge)
    if signs is None:
        return
    gains = [_gain(device) for device in evidence.devices]
    yield Finding(
        rule="tensor-cores-idle",
        severity=severity(signs.lost_share, signs.confidence),
        cause="32- or 64-bit arithmetic runs on the slow units while the matrix units idle.",
        evidence=signs.facts,
        span_s=evidence.window_s,
        confidence=signs.confidence,
        lost_share=signs.lost_share,
        speedup=removed(signs.lost_share, least_share=0.5, highest=max(gains)),
        next_step="Allow TF32 (torch.set_float32_matmul_precision('high')) or use bf16 autocast; make sizes multiples of 8.",
        source=signs.source,
    )


def _judge(device: ObservedDevice) -> Signs | None:
    tensor, active, filled = device.while_active("tensor_active"), device.active, device.filled
    if tensor is None or active is None or filled is None or active < 0.3 or filled < FILLED or tensor >= IDLE:
        return None
    memory = device.while_active("dram_active") or 0.0
    single, double = device.while_active("fp32_active"), device.while_active("fp64_active")
    if memory >= 0.5:
        return None
    if single is None and double is None:
        confidence, name = 0.55, "sm_active"
    else:
        confidence, name = 0.85, "fp32_active" if (single or 0.0) >= (double or 0.0) else "fp64_active"
        if max(single or 0.0, double or 0.0) < WORKING:
            return None
    facts = (
        fact(device, "tensor_active", f"{device.label}: matrix units {{}} used"),
        fact(device, name, "other arithmetic {} used" if name != "sm_active" else "multiprocessors {} used"),
    )
    return Signs((1 - 1 / _gain(device)) * active, confidence, facts)


def _gain(device: ObservedDevice) -> float:
    """By the roofline of the chip: as fast as the matrix units allow, or as memory does with half the bytes."""
    rates = USUAL_GAIN if device.chip is None else _ratio(device.chip)
    memory = device.while_active("dram_active")
    return max(min(rates, 2 / memory if memory else rates), 1.0)


def _ratio(chip: Chip) -> float:
    slow, fast = chip.rate(Precision.FP32), chip.rate(Precision.TF32) or chip.rate(Precision.BF16)
    return fast / slow if slow and fast else USUAL_GAIN
