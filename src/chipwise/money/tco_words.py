"""Owning against renting in words: settings, intervals, contracts. The command and the report say the same ones."""

from __future__ import annotations

from chipwise.money.rent import TERM_YEARS, Decline
from chipwise.money.tco_values import NEGOTIATED, Alternative, Tco, TcoSetting
from chipwise.text import plural, price, spent, usd, usd_short

SETTINGS = {
    "purchase_usd": "purchase",
    "power_w": "power",
    "idle_power_w": "idle power",
    "usd_per_kwh": "power price",
    "pue": "PUE",
    "space_usd_per_kw_month": "space",
    "staff_usd_per_machine_year": "staff",
    "interest": "interest",
    "residual_share": "resale",
    "maintenance_share": "maintenance",
    "network_storage_share": "network, disks",
    "utilisation": "utilisation",
    "years": "years",
    "cloud_usd_per_hour": "cloud price",
    "rent_decline": "rent per year",
}
_SHARES = (
    "interest",
    "residual_share",
    "maintenance_share",
    "network_storage_share",
    "utilisation",
)


def value_words(name: str, value: float) -> str:
    if name == "rent_decline":
        return _change(value)
    if name in _SHARES:
        return f"{value:.0%}"
    if name == "usd_per_kwh":
        return usd_short(value)
    if name.endswith(("_usd", "_usd_per_hour")) or "_usd_" in name:
        return usd_short(value)
    return f"{value:.3g}"


def setting_words(setting: TcoSetting) -> str:
    if setting.name.endswith("power_w"):
        value = f"{setting.value / 1e3:.3g} kW"
    elif setting.name == "usd_per_kwh":
        value = f"{price(setting.value)}/kWh"
    else:
        value = f"{setting.value:.3g}" if setting.name == "pue" else value_words(setting.name, setting.value)
    spread = (
        f" ({value_words(setting.name, setting.low)} to {value_words(setting.name, setting.high)})"
        if setting.low is not None and setting.high is not None
        else ""
    )
    return f"{value}{spread}: {setting.basis}" + (" (given)" if setting.is_given else "")


def decline_words(decline: Decline) -> str:
    """As a change: who reads "falls by -2%" reads it twice."""
    if decline.is_given:
        return f"{_change(decline.value)} a year (given)"
    spread = f" ({_change(decline.high)} to {_change(decline.low)})" if decline.is_wide else ""
    return f"{_change(decline.value)} a year{spread}: {decline.how}" if decline.how else "stays as it is: nothing was observed"


def _change(decline: float) -> str:
    """Not `-0%`."""
    share = round(-100 * decline, 1)
    return f"{share:+.3g}%" if share else "0%"


def use_words(low: float | None, high: float | None) -> str:
    """Of hours in use from which on owning is cheaper; None: at none."""
    if low is None:
        return "never"
    first = "any" if low == 0 else f"{low:.0%}"
    last = "never" if high is None else f"{high:.0%}"
    return first if first == last or (low == 0 and high == 0) else f"{first}-{last}"


def month_words(low: int | None, high: int | None) -> str:
    """Of the month in which owning has paid for itself; None: in none."""
    if low is None:
        return "never"
    if high is None:
        return f"{low}-never"
    return str(low) if low == high else f"{low}-{high}"


def saving_words(low: float, high: float) -> str:
    first, last = usd_short(low), usd_short(high)
    return first if first == last else f"{first} to {last}"


def contract_words(alternative: Alternative) -> str:
    offer, years = alternative.offer, TERM_YEARS[alternative.offer.purchase]
    bound = usd(alternative.contract_usd or 0.0)
    return f"{offer.provider} {offer.machine} {offer.purchase} binds to {bound} over {plural(years, 'year')}."


def totals_words(years: float, alternative: Alternative) -> str:
    rented = saving_words(alternative.fast.cloud_npv_usd, alternative.slow.cloud_npv_usd)
    owned = usd_short(alternative.compared.own_npv_usd)
    return f"Over {plural(years, 'year')}, as of today: owning {owned}, {rent_words(alternative)} {rented}."


def answer_words(result: Tco) -> str:
    """Own or rent, against the least rent that lasts, and what others ask; what owning costs where there is nothing to rent."""
    reference = result.reference
    if reference is None:
        hourly = usd(result.cost.usd_per_useful_hour)
        return f"Owning costs {hourly} for each hour in use of a machine; no rent to compare with is known."
    owned = reference.compared.own_npv_usd
    low_usd, high_usd = reference.fast.cloud_npv_usd, reference.slow.cloud_npv_usd
    choice = "Own" if owned <= low_usd else "Rent" if owned >= high_usd else "Close"
    totals = totals_words(result.own.years, reference)
    return f"{choice}: {totals[0].lower()}{totals[1:]} {_rent_span(reference)}"


def _rent_span(reference: Alternative) -> str:
    """The rent an hour, and the span of what providers ask for the same."""
    hourly = f"{spent(reference.usd_per_hour)} an hour"
    if len(reference.rents) < 2:
        return f"That rent is {hourly}."
    rank = "the cheapest durable offer" if reference.is_durable else "the least"
    span = f"{spent(reference.rents[0])} to {reference.rents[-1]:,.2f}"
    return f"That rent is {hourly}, {rank}; {len(reference.rents)} providers ask {span}."


def rent_words(alternative: Alternative) -> str:
    """What owning is set against, in a sentence."""
    offer = alternative.offer
    return f"{'your rent,' if offer.provider == NEGOTIATED else offer.provider} {offer.purchase}"


def balance_words(alternative: Alternative) -> str:
    saved = alternative.compared.saving_usd
    if saved < 0:
        return f"Owning costs {usd_short(-saved)} more than {rent_words(alternative)}"
    return f"Owning saves {usd_short(saved)} against {rent_words(alternative)}"
