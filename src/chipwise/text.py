"""The only formatter of money, time, sizes, counts and shares for people. Three digits, unless a sum must be exact."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from chipwise.units import DAY, HOUR, MINUTE

_TIMES = (
    (1e-6, 1e-9, "ns"),
    (1e-3, 1e-6, "us"),
    (1.0, 1e-3, "ms"),
    (2 * MINUTE, 1.0, "s"),
    (HOUR, MINUTE, "min"),
    (3 * DAY, HOUR, "h"),
)
_CERTAIN = 1.02  # high over low: less is no interval


def number(value: float, digits: int = 3) -> str:
    """So many significant digits, never as a power of ten: 0.0000484, 12.3, 90,500."""
    if not value or not 1e-12 <= abs(value) < 1e15:
        return f"{value:.{digits}g}"
    if abs(value) >= 10 ** min(digits, 3) - 0.5:
        return f"{value:,.0f}"
    text = f"{value:.{digits}g}"
    return f"{value:.{digits - 1 - math.floor(math.log10(abs(value)))}f}".rstrip("0") if "e" in text else text


def count(value: float) -> str:
    """Of what is counted in thousands or more: 950, 1.5k, 70.6M, 2.1G, 15T."""
    for scale, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= scale:
            return f"{value / scale:.3g}{letter}"
    return f"{value:.3g}"


def large(value: float) -> str:
    """In a sentence, beside bytes, of which B and G could be misread: 950, 1,500, 70.6 million, 2.1 billion, 15 trillion."""
    for scale, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if value >= scale:
            return f"{value / scale:.3g} {word}"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def amount(value: float) -> str:
    """Of a rate or a load: 0.0045, 12.1, 4,760, 190M; never as a power of ten."""
    return number(value) if abs(value) < 1e6 else f"{number(value / 1e6)}M"


def parameters(value: float) -> str:
    """Of a model, as people call it: 70.6B, 125M."""
    for scale, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M")):
        if value >= scale:
            return f"{value / scale:.4g}{letter}"
    return f"{value:,.0f}"


def plural(number: float, noun: str) -> str:
    """1 machine, 2 machines, 1,024 chips."""
    return f"{number:,.0f} {noun}{'' if number == 1 else 's'}"


def percent(share: float) -> str:
    """91.9%, 3.3%, 0.012%."""
    value = 100 * share
    return f"{value:.0f}%" if value >= 99.95 else f"{value:.1f}%" if value >= 0.1 or value == 0 else f"{value:.2g}%"


def events(value: float) -> str:
    """How often something happens, as people count: 3, 0.25; what is next to never is 0."""
    return f"{round(value, 2):,g}"


# -- time


def duration(seconds: float) -> str:
    """In the unit in which the number is readable: 50 ms, 40 min, 1.5 h, 3 d."""
    if not seconds:
        return "0 s"
    for limit, scale, unit in _TIMES:
        if abs(seconds) < limit:
            return f"{_three_digits(seconds / scale)} {unit}"
    return f"{_three_digits(seconds / DAY)} d"


def durations_apart(first: float, second: float) -> tuple[str, str]:
    """Two durations that are compared, with as many digits as tell them apart."""
    texts = duration(first), duration(second)
    if texts[0] != texts[1] or first == second:
        return texts
    scale, unit = next(((scale, unit) for limit, scale, unit in _TIMES if abs(min(first, second)) < limit), (DAY, "d"))
    for digits in range(4, 10):
        texts = f"{number(first / scale, digits)} {unit}", f"{number(second / scale, digits)} {unit}"
        if texts[0] != texts[1]:
            break
    return texts


def elapsed(seconds: float) -> str:
    """How long something ran: as `duration`, and nothing finer than a clock that people read."""
    return "under 1 ms" if 0 < seconds < 1e-3 else duration(seconds)


def span(seconds: float) -> str:
    """In two units, for a timeline: 1 min 30 s, 3 h 20 min, 2 d 4 h."""
    rounded = round(seconds)
    if rounded < 60:
        return f"{rounded} s"
    large, small = ((60, 1), (3600, 60))[rounded >= 3600] if rounded < 172800 else (86400, 3600)
    names = {1: "s", 60: "min", 3600: "h", 86400: "d"}
    rest = rounded % large // small
    return f"{rounded // large} {names[large]}" + (f" {rest} {names[small]}" if rest else "")


def round_trip(seconds: float) -> str:
    """Of a network, which nobody knows to less than a millisecond: 5 ms, 140 ms."""
    return f"{seconds * 1e3:,.0f} ms"


def age(days: int) -> str:
    """For a narrow column: 12d, 8mo, 2.1y."""
    if days < 60:
        return f"{days}d"
    return f"{days / 30.4:.0f}mo" if days < 730 else f"{days / 365.25:.1f}y"


def long_age(days: float) -> str:
    """In a sentence: 12 days, 8 months, 2.1 years."""
    if days < 60:
        return plural(days, "day")
    return f"{days / 30.4:.0f} months" if days < 730 else f"{days / 365.25:.1f} years"


# -- money


def usd(value: float) -> str:
    """A sum: whole dollars from 100 on, cents below; under ten cents three digits, so that two small sums can be told apart."""
    sign, size = ("-" if value < 0 else ""), abs(value)
    if not size:
        return "$0"
    if size < 0.1:
        return f"{sign}${number(size)}" if size >= 1e-6 else f"{sign}<$0.000001"
    return sign + (f"${size:.3g}" if size >= 1e13 else f"${size:,.0f}" if size >= 100 else f"${size:.2f}")


def usd_range(low: float, high: float, value: float | None = None) -> str:
    """$1,300-1,900: three digits, since nobody knows it better, and never narrower than it is. An end that is the value itself
    is written as the value."""
    ends = ((low, math.floor), (high, math.ceil))
    first, last = (usd(end) if value is not None and usd(end) == usd(value) else usd(_coarse(end, to)) for end, to in ends)
    return first if first == last else f"{first}-{last.removeprefix('$')}"


def is_wide(low: float, high: float) -> bool:
    """Whether the two ends are worth showing beside the value between them."""
    return high > _CERTAIN * low


def usd_interval(low: float, high: float, value: float | None = None) -> str:
    """As `usd_range`; empty where the ends are as good as the same."""
    return usd_range(low, high, value) if is_wide(low, high) else ""


def _coarse(value: float, rounded: Callable[[float], int]) -> float:
    """To three digits, down or up."""
    if not value > 0 or not math.isfinite(value):
        return value
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return rounded(round(value / unit, 6)) * unit


def spent(value: float) -> str:
    """What somebody pays for a run, in cents: $12.30, < $0.01, $0."""
    return "< $0.01" if 0 < value < 0.01 else "$0" if not value else f"{'-' if value < 0 else ''}${abs(value):,.2f}"


def price(value: float) -> str:
    """What is multiplied: exact enough for the product to be what it says."""
    sign, size = ("-" if value < 0 else ""), abs(value)
    cents = f"{size:,.2f}"
    exact = abs(float(cents.replace(",", "")) - size) <= 5e-4 * size
    return f"{sign}${cents}" if exact else f"{sign}${number(size, 4)}"


def usd_short(value: float) -> str:
    """$1.23M, $340k, $12, -$5.60: three digits, for charts and narrow columns."""
    sign, size = ("-" if value < 0 else ""), abs(value)
    for limit, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if size >= 0.9995 * limit:
            return f"{sign}${size / limit:.3g}{letter}" if size / limit < 999.5 else f"{sign}${size / limit:,.0f}{letter}"
    return f"{sign}${size:.3g}"


def usd_cell(value: float) -> str:
    """Without the sign, for a column whose heading says USD."""
    if value >= 1e13:  # no money that there is, and no column for it
        return f"{value:.3g}"
    if 0 < value < 0.1:
        return number(value) if value >= 1e-6 else "<0.000001"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def price_cell(value: float) -> str:
    """Without the sign, for a column of prices an hour: 12.30, 0.0345."""
    return f"{value:,.2f}" if value >= 1 else f"{value:.4f}"


# -- physical quantities


def gib(value: float, decimals: int = 1) -> str:
    """Memory of a chip and what lies in it, always in GiB: vendors print 80 GB on what holds 80 GiB."""
    return f"{value / 2**30:,.{decimals}f} GiB"


def size(value: float, binary: bool = True) -> str:
    """80 GiB, 1.5 TiB; with `binary=False` 86 GB, 1.6 TB."""
    step, names = (1024.0, ("B", "KiB", "MiB", "GiB", "TiB", "PiB")) if binary else (1e3, ("B", "kB", "MB", "GB", "TB", "PB"))
    index = 0
    while abs(value) >= step and index < len(names) - 1:
        value, index = value / step, index + 1
    return f"{_three_digits(value)} {names[index]}"


def decimal_size(value: float) -> str:
    """In powers of ten, as disks, networks and data sets are sold: 86 GB, 1.6 TB."""
    return size(value, binary=False)


def mass(kg: float) -> str:
    """In grams below a kilogram: nothing that is emitted reads as 0."""
    return f"{number(kg)} kg" if kg >= 1 or not kg else f"{number(1e3 * kg)} g"


def watts(value: float) -> str:
    return f"{value / 1e3:,.3g} kW" if value >= 1e4 else f"{value:,.3g} W" if value < 100 else f"{value:,.0f} W"


def _three_digits(value: float) -> str:
    """Three significant digits, never as a power of ten: 0.5, 12.3, 1500."""
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:.0f}"


def json_value(value: Any) -> Any:
    """As `--json` prints it: 8 rather than 8.0, 66.9e12 rather than 66900000000000.01, enumerations by their values."""
    match value:
        case Enum():
            return json_value(value.value)
        case float():
            if value.is_integer() and abs(value) < 2**63:
                return int(value)
            return float(f"{value:.12g}")
        case Mapping():
            return {str(key): json_value(inner) for key, inner in value.items()}
        case list() | tuple():
            return [json_value(inner) for inner in value]
    return value
