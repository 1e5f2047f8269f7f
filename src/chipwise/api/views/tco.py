"""Cloud against own hardware as plain data: what `chipwise tco --json` prints."""

from __future__ import annotations

from typing import Any

from chipwise.api.tco import YEAR_HOURS, Alternative, Tco
from chipwise.money.tco import cash_flow


def tco_view(found: Tco) -> dict[str, Any]:
    """The keys are promised: see docs/models/tco.md."""
    own, cost = found.own, found.cost

    def ends(name: str) -> dict[str, float]:
        return {key: getattr(one, name) for key, one in (("value", cost), ("low", found.low), ("high", found.high))}

    return {
        "chip": found.chip,
        "chips": found.asked.chips,
        "machines": own.machines,
        "years": own.years,
        "utilisation": own.utilisation,
        "country": found.asked.country,
        "settings": {
            one.name: {"value": one.value, "low": one.low, "high": one.high, "given": one.given, "how": one.how}
            for one in found.settings
        },
        "bought_usd": own.bought_usd,
        "resale_usd": own.resale_usd,
        "cash_flow_usd": list(cash_flow(own)),
        "own": {
            "usd_per_year": cost.cost.usd * YEAR_HOURS,
            "lines": [{"name": one.name, "usd_per_year": one.usd * YEAR_HOURS, "how": one.how} for one in cost.cost.lines],
            "usd_per_machine_hour": ends("usd_per_machine_hour"),
            "usd_per_useful_hour": ends("usd_per_useful_hour"),
            "usd_per_useful_chip_hour": cost.usd_per_useful_hour / found.asked.chips,
        },
        "cloud": [_alternative_view(one) for one in found.cloud],
        "left_out": [{"purchase": str(option), "why": why} for option, why in found.left_out],
        "sensitivity": None
        if found.reference is None
        else {
            "against": _named(found.reference),
            "saving_usd": found.reference.compared.saving_usd,
            "swings": [
                {
                    "name": one.name,
                    "low": one.low,
                    "high": one.high,
                    "saving_at_low_usd": one.saving_at_low_usd,
                    "saving_at_high_usd": one.saving_at_high_usd,
                    "month_at_low": one.month_at_low,
                    "month_at_high": one.month_at_high,
                }
                for one in found.swings
            ],
        },
        "notes": list(found.notes),
    }


def _named(one: Alternative) -> dict[str, Any]:
    offer = one.offer
    return {"purchase": str(offer.purchase), "provider": offer.provider, "machine": offer.machine, "region": offer.region}


def _alternative_view(one: Alternative) -> dict[str, Any]:
    held = one.compared
    return {
        **_named(one),
        "chip": one.chip,
        "chips": one.chips,
        "place": one.place,
        "as_of": one.offer.as_of,
        "verdict": str(one.offer.verdict),
        "usd_per_hour": one.usd_per_hour,
        "usd_per_useful_hour": held.cloud_usd_per_useful_hour,
        "break_even_utilisation": held.break_even_utilisation,
        "break_even_month": held.break_even_month,
        "break_even_month_discounted": held.break_even_month_discounted,
        "own_npv_usd": held.own_npv_usd,
        "cloud_npv_usd": held.cloud_npv_usd,
        "saving_usd": held.saving_usd,
        "why": held.why,
    }
