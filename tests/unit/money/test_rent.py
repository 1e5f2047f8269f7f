"""How rents move: which record counts, how wide its interval is, and what a term fixes."""

from __future__ import annotations

import csv
from math import isclose

from chipwise.catalog.load import DATA, load
from chipwise.catalog.names import providers
from chipwise.catalog.offer import Purchase
from chipwise.money.rent import NONE, Declines, factors

ROWS = load(prices=False).rows("price_decline")
KINDS = {one.name: one.kind for one in providers(DATA)}
DECLINES = Declines(ROWS, KINDS)


def table(chip: str, kind: str, purchase: str) -> tuple[float, float, float]:
    with (DATA / "tables" / "price_decline.csv").open(newline="") as file:
        row = next(one for one in csv.DictReader(file) if (one["chip"], one["kind"], one["purchase"]) == (chip, kind, purchase))
    return float(row["yearly_change"]), float(row["low"]), float(row["high"])


def test_a_chip_goes_by_its_own_record_at_such_providers() -> None:
    change, low, high = table("H100-SXM", "gpu-cloud", "on-demand")
    decline = DECLINES.of("H100-SXM", "lambda", Purchase.ON_DEMAND)
    assert (decline.value, decline.low, decline.high) == (-change, -high, -low)
    assert "GPU clouds, H100-SXM" in decline.how
    assert DECLINES.of("H100-SXM", "lambda", Purchase.RESERVED_1Y) == decline


def test_a_thin_record_gives_way_to_a_wider_one() -> None:
    """Spot at GPU clouds was followed for a year at two of them."""
    change, _, _ = table("H100-SXM", "*", "spot")
    assert DECLINES.of("H100-SXM", "coreweave", Purchase.SPOT).value == -change
    change, low, high = table("*", "gpu-cloud", "on-demand")
    unknown = DECLINES.of("Nobodys-Chip", "lambda", Purchase.ON_DEMAND)
    assert (unknown.value, unknown.low, unknown.high) == (-change, -high, -low)
    assert DECLINES.of("Nobodys-Chip", "somebody", Purchase.ON_DEMAND).value == -table("*", "*", "on-demand")[0]
    assert Declines((), KINDS).of("H100-SXM", "aws", Purchase.SPOT) == NONE


def test_a_price_that_never_moved_still_has_the_interval_of_its_kind() -> None:
    assert table("A10", "cloud", "on-demand") == (0, 0, 0)
    _, low, high = table("*", "cloud", "on-demand")
    decline = DECLINES.of("A10", "aws", Purchase.ON_DEMAND)
    assert decline.value == 0
    assert (decline.low, decline.high) == (min(0, -high), max(0, -low))
    assert decline.is_wide


def test_every_interval_holds_its_figure() -> None:
    assert [row for row in ROWS if not -1 < (row.low or 0) <= (row.yearly_change or 0) <= (row.high or 0)] == []


def test_a_term_fixes_the_price_until_its_end() -> None:
    plain, yearly = factors(36, 0.2), factors(36, 0.2, 12)
    assert plain[0] == 1
    assert isclose(plain[12], 0.8)
    assert isclose(plain[24], 0.64)
    assert isclose(plain[6], 0.8**0.5)
    assert [yearly[0], yearly[11]] == [1, 1]
    assert isclose(yearly[12], 0.8)
    assert yearly[12] == yearly[23]
    assert factors(36, 0.2, 36) == (1.0,) * 36
    assert factors(5, 0.0) == (1.0,) * 5
