"""Stages that hand on what they make, chosen together: the best combination of their candidates, exactly.

    usd, kg      sums over stages and hand-offs (a hand-off emits nothing here: nobody states what a byte on the way emits)
    seconds      the longest way through: a stage starts when all that it takes has arrived, and others run beside it
    score        usd, seconds, kg, or for "balanced" the cube root of their product, of the whole

What is searched. A candidate is only as good as where it stands, so that of a stage nothing matters but, region by region, the
candidates that no other beats in everything that counts. Stages are then decided one after the other, in the order of the
hand-offs (`labelling.py`); what cannot beat an answer that is known already is dropped by its bound (`bounds.py`), and that
answer comes from the same search with few labels. Nothing else is dropped: the answer is the best there is, to one part in 1e9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from chipwise.perf.arrays import Array
from chipwise.planner.fleet import Index
from chipwise.planner.pipeline.beside import Cap, Excess, SharedQuota, excesses
from chipwise.planner.pipeline.bounds import ROUNDING, TIE, Edge, Mix, Node, Space, ties
from chipwise.planner.pipeline.grouped import unbeaten
from chipwise.planner.pipeline.labelling import counted, search

BEAMS = (8, 64)  # labels kept of a step when an answer is only looked for, not proved
GREENER_TRIED = 50  # candidates at one price, those that emit least
TILTS = (0.5, 1.0, 2.0)  # of the weights of mixes: which one bounds best is not known before


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """Candidates of one stage as columns. `region` is a code that all stages share."""

    name: str
    region: Index
    usd: Array
    seconds: Array  # until what follows can start
    kg: Array
    charged: Array  # USD that count against the budget of the whole
    draws: Array  # [candidate, quota]: what it needs of the quotas that stages share

    def __len__(self) -> int:
        return len(self.region)


@dataclass(frozen=True, slots=True, eq=False)
class StageHandOff:
    """What one stage gives to a later one, by [region of the giver, region of the taker]."""

    giver: int
    taker: int
    usd: Array
    seconds: Array
    charged: Array


@dataclass(frozen=True, slots=True)
class Wanted:
    objective: str = "cost"
    deadline_s: float | None = None
    budget_usd: float | None = None
    quotas: tuple[SharedQuota, ...] = ()

    def money(self, joint: Joint) -> float:
        """By which ties are decided: as the budget counts it, where there is one."""
        return joint.usd if self.budget_usd is None else joint.charged


@dataclass(frozen=True, slots=True)
class Joint:
    """One candidate of every stage, and what they come to together."""

    picks: tuple[int, ...]
    usd: float
    seconds: float
    kg: float
    charged: float
    starts: tuple[float, ...]  # seconds from the start of the whole
    ends: tuple[float, ...]

    def score(self, objective: str) -> float:
        match objective:
            case "time":
                return self.seconds
            case "carbon":
                return self.kg
            case "balanced":
                return float(np.cbrt(self.usd * self.seconds * max(self.kg, 1e-9)))
            case _:
                return self.usd

    def keeps(self, wanted: Wanted) -> bool:
        late = wanted.deadline_s is not None and self.seconds > wanted.deadline_s * (1 + ROUNDING)
        return not late and (wanted.budget_usd is None or self.charged <= wanted.budget_usd * (1 + ROUNDING))


def worthwhile(stage: Stage, timed: bool = True, carbon: bool = True) -> Index:
    """Candidates that no other in the same region beats in cost and need of quotas, and in time and carbon where they count.
    (What a budget counts of a stage is a share of its cost, the same for all.)"""
    columns = [stage.usd, *([stage.seconds] if timed else ()), *([stage.kg] if carbon else ()), stage.draws]
    return unbeaten(np.column_stack(columns), stage.region, (stage.seconds, stage.kg))


def reckon(stages: Sequence[Stage], hand_offs: Sequence[StageHandOff], picks: Sequence[int]) -> Joint:
    """What one candidate of every stage comes to."""
    regions = [int(stage.region[at]) for stage, at in zip(stages, picks, strict=True)]
    starts, ends = [0.0] * len(stages), [0.0] * len(stages)
    usd, charged, kg = (
        float(sum(getattr(stage, name)[at] for stage, at in zip(stages, picks, strict=True)))
        for name in ("usd", "charged", "kg")
    )
    for index, stage in enumerate(stages):
        for hand_off in hand_offs:
            if hand_off.taker == index:
                way = regions[hand_off.giver], regions[index]
                starts[index] = max(starts[index], ends[hand_off.giver] + float(hand_off.seconds[way]))
                usd, charged = usd + float(hand_off.usd[way]), charged + float(hand_off.charged[way])
        ends[index] = starts[index] + float(stage.seconds[picks[index]])
    return Joint(
        picks=tuple(map(int, picks)), usd=usd, seconds=max(ends), kg=kg, charged=charged, starts=tuple(starts), ends=tuple(ends)
    )


def solve(stages: Sequence[Stage], hand_offs: Sequence[StageHandOff], wanted: Wanted) -> Joint | None:
    """The best combination that keeps deadline, budget and quotas; None: there is none."""
    assert all(one.giver < one.taker for one in hand_offs), "stages come in the order of their hand-offs"
    if not stages or not all(map(len, stages)):
        return None
    best = _within_quotas(_anywhere, stages, hand_offs, wanted)
    return None if best is None else _greener(stages, hand_offs, wanted, best)


def _greener(stages: Sequence[Stage], hand_offs: Sequence[StageHandOff], wanted: Wanted, best: Joint) -> Joint:
    """As good, with each stage where it emits less at the same price: the search does not look at carbon unless it counts."""
    for index, stage in enumerate(stages):
        own = best.picks[index]
        alike = np.flatnonzero((stage.usd <= stage.usd[own] * (1 + TIE)) & (stage.kg < stage.kg[own]))
        for row in alike[np.argsort(stage.kg[alike], kind="stable")][:GREENER_TRIED].tolist():
            other = reckon(stages, hand_offs, (*best.picks[:index], row, *best.picks[index + 1 :]))
            totals = ((other.usd, best.usd), (other.seconds, best.seconds), (other.charged, best.charged))
            same = all(value <= limit * (1 + TIE) for value, limit in totals)
            if same and other.keeps(wanted) and not beyond(stages, wanted, other):
                best = other
                break
    return best


def single_region(stages: Sequence[Stage], hand_offs: Sequence[StageHandOff], wanted: Wanted) -> Joint | None:
    """The best where all stages run in the same region."""
    return _within_quotas(_in_one_region, stages, hand_offs, wanted)


def beyond(stages: Sequence[Stage], wanted: Wanted, joint: Joint) -> list[Excess]:
    """Quotas that a combination exceeds."""
    draws = [stage.draws[pick] for stage, pick in zip(stages, joint.picks, strict=True)]
    return excesses(wanted.quotas, draws, [int(stage.region[pick]) for stage, pick in zip(stages, joint.picks, strict=True)])


Capped = Callable[[Sequence[Stage], Sequence[StageHandOff], Wanted, Sequence[Cap]], Joint | None]


def _within_quotas(answer: Capped, stages: Sequence[Stage], hand_offs: Sequence[StageHandOff], wanted: Wanted) -> Joint | None:
    """Most quotas never bind, and each that is watched makes the search wider: one is watched once the best without it has
    exceeded it. An answer that exceeds none is the best of all that do not."""
    caps: tuple[Cap, ...] = ()
    while True:
        joint = answer(stages, hand_offs, wanted, caps)
        if joint is None:
            return None
        exceeded = tuple(one.cap for one in beyond(stages, wanted, joint))
        if not exceeded:
            return joint
        assert not set(exceeded) & set(caps), "a cap that is watched is kept"
        caps += exceeded


def _anywhere(stages: Sequence[Stage], hand_offs: Sequence[StageHandOff], wanted: Wanted, caps: Sequence[Cap]) -> Joint | None:
    return _solved(stages, hand_offs, wanted, _space(stages, hand_offs, wanted, caps), None)


def _in_one_region(
    stages: Sequence[Stage], hand_offs: Sequence[StageHandOff], wanted: Wanted, caps: Sequence[Cap]
) -> Joint | None:
    if not stages or not all(map(len, stages)):
        return None
    inside = _space(stages, hand_offs, wanted, caps).apart()
    best: Joint | None = None
    for bound, _, space in sorted((space.lower_bound(), number, space) for number, space in enumerate(inside)):
        if best is None or bound < best.score(wanted.objective):
            best = _solved(stages, hand_offs, wanted, space, best)
    return best


def _solved(
    stages: Sequence[Stage], hand_offs: Sequence[StageHandOff], wanted: Wanted, space: Space, best: Joint | None
) -> Joint | None:
    """The best, `best` among them if there is one already. Answers are looked for until looking brings no better one, then the
    last is proved to be the best, or beaten."""
    # A quick answer out of few, without which too many would have to be compared.
    best = _better(stages, hand_offs, wanted, best, search(space.sampled(), _limit(best, wanted), BEAMS[-1]))
    space = plain = _lean(_narrowed(stages, hand_offs, wanted, space, best))
    if not all(len(node.row) for node in space.nodes):
        return best
    for beam in BEAMS:
        best = _better(stages, hand_offs, wanted, best, search(space, _limit(best, wanted), beam))
    if best is None:  # what is sought is hard to keep: look where it is easiest to keep
        for objective in ("time", "cost"):
            picks = search(replace(space, objective=objective), (inf, inf), BEAMS[-1])
            best = _better(stages, hand_offs, wanted, best, picks)
    known: Joint | None = None
    while best is not None and best is not known:
        known = best
        space = plain.mixed(tuple(_mixes(stages, hand_offs, wanted, plain, best))).trimmed(_limit(best, wanted))
        if not all(len(node.row) for node in space.nodes):
            return best
        for backwards in (True, False):
            best = _better(stages, hand_offs, wanted, best, _directed_search(space, best, wanted, BEAMS[-1], backwards))
    # What leaves fewer ways open is decided first.
    backwards = len(space.nodes[-1].row) < len(space.nodes[0].row)
    return _better(stages, hand_offs, wanted, best, _directed_search(space, best, wanted, None, backwards))


def _directed_search(
    space: Space, best: Joint | None, wanted: Wanted, beam: int | None, backwards: bool
) -> tuple[int, ...] | None:
    picks = search(space.turned() if backwards else space, _limit(best, wanted), beam)
    return picks[::-1] if picks and backwards else picks


def able(
    stages: Sequence[Stage], hand_offs: Sequence[StageHandOff], wanted: Wanted, best: Joint, together: bool = False
) -> list[Index]:
    """Of every stage the candidates that an answer better than `best` may hold, whatever more others should cost; and those of
    `best`. `together`: of answers in one region."""
    plain = _space(stages, hand_offs, wanted)  # without quotas: they drop none here
    survivors: list[list[Index]] = [[np.array([pick])] for pick in best.picks]
    limit = best.score(wanted.objective) * (1 + TIE)
    for part in [one for one in plain.apart() if one.lower_bound() <= limit] if together else [plain]:
        space = _narrowed(stages, hand_offs, wanted, part, best)
        if not together and all(len(node.row) for node in space.nodes):
            mixes = tuple(_mixes(stages, hand_offs, wanted, _lean(space), best))
            space = space.mixed(mixes).trimmed(_limit(best, wanted))
        for rows, node in zip(survivors, space.nodes, strict=True):
            rows.append(node.row)
    return [np.unique(np.concatenate(rows)) for rows in survivors]


def _narrowed(
    stages: Sequence[Stage], hand_offs: Sequence[StageHandOff], wanted: Wanted, space: Space, best: Joint | None
) -> Space:
    """Without what cannot beat `best`, by bounds that need no search."""
    if best is None:
        return space
    if wanted.objective != "balanced":
        return space.trimmed(_limit(best, wanted))
    return space.mixed((next(_slopes(stages, hand_offs, best)),)).trimmed(_limit(best, wanted)).mixed(())


def swapped(stages: Sequence[Stage], hand_offs: Sequence[StageHandOff], wanted: Wanted, joint: Joint, index: int) -> Array:
    """The score with each candidate of one stage in the place of its pick."""
    stage, regions = stages[index], [int(one.region[pick]) for one, pick in zip(stages, joint.picks, strict=True)]
    usd = joint.usd - stage.usd[joint.picks[index]] + stage.usd
    kg = joint.kg - stage.kg[joint.picks[index]] + stage.kg
    ends: list[Array] = []
    for position, peer in enumerate(stages):
        start = np.zeros(len(stage))
        for way in hand_offs:
            if way.taker == position:
                source = stage.region if way.giver == index else np.full(len(stage), regions[way.giver])
                target = stage.region if position == index else np.full(len(stage), regions[position])
                start = np.maximum(start, ends[way.giver] + way.seconds[source, target])
                if index in (way.giver, way.taker):
                    usd = usd - way.usd[regions[way.giver], regions[way.taker]] + way.usd[source, target]
        ends.append(start + (stage.seconds if position == index else peer.seconds[joint.picks[position]]))
    seconds = np.max(ends, axis=0)
    if wanted.objective == "balanced":
        return np.asarray(np.cbrt(usd * seconds * np.maximum(kg, 1e-9)))
    return np.asarray({"time": seconds, "carbon": kg}.get(wanted.objective, usd))


def _better(
    stages: Sequence[Stage], hand_offs: Sequence[StageHandOff], wanted: Wanted, best: Joint | None, picks: Sequence[int] | None
) -> Joint | None:
    """Of two; ties by what they cost, then by time, then by carbon."""
    if picks is None:
        return best
    joint = reckon(stages, hand_offs, picks)
    if not joint.keeps(wanted):
        return best
    if best is None:
        return joint
    score, best_score = joint.score(wanted.objective), best.score(wanted.objective)
    if not ties(score, best_score):
        return joint if score < best_score else best
    return min(best, joint, key=lambda one: (wanted.money(one), one.seconds, one.kg))


def _limit(best: Joint | None, wanted: Wanted) -> tuple[float, float]:
    return (inf, inf) if best is None else (best.score(wanted.objective), wanted.money(best))


def _space(stages: Sequence[Stage], hand_offs: Sequence[StageHandOff], wanted: Wanted, caps: Sequence[Cap] = ()) -> Space:
    """Stages by what counts of them."""
    nodes, edges = [], []
    for index, stage in enumerate(stages):
        needs = (cap.needed(index, stage.draws, stage.region) for cap in caps)
        adds = np.column_stack([stage.usd, stage.kg, stage.charged, *needs])
        nodes.append(Node(np.arange(len(stage)), stage.region, adds, stage.seconds))
    for way in hand_offs:
        none = np.zeros_like(way.usd)
        adds = np.stack([way.usd, none, way.charged, *(none for _ in caps)], axis=-1)
        edges.append(Edge(way.giver, way.taker, adds, way.seconds))
    limits = tuple(wanted.quotas[cap.quota].maximum for cap in caps)
    return Space(
        nodes=tuple(nodes),
        edges=tuple(edges),
        objective=wanted.objective,
        deadline_s=wanted.deadline_s,
        budget_usd=wanted.budget_usd,
        caps=limits,
    )


def _lean(space: Space) -> Space:
    """Without candidates that another in the same region beats."""
    every_cap = range(space.summed)
    survivors = [
        unbeaten(counted(space, node.adds, node.seconds[:, None], every_cap), node.region, (node.seconds, node.adds[:, 1]))
        for node in space.nodes
    ]
    return replace(space, nodes=tuple(node.subset(rows) for node, rows in zip(space.nodes, survivors, strict=True)))


def _mixes(
    stages: Sequence[Stage], hand_offs: Sequence[StageHandOff], wanted: Wanted, space: Space, best: Joint
) -> Iterator[Mix]:
    """Weighted sums that bound well. Balanced: by the slopes at the best known answer, than which none has a lesser sum. Under
    goals: by what a second or a dollar less is worth, first guessed from the best without the goal."""
    if wanted.objective == "balanced":
        yield from _slopes(stages, hand_offs, best)
        return
    aim = {"time": "seconds", "carbon": "kg"}.get(wanted.objective, "usd")
    goals = {"seconds": ("deadline_s", wanted.deadline_s), "charged": ("budget_usd", wanted.budget_usd)}
    worth, limits, ways = dict[str, float](), dict[str, float](), {_longest(stages, hand_offs, best)}
    for name, (field, limit) in goals.items():
        if limit is None or name == aim:
            continue
        free = replace(wanted, **{field: None})  # type: ignore[arg-type]
        loose = _solved(stages, hand_offs, free, replace(space, deadline_s=free.deadline_s, budget_usd=free.budget_usd), None)
        if loose is None or getattr(loose, name) <= limit:
            continue
        saved = best.score(wanted.objective) - loose.score(wanted.objective)
        worth[name] = max(saved / (getattr(loose, name) - getattr(best, name)), 1e-12)
        limits[name] = limit
        ways.add(_longest(stages, hand_offs, loose))
    for path, through in sorted(ways, key=lambda one: (sorted(one[0]), sorted(one[1]))) if worth else ():
        mix = Mix(**({"usd": 0.0, "kg": 0.0, "charged": 0.0, "seconds": 0.0} | {aim: 1.0} | worth), stages=path, edges=through)
        mix = space.tightened(mix, limits)
        for tilt in TILTS:
            yield replace(mix, **{name: getattr(mix, name) * tilt for name in worth})


def _slopes(stages: Sequence[Stage], hand_offs: Sequence[StageHandOff], best: Joint) -> Iterator[Mix]:
    path, through = _longest(stages, hand_offs, best)
    flat = {"usd": 1 / max(best.usd, 1e-9), "kg": 1 / max(best.kg, 1e-9), "seconds": 1 / max(best.seconds, 1e-9)}
    yield Mix(**flat, charged=0.0, stages=path, edges=through)
    for name in flat:
        for tilt in (TILTS[0], TILTS[-1]):
            yield Mix(**(flat | {name: flat[name] * tilt}), charged=0.0, stages=path, edges=through)


def _longest(stages: Sequence[Stage], hand_offs: Sequence[StageHandOff], joint: Joint) -> tuple[frozenset[int], frozenset[int]]:
    """Stages and hand-offs, by place, of the way through that takes the whole time."""
    regions = [int(stage.region[at]) for stage, at in zip(stages, joint.picks, strict=True)]
    index = int(np.argmax(joint.ends))
    path, ways = {index}, set[int]()
    while True:
        before = [
            (joint.ends[hand_off.giver] + float(hand_off.seconds[regions[hand_off.giver], regions[index]]), number)
            for number, hand_off in enumerate(hand_offs)
            if hand_off.taker == index
        ]
        if not before:
            return frozenset(path), frozenset(ways)
        number = max(before)[1]
        ways.add(number)
        index = hand_offs[number].giver
        path.add(index)
