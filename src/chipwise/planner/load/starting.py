"""How long a machine of a service takes from being ordered until it answers: boot, image, weights, start of the engine."""

from __future__ import annotations

from chipwise.money.serverless_cost import WEIGHTS_BYTES_PER_S
from chipwise.perf.setup import WEIGHT_BITS
from chipwise.planner.tails import BOOT_S

# Profiling, cache, compilation and graphs of an engine for language models after the weights are there, nothing cached: 91 to
# 92 s were published for 70 billion parameters on four H100.
ENGINE_S = 92.0
_BITS = 16.0  # of a format that the table does not hold


def start_s(parameters: float, precision: str, generates: bool) -> float:
    """Seconds, with weights from an object store at a usual speed."""
    weights_bytes = parameters * WEIGHT_BITS.get(precision, _BITS) / 8.0
    return BOOT_S + weights_bytes / WEIGHTS_BYTES_PER_S[1] + (ENGINE_S if generates else 0.0)
