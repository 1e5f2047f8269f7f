"""What the chosen chip cost by the month, with what the answer pays for it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any

from chipwise.catalog.price_tables import PriceHistory
from chipwise.planner.values.plan import Choice
from chipwise.report.charts import _COLOURS, _GRID, _INK, _QUIET, Chart, _layout
from chipwise.report.markup import label
from chipwise.text import price

FEWEST_MONTHS = 6  # with a price: fewer are no history


def price_history(winner: Choice, rows: Iterable[PriceHistory], today: date) -> Chart | None:
    """None where nobody followed the chip's price."""
    traces = [trace for row in rows if row.chip == (winner.catalog_chip or winner.chip) if (trace := _line(row)) is not None]
    if not traces:
        return None
    for trace, colour in zip(traces, _COLOURS, strict=False):
        trace["line"] = {"color": colour, "width": 2, "dash": "dot" if "spot" in trace["name"] else "solid"}
    if winner.chips and winner.hourly_usd:
        traces.append(_paid(winner, today))
    axis = {"gridcolor": _GRID, "linecolor": _QUIET, "zeroline": False, "automargin": True}
    layout = _layout(
        340,
        xaxis={**axis, "type": "date", "nticks": 6},
        yaxis={**axis, "title": {"text": "USD per chip and hour"}, "rangemode": "tozero", "tickprefix": "$"},
        margin={"l": 56, "r": 16, "t": 12, "b": 88},
        legend={"orientation": "h", "y": -0.2, "yanchor": "top", "x": 0},
    )
    return Chart("history", tuple(traces), layout)


def _line(row: PriceHistory) -> dict[str, Any] | None:
    year, month = map(int, row.first_month.split("-"))
    cells = row.usd_per_chip_hour.split("|")
    days = [f"{year + (month - 1 + at) // 12}-{(month - 1 + at) % 12 + 1:02d}-01" for at in range(len(cells))]
    prices = [float(cell) if cell else None for cell in cells]
    if sum(one is not None for one in prices) < FEWEST_MONTHS:
        return None
    name = f"{row.kind.replace('gpu-', 'GPU ')}s, {row.purchase}"
    return {
        "type": "scatter",
        "mode": "lines",
        "name": label(name),
        "x": days,
        "y": prices,
        "connectgaps": False,
        "hovertemplate": f"{label(name)}: %{{y:$.2f}}<extra></extra>",
    }


def _paid(winner: Choice, today: date) -> dict[str, Any]:
    usd = winner.hourly_usd / winner.chips
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "the answer",
        "x": [today.isoformat()],
        "y": [usd],
        "cliponaxis": False,
        "marker": {"symbol": "star", "size": 13, "color": "#d1242f", "line": {"color": _INK, "width": 1}},
        "hoverinfo": "text",
        "hovertext": [label(f"{winner.where}, {winner.purchase}: {price(usd)} per chip and hour")],
    }
