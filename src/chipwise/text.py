"""The only formatter of money, time, counts and masses for people."""

from __future__ import annotations

from chipwise.units import DAY, HOUR, show_number


def duration(seconds: float) -> str:
    if seconds >= 3 * DAY:
        return f"{seconds / DAY:.1f} d" if seconds < 1e6 * DAY else f"{seconds / DAY:.3g} d"
    return f"{seconds / HOUR:.1f} h" if seconds >= HOUR else f"{seconds / 60:.0f} min"


def usd(value: float) -> str:
    """Cents; of less than ten cents three digits, so that two small amounts can be told apart."""
    if 0 < value < 0.1:
        return f"${show_number(value)}" if value >= 1e-6 else "<$0.000001"
    return f"${value:.3g}" if value >= 1e13 else f"${value:,.0f}" if value >= 100 else f"${value:.2f}"


def hourly(value: float) -> str:
    """A price that is multiplied: exact enough for the product to be what it says."""
    cents = f"{value:,.2f}"
    return f"${cents}" if abs(float(cents.replace(",", "")) - value) <= 5e-4 * value else f"${show_number(value, 4)}"


def mass(kg: float) -> str:
    """In grams below a kilogram: nothing that is emitted reads as 0."""
    return f"{show_number(kg)} kg" if kg >= 1 or not kg else f"{show_number(1e3 * kg)} g"
