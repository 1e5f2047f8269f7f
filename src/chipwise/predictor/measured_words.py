"""What is said of runs that a user measured, and what is refused of them: the same whichever kind of work they are of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from chipwise.errors import BadInput
from chipwise.text import duration, number
from chipwise.workload.measured import Measured, Per

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

SLOW = 10.0  # times the predicted time: from here on something other than the chip is likely behind it
CONTRADICTS = 3.0  # times what four in five pairs of chips differ by
_CAUSES = (
    "data that comes too slowly, another precision or batch than stated, work left on the processor, a chip that is shared"
)


def source_words(known: Known, lines: Sequence[Measured], usual: Per) -> str:
    """Where the level comes from, in one line of an answer."""
    runs = [f"{line.words(usual)} on {_chips(known, line)}" for line in lines]
    return f"Speed from your {' and your '.join(runs)}."


def _chips(known: Known, line: Measured) -> str:
    return line.words_of(known.names.one_chip(line.on).chip.name)


def slow_words(factor: float, chip: str, first: str = "") -> str:
    """`first` is what is likelier than all else."""
    causes = f"{first}, {_CAUSES}" if first else _CAUSES
    return f"Your run took {number(factor)} times what is predicted for {chip}. Likely: {causes}."


def contradiction(left: Measured, right: Measured, factors: tuple[float, float] | None = None) -> BadInput:
    if factors is None:
        finding = f"the runs on {left.chip_words} and on {right.chip_words} contradict each other: chips do not differ so much."
    else:
        first, second = map(number, factors)
        finding = (
            f"the run on {left.chip_words} took {first} times what is predicted there, the run on {right.chip_words} {second} "
        )
        finding += "times: they contradict each other."
    return BadInput(
        f"measured: {finding}",
        remedy="Check chips, batch and units of both lines, or leave out the one that something else held up.",
    )


def too_fast(field: str, line: Measured, usual: Per, chip: str, least_s: float) -> BadInput:
    unit = line.per or usual
    hardware = f"{line.chips:,} {chip}" if line.vcpus is None else line.words_of(chip)
    allowed = f"{number(1 / least_s)} {unit}s/s" if line.rate is not None else f"{duration(least_s)} per {unit}"
    return BadInput(
        f"{field}: {line.words(usual)} is faster than {hardware} can be: its peak rates allow {allowed}.",
        remedy="Check the unit, the number of chips, and that model, lengths and precision are those of the run.",
    )
