"""Rents and their decline as people write them, for `chipwise tco` and `chipwise.tco`."""

from __future__ import annotations

import re

from chipwise.catalog.offer import Purchase
from chipwise.errors import BadInput
from chipwise.money.rent import HIGHEST_DECLINE, HIGHEST_RISE
from chipwise.money.tco_values import Rent
from chipwise.units import parse_share, parse_usd

RENT_TERMS = {"none": Purchase.ON_DEMAND, "1y": Purchase.RESERVED_1Y, "3y": Purchase.RESERVED_3Y}
HIGHEST_RENT = 1e5  # USD an hour
_RENT = re.compile(r"(?P<usd>[^/]+?)(?:\s*(?:/|\bper\b)\s*(?:(?P<per>chip|machine)[- ]?)?(?:hour|hr|h)?)?", re.IGNORECASE)


def parse_rent(value: str | float) -> Rent:
    """ "1.85/h" and "$1.85/chip-h" are of a chip, "14.80/machine-h" of a machine."""
    allowed = "Allowed: USD an hour above 0, of a chip or of a machine, such as 1.85/h or 14.80/machine-h."
    refusal = BadInput(f"--rent: {str(value).strip()[:40] or repr(value)} is not possible.", remedy=allowed)
    match = _RENT.fullmatch(str(value).strip())
    try:
        rent = parse_usd(match["usd"]) if match else 0.0
    except BadInput as error:
        raise refusal from error
    if match is None or not 0 < rent <= HIGHEST_RENT:
        raise refusal
    return Rent(rent, (match["per"] or "").lower() == "machine")


def parse_decline(value: str | float) -> float:
    """ "20%" and 0.2 fall by a fifth a year, "-5%" rises."""
    text = str(value).strip()
    allowed = "Allowed: shares a year from -100% (rents double) to 90%, such as 20% or 0.2; 0 keeps rents as they are."
    refusal = BadInput(f"--decline: {text[:40] or repr(value)} is not possible.", remedy=allowed)
    try:
        share = parse_share(text)
    except BadInput as error:
        raise refusal from error
    if not -HIGHEST_RISE <= share <= HIGHEST_DECLINE:
        raise refusal
    return share
