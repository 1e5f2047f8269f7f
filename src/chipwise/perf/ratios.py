"""How far the ratio of two predictions of one model is from the ratio of what was measured: intervals of a speed that is
carried over from one chip to another.

With r = log(measured seconds / predicted seconds) of a run, a run on one chip tells r there, and a prediction elsewhere that
is moved by it errs by the difference of two r. `data/perf/ratios.csv` has, of pairs of published rows, the size that four
of five such differences stay below: by family of formulas, by how the two chips are related, and by whether the settings
(batch, number of chips, lengths) are the same. Rows of one source were left out together when they were predicted, so a pair
was seen by nobody (`tools/carry_over.py`). Where nothing but a time is known, the ratio is that of what the chips' sheets
say: arithmetic, bandwidth of memory, or both (`speed_of`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, sqrt
from statistics import median

from chipwise.perf.part import Part
from chipwise.perf.tables import rows

SAME_CHIP, ALIKE, FAR = "same chip", "same architecture", "other"
RELATIONS = (SAME_CHIP, ALIKE, FAR)
AGAIN = 0.05  # a run repeated on the same chip in the same way: rule of thumb
SHEET = "sheet"  # the family of ratios that only the sheets of chips tell
WIDEST = 0.9  # as where nothing was measured (`bands.WIDE`)
# Features that are the chip's own: two settings are the same whatever these are.
OF_CHIP = frozenset({"strength", "speed", "watts", "clock"})
SAME_SETTING = 0.5  # of the logarithm of a feature: below, two settings count as the same


@dataclass(frozen=True, slots=True)
class Anchor:
    """A run on a chip, held against the prediction of that run."""

    part: Part
    log_factor: float  # of measured seconds over predicted seconds
    setting: Mapping[str, float]  # features of the run; empty where it has none
    kind: str = ""  # of answer


def relation(left: Part, right: Part) -> str:
    if left.name == right.name:
        return SAME_CHIP
    return ALIKE if left.architecture == right.architecture and left.vendor == right.vendor else FAR


@cache
def widths() -> Mapping[tuple[str, str, bool, bool], float]:
    """(family, relation, same setting, both chips measured) -> the size that four of five differences stay below."""
    return {
        (row["family"], row["relation"], row["setting"] == "same", row["chips"] == "measured"): float(row["four_in_five_below"])
        for row in rows("ratios.csv")
    }


def width(family: str, relation: str, alike: bool, seen: bool = True) -> float:
    """At least that of what is nearer: another setting is no surer than the same, nor a new chip than one that was measured."""
    if relation == SAME_CHIP and alike:
        return AGAIN
    settings, chips = ({alike, True}, {seen, True})
    nearer = [(family, relation, setting, chip) for setting in settings for chip in chips]
    return max((widths()[key] for key in nearer if key in widths()), default=WIDEST)


def apart(left: Anchor, right: Anchor, family: str) -> float:
    """How many times further apart two runs are than four in five such pairs."""
    size = width(family, relation(left.part, right.part), alike=False)
    return abs(left.log_factor - right.log_factor) / size


def speed_of(part: Part, bound: str, precision: str) -> float:
    """What a chip's sheet says of work that is held up so, in a unit that only ratios are taken of."""
    compute, memory = part.rate(precision), part.bandwidth
    return {"compute": compute, "memory": memory, "transfer": part.pcie}.get(bound) or sqrt(compute * memory)


def sheet_ratio(reference: Part, part: Part, bound: str, precision: str) -> tuple[float, float]:
    """Seconds on a part over those on another by their sheets, and the half-width of its logarithm."""
    share = speed_of(reference, bound, precision) / speed_of(part, bound, precision)
    return share, width(f"{SHEET} {bound}", relation(reference, part), True)


def error_of(differences: Sequence[float]) -> float:
    """The median error of ratios as a share, from differences of logarithms."""
    return median(exp(abs(size)) - 1.0 for size in differences)
