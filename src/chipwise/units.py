"""Quantities as people write them, in one unit each.

Inside the package: bytes, seconds, USD, FLOP, plain counts, and each of them per second. Nothing else parses
"80GiB", and nothing else knows GiB (2**30) from GB (10**9). `Gbps` and `Gbit/s` are bits, `GB/s` is bytes.
"""

from __future__ import annotations

import math
import re

from chipwise.errors import BadInput

KIB, MIB, GIB, TIB = 2.0**10, 2.0**20, 2.0**30, 2.0**40
KB, MB, GB, TB, PB = 1e3, 1e6, 1e9, 1e12, 1e15
MINUTE, HOUR, DAY, WEEK = 60.0, 3600.0, 86400.0, 604800.0
# A civil year over twelve: what cloud bills call a month (730 hours).
MONTH, YEAR = 730 * HOUR, 8760 * HOUR

# A comma groups thousands and nothing else: "1,5" is neither 15 nor 1.5.
_DIGITS = r"[+-]?(?:\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\d,])"
_NUMBER = re.compile(rf"\s*({_DIGITS})\s*(.*?)\s*", re.DOTALL)
_BYTES = {"b": 1.0, "byte": 1.0, "bytes": 1.0, "kb": KB, "mb": MB, "gb": GB, "tb": TB, "pb": PB}
_BYTES |= {"kib": KIB, "mib": MIB, "gib": GIB, "tib": TIB, "pib": 2.0**50}
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "second": 1.0, "min": MINUTE}
_SECONDS |= {"m": MINUTE, "minute": MINUTE, "h": HOUR, "hr": HOUR, "hrs": HOUR, "hour": HOUR, "d": DAY, "day": DAY, "w": WEEK}
_SECONDS |= {"week": WEEK, "month": MONTH, "y": YEAR, "year": YEAR}
_SCALE = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "bn": 1e9, "g": 1e9, "t": 1e12, "p": 1e15, "e": 1e18}
_SCALE |= {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_FLOP_SCALE = _SCALE | {"z": 1e21, "y": 1e24}
_USD = {"$", "usd", "dollar", "dollars", "us$"}


def _split(text: str, kind: str, example: str) -> tuple[float, str]:
    match = _NUMBER.fullmatch(text) if len(text) <= 100 else None
    if match is None:
        excerpt = text if len(text) <= 40 else text[:37] + "..."
        raise BadInput(f"{excerpt!r} is not {kind}.", remedy=f"Write it like {example}.")
    value = float(match[1].replace(",", "").replace("_", ""))
    if not math.isfinite(value):
        raise BadInput(f"{text!r} is too large to be {kind}.", remedy=f"Write it like {example}.")
    return value, match[2]


def _singular(unit: str) -> str:
    return unit[:-1] if len(unit) > 3 and unit.endswith("s") else unit


def parse_bytes(text: str | float) -> float:
    """ "80GiB" -> 85899345920.0, "1.5 TB" -> 1.5e12; a bare number is bytes."""
    if isinstance(text, int | float):
        return _finite(text, "a size")
    value, unit = _split(text, "a size", "80GiB, 500 GB or 1.5TB")
    key = unit.lower()
    if key.endswith(("bit", "bits")) or re.fullmatch("[KMGTP]b", unit):
        raise BadInput(f"{text!r} is in bits.", remedy="Sizes are in bytes: write 80GiB, 500 GB or 1.5TB.")
    if key == "" or key in _BYTES:
        return _finite(value * _BYTES.get(key, 1.0), "a size")
    raise BadInput(f"{unit!r} is not a unit of size.", remedy="Use B, kB, MB, GB, TB, PB or KiB, MiB, GiB, TiB, PiB.")


def parse_seconds(text: str | float) -> float:
    """ "72h" -> 259200.0, "50ms" -> 0.05, "1d 12h" -> 129600.0; a bare number is seconds."""
    if isinstance(text, int | float):
        return _finite(text, "a duration")
    example = "50ms, 90s, 30min, 72h or 7d"
    total, rest, seen = 0.0, text.strip(), False
    while rest:
        match = re.match(rf"({_DIGITS})\s*([a-zA-Zµμ]*)\s*", rest) if len(text) <= 100 else None
        signed = seen and match is not None and match[1][0] in "+-"  # 1h-5min is no duration
        if match is None or signed or (not match[2] and (seen or match.end() < len(rest))):  # a lone number needs no unit
            raise BadInput(f"{text[:40]!r} is not a duration.", remedy=f"Write it like {example}.")
        unit = match[2].lower()
        scale = _SECONDS.get(unit, _SECONDS.get(_singular(unit))) if unit else 1.0
        if scale is None:
            raise BadInput(f"{match[2]!r} is not a unit of time.", remedy=f"Write it like {example}.")
        total, rest, seen = total + float(match[1].replace(",", "").replace("_", "")) * scale, rest[match.end() :], True
    if not seen:
        raise BadInput(f"{text[:40]!r} is not a duration.", remedy=f"Write it like {example}.")
    return _finite(total, "a duration")


_LONGEST_BARE_S = {
    "ttft": 60.0,
    "tpot": 5.0,
    "round_trip": 2.0,
}  # longer than anybody means without a unit: such a number is in milliseconds


def parse_goal(text: str | float, name: str) -> float:
    """Seconds of a goal by its name (ttft, tpot, latency); 800 without a unit is refused, since most people mean 800ms."""
    seconds = parse_seconds(text)
    is_bare = isinstance(text, int | float) or text.strip()[-1:].isdigit()
    if is_bare and seconds > _LONGEST_BARE_S.get(name, math.inf):
        number = f"{seconds:g}" if seconds < 1e6 else str(text).strip()
        raise BadInput(f"{name} {number} has no unit.", remedy=f"Write {number}ms or {number}s.")
    return seconds


def parse_usd(text: str | float) -> float:
    """ "$500" -> 500.0, "1.2k USD" -> 1200.0; a bare number is USD."""
    if isinstance(text, int | float):
        return _finite(text, "an amount of money")
    cleaned = text.strip()
    cleaned = re.sub(r"^(?:US\$|\$|USD\s)\s*", "", cleaned, flags=re.IGNORECASE)
    value, unit = _split(cleaned, "an amount in USD", "$500, 1,200 USD or $1.5k")
    words = [word for word in re.split(r"[\s]+", unit.lower()) if word and word not in _USD]
    if len(words) > 1 or (words and words[0] not in _SCALE):
        raise BadInput(f"{text!r} is not an amount in USD.", remedy="Write it like $500, 1,200 USD or $1.5k.")
    return _finite(value * _SCALE[words[0] if words else ""], "an amount of money")


def parse_count(text: str | float, *nouns: str) -> float:
    """ "4M tokens" -> 4e6, "70B" -> 7e10; `nouns` are the words that may follow the number."""
    if isinstance(text, int | float):
        return _finite(text, "a count")
    value, unit = _split(text, "a count", f"4M {nouns[0] if nouns else ''}".strip() + " or 4,000,000")
    words = unit.lower().split()
    allowed = {word for noun in nouns for word in (noun, noun + "s", _singular(noun))}
    if words and words[0] in _SCALE:
        value, words = value * _SCALE[words[0]], words[1:]
    if words and words[0] in allowed:
        words = words[1:]
    if words:
        expected = f" of {_singular(nouns[0])}s" if nouns else ""
        raise BadInput(f"{text!r} is not a count{expected}.", remedy="Write it like 4M, 250k or 4,000,000.")
    return _finite(value, "a count")


def parse_share(text: str | float) -> float:
    """ "60%" -> 0.6, 0.6 -> 0.6: a part of a whole."""
    if isinstance(text, str) and text.strip().endswith("%"):
        return parse_count(text.strip()[:-1]) / 100
    return parse_count(text)


def parse_rate(text: str | float, *nouns: str) -> float:
    """ "20 req/s" -> 20.0, "1.2k/min" -> 20.0, "5M tokens per day": events per second; a bare number is per second."""
    if isinstance(text, int | float):
        return _finite(text, "a rate")
    amount, slash, period = re.sub(r"\s+per\s+", "/", text.strip(), count=1).partition("/")
    if not slash:
        # "20 rps" and a bare number say per second; "4M tokens" does not say per what.
        words = re.sub(r"^[\s\d.,_+\-eE]*", "", amount).split()
        if (
            words
            and words[-1].lower() not in ("rps", "qps", "fps", *_SCALE)
            and words[-1].lower().rstrip("s") in {n.rstrip("s") for n in nouns}
        ):
            raise BadInput(f"{text!r} does not say per what time.", remedy="Write it like 20/s, 1.2k/min or 5M/day.")
        return parse_count(amount, *nouns)
    unit = period.strip().lower()
    seconds = _SECONDS.get(unit, _SECONDS.get(_singular(unit)))
    if seconds is None:
        raise BadInput(
            f"{period.strip()!r} is not a unit of time in {text!r}.", remedy="Write it like 20/s, 1.2k/min or 5M/day."
        )
    return parse_count(amount, *nouns) / seconds


def parse_bandwidth(text: str | float) -> float:
    """Bytes per second: "25 GB/s" -> 2.5e10, "400Gbps" and "400 Gbit/s" -> 5e10; a bare number is bytes/s."""
    if isinstance(text, int | float):
        return _finite(text, "a bandwidth")
    value, unit = _split(text, "a bandwidth", "25 GB/s or 400 Gbit/s")
    key = unit.replace(" ", "")
    bits = re.fullmatch(r"([kKmMgGtTpP]?)(?:bit/s|bits/s|b/s|bps|bit)", key)
    if bits:
        return _finite(value * _SCALE[bits[1].lower()] / 8, "a bandwidth")
    size = re.fullmatch(r"(B|[kKmMgGtTpP]i?B)(?:/s|ps)?", key or "B/s")
    if size:
        return _finite(value * _BYTES[size[1].lower()], "a bandwidth")
    raise BadInput(f"{unit!r} is not a unit of bandwidth.", remedy="Write it like 25 GB/s (bytes) or 400 Gbit/s (bits).")


def parse_watts(text: str | float) -> float:
    """ "700 W" -> 700.0, "10.2 kW" -> 10200.0; a bare number is watts."""
    if isinstance(text, int | float):
        return _finite(text, "a power")
    value, unit = _split(text, "a power", "700 W or 10.2 kW")
    scales = {"": 1.0, "w": 1.0, "watt": 1.0, "watts": 1.0, "kw": 1e3, "mw": 1e6}
    if unit.lower() not in scales or unit == "mW":
        raise BadInput(f"{unit!r} is not a unit of power.", remedy="Write it like 700 W or 10.2 kW.")
    return _finite(value * scales[unit.lower()], "a power")


def parse_flop(text: str | float) -> float:
    """Floating-point operations: "3e21", "1.5 PFLOP", "20 TFLOPS" -> 2e13."""
    if isinstance(text, int | float):
        return _finite(text, "an amount of work")
    value, unit = _split(text, "an amount of floating-point work", "3e21 or 1.5 PFLOP")
    match = re.fullmatch(r"([kmgtpezy]?)(?:flops?(?:/s)?)?", unit.replace(" ", "").lower())
    if match is None:
        raise BadInput(f"{unit!r} is not a unit of floating-point work.", remedy="Write it like 3e21 or 1.5 PFLOP.")
    return _finite(value * _FLOP_SCALE[match[1]], "an amount of work")


def _finite(value: float, kind: str) -> float:
    if isinstance(value, bool) or value != value:
        raise BadInput(f"{str(value).lower()} is not {kind}.")
    try:
        number = float(value)
    except OverflowError:  # an int beyond what a float holds
        number = math.inf
    if math.isinf(number):
        raise BadInput(f"The number is too large to be {kind}.")
    return number
