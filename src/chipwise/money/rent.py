"""What a rent comes to over the years: by how much it falls or rises, and for how long a term fixes it.

With p today's price of an hour and d the decline a year, an hour of the m-th month costs p (1-d)^((m-1)/12); within a term of T
months the price of its first month holds, and a new term begins at the market's. A decline below 0 is a rise.

The table `price_decline` has how the prices of the same offers changed, by chip and kind of provider: that cheaper providers
appeared is not in it, since who rents one machine does not gain by it. Its interval is of 80%, and never narrower than that of
all chips at such providers: a price that nobody changed in three years may change yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from chipwise.catalog.offer import Purchase
from chipwise.catalog.price_tables import PriceDecline

TERM_YEARS = {Purchase.RESERVED_1Y: 1.0, Purchase.RESERVED_1Y_UPFRONT: 1.0, Purchase.RESERVED_3Y: 3.0}
FEWEST_MONTHS, FEWEST_PAIRS = 24, 100  # below, a record is too thin to go by
HIGHEST_DECLINE, HIGHEST_RISE = 0.9, 1.0  # a year


@dataclass(frozen=True, slots=True)
class Decline:
    """By which share a rent falls a year; below 0 it rises. `low` and `high` are the ends of the interval."""

    value: float = 0.0
    low: float = 0.0
    high: float = 0.0
    how: str = ""
    is_given: bool = False

    @property
    def is_wide(self) -> bool:
        return self.low < self.high


NONE = Decline()


class Declines:
    """By chip, kind of provider and purchase option. Reserved prices were followed by nobody: they go by on-demand."""

    __slots__ = ("_kinds", "_rows")

    def __init__(self, rows: Iterable[PriceDecline], kinds: Mapping[str, str]) -> None:
        """`kinds` of providers by name, as `providers.csv` has them."""
        self._kinds = kinds
        self._rows = {
            (row.chip, row.kind, row.purchase): row
            for row in rows
            if (row.months or 0) >= FEWEST_MONTHS and (row.pairs or 0) >= FEWEST_PAIRS
        }

    def of(self, chip: str, provider: str, purchase: Purchase) -> Decline:
        """The nearest record that is thick enough: of the chip at such providers, of the chip, of all chips."""
        bought = str(Purchase.SPOT if purchase is Purchase.SPOT else Purchase.ON_DEMAND)
        kind = self._kinds.get(provider, "*").replace(" ", "-")
        keys = ((chip, kind), (chip, "*"), ("*", kind), ("*", "*"))
        known = [self._rows[key] for of_chip, of_kind in keys if (key := (of_chip, of_kind, bought)) in self._rows]
        if not known:
            return NONE
        row, pool = known[0], next((one for one in known if one.chip == "*"), known[0])
        low, high = (row.low or 0.0, row.high or 0.0)
        return Decline(
            value=-(row.yearly_change or 0.0),
            low=-max(high, pool.high or 0.0),
            high=-min(low, pool.low or 0.0),
            how=_story(row, bought),
        )


def _story(row: PriceDecline, bought: str) -> str:
    chips = "all chips" if row.chip == "*" else row.chip
    seller = "" if row.kind == "*" else f" of {row.kind.replace('gpu', 'GPU').replace('-', ' ')}s"
    return f"{bought} prices{seller}, {chips}, same offers over {row.months} months up to {row.fact.as_of[:7]}"


def factors(months: int, decline: float, term_months: int = 0) -> tuple[float, ...]:
    """What an hour of each month costs over what it costs today."""
    step = max(term_months, 1)
    return tuple((1.0 - decline) ** ((month // step) * step / 12) for month in range(months))
