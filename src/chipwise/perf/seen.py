"""How near a question is to what was measured: which chips, with what software, at what settings.

  near       the chip was measured with this software, within a third of the settings that are asked (context, chips together)
  between    chip and software were both measured, but not together, or only at other settings
  software   the chip was measured with other software only
  formula    the chip was never measured
`beyond` is the distance outside of the measured settings, in natural logarithms: a context of 8 times the longest one that was
measured is log 8 away. Intervals grow with it (`bands`). What stands here is data/perf/seen.csv, or rows of a fold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from chipwise.perf.arrays import Array, Coded
from chipwise.perf.pooling import Groups
from chipwise.perf.question import Question

INTERPOLATED, BETWEEN, SOFTWARE, FORMULA = "interpolated", "between", "other software", "formula"
CLASSES = (INTERPOLATED, BETWEEN, SOFTWARE, FORMULA)
SETTINGS = ("context", "chips")
TOLERANCE = float(np.log(4 / 3))  # outside of the measured settings that still counts as near
GROWTH = 0.12  # standard deviation of the logarithm for every e-fold beyond what was measured
_LEVELS = {"training": "stack", "inference": "engine"}
Range = tuple[tuple[float, float], ...]  # lowest and highest logarithm of each setting


@dataclass(frozen=True, slots=True)
class Seen:
    """Settings of all rows, by software and chip."""

    software_level: str
    ranges: Mapping[tuple[str, str], Range]  # software, chip
    software: frozenset[str] = field(init=False)
    chips: frozenset[str] = field(init=False)
    _placed: dict[str, tuple[int, Range]] = field(init=False, compare=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "software", frozenset(software for software, _ in self.ranges))
        object.__setattr__(self, "chips", frozenset(chip for _, chip in self.ranges))

    @classmethod
    def of(cls, family: str, question: Question, used: NDArray[np.bool_]) -> Seen:
        """What `used` rows of a question show."""
        level = _LEVELS[family]
        count = len(used)
        columns = [np.broadcast_to(question.settings[name], (count,)) for name in SETTINGS]
        members: dict[tuple[str, str], list[int]] = {}
        texts = zip(question.levels[level].texts(), question.levels["chip"].texts(), used, strict=True)
        for row, (software, chip, counts) in enumerate(texts):
            if counts:
                members.setdefault((software, chip), []).append(row)
        return cls(
            level,
            {
                pair: tuple((float(values[rows].min()), float(values[rows].max())) for values in columns)
                for pair, rows in sorted(members.items())
            },
        )

    def place(self, question: Question) -> tuple[Coded, Array]:
        """The class of every row, and how far beyond the measured settings it is."""
        levels = question.levels
        names, rows = (levels.levels, levels.index) if isinstance(levels, Groups) else (levels, None)
        pairs = names[self.software_level].cross(names["chip"])
        pair_ranges = [self._pair(text) for text in pairs.names]
        index = pairs.index if rows is None or len(pairs) == 1 else pairs.index.take(rows)
        beyond: Array = np.zeros(1)
        for place, setting in enumerate(SETTINGS):
            low, high = (np.array([one[1][place][side] for one in pair_ranges]).take(index) for side in (0, 1))
            logs = question.settings[setting]
            beyond = np.maximum(beyond, np.maximum(logs - high, low - logs))
        kinds = np.array([one[0] for one in pair_ranges], dtype=np.intp).take(index)
        outside = (beyond > TOLERANCE) & (kinds == 0)
        if outside.any():
            kinds = np.where(outside, 1, kinds)
        return Coded(CLASSES, kinds if len(kinds) == len(beyond) else np.broadcast_to(kinds, beyond.shape)), beyond

    def _pair(self, text: str) -> tuple[int, Range]:
        if text not in self._placed:
            self._placed[text] = self._place(text)
        return self._placed[text]

    def _place(self, text: str) -> tuple[int, Range]:
        software, chip = text.split("|", 1)
        if (software, chip) in self.ranges:
            return 0, self.ranges[software, chip]
        known = software in self.software, chip in self.chips
        kin = [one for (name, part), one in self.ranges.items() if (software == name if known[0] else chip == part)]
        return (1 if all(known) else 2 if known[1] else 3), _joined(kin or list(self.ranges.values()))


def _joined(ranges: Sequence[Range]) -> Range:
    """All settings of these."""
    return tuple((min(low for low, _ in one), max(high for _, high in one)) for one in zip(*ranges, strict=True))


def to_rows(family: str, seen: Seen) -> list[dict[str, str]]:
    return [
        {"family": family, "software": software, "chip": chip}
        | {
            f"{name}_{end}": f"{np.exp(value):.6g}"
            for name, pair in zip(SETTINGS, limits, strict=True)
            for end, value in zip(("low", "high"), pair, strict=True)
        }
        for (software, chip), limits in seen.ranges.items()
    ]


def from_rows(rows: Sequence[Mapping[str, str]]) -> dict[str, Seen]:
    ranges: dict[str, dict[tuple[str, str], Range]] = {}
    for row in rows:
        limits = tuple(
            (float(np.log(float(row[f"{name}_low"]))), float(np.log(float(row[f"{name}_high"])))) for name in SETTINGS
        )
        ranges.setdefault(row["family"], {})[row["software"], row["chip"]] = limits
    return {family: Seen(_LEVELS[family], by_pair) for family, by_pair in ranges.items()}
