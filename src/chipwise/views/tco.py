"""Cloud against own hardware as plain data: what `chipwise tco --json` prints."""

from __future__ import annotations

from typing import Any

from chipwise.money.rent import TERM_YEARS, Decline
from chipwise.money.tco import YEAR_HOURS as YEAR_HOURS
from chipwise.money.tco import Swing as Swing
from chipwise.money.tco import cash_flow
from chipwise.money.tco_values import Alternative, Tco
from chipwise.money.tco_words import (
    SETTINGS,
    answer_words,
    balance_words,
    contract_words,
    decline_words,
    month_words,
    saving_words,
    setting_words,
    totals_words,
    use_words,
    value_words,
)

__all__ = [
    "CSV_COLUMNS",
    "SETTINGS",
    "answer_words",
    "balance_words",
    "contract_words",
    "decline_words",
    "month_words",
    "saving_words",
    "setting_words",
    "tco_rows",
    "tco_view",
    "totals_words",
    "use_words",
    "value_words",
]


def tco_view(result: Tco) -> dict[str, Any]:
    """The keys are promised: see docs/models/tco.md."""
    own, cost = result.own, result.cost

    def ends(name: str) -> dict[str, float]:
        return {key: getattr(one, name) for key, one in (("value", cost), ("low", result.low), ("high", result.high))}

    return {
        "chip": result.chip,
        "chips": result.request.chips,
        "machines": own.machines,
        "years": own.years,
        "utilisation": own.utilisation,
        "country": result.request.country,
        "answer": answer_words(result),
        "settings": {
            setting.name: {
                "value": setting.value,
                "low": setting.low,
                "high": setting.high,
                "given": setting.is_given,
                "how": setting.basis,
            }
            for setting in result.settings
        },
        "bought_usd": own.bought_usd,
        "resale_usd": own.resale_usd,
        "cash_flow_usd": list(cash_flow(own)),
        "own": {
            "usd_per_year": cost.cost.usd * YEAR_HOURS,
            "lines": [{"name": one.name, "usd_per_year": one.usd * YEAR_HOURS, "how": one.how} for one in cost.cost.lines],
            "usd_per_machine_hour": ends("usd_per_machine_hour"),
            "usd_per_useful_hour": ends("usd_per_useful_hour"),
            "usd_per_useful_chip_hour": cost.usd_per_useful_hour / result.request.chips,
        },
        "cloud": [_alternative_view(one) for one in result.cloud],
        "left_out": [{"purchase": str(option), "why": why} for option, why in result.left_out],
        "sensitivity": None
        if result.reference is None
        else {
            "against": _offer_fields(result.reference),
            "saving_usd": result.reference.compared.saving_usd,
            "swings": [
                {
                    "name": swing.name,
                    "low": swing.low,
                    "high": swing.high,
                    "saving_at_low_usd": swing.saving_at_low_usd,
                    "saving_at_high_usd": swing.saving_at_high_usd,
                    "month_at_low": swing.month_at_low,
                    "month_at_high": swing.month_at_high,
                }
                for swing in result.swings
            ],
        },
        "notes": list(result.notes),
    }


CSV_COLUMNS = (
    "purchase",
    "provider",
    "machine",
    "region",
    "chip",
    "chips",
    "place",
    "as_of",
    "verdict",
    "usd_per_hour",
    "usd_per_useful_hour",
    "break_even_utilisation",
    "break_even_month",
    "break_even_month_low",
    "break_even_month_high",
    "own_npv_usd",
    "cloud_npv_usd",
    "cloud_npv_low_usd",
    "cloud_npv_high_usd",
    "saving_usd",
    "saving_low_usd",
    "saving_high_usd",
    "decline",
    "decline_low",
    "decline_high",
    "term_years",
    "contract_usd",
)


def tco_rows(result: Tco) -> list[dict[str, Any]]:
    """What `chipwise tco --csv` prints: a line for everything that owning is held against."""
    rows = []
    for alternative in result.cloud:
        view = _alternative_view(alternative)
        decline = view.pop("decline")
        view |= {"decline": decline["value"], "decline_low": decline["low"], "decline_high": decline["high"]}
        rows.append({name: view[name] for name in CSV_COLUMNS})
    return rows


def _offer_fields(one: Alternative) -> dict[str, Any]:
    offer = one.offer
    return {"purchase": str(offer.purchase), "provider": offer.provider, "machine": offer.machine, "region": offer.region}


def _decline_view(decline: Decline) -> dict[str, Any]:
    return {
        "value": decline.value,
        "low": decline.low,
        "high": decline.high,
        "given": decline.is_given,
        "how": decline.how,
    }


def _alternative_view(alternative: Alternative) -> dict[str, Any]:
    comparison, slow, fast = alternative.compared, alternative.slow, alternative.fast
    return {
        **_offer_fields(alternative),
        "chip": alternative.chip,
        "chips": alternative.chips,
        "place": alternative.place,
        "durable": alternative.is_durable,
        "as_of": alternative.offer.as_of,
        "verdict": str(alternative.offer.verdict),
        "usd_per_hour": alternative.usd_per_hour,
        "usd_per_useful_hour": comparison.cloud_usd_per_useful_hour,
        "break_even_utilisation": comparison.break_even_utilisation,
        "break_even_month": comparison.break_even_month,
        "break_even_month_discounted": comparison.break_even_month_discounted,
        "own_npv_usd": comparison.own_npv_usd,
        "cloud_npv_usd": comparison.cloud_npv_usd,
        "saving_usd": comparison.saving_usd,
        "why": comparison.why,
        "decline": _decline_view(alternative.decline),
        "break_even_month_low": slow.break_even_month,
        "break_even_month_high": fast.break_even_month,
        "cloud_npv_low_usd": fast.cloud_npv_usd,
        "cloud_npv_high_usd": slow.cloud_npv_usd,
        "saving_low_usd": fast.saving_usd,
        "saving_high_usd": slow.saving_usd,
        "term_years": TERM_YEARS.get(alternative.offer.purchase),
        "contract_usd": alternative.contract_usd,
    }
