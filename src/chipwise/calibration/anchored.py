"""A model whose level is a user's own run: how chips compare is predicted, how fast the work is was measured.

    seconds on a chip = predicted seconds there x measured seconds / predicted seconds on the chip that was measured
with the interval of such a ratio (`perf.ratios`). It is a `Model` like any other, so whoever asks one need not know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from chipwise.perf.arrays import Array, Coded
from chipwise.perf.model import CARRIED, MEASURED, Estimate, Model
from chipwise.perf.part import Part, Parts
from chipwise.perf.pooling import Factors
from chipwise.perf.question import Question, answer
from chipwise.perf.ratios import FAR, OF_CHIP, SAME_CHIP, SAME_SETTING, Anchor, relation, width

NEVER_MEASURED = "never measured"  # the kind of answers about networks that nothing like was measured of


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchored(Model):
    base: Model
    anchors: tuple[Anchor, ...]
    parts: Parts

    def estimate(self, family: str, question: Question, kind: Coded) -> Estimate:
        estimate = self.base.estimate(family, question, kind)
        count = len(estimate.value)
        kinds = np.array([_of_kind(kind, one, count) for one in self.anchors])
        like = kinds & np.array([_alike(question, one, count) for one in self.anchors])
        if all(name == NEVER_MEASURED for name in kind.names):
            like, kinds = np.zeros_like(like), np.ones_like(kinds)
            return self._moved(estimate, question.levels["chip"], question.power, family, like, kinds, frozenset())
        seen = chips_of(self.factors[family])
        return self._moved(estimate, question.levels["chip"], question.power, family, like, kinds, seen)

    def by_formula(self, estimate: Estimate, part: Part, power: float) -> Estimate:
        like = np.zeros((len(self.anchors), len(estimate.value)), dtype=bool)
        return self._moved(estimate, Coded.of(part.name), np.array([power]), "vision", like, ~like, frozenset())

    def _moved(
        self,
        estimate: Estimate,
        chips: Coded,
        power: Array,
        family: str,
        like: NDArray[np.bool_],
        kinds: NDArray[np.bool_],
        seen: frozenset[str],
    ) -> Estimate:
        """By anchor and row, `like`: whether the settings are those of the run; `kinds`: whether the kind of answer is;
        `seen`: chips that the fit has rows of.

        What is asked in another kind errs by what it erred by before, too. A run that lies within the interval of its own
        prediction widens nothing.
        """
        before = np.abs(np.log(estimate.high / estimate.low)) / 2.0
        sizes, repeated = np.empty(like.shape), np.zeros(like.shape, dtype=bool)
        for index, anchor in enumerate(self.anchors):
            related = [_relation(anchor.part, self.parts.find(name)) for name in chips.names]
            both_seen = [anchor.part.name in seen and name in seen for name in chips.names]
            near, far = (
                np.array([width(family, chip, setting, both) for chip, both in zip(related, both_seen, strict=True)])
                for setting in (True, False)
            )
            sizes[index] = np.where(like[index], near[chips.index], far[chips.index])
            sizes[index] = np.where(kinds[index], sizes[index], np.hypot(sizes[index], before))
            repeated[index] = like[index] & np.array([one == SAME_CHIP for one in related])[chips.index]
        weights = 1.0 / sizes**2
        logs = np.array([one.log_factor for one in self.anchors])
        log_factor = logs @ weights / weights.sum(axis=0)
        half = np.minimum(sizes.min(axis=0), np.maximum(before, np.abs(log_factor)))
        factor = np.exp(log_factor)
        value = estimate.value * factor**power
        return replace(
            estimate,
            value=value,
            low=value * np.exp(-half),
            high=value * np.exp(half),
            seconds=estimate.seconds * factor,
            terms={name: seconds * factor for name, seconds in estimate.terms.items()},
            provenance=Coded((CARRIED, MEASURED), np.asarray(repeated.any(axis=0), dtype=np.intp)),
        )


def chips_of(factors: Factors) -> frozenset[str]:
    return frozenset(name for block in factors.blocks if block.level == "chip" for name in factors.values.get(block.key, ()))


def _relation(measured: Part, part: Part | None) -> str:
    return FAR if part is None else relation(measured, part)


def _of_kind(kind: Coded, anchor: Anchor, count: int) -> NDArray[np.bool_]:
    return np.broadcast_to(np.array([name == anchor.kind for name in kind.names])[kind.index], (count,))


def _alike(question: Question, anchor: Anchor, count: int) -> NDArray[np.bool_]:
    """Rows whose settings are about those of the run."""
    like = np.ones(count, dtype=bool)
    for name, values in question.features.items():
        if name not in OF_CHIP:
            like = like & (np.abs(values - anchor.setting.get(name, np.inf)) < SAME_SETTING)
    return np.asarray(np.broadcast_to(like, (count,)))


@dataclass(frozen=True, slots=True)
class Answered:
    """One row of an answer: what was asked in which setting, and the least that the hardware needs for it."""

    value: float
    seconds: float
    minimum: float
    kind: str
    setting: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness(Model):
    """A model that remembers what it was asked."""

    base: Model
    seen: list[Answered] = field(default_factory=list)

    def estimate(self, family: str, question: Question, kind: Coded) -> Estimate:
        estimate = self.base.estimate(family, question, kind)
        floor_s = answer(question, self.base.factors[family]).minimum
        for row in range(len(estimate.value)):
            self.seen.append(
                Answered(
                    value=float(estimate.value[row]),
                    seconds=float(estimate.seconds[row]),
                    minimum=_cell(floor_s, row),
                    kind=kind.name_at(row if len(kind) > 1 else 0),
                    setting={name: _cell(values, row) for name, values in question.features.items() if name not in OF_CHIP},
                )
            )
        return estimate

    def find(self, values: Sequence[float]) -> list[Answered]:
        """What was answered with each of these values, as far as it was."""
        return [one for value in values for one in self.seen if abs(one.value - value) <= 1e-9 * abs(value)][:1]


def _cell(values: Array, row: int) -> float:
    return float(values[row if len(values) > 1 else 0])


def witness(model: Model) -> Witness:
    return Witness(factors=model.factors, bands=model.bands, nearness=model.nearness, best=model.best, base=model)


def anchored(model: Model, anchors: Sequence[Anchor], parts: Parts) -> Model:
    """`model` itself where nothing was measured."""
    if not anchors:
        return model
    return Anchored(
        factors=model.factors,
        bands=model.bands,
        nearness=model.nearness,
        best=model.best,
        base=model,
        anchors=tuple(anchors),
        parts=parts,
    )
