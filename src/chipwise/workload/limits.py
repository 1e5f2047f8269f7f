"""What a plan may use: limits on chips, clouds, places, prices and precision, and what must run there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, NamedTuple

from pydantic import BeforeValidator, Field

from chipwise.countries import members
from chipwise.workload.country import Country
from chipwise.workload.goals import (
    AnyBuying,
    AnyPrecision,
    AnyProgramme,
    AnyWhere,
    Buying,
    Commit,
    MarketScope,
    Precision,
    Texts,
    Unproven,
    with_unit,
)
from chipwise.workload.part import EnumChoice, Flaw, JsonSchema, OneOrMore, Section, fault, show_value
from chipwise.workload.quantity import Seconds, Watts, WholeNumber, WholeOrZero


class Range(Section):
    """From `min` to `max`, either of which may be left open. A plain number is both."""

    min: WholeNumber | None = None
    max: WholeNumber | None = None

    @classmethod
    def expand(cls, value: object) -> object:
        return {"min": value, "max": value} if isinstance(value, str | int | float) else value

    @classmethod
    def short_schema(cls, full: JsonSchema) -> JsonSchema | None:
        return {"type": "integer", "exclusiveMinimum": 0}

    def flaws(self) -> Iterable[Flaw]:
        if self.min is not None and self.max is not None and self.min > self.max:
            yield Flaw("min", f"{self.min} is above max, which is {self.max}", also=("max",))


class Avoid(Section):
    """What must not be used although the other limits would allow it."""

    clouds: Texts = ()
    regions: Texts = ()
    countries: Annotated[tuple[Country, ...], OneOrMore()] = ()
    chips: Texts = ()


def _quota_key(key: object) -> object:
    parts = key.split(":") if isinstance(key, str) else []
    if not 1 <= len(parts) <= 3 or not all(part.strip() for part in parts):
        raise fault(
            f"{show_value(key)} does not name a quota", "chip, cloud:chip or cloud:region:chip, such as aws:us-east-1:h100"
        )
    return key


class Need(NamedTuple):
    """Something a chip must run or have, taken apart: `flash-attention>=2` is (flash-attention, >=, 2)."""

    name: str
    sign: str  # >=, <=, ==, < or nothing
    version: str


MOST_NEEDS = 40  # each is held against every chip


_NEED = re.compile(r"([A-Za-z][A-Za-z0-9_.+-]*?)\s*(?:(>=|<=|==|=|<|\s)\s*[vVrR]?(\d{1,6}(?:\.\d{1,6}){0,3}))?")


def need_of(text: str) -> Need | None:
    """None: not written as one. Both `=` and a blank mean exactly this version."""
    match = _NEED.fullmatch(text.strip())
    if match is None:
        return None
    name, sign, version = match.groups()
    return Need(name, ("==" if sign.strip() in ("", "=") else sign) if sign else "", version or "")


def _need(value: object) -> object:
    if not isinstance(value, str) or need_of(value) is None or len(value) > 80:
        raise fault(
            f"{show_value(value)} does not name what must run", "a name, with a version if it matters: fp8, cuda>=12.4, vllm"
        )
    return " ".join(value.split())


def _every_precision(value: object) -> object:
    words = (value,) if isinstance(value, str) else value
    return tuple(Precision) if isinstance(words, list | tuple) and [str(one).lower() for one in words] == ["any"] else value


class Limits(Section):
    """What every plan must keep to. An empty list limits nothing."""

    clouds: Texts = ()
    """Only these providers."""
    regions: Texts = ()
    """Only these regions, as eu-central-1 or aws:eu-central-1."""
    countries: Annotated[tuple[Country, ...], OneOrMore()] = ()
    """Machines only in these countries or groups (EU, EEA)."""
    residency: Annotated[tuple[Country, ...], OneOrMore()] = ()
    """Data is kept and processed only in these countries or groups (EU, EEA)."""
    compliance: Annotated[tuple[AnyProgramme, ...], OneOrMore()] = ()
    """Programmes that the provider must take part in."""
    compliance_unknown: Annotated[Unproven, EnumChoice(Unproven, "refuse or warn")] | None = None
    """Providers of whom no data says whether they take part: refuse them, or warn and go on. Unset: refused where others are
    known to take part, with a warning where the catalog has no data on the programme at all."""
    chips: Texts = ()
    """Only these chips or families of chips."""
    chip_count: Range = Range()
    """Fewest and most chips at one time."""
    precision: Annotated[tuple[AnyPrecision, ...], OneOrMore(), BeforeValidator(_every_precision)] = ()
    """Number formats that may be used, where the plan could choose; any: also those that cost quality."""
    interruptible: bool | None = None
    """True: may be stopped at any time, as spot machines are; false: must not be; unset: the plan weighs it."""
    purchase: Annotated[tuple[AnyBuying, ...], OneOrMore()] = ()
    """Only machines bought in these ways: on-demand, spot, reserved (any term), reserved-1y, reserved-3y, owned."""
    market: Annotated[MarketScope, EnumChoice(MarketScope, "a market", (("all", "any"), ("marketplace", "any")))] | None = None
    """durable (the default): offers that can be expected to be rented again next month, and clouds that are named; any: also
    marketplaces and single listings."""
    commit: Annotated[Commit, EnumChoice(Commit, "a commitment", (("no", "none"), ("1", "1y"), ("3", "3y")))] | None = None
    """The longest commitment that may be made: none (the default, unless purchase asks for reserved ones), 1y, 3y or any."""
    max_price_age: Seconds | None = None
    """Only prices that were read within this time, such as 90d."""
    where: Annotated[tuple[AnyWhere, ...], OneOrMore()] = ()
    """Rented in a cloud, standing at the edge, or owned."""
    round_trip: Annotated[Seconds, BeforeValidator(with_unit("round_trip"))] | None = None
    """Longest round trip between the machines and the users that `traffic` names. Unset: 60ms, where the goals leave it and
    something fits so near."""
    power_watts: Watts | None = None
    """Most power one machine may draw, for places with a weak supply."""
    quotas: Mapping[Annotated[str, BeforeValidator(_quota_key)], WholeOrZero] = Field(default_factory=dict)
    """Most chips at one time by chip, cloud:chip or cloud:region:chip."""
    large: bool = False
    """True: more than 64 machines may be planned although no goal asks for them."""
    default_quotas: bool = False
    """True: no more than the default quotas of a new account, as far as they are known."""
    requires: Annotated[tuple[Annotated[str, BeforeValidator(_need)], ...], OneOrMore()] = ()
    """What a chip must run or have: flash-attention>=2, cuda>=12.4, vllm, fp8, fp64, nvenc, mig, nvlink, rdma."""
    avoid: Avoid = Avoid()

    def flaws(self) -> Iterable[Flaw]:
        for name in ("clouds", "regions", "countries", "chips"):
            if conflicts := set(getattr(self, name)) & set(getattr(self.avoid, name)):
                yield Flaw(
                    f"avoid.{name}",
                    f"{', '.join(sorted(conflicts))} is asked for in limits.{name} and avoided here",
                    also=(name,),
                )
        if self.interruptible is False and self.purchase == (Buying.SPOT,):
            remedy = "another purchase option, or interruptible: true"
            yield Flaw("purchase", "spot machines can be interrupted, and interruptible is false", remedy, ("interruptible",))
        if len(self.requires) > MOST_NEEDS:
            yield Flaw("requires", f"{len(self.requires)} requirements are too many", f"at most {MOST_NEEDS}")
        if self.countries and self.residency and not _overlap(self.countries, self.residency):
            yield Flaw("residency", "no country is in both countries and residency, so nothing can fit", also=("countries",))


def _overlap(one: Iterable[str], other: Iterable[str]) -> bool:
    return bool(frozenset().union(*map(members, one)) & frozenset().union(*map(members, other)))
