"""Values for the dimensions that a graph leaves open: samples, sides of a picture, tokens, by name or else by place."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from chipwise.errors import BadInput

LARGEST = 1_000_000
_BATCH = re.compile(r"batch|^n$|^b$|^bs$|samples", re.IGNORECASE)
_TOKENS = re.compile(r"seq|token|length|past", re.IGNORECASE)
_SIDE = re.compile(r"height|width|^h$|^w$|image|pixel|side", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Sizes:
    """What was stated of a sample; None: what the file says, or the usual."""

    batch: int | None = None
    image_size: int | None = None
    sequence: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("batch", self.batch), ("image size", self.image_size), ("number of tokens", self.sequence)):
            if value is not None and not 1 <= value <= LARGEST:
                raise BadInput(f"The {name} {value:,} is out of range.", remedy=f"Allowed: 1 to {LARGEST:,}.")


USUAL = {"batch": 1, "image_size": 224, "sequence": 128, "channels": 3}


def meaning(name: str, place: int, dims: tuple[int | None, ...], counts_tokens: bool) -> str:
    """What a dimension of an input counts: `batch`, `image_size`, `sequence`, `channels`, or nothing in particular.

    Four dimensions are those of pictures, channels first or last; others are samples, tokens and features. Numbers of tokens
    are whole numbers (`counts_tokens`)."""
    pictures = len(dims) == 4 and not counts_tokens
    last = pictures and dims[3] in (1, 3, 4) and dims[1] not in (1, 3, 4)
    sides = (1, 2) if last else (2, 3)
    if unbatched(dims) and not counts_tokens:
        return "channels" if place == 0 else "image_size"
    if place == 0 or (name and _BATCH.search(name)):
        return "batch"
    if name and _TOKENS.search(name):
        return "sequence"
    if pictures:
        return "image_size" if place in sides else "channels"
    if name and _SIDE.search(name):
        return "image_size"
    return "sequence" if place == 1 or name else ""


def unbatched(dims: tuple[int | None, ...]) -> bool:
    """One picture without a dimension of samples."""
    return len(dims) == 3 and dims[0] == 3 and dims[1] == dims[2]


def sample_of(inputs: Iterable[tuple[tuple[int, ...], bool]]) -> tuple[int, int, int]:
    """Samples, side of a picture and tokens of the first inputs that have them: dimensions, and whether it counts tokens."""
    batch = image_size = sequence = 0
    for dims, counts_tokens in inputs:
        if not batch and dims:
            batch = 1 if len(dims) < 2 or (unbatched(dims) and not counts_tokens) else dims[0]
        if len(dims) in (3, 4) and not counts_tokens and not image_size and not sequence:
            sides = [dims[place] for place in range(len(dims)) if meaning("", place, dims, counts_tokens) == "image_size"]
            image_size = round(math.sqrt(math.prod(sides))) if len(sides) == 2 and min(sides) > 1 else 0
        if not image_size and not sequence and len(dims) in (2, 3) and (counts_tokens or len(dims) == 3):
            sequence = dims[1]
    return batch or 1, image_size, sequence
