"""What the chosen chip cost by the month, with what the answer pays for it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from chipwise.catalog.price_tables import PriceHistory
from chipwise.planner.values.choice import Choice
from chipwise.report.chart import ANSWER, COLOURS, Axis, Chart, Dot, Lines, Points, Stroke
from chipwise.report.markup import label
from chipwise.text import price

FEWEST_MONTHS = 6  # with a price: fewer are no history


def price_history(winner: Choice, rows: Iterable[PriceHistory], today: date) -> Chart | None:
    """None where nobody followed the chip's price."""
    followed = [row for row in rows if row.chip == (winner.catalog_chip or winner.chip) and _months(row) >= FEWEST_MONTHS]
    if not followed:
        return None
    lines = [_line(row, COLOURS[at % len(COLOURS)]) for at, row in enumerate(followed)]
    paid = [_paid(winner, today)] if winner.chips and winner.hourly_usd else []
    dollars = Axis("USD per chip and hour", prefix="$", from_zero=True)
    return Chart("history", (*lines, *paid), x=Axis(), y=dollars, height=240)


def _months(row: PriceHistory) -> int:
    """With a price."""
    return sum(bool(cell) for cell in row.usd_per_chip_hour.split("|"))


def _line(row: PriceHistory, colour: str) -> Lines:
    year, month = map(int, row.first_month.split("-"))
    cells = row.usd_per_chip_hour.split("|")
    days = [f"{year + (month - 1 + at) // 12}-{(month - 1 + at) % 12 + 1:02d}-01" for at in range(len(cells))]
    prices = [float(cell) if cell else None for cell in cells]
    name = label(f"{row.kind.replace('gpu-', 'GPU ')}s, {row.purchase}")
    return Lines(days, prices, Stroke(colour, 2, "dot" if "spot" in name else ""), name)


def _paid(winner: Choice, today: date) -> Points:
    usd = winner.hourly_usd / winner.chips
    tip = label(f"{winner.where}, {winner.purchase}: {price(usd)} per chip and hour")
    return Points("star", (Dot(today.isoformat(), usd, 13, ANSWER, tip=tip),), "the answer")
