"""From the words a provider uses for a part to the catalog's name for it.

Providers drop what tells two parts apart (EC2 says "A100" for 40 and for 80 GiB), so the memory is tried first.
A name that is found but contradicts the memory is no answer: unknown is better than wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from chipwise.spelling import fold
from chipwise.units import GIB

# Names of one part in two sizes state the size: A100-40, A100-80-PCIe, V100-16.
_SIZED = re.compile(r"[A-Z]{1,2}\d{2,3}-(\d{2,3})\b")
_MODEL = re.compile(r"(?=.*[A-Za-z])(?=.*\d)[A-Za-z0-9-]{3,}")


def find_chip(chip_of: Mapping[str, str], name: str, memory_bytes: float | None = None, maker: str = "") -> str | None:
    """The catalog's chip for `name`; `memory_bytes` is that of one whole chip, None where it is a slice or unknown."""
    for spelling in _spellings(name, memory_bytes, maker):
        chip = chip_of.get(fold(spelling))
        if chip is not None and _fits(chip, memory_bytes):
            return chip
    return None


def _spellings(name: str, memory_bytes: float | None, maker: str) -> Iterator[str]:
    if memory_bytes is not None:
        size = round(memory_bytes / GIB)
        yield f"{name}-{size}GB"
        yield f"{name}-{size}"
    yield name
    yield re.sub(r"(\d)\s?GB$", r"\1", name)  # "V100-32GB"
    yield f"{maker} {name}"
    yield f"Tesla {name}"
    yield f"{name}-SXM"  # of the forms of one part, the one meant where clouds name none
    inside = re.search(r"\(([^()]+)\)", name)  # "Virtex UltraScale+ (VU47P)"
    if inside:
        yield inside[1]
    yield from (word for word in name.split() if _MODEL.fullmatch(word))  # "Gaudi HL-205"


def _fits(chip: str, memory_bytes: float | None) -> bool:
    sized = _SIZED.match(chip)
    return sized is None or memory_bytes is None or 0.8 < memory_bytes / GIB / float(sized[1]) < 1.25
