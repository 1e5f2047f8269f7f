"""What machines of one's own cost over their life, and from when on they beat a cloud.

What is not given comes from the catalog's tables or is a habit of the field; every such figure is kept as a `TcoSetting` with
where it comes from, so that no assumption is silent. The arithmetic is `money.tco`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from chipwise.catalog.chip import Chip, ChipKind
from chipwise.catalog.offer import MEANINGS, Purchase, Verdict
from chipwise.countries import country_of, spellings
from chipwise.errors import BadInput, InvalidSettings, UnknownName
from chipwise.money.owning import Figure, colocation_rent, electricity, industry_pue, purchase_price
from chipwise.money.rent import TERM_YEARS
from chipwise.money.tco import Ownership, Swing, own_cost, sensitivity
from chipwise.money.tco_values import Alternative, Tco, TcoRequest, TcoSetting
from chipwise.perf.arrays import Coded, column
from chipwise.perf.power import power
from chipwise.planner.owning.renting import alternatives, reference_of
from chipwise.predictor.known import Known
from chipwise.spelling import fold, nearest

STAFF_USD = 5_000.0  # a machine and year: a thirtieth of an engineer; rule of thumb, nobody publishes it
_USUAL = Ownership(0.0, 0.0, 0.0)  # the habits of `money.tco`
WORLD = "world"  # the place of the energy table that counts where no country is given
_RENTED_ONLY = (ChipKind.TPU, ChipKind.NEURON)  # their makers rent them and sell none
FLAGS = {
    "purchase_usd": "--purchase",
    "power_w": "--power",
    "idle_power_w": "--power",
    "usd_per_kwh": "--power-price",
    "machines": "--machines",
    "years": "--years",
    "utilisation": "--utilisation",
    "residual_share": "--residual",
    "interest": "--interest",
    "pue": "--pue",
    "space_usd_per_kw_month": "--space",
    "staff_usd_per_machine_year": "--staff",
    "maintenance_share": "--maintenance",
    "network_storage_share": "--network",
}


def tco(known: Known, request: TcoRequest) -> Tco:
    """BadInput names the flag of the command that it speaks of."""
    resolved = known.names.one_chip(request.chip)
    chip = resolved.chip
    if chip.kind in _RENTED_ONLY:
        bought = sorted({row.chip for row in known.catalog.rows("boards") if row.chip and not row.chip.startswith("TPU")})
        raise BadInput(
            f"CHIP: {chip.name} can only be rented, not bought.",
            remedy=f"Allowed: chips that can be bought: {_listing(bought)}.",
        )
    settings = _settings(known, request, chip)
    values: dict[str, Any] = {one.name: one.value for one in settings}
    price = settings[0]
    try:
        own = Ownership(
            **values,
            machines=request.machines,
            years=request.years,
            utilisation=request.utilisation,
            purchase_low_usd=price.low,
            purchase_high_usd=price.high,
        )
    except InvalidSettings as error:
        raise error.with_names(FLAGS) from error
    cloud, left_out = alternatives(known, request, chip, own)
    reference = reference_of(cloud)
    swings: tuple[Swing, ...] = ()
    if reference is not None:
        swings = sensitivity(own, reference.usd_per_hour, purchase=reference.offer.purchase, decline=reference.decline)
    low, high = (
        own if end is None else replace(own, purchase_usd=end) for end in (own.purchase_low_usd, own.purchase_high_usd)
    )
    notes = _notes(known, request, chip, cloud, [*settings])
    return Tco(
        request=request,
        chip=chip.name,
        own=own,
        settings=settings,
        cost=own_cost(own),
        low=own_cost(low),
        high=own_cost(high),
        cloud=cloud,
        left_out=left_out,
        reference=reference,
        swings=tuple(one for one in swings if one.width_usd > 0),
        notes=(*([resolved.remark] if resolved.remark else []), *notes),
    )


# -- what it is reckoned with


def _settings(known: Known, request: TcoRequest, chip: Chip) -> tuple[TcoSetting, ...]:
    energy = known.catalog.rows("energy")
    return (
        _purchase(known, request, chip),
        *_power(request, chip),
        _electricity(known, request),
        _looked_up(
            "pue", request.pue, lambda: industry_pue(energy), "facility over machines; the table has no figures by country"
        ),
        _looked_up(
            "space_usd_per_kw_month", request.space_usd_per_kw_month, lambda: colocation_rent(energy), "rent of a kW a month"
        ),
        _habit("staff_usd_per_machine_year", request.staff_usd_per_machine_year, STAFF_USD, "a thirtieth of an engineer"),
        _habit("interest", request.interest, _USUAL.interest, "a year"),
        _habit("residual_share", request.residual_share, _USUAL.residual_share, "of the purchase, when sold at the end"),
        _habit("maintenance_share", request.maintenance_share, _USUAL.maintenance_share, "of the purchase, a year"),
        _habit("network_storage_share", request.network_storage_share, _USUAL.network_storage_share, "on top of the purchase"),
    )


def _purchase(known: Known, request: TcoRequest, chip: Chip) -> TcoSetting:
    if request.purchase_usd is not None:
        return TcoSetting("purchase_usd", request.purchase_usd, "of one machine", True)
    boards = known.catalog.rows("boards")
    try:
        figure = purchase_price(boards, chip.name, request.chips)
    except BadInput as error:
        sizes = sorted({f"{row.chips:g}" for row in boards if row.chip == chip.name and row.chips})
        priced = sorted({row.chip for row in boards if row.chip and row.usd_low})
        alternative = f"--chips {' or '.join(sizes)}" if sizes else f"a chip with prices: {_listing(priced)}"
        message = f"--purchase: the catalog has no purchase price of a machine with {request.chips} x {chip.name}."
        raise BadInput(message, remedy=f"Give USD, such as --purchase 250000, or ask for {alternative}.") from error
    wide = figure.low < figure.high
    basis = figure.how if figure.certain else f"{figure.how} (rough)"
    return TcoSetting(
        name="purchase_usd",
        value=figure.value,
        basis=basis,
        is_given=False,
        low=figure.low if wide else None,
        high=figure.high if wide else None,
    )


def _power(request: TcoRequest, chip: Chip) -> tuple[TcoSetting, TcoSetting]:
    """The chips at their limit and their share of the host; at rest as the power model has it."""
    if request.power_w is None and chip.power_w is None:
        raise BadInput(f"--power: the power of {chip.name} is not published.", remedy="Give watts, such as --power 10.2kW.")
    kind, limit = Coded.of(str(chip.kind)), column(chip.power_w or 1.0)
    busy, rest = (power(kind, limit, column(load), column(load), pue=1.0) for load in (1.0, 0.0))
    work, idle = (request.chips * float((drawn.chip + drawn.host)[0]) for drawn in (busy, rest))
    if request.power_w is not None:
        return (
            TcoSetting("power_w", request.power_w, "of one machine at work", True),
            TcoSetting(
                "idle_power_w", request.power_w * idle / work, f"{idle / work:.0%} of that at rest, as usual for a {chip.kind}"
            ),
        )
    host = float((busy.host / busy.chip)[0])
    return (
        TcoSetting("power_w", work, f"{request.chips} x {chip.power_w:g} W, and {host:.0%} of that for the host"),
        TcoSetting("idle_power_w", idle, "at rest, by the power model"),
    )


def _electricity(known: Known, request: TcoRequest) -> TcoSetting:
    place = request.country or WORLD
    rows = known.catalog.rows("energy")
    if request.usd_per_kwh is not None and (request.country is None or country_of(place) is not None):
        return TcoSetting("usd_per_kwh", request.usd_per_kwh, "USD per kWh", True)
    try:
        figure = electricity(rows, place)
    except UnknownName as error:
        country = country_of(place)
        near = () if country is not None else _near_places(place, [row.place for row in rows if row.unit == "USD/kWh"])
        lack = "is no country, US state or continent" if country is None else "has no electricity price in USD in our tables"
        allowed = "Allowed: a country (DEU, Germany), a US state (Texas), a continent (Europe)"
        hint = f"Did you mean {', '.join(near)}? " if near else ""
        raise BadInput(f"--country: {place[:40]!r} {lack}.", remedy=f"{hint}{allowed}; or give --power-price.") from error
    if request.usd_per_kwh is not None:
        return TcoSetting("usd_per_kwh", request.usd_per_kwh, "USD per kWh", True)
    wide = figure.low < figure.high
    return TcoSetting(
        name="usd_per_kwh",
        value=figure.value,
        basis=figure.how,
        is_given=False,
        low=figure.low if wide else None,
        high=figure.high if wide else None,
    )


def _near_places(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """By name for countries, which the table holds as codes."""
    names = spellings()
    codes = [code for name in nearest(fold(text), names) if (code := names[name]) in known]
    return tuple(dict.fromkeys((*codes, *nearest(text, known))))


def _looked_up(name: str, value: float | None, look: Callable[[], Figure], label: str) -> TcoSetting:
    if value is not None:
        return TcoSetting(name, value, label, True)
    figure = look()
    return TcoSetting(
        name=name, value=figure.value, basis=f"{figure.how}; {label}", is_given=False, low=figure.low, high=figure.high
    )


def _habit(name: str, value: float | None, usual: float, label: str) -> TcoSetting:
    return TcoSetting(
        name, usual if value is None else value, label if value is not None else f"{label}; assumed", value is not None
    )


def _notes(
    known: Known, request: TcoRequest, chip: Chip, cloud: Sequence[Alternative], settings: Sequence[TcoSetting]
) -> list[str]:
    notes = []
    price = next(one for one in settings if one.name == "usd_per_kwh")
    if not price.is_given and electricity(known.catalog.rows("energy"), request.country or WORLD).measure.startswith(
        "industrial"
    ):
        notes.append("The power price is that of large industry; a server room usually pays more: see --power-price.")
    if not cloud:
        subject = f" for {', '.join(request.against)}" if request.against else f" of {request.chips} x {chip.name}"
        notes.append(f"No real offer{subject} was found to compare with: loosen --against, --provider or --region.")
    if any(one.offer.purchase is Purchase.SPOT for one in cloud):
        notes.append("Spot is taken at its price: restarts and waits are left out.")
    if any(TERM_YEARS.get(one.offer.purchase, request.years) < request.years for one in cloud):
        notes.append("Reservations shorter than the years of owning are renewed at the market's price of then.")
    odd = {one.offer.machine: one for one in cloud if one.chips != request.chips}
    notes += [
        f"{name} has {option.chips:g} chips: its price is for {request.chips:g}, as {request.chips / option.chips:g} of them."
        for name, option in odd.items()
    ]
    other_chips = sorted({one.chip for one in cloud if one.chip != chip.name})
    if other_chips:
        notes.append(
            f"{', '.join(other_chips)} is another chip: an hour of it is taken to do the work of an hour of {chip.name}."
        )
    doubtful = {one.offer.verdict: one for one in cloud if one.offer.verdict is not Verdict.FINE}
    notes += [f"The price of {one.offer.machine} is doubtful: {MEANINGS[verdict]}." for verdict, one in doubtful.items()]
    course = "the cloud's price is taken to stay." if request.decline == 0 else "rents move by the same share every year."
    notes.append(f"Taxes, inflation, and work lost to repairs are left out; {course}")
    return notes


def _listing(names: Sequence[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
