"""Amounts as people type them on the command line: 80k, 1.5M, 72h, whole numbers and numbers above zero."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from chipwise.spelling import objective_hint

if TYPE_CHECKING:
    from chipwise.errors import BadInput

SLOWEST_NETWORK, FASTEST_NETWORK = 1.25e6, 1.25e14  # bytes per second that a machine may have


class Amount(click.ParamType[float]):
    """A number of things: finite and not below zero."""

    name = "number"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = float(str(value))
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or number < 0:
            self.fail(f"{str(value)[:40]!r} is not a number of zero or more.", param, ctx)
        return number


class WholeNumber(click.ParamType[int]):
    """A count: whole, from `least` to `most`; 4096, 4_096 and 1e6 are."""

    name = "integer"

    def __init__(self, least: int = 1, most: int = 10**12) -> None:
        self.least = least
        self.most = most

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number = _number(value)
        if not self.least <= number <= self.most or number != math.floor(number):
            raise _refusal(value, param, f"whole numbers from {self.least} to {_number_text(self.most)}")
        return int(number)


class AboveZero(click.ParamType[float]):
    """A rate or a share: finite and above zero."""

    name = "float"

    def __init__(self, most: float = 1e12) -> None:
        self.most = most

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = _number(value)
        if not 0 < number <= self.most:
            raise _refusal(value, param, f"numbers above 0, up to {_number_text(self.most)}")
        return number


class RequestRate(AboveZero):
    """Requests per second: 5, 5/s, 300/min, "5 req/s"."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from chipwise.errors import BadInput
        from chipwise.units import parse_rate

        with suppress(BadInput):  # what is possible is said of any number
            value = parse_rate(str(value), "req", "request", "requests", "rps", "qps")
        return super().convert(value, param, ctx)


class Bandwidth(click.ParamType[float]):
    """Bytes per second, from text such as 400Gbps."""

    name = "bandwidth"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from chipwise.units import parse_bandwidth

        rate = parse_bandwidth(str(value))
        if not SLOWEST_NETWORK <= rate <= FASTEST_NETWORK:
            raise _refusal(value, param, "10 Mbit/s to 1 Pbit/s, such as 400Gbps or 50GB/s")
        return rate


class Duration(click.ParamType[float]):
    """Seconds, from text such as 800ms."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from chipwise.errors import BadInput
        from chipwise.units import parse_goal

        try:
            seconds = parse_goal(str(value), param.name or "" if param is not None else "")
        except BadInput as error:
            raise BadInput(f"{_typed(param)}: {error.message}", remedy=error.remedy) from error
        if not 0 < seconds <= 1e9:
            raise _refusal(value, param, "durations above 0, such as 800ms or 2s")
        return seconds


def _number(value: object) -> float:
    """NaN where it is none; 10k and 1,000 are numbers."""
    from chipwise.errors import BadInput
    from chipwise.units import parse_count

    try:
        return float(str(value))
    except ValueError:
        pass
    try:
        return parse_count(str(value))
    except BadInput:
        return math.nan


def _number_text(most: float) -> str:
    return f"{most:g}".replace("e+", "e")


def _typed(param: click.Parameter | None) -> str:
    return param.opts[0] if param is not None else "value"


def _refusal(value: object, param: click.Parameter | None, allowed: str) -> BadInput:
    from chipwise.errors import BadInput

    text = str(value)
    quoted = text.strip() if text.strip() and text.isprintable() else repr(text)
    return BadInput(f"{_typed(param)}: {quoted[:40]} is not possible.", remedy=f"Allowed: {allowed}.")


class Objective(click.Choice[str]):
    """What to minimise; a word for one that goes by another name is answered with that name."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            raise click.BadParameter(f"{error.message}{objective_hint(str(value))}", ctx=ctx, param=param) from error
