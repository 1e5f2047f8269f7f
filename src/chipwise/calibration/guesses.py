"""What of a row is guessed because nobody knows the name in it: a shape by the model's name, a number format.

Scoring answers such rows all the same and says how many there are. A calibration leaves them out: what they miss by is the
guess's fault, not the chip's.
"""

from __future__ import annotations

import re
from functools import cache

from chipwise.perf.listed_networks import listed
from chipwise.perf.rows import Row
from chipwise.workload.model import registry

# As the families look for them; 16-bit floats are what they take where none is found.
_FORMATS = (
    "fp4",
    "fp8",
    "int4",
    "int8",
    "nf4",
    "q4_k_m",
    "q8_0",
    "bf16",
    "fp16",
    "tf32",
    "fp32",
    "float16",
    "f16",
    "half",
    "amp",
)
_SIZED = re.compile(r"-(224|384)$")  # a picture's size at the end of a name


def guesses(row: Row) -> tuple[str, ...]:
    """Reasons, each with the column and its value; none where everything is known."""
    reasons = []
    name = row.text("model")
    described = (
        row.number("params_b", 0.0) > 0
        or row.number("gflops", 0.0) > 0
        or (row.number("layers", 0.0) > 0 and row.number("hidden", 0.0) > 0)
    )
    if not described and not _known(name):
        reasons.append(f"model: {name[:60]!r} is not known; give params_b, or layers and hidden")
    for column in ("precision", "precision_weights", "precision_kv"):
        text = row.text(column)
        if text and not any(mark in text.lower() for mark in _FORMATS):
            reasons.append(f"{column}: {text[:60]!r} is not known; write bf16, fp16, fp8, ...")
    return tuple(reasons)


@cache
def _known(name: str) -> bool:
    return listed(name) or registry.known(_SIZED.sub("", name)) is not None
