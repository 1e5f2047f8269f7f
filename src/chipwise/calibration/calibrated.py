"""The packaged model with what a user measured on top: a `Model` like any other, so whoever asks one need not know.

Runs come before profiles: where a family of work was run on a chip, the profile of that chip is not asked, for its runs
show all that the profile shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from chipwise.calibration.from_profile import ChipOffset, moved
from chipwise.calibration.own import OwnFactors, columns_of, with_own
from chipwise.perf.arrays import Coded
from chipwise.perf.model import Estimate, Model
from chipwise.perf.question import Question


@dataclass(frozen=True, slots=True)
class Calibrated(Model):
    runs: OwnFactors | None = None
    profiles: Mapping[str, ChipOffset] = field(default_factory=dict)  # by the catalog's name of the chip

    def estimate(self, family: str, question: Question, kind: Coded) -> Estimate:
        estimate = Model.estimate(self, family, question, kind)
        run = self.runs.chips(family) if self.runs is not None else frozenset()
        profiled = {chip: offset for chip, offset in self.profiles.items() if chip not in run}
        if profiled:
            estimate = moved(estimate, columns_of(question)[0], question.power, profiled)
        return with_own(self.runs, family, question, estimate)


def calibrated(model: Model, runs: OwnFactors | None, profiles: Mapping[str, ChipOffset]) -> Model:
    """`model` itself where the user measured nothing."""
    if (runs is None or not runs.cells) and not profiles:
        return model
    return Calibrated(
        factors=model.factors, bands=model.bands, nearness=model.nearness, best=model.best, runs=runs, profiles=profiles
    )
