"""What a machine that somebody owns costs by the hour, from what it cost to buy and what it draws."""

from __future__ import annotations

from chipwise.units import HOUR, MONTH, YEAR

DEFAULT_PUE = 1.5  # about the mean of the Uptime Institute's surveys; small server rooms are no better


def energy_cost(power_w: float | None, pue: float | None, usd_per_kwh: float | None) -> float | None:
    """USD per hour of electricity; None where the power or the price is not known."""
    if power_w is None or usd_per_kwh is None:
        return None
    return power_w / 1e3 * (DEFAULT_PUE if pue is None else pue) * usd_per_kwh


def hourly_cost(
    purchase_usd: float,
    lifetime_s: float,
    power_w: float | None,
    pue: float | None,
    usd_per_kwh: float | None,
    hosting_usd_per_month: float = 0.0,
) -> tuple[float, str]:
    """(USD per hour, how it was derived): purchase / lifetime + hosting + power x PUE x price of electricity.

    A known power needs a price of electricity, which the caller sees to: without it the machine would look cheap.
    """
    capital = purchase_usd / (lifetime_s / HOUR) + hosting_usd_per_month / (MONTH / HOUR)
    story = f"derived: purchase over {lifetime_s / YEAR:.3g} years"
    if hosting_usd_per_month:
        story += f" + {hosting_usd_per_month:g} USD of hosting a month"
    energy = energy_cost(power_w, pue, usd_per_kwh)
    if power_w is None:
        return capital, f"{story}; power not known"
    assert energy is not None
    factor = DEFAULT_PUE if pue is None else pue
    assumed = " (assumed)" if pue is None else ""
    return capital + energy, f"{story} + {power_w:g} W x PUE {factor:g}{assumed} x {usd_per_kwh:g} USD/kWh"
