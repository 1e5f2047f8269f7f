"""How often machines break: what operators of large clusters published, per chip and day."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import numpy as np

from chipwise.catalog.tables import FailureRate
from chipwise.perf.arrays import Array
from chipwise.planner.fleet import Fleet
from chipwise.units import DAY

TPU = "TPU"


class Failures:
    """The median of what was published of GPUs, and of TPUs, which fail less; every other chip counts as a GPU does."""

    def __init__(self, rows: Sequence[FailureRate]) -> None:
        sudden = [row for row in rows if row.per_1000_chip_days and not row.planned]
        found = [(row.chip.startswith(TPU), (row.per_1000_chip_days or 0.0) / 1000.0) for row in sudden]
        self.gpu_per_day = median(rate for is_tpu, rate in found if not is_tpu)
        self.tpu_per_day = median([rate for is_tpu, rate in found if is_tpu] or [self.gpu_per_day])

    def per_machine_s(self, fleet: Fleet) -> Array:
        """Failures a second of one machine, by the catalog's machines; a machine without a known shape counts as one chip."""
        by_kind = {"tpu": self.tpu_per_day / DAY}
        shapes = [one.chips * by_kind.get(fleet.parts[one.part].kind, self.gpu_per_day / DAY) for one in fleet.shapes]
        return np.array([*shapes, self.gpu_per_day / DAY])[fleet.shape_of]
