"""Why one machine, chip, family of chips, provider or region did not win: the best it could do, and what it lost by.

The answer is read from the candidates of a plan that is there already. What has no candidate is held against the limits
again, offer by offer, and then against the search, shape by shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.machine import Machine
from chipwise.errors import UnknownName
from chipwise.planner.fleet import Fleet
from chipwise.planner.limits import Mask, Refused, allowed
from chipwise.planner.reasons import Beaten, Reason
from chipwise.planner.reasons.goals import MissesGoals
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Plan, Rows, Service
from chipwise.planner.why_lost import beaten
from chipwise.spelling import fold, nearest

if TYPE_CHECKING:
    from chipwise.predictor.known import Known


class Outcome(StrEnum):
    WINS = "wins"
    BEATEN = "beaten"  # it keeps limits and goals, and something else ranks before it
    MISSES = "misses a goal"
    REFUSED = "refused by limits"
    UNABLE = "unable"  # its offers are allowed, and no way to run the workload is on them
    NO_OFFER = "no offer"


@dataclass(frozen=True, slots=True)
class Subject:
    """What a name means: machines of the catalog and regions, as masks over both."""

    title: str  # "chip H100-SXM"
    machines: Mask
    regions: Mask
    provider: str = ""  # where it is one


@dataclass(frozen=True, slots=True)
class Why:
    subject: str
    outcome: Outcome
    offers: int  # in the catalog
    refused: tuple[Refused, ...]  # of them, by the limits
    best: Choice | None = None
    reason: Reason | None = None  # what it lost by; None: it wins, or limits refuse every offer
    rank: int | None = None  # among the candidates, from 1
    candidates: int = 0  # that keep the goals
    winner: Choice | None = None
    service: Service | None = None  # of a provider: its cheapest service paid per use
    is_service: bool = False  # what was asked for is that service
    own_unpriced: bool = False  # a machine of one's own whose cost is not stated
    freed: Why | None = None  # what it could do without the limits that refuse all of its offers


def why(known: Known, plan: Plan, name: str) -> Why:
    """Raises UnknownName with the nearest spellings."""
    rows = plan.rows
    assert rows is not None
    try:
        subject = subject_of(known, rows.fleet, name)
    except UnknownName:
        if (answer := _beside_machines(plan, name)) is None:
            raise
        return answer
    offers = rows.fleet.catalog.offers
    machine = np.frombuffer(offers.machine, dtype=np.int32)
    region = np.frombuffer(offers.region, dtype=np.int32)
    matching = subject.machines[machine] & subject.regions[region]
    searched = np.isin(np.arange(len(offers)), [] if rows.grounds.allowed is None else rows.grounds.allowed)
    left = allowed(rows.fleet, rows.grounds.rules, rows.priced.prices, among=matching & ~searched)
    usable = np.union1d(left.offers, np.flatnonzero(matching & searched))
    service = next((one for one in plan.services if one.provider == subject.provider), None)
    count, refused = int(np.count_nonzero(matching)), left.refused
    ranked = np.flatnonzero(
        subject.machines[rows.priced.machine[rows.ranked]] & subject.regions[rows.priced.region[rows.ranked]]
    )
    if len(ranked):
        return _with_candidate(plan, rows, subject, int(ranked[0]), count, refused, service)
    if not count:
        return Why(
            subject=subject.title,
            outcome=Outcome.NO_OFFER,
            offers=0,
            refused=(),
            winner=plan.winner,
            service=service,
            own_unpriced=any(rows.fleet.catalog.machines[at].owned for at in np.flatnonzero(subject.machines).tolist()),
        )
    if not len(usable):
        return Why(
            subject=subject.title,
            outcome=Outcome.REFUSED,
            offers=count,
            refused=refused,
            winner=plan.winner,
            service=service,
            freed=_freed(known, rows, refused, name),
        )
    shapes = sorted(set(rows.fleet.shape_of[machine[usable]].tolist()))
    reason = rows.grounds.reason(shapes)
    return Why(
        subject=subject.title,
        outcome=Outcome.UNABLE,
        offers=count,
        refused=refused,
        reason=reason or MissesGoals(),
        winner=plan.winner,
        service=service,
    )


def _beside_machines(plan: Plan, name: str) -> Why | None:
    """Of what is no machine: a service that is paid per use, or a quantum device, by any word of its name."""
    wanted = fold(name)

    def called(*titles: str) -> bool:
        return wanted in {fold(text) for title in titles for text in (title, *title.split())}

    blank = Why(subject=name, outcome=Outcome.NO_OFFER, offers=0, refused=(), winner=plan.winner)
    if (sold := next((one for one in plan.services if called(one.provider, one.name, one.title)), None)) is not None:
        return replace(blank, subject=f"service {sold.title}", service=sold, is_service=True)
    loss = next((one for one in plan.losses if called(one.family)), None)
    if loss is None:
        return None
    outcome = Outcome.UNABLE if loss.choice is None else Outcome.BEATEN if isinstance(loss.why, Beaten) else Outcome.MISSES
    return replace(blank, subject=loss.family, outcome=outcome, best=loss.choice, reason=loss.why)


def _freed(known: Known, rows: Rows, refused: Sequence[Refused], name: str) -> Why | None:
    plan = rows.grounds.freed(one.rule.kind for one in refused)
    return None if plan is None or plan.rows is None else why(known, plan, name)


def _with_candidate(
    plan: Plan, rows: Rows, subject: Subject, rank: int, offers: int, refused: tuple[Refused, ...], service: Service | None
) -> Why:
    best, winner = rows.choice(int(rows.ranked[rank])), plan.winner
    reason: Reason | None = None
    if rank >= rows.kept or winner is None:
        outcome, reason = Outcome.MISSES, rows.verdict(best) or MissesGoals()
    elif rank == 0:
        outcome = Outcome.WINS
    else:
        outcome, reason = Outcome.BEATEN, beaten(winner, best, plan.objective, plan.per)
    return Why(
        subject=subject.title,
        outcome=outcome,
        offers=offers,
        refused=refused,
        best=best,
        reason=reason,
        rank=rank + 1,
        candidates=rows.kept,
        winner=winner,
        service=service,
    )


# -- what a name means

_EXAMPLES = (
    "Name a chip (h100), a machine (p5.48xlarge), a provider (aws), a region (us-east-1), a country (DE) or a family (Hopper)."
)


def subject_of(known: Known, fleet: Fleet, name: str) -> Subject:
    """A provider, chip, machine, region or country, a family of chips, or your own machines, in this order."""
    names, catalog = known.names, fleet.catalog
    text = name.strip()
    everywhere = np.ones(len(catalog.regions), dtype=bool)
    if (provider := names.provider_or_none(text)) is not None:
        mask = np.array([one.provider == provider for one in catalog.machines], dtype=bool)
        return Subject(f"provider {provider}", mask, everywhere, provider)
    if chips := names.chips_of(text):
        mask = np.isin([one.chip or "" for one in catalog.machines], [chip.name for chip in chips])
        return Subject(f"{'chip' if len(chips) == 1 else 'chips'} {_listed([chip.name for chip in chips])}", mask, everywhere)
    if machines := names.machines_or_none(text):
        title = _listed(list(dict.fromkeys(f"{one.provider} {one.name}" for one in machines)))
        return Subject(f"{'machine' if len(machines) == 1 else 'machines'} {title}", _machines(catalog, machines), everywhere)
    if regions := names.regions_or_none(text.replace(":", "/", 1)):
        keys = {one.key for one in regions}
        inside = np.array([one.key in keys for one in catalog.regions], dtype=bool)
        title = _listed([f"{one.provider} {one.name}" for one in regions])
        return Subject(
            f"{'region' if len(regions) == 1 else 'regions'} {title}", np.ones(len(catalog.machines), dtype=bool), inside
        )
    if names.means_own(text):
        mask = np.zeros(len(catalog.machines), dtype=bool)
        mask[names.own_machines()] = True
        return Subject("your own machines", mask, everywhere)
    return Subject(*_family(known, fleet, text), everywhere)


def _family(known: Known, fleet: Fleet, text: str) -> tuple[str, Mask]:
    labels = fleet.families
    wanted = fold(text)
    families = [one for one in dict.fromkeys(labels) if wanted and wanted in fold(one)]
    if not families:
        catalog = fleet.catalog
        words = {*catalog.providers, *catalog.chips, *labels, *(one.name for one in catalog.machines)}
        words |= {one.name for one in catalog.regions}
        raise UnknownName("machine, chip, provider or region", text, nearest(text, sorted(words)), remedy=_EXAMPLES)
    inside = np.isin([*labels, ""], families)
    return f"family {_listed(families)}", np.asarray(inside[fleet.shape_of])


def _machines(catalog: Catalog, machines: Sequence[Machine]) -> Mask:
    mask = np.zeros(len(catalog.machines), dtype=bool)
    mask[[catalog.machine_index[one.key] for one in machines if one.key in catalog.machine_index]] = True
    return mask


def _listed(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
