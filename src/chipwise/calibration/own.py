"""A user's own runs against the packaged model: what they say of later predictions, and whether they help.

With r = log(measured seconds / predicted seconds) of each run, r = sum over levels of u[level, name] + noise: all of the
user's runs, the family of work, the chip, the chip with its software, the chip with the model. Each u has a normal prior
around zero (`PRIORS`), the noise has a standard deviation of `NOISE`, and a run far off counts less (Student's t with 4
degrees of freedom). The posterior is closed: (Z' W Z / NOISE^2 + D^-1) u = Z' W r / NOISE^2. Source: A. Gelman and J. Hill,
Data Analysis Using Regression and Multilevel Models, 2007, chapter 12.

Runs with the same names say one thing together, so a mean and a weight per such cell is all that is kept, and the factors
follow from the cells. Limits: one factor on the whole time, whatever part of the formula was wrong; a family of work of
which there is no run is left as packaged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from chipwise.calibration.crossvalidate import WEIGHTS, Sample, group_key, weight_of
from chipwise.perf.arrays import Array, Coded, Index
from chipwise.perf.model import MEASURED, Estimate, Model
from chipwise.perf.question import Question
from chipwise.spelling import fold

PRIORS = {"all": 0.3, "family": 0.2, "chip": 0.15, "chip|software": 0.1, "chip|model": 0.1}  # standard deviations
NOISE = 0.1
CAUTIOUS = 1 / 3  # on the priors, where held-out runs cannot tell whether the factors help
FARTHEST = float(np.log(5.0))  # a run further off counts as this far: it was measured or written down wrongly
HALF_TRUST_RUNS = 10.0  # runs of a family at which their own spread counts as much for intervals as the packaged one
_DEGREES = 4.0
_MOST_FOLDS = 40
Z = 1.2816  # standard deviations from the middle to the 90th percentile


@dataclass(frozen=True, slots=True)
class Cell:
    """Runs of one family, chip, software and model."""

    family: str
    chip: str  # the catalog's name
    software: str  # engine or training stack
    model: str
    rows: int
    weight: float  # of the runs together, doubtful ones counted less
    residual: float  # their mean log(measured seconds / predicted seconds)

    @property
    def names(self) -> tuple[str, ...]:
        """The name at each level of `PRIORS`."""
        return names_of(self.family, self.chip, self.software, self.model)

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.family, self.chip, self.software, fold(self.model)


def names_of(family: str, chip: str, software: str, model: str) -> tuple[str, ...]:
    return "", family, chip, f"{chip}|{software}", f"{chip}|{fold(model)}"


@dataclass(frozen=True, slots=True)
class Offset:
    """By row: the factor's logarithm on the seconds, its variance, how far the runs speak for its interval (0 to 1: what
    they took of the prior, less where they are few), whether this very configuration was run, and the held-out residuals'
    standard deviation (NaN: cannot be told)."""

    log: Array
    variance: Array
    trust: Array
    measured: Array
    spread: float


@dataclass(frozen=True)
class OwnFactors:
    cells: tuple[Cell, ...]
    cautious: bool = False
    spread: Mapping[str, float] = field(default_factory=dict)  # by family, of held-out residuals with the factors applied

    @cached_property
    def _sds(self) -> Array:
        return np.array(list(PRIORS.values())) * (CAUTIOUS if self.cautious else 1.0)

    @cached_property
    def _known(self) -> dict[tuple[int, str], int]:
        pairs = ((level, name) for cell in self.cells for level, name in enumerate(cell.names))
        return {pair: at for at, pair in enumerate(dict.fromkeys(pairs))}

    @cached_property
    def _posterior(self) -> tuple[Array, Array]:
        """Mean and covariance of every factor."""
        known = self._known
        design = np.zeros((len(self.cells), len(known)))
        for row, cell in enumerate(self.cells):
            design[row, [known[level, name] for level, name in enumerate(cell.names)]] = 1.0
        weight = np.array([cell.weight for cell in self.cells]) / NOISE**2
        prior = np.array([1.0 / self._sds[level] ** 2 for level, _ in known])
        covariance: Array = np.asarray(np.linalg.inv((design * weight[:, None]).T @ design + np.diag(prior)), dtype=np.float64)
        return covariance @ (design.T @ (weight * np.array([cell.residual for cell in self.cells]))), covariance

    @cached_property
    def _families(self) -> frozenset[str]:
        return frozenset(cell.family for cell in self.cells)

    @cached_property
    def _run(self) -> frozenset[tuple[str, str, str, str]]:
        return frozenset(cell.key for cell in self.cells)

    def chips(self, family: str) -> frozenset[str]:
        return frozenset(cell.chip for cell in self.cells if cell.family == family)

    def factors(self) -> list[tuple[str, str, float, float]]:
        """(level, name, log factor, standard deviation) of every one, for a reader."""
        if not self.cells:
            return []
        mean, covariance = self._posterior
        levels = tuple(PRIORS)
        titles = {f"{cell.chip}|{fold(cell.model)}": f"{cell.chip}|{cell.model}" for cell in self.cells}
        return [
            (levels[level], titles.get(name, name), float(mean[index]), float(np.sqrt(covariance[index, index])))
            for (level, name), index in self._known.items()
        ]

    def factor(self, family: str, chip: str, software: str, model: str) -> tuple[float, float]:
        """Log factor and variance of one configuration."""
        if family not in self._families:
            return 0.0, float(np.sum(self._sds**2))
        mean, covariance = self._posterior
        pairs = list(enumerate(names_of(family, chip, software, model)))
        indices = [self._known[pair] for pair in pairs if pair in self._known]
        unknown = sum(self._sds[level] ** 2 for level, name in pairs if (level, name) not in self._known)
        return float(mean[indices].sum()), float(covariance[np.ix_(indices, indices)].sum() + unknown)

    def offset(self, family: str, chips: Coded, software: Coded, models: Coded) -> Offset:
        """Columns in, columns out; a column of length one stands for all rows."""
        if family not in self._families:
            nothing = np.zeros(1)
            return Offset(log=nothing, variance=nothing, trust=nothing, measured=nothing, spread=np.nan)
        combined, place = _combined(chips, software, models)
        pairs = [self.factor(family, *names) for names in combined]
        log, variance = (np.array([pair[side] for pair in pairs]) for side in (0, 1))
        ran = np.array([float((family, chip, engine, fold(model)) in self._run) for chip, engine, model in combined])
        rows = sum(cell.rows for cell in self.cells if cell.family == family)
        trust = (1.0 - variance / float(np.sum(self._sds**2))) * rows / (rows + HALF_TRUST_RUNS)
        return Offset(
            log=log[place],
            variance=variance[place],
            trust=trust[place],
            measured=ran[place],
            spread=self.spread.get(family, np.nan),
        )


def _combined(*columns: Coded) -> tuple[list[tuple[str, str, str]], Index]:
    """The triples of names that some row has, and which of them each row has."""
    size = max(len(column) for column in columns)
    code = np.zeros(size, dtype=np.intp)
    for column in columns:
        code = code * len(column.names) + column.index
    present, place = np.unique(code, return_inverse=True)
    triples = []
    for rest in present.tolist():
        names: list[str] = []
        for column in reversed(columns):
            rest, index = divmod(rest, len(column.names))
            names.insert(0, column.names[index])
        triples.append((names[0], names[1], names[2]))
    return triples, place


def apply(estimate: Estimate, offset: Offset, power: Array) -> Estimate:
    """The estimate with a user's factor on its time.

    Seconds and terms are multiplied by exp(offset), and the value follows with `power` (the question's: -1 for rates). What
    was run itself is `measured`. The interval's ends go from the packaged band toward the held-out residuals' spread, by as
    far as the runs speak for this row, but never inside of what runs differ by themselves (`NOISE`).
    """
    factor = np.exp(offset.log)
    value = estimate.value * factor**power
    share = offset.trust if np.isfinite(offset.spread) else np.zeros(1)

    def distance(packaged: Array) -> Array:
        size = np.abs(packaged)
        own = np.maximum(Z * (offset.spread if np.isfinite(offset.spread) else 0.0), np.minimum(size, Z * NOISE))
        return (1.0 - share) * size + share * own

    low, high = (distance(np.log(end / estimate.value)) for end in (estimate.low, estimate.high))
    near = estimate.provenance
    ran = np.broadcast_to(offset.measured > 0, value.shape)
    index = np.where(ran, len(near.names), np.broadcast_to(near.index, value.shape))
    return Estimate(
        value=value,
        low=value * np.exp(-low),
        high=value * np.exp(high),
        seconds=estimate.seconds * factor,
        terms={name: seconds * factor for name, seconds in estimate.terms.items()},
        provenance=Coded((*near.names, MEASURED), index),
        spread=estimate.spread,
        minimum=estimate.minimum,
    )


def with_own(own: OwnFactors | None, family: str, question: Question, estimate: Estimate) -> Estimate:
    """The packaged estimate of a question, moved by the user's runs where there are any."""
    if own is None or not own.cells:
        return estimate
    return apply(estimate, own.offset(family, *columns_of(question)), question.power)


def columns_of(question: Question) -> tuple[Coded, Coded, Coded]:
    """Chip, software and model of a question's rows, whichever family asks."""
    levels = question.levels
    return levels["chip"], levels["engine"] if "engine" in levels else levels["stack"], levels["model"]


@dataclass(frozen=True, slots=True)
class Runs:
    """Rows with a measured value that the packaged model answers, as columns."""

    group: tuple[str, ...]
    keys: tuple[tuple[str, str, str, str], ...]  # family, chip, software, model
    weight: Array
    residual: Array

    def __len__(self) -> int:
        return len(self.keys)

    def rows(self, selection: Index) -> Runs:
        return Runs(
            tuple(self.group[at] for at in selection),
            tuple(self.keys[at] for at in selection),
            self.weight[selection],
            self.residual[selection],
        )


def runs_of(samples: Sequence[Sample], model: Model) -> Runs:
    """`model` is the packaged one: residuals are against what everybody gets."""
    group: list[str] = []
    keys: list[tuple[str, str, str, str]] = []
    weights: list[float] = []
    residuals: list[float] = []
    for sample in samples:
        family = sample.family
        estimate = model.estimate(family.name, sample.question, Coded.of([family.kind_of(case) for case in sample.cases]))
        group += [f"{family.name}|{group_key(row)}" for row in sample.rows]
        names = zip(*(column.texts() for column in columns_of(sample.question)), strict=True)
        keys += [(family.name, chip, software, name) for chip, software, name in names]
        weights += [min(weight_of(row) / WEIGHTS["B"], 1.0) for row in sample.rows]
        residuals += (np.log(sample.question.time_of(sample.measured)) - np.log(estimate.seconds)).tolist()
    return Runs(tuple(group), tuple(keys), np.array(weights), np.array(residuals))


def fit(runs: Runs, cautious: bool = False, spread: Mapping[str, float] | None = None, rounds: int = 4) -> OwnFactors:
    """Rounds of weighing: a run that the factors leave far off counts less in the next."""
    near = np.clip(runs.residual, -FARTHEST, FARTHEST)
    weight = runs.weight
    factors = OwnFactors((), cautious)
    for _ in range(rounds):
        factors = OwnFactors(_cells(runs, near, weight), cautious, spread or {})
        left = near - predicted(factors, runs)
        weight = runs.weight * (_DEGREES + 1) / (_DEGREES + (left / NOISE) ** 2)
    return factors


def _cells(runs: Runs, residual: Array, weight: Array) -> tuple[Cell, ...]:
    members: dict[tuple[str, str, str, str], list[int]] = {}
    titles: dict[tuple[str, str, str, str], str] = {}
    for index, (family, chip, software, name) in enumerate(runs.keys):
        key = (family, chip, software, fold(name))
        members.setdefault(key, []).append(index)
        titles.setdefault(key, name)
    cells = []
    for key, rows in members.items():
        heavy = float(np.sum(weight[rows]))
        mean = float(np.sum(weight[rows] * residual[rows]) / heavy) if heavy > 0 else 0.0
        family, chip, software, _ = key
        cells.append(
            Cell(
                family=family,
                chip=chip,
                software=software,
                model=titles[key],
                rows=len(rows),
                weight=heavy,
                residual=mean,
            )
        )
    return tuple(cells)


def predicted(factors: OwnFactors, runs: Runs) -> Array:
    """The factors' logarithm for each run."""
    if not factors.cells:
        return np.zeros(len(runs))
    configurations = dict.fromkeys(runs.keys)
    logs = {key: factors.factor(*key)[0] for key in configurations}
    return np.array([logs[key] for key in runs.keys])


@dataclass(frozen=True, slots=True)
class Trial:
    """Held-out runs with and without the factors: |log(measured / predicted)|, 0.1 being about 10%."""

    groups: int
    median_before: float
    median_after: float
    mean_before: float
    mean_after: float
    spread: Mapping[str, float]  # by family, of what is left after

    @property
    def worse(self) -> bool:
        """By the median; by the mean where the medians are level."""
        if abs(self.median_after - self.median_before) > 0.001:
            return self.median_after > self.median_before
        return self.mean_after > self.mean_before + 0.001


def try_out(runs: Runs) -> Trial | None:
    """Leaves out whole groups in turn. None where fewer than three runs or a single group cannot tell."""
    names = list(dict.fromkeys(runs.group))
    if len(runs) < 3 or len(names) < 2:
        return None
    fold_of = {name: at % _MOST_FOLDS for at, name in enumerate(names)}
    numbers = np.array([fold_of[name] for name in runs.group])
    left = np.clip(runs.residual, -FARTHEST, FARTHEST)
    for number in np.unique(numbers):
        out = numbers == number
        factors = fit(runs.rows(np.flatnonzero(~out)))
        for row in np.flatnonzero(out):
            left[row] -= factors.factor(*runs.keys[row])[0]
    before, after = np.abs(np.clip(runs.residual, -FARTHEST, FARTHEST)), np.abs(left)
    families = [key[0] for key in runs.keys]
    spread = {name: _deviation(after[[family == name for family in families]]) for name in dict.fromkeys(families)}
    return Trial(
        groups=len(names),
        median_before=float(np.median(before)),
        median_after=float(np.median(after)),
        mean_before=float(np.mean(before)),
        mean_after=float(np.mean(after)),
        spread=spread,
    )


def _deviation(sizes: Array) -> float:
    """A standard deviation from the 80th percentile of absolute residuals, one rank out for small samples."""
    ordered = np.sort(sizes)
    rank = min(int(np.ceil(0.8 * (len(ordered) + 1))) - 1, len(ordered) - 1)
    return float(ordered[rank] / Z)
