"""What a chip can do, with the reason: rules as data, evaluated for one chip.

The rules are rows of `data/abilities.csv`: for an ability, the first row whose vendor fits decides. An ability that no
row speaks of for this vendor, or whose field nobody states for this chip, is unknown: None, with a reason all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from chipwise.catalog.chip import Chip, ChipKind, Precision
from chipwise.catalog.tables import read_rows


class AbilityRule(NamedTuple):
    """When a chip has an ability: a test on one of its fields, with the reason."""

    ability: str
    title: str
    vendor: str  # or *
    field: str  # of Chip or its silicon; rate:fp8 is the stated rate in fp8
    test: str  # >=, >, in, other than, has; between: unknown above the range
    value: str
    reason: str
    source: str


@dataclass(frozen=True, slots=True)
class Ability:
    name: str
    title: str
    has: bool | None
    reason: str


@lru_cache(maxsize=4)
def rules(data: Path) -> tuple[AbilityRule, ...]:
    return tuple(read_rows(data / "abilities.csv", AbilityRule))


def abilities(chip: Chip, data: Path) -> tuple[Ability, ...]:
    """Every ability the rules know, for this chip."""
    judged: dict[str, Ability] = {}
    for rule in rules(data):
        if rule.ability not in judged and rule.vendor in ("*", chip.vendor):
            judged[rule.ability] = _judge(rule, chip)
    for rule in rules(data):
        if rule.ability not in judged:
            judged[rule.ability] = Ability(rule.ability, rule.title, None, f"no rule speaks of {chip.vendor} chips")
    return tuple(judged.values())


def _judge(rule: AbilityRule, chip: Chip) -> Ability:
    value = _field(chip, rule.field)
    subject = rule.field.removeprefix("rate:").replace("_", " ")
    if value is None:
        if rule.test == "has" and rule.field.startswith("rate:") and chip.rates:
            # A chip whose other rates are stated, without this one, is taken not to have it.
            return Ability(rule.ability, rule.title, False, f"no {subject} rate is stated among its rates")
        return Ability(rule.ability, rule.title, None, f"its {subject} is not published")
    match rule.test:
        case ">=":
            has = float(value) >= float(rule.value)
        case "between":
            low, high = map(float, rule.value.split())
            if float(value) > high:
                return Ability(
                    rule.ability,
                    rule.title,
                    None,
                    f"stated up to compute capability {high}; its {subject} is {_value_text(value)}",
                )
            has = float(value) >= low
        case ">":
            has = float(value) > float(rule.value)
        case "in":
            has = _value_text(value) in rule.value.split()
        case "other than":
            has = value not in rule.value.split()
        case _:
            has = True
    about = "" if rule.test == "has" else f"; its {subject} is {_value_text(value)}"
    return Ability(rule.ability, rule.title, has, rule.reason + about)


def _value_text(value: float | str) -> str:
    """Whole numbers of things as they are; 9.0 stays 9.0, as compute capabilities are written."""
    return str(value)


def _field(chip: Chip, name: str) -> float | str | None:
    if name.startswith("rate:"):
        return chip.rate(Precision(name.removeprefix("rate:")))
    holder = chip if name in Chip.__dataclass_fields__ else chip.silicon
    value = getattr(holder, name)
    assert value is None or isinstance(value, int | float | str)
    return str(value) if isinstance(value, ChipKind) else value
