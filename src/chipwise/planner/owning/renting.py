"""What owning is held against: real offers of the chip, machines that were asked for, and a rent that somebody was offered.

Every rent moves with the market, by a share a year that has an interval (`money.rent`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from chipwise.catalog.chip import Chip
from chipwise.catalog.names import Provider, providers
from chipwise.catalog.offer import Offer, Purchase, Verdict, year_before
from chipwise.catalog.query import MachineQuery, OfferQuery, find_offers
from chipwise.catalog.selection import machine_query, region_keys
from chipwise.errors import BadInput, UnknownName
from chipwise.money.rent import TERM_YEARS, Decline, Declines
from chipwise.money.tco import MONTH_HOURS, Ownership, compare
from chipwise.money.tco_values import NEGOTIATED, Alternative, TcoRequest
from chipwise.planner.owning.rents import RENT_TERMS, parse_decline
from chipwise.predictor.known import Known

_ORDER = (
    Purchase.ON_DEMAND,
    Purchase.SPOT,
    Purchase.RESERVED_1Y,
    Purchase.RESERVED_1Y_UPFRONT,
    Purchase.RESERVED_3Y,
)


_Rank = tuple[bool, bool, bool, float]  # another size, doubtful, old, USD per hour


def alternatives(
    known: Known, request: TcoRequest, chip: Chip, own: Ownership
) -> tuple[tuple[Alternative, ...], tuple[tuple[Purchase, str], ...]]:
    """By purchase option: the cheapest, the cheapest that lasts, and the middle of the providers; with `against`, the cheapest
    of every machine."""
    catalog = known.catalog
    indices = find_offers(catalog, _query(known, request, chip))
    fresh = year_before(known.today)
    kinds = {provider.name: provider for provider in providers(catalog.data)}
    declines = _declines(known, request, kinds)

    def lasts(offer: Offer) -> bool:
        return offer.provider not in kinds or kinds[offer.provider].durable

    best: dict[Purchase, dict[object, tuple[_Rank, Offer, float, str]]] = {}
    for index in indices:
        machine = catalog.machines[catalog.offers.machine[index]]
        offer = catalog.offers[index]
        if not machine.chips or machine.chip is None or offer.purchase is Purchase.OWNED or not offer.usd_per_hour:
            continue
        if not request.against and not _divides(machine.chips, request.chips):
            continue
        hourly = offer.usd_per_hour * request.chips / machine.chips
        # A machine of the same size first, then sure prices, then fresh ones.
        odd = not request.against and machine.chips != request.chips
        rank = (odd, offer.verdict is not Verdict.FINE, catalog.offers.as_of[index] < fresh, hourly)
        key = machine.key if request.against else machine.provider
        group = best.setdefault(offer.purchase, {})
        if key not in group or rank < group[key][0]:
            group[key] = (rank, offer, machine.chips, machine.chip)
    rows = _negotiated(request, chip, own, declines, known.today)
    left_out: list[tuple[Purchase, str]] = []
    for option in _ORDER:
        ranked = sorted(best.get(option, {}).values(), key=lambda one: one[0])
        if not ranked:
            continue
        if own.years < TERM_YEARS.get(option, 0.0):
            left_out.append((option, f"is for {TERM_YEARS[option]:g} years, and the machines are owned for {own.years:g}"))
            continue
        comparable = [one for one in ranked if one[0][:3] == ranked[0][0][:3]]  # the middle is among prices of the same worth
        rents = tuple(rank[-1] for rank, *_ in comparable)
        lasting = [lasts(offer) for _, offer, *_ in comparable]
        picked = [("asked for", one) for one in ranked] if request.against else _picked(comparable, lasting)
        for place, (_, offer, chips, part) in picked:
            hourly = offer.usd_per_hour * request.chips / chips
            row = _alternative(own, offer, part, chips, hourly, place, declines(part, offer.provider, option))
            rows.append(replace(row, is_durable=lasts(offer), rents=() if request.against else rents))
    return tuple(rows), tuple(left_out)


_Declining = Callable[[str, str, Purchase], Decline]


def _declines(known: Known, request: TcoRequest, kinds: Mapping[str, Provider]) -> _Declining:
    if request.decline is not None:
        share = parse_decline(request.decline)
        return lambda chip, provider, purchase: Decline(share, share, share, "a year", is_given=True)
    return Declines(known.catalog.rows("price_decline"), {name: one.kind for name, one in kinds.items()}).of


def _negotiated(request: TcoRequest, chip: Chip, own: Ownership, declines: _Declining, today: date) -> list[Alternative]:
    """The rent that was offered, before all others."""
    if request.term not in RENT_TERMS:
        raise BadInput(f"--term: {request.term[:40]} is not possible.", remedy=f"Allowed: {', '.join(RENT_TERMS)}.")
    option = RENT_TERMS[request.term]
    if request.rent is None:
        if option is not Purchase.ON_DEMAND:
            raise BadInput("--term goes with --rent.", remedy="Give the rent that the term is for, such as --rent 1.85/h.")
        return []
    if own.years < TERM_YEARS.get(option, 0.0):
        raise BadInput(
            f"--term: {request.term} is longer than the {own.years:g} years of --years.",
            remedy="Allowed: terms that end before the machines are sold.",
        )
    hourly = request.rent.usd * (1 if request.rent.is_machine else request.chips)
    name = f"{request.chips}x {chip.name}"
    offer = Offer(NEGOTIATED, name, "", option, usd_per_hour=hourly, as_of=today.isoformat(), source="--rent")
    decline = declines(chip.name, NEGOTIATED, option)
    return [_alternative(own, offer, chip.name, float(request.chips), hourly, "your rent", decline)]


def _alternative(
    own: Ownership, offer: Offer, chip: str, chips: float, hourly: float, place: str, decline: Decline
) -> Alternative:
    compared, slow, fast = (compare(own, hourly, offer.purchase, share) for share in (decline.value, decline.low, decline.high))
    years = TERM_YEARS.get(offer.purchase)
    return Alternative(
        offer=offer,
        chip=chip,
        chips=chips,
        usd_per_hour=hourly,
        place=place,
        decline=decline,
        compared=compared,
        slow=slow,
        fast=fast,
        contract_usd=None if years is None else own.machines * hourly * 12 * years * MONTH_HOURS,
    )


def _picked(ranked: Sequence[Any], lasting: Sequence[bool]) -> list[tuple[str, Any]]:
    """The cheapest, the cheapest that lasts where that is another, and of three or more the middle."""
    count = len(ranked)
    if count == 1:
        return [("the only one", ranked[0])]
    places = {0: f"cheapest of {count} providers"}
    if any(lasting):
        places.setdefault(lasting.index(True), f"cheapest durable of {count} providers")
    if count > 2:
        places.setdefault(count // 2, f"median of {count} providers")
    return [(places[position], ranked[position]) for position in sorted(places)]


def reference_of(cloud: Sequence[Alternative]) -> Alternative | None:
    """What was offered, else the least rent that lasts and that nobody takes away (spot); else the least of all."""
    if cloud and cloud[0].offer.provider == NEGOTIATED:
        return cloud[0]
    steady = [one for one in cloud if one.offer.purchase is not Purchase.SPOT]
    sure = [one for one in steady if one.is_durable and one.offer.verdict is Verdict.FINE]
    return min(sure or steady or cloud, key=lambda one: one.compared.cloud_npv_usd, default=None)


def _divides(part: float, whole: int) -> bool:
    return part >= 1 and whole % part == 0


def _query(known: Known, request: TcoRequest, chip: Chip) -> OfferQuery:
    def checked(flag: str, look: Callable[[], Any]) -> Any:
        try:
            return look()
        except UnknownName as error:
            raise BadInput(f"{flag}: {error.message}", remedy=error.remedy) from error

    names = known.names
    machines: MachineQuery = checked("--against", lambda: machine_query(names, machines=request.against, retired=False))
    provider_query: MachineQuery = checked("--provider", lambda: machine_query(names, providers=request.providers))
    for key in machines.machines or ():
        if not known.catalog.machines[known.catalog.machine_index[key]].chips and len(machines.machines or ()) == 1:
            raise BadInput(f"--against: {key[1]} has no accelerators to compare.", remedy="Allowed: machines with chips.")
    places = checked("--region", lambda: region_keys(names, request.regions))
    wanted = replace(machines, providers=provider_query.providers, chips=None if request.against else {chip.name})
    return OfferQuery(wanted, regions=places, real_only=True)
