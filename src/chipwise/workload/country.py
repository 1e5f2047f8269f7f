"""Countries, groups and continents as fields of a workload."""

from __future__ import annotations

from functools import cache
from typing import Annotated

from pydantic import BeforeValidator, Field

from chipwise.countries import spellings
from chipwise.spelling import fold
from chipwise.workload.part import fault, near_spelling, show_value

CONTINENTS = ("AFRICA", "ASIA", "EUROPE", "NORTH AMERICA", "OCEANIA", "SOUTH AMERICA")


@cache
def _origin_spellings() -> dict[str, str]:
    return spellings() | {fold(continent): continent for continent in CONTINENTS}


def parse_country(text: object) -> str:
    """ "de" -> "DEU", "EU" -> "EU"."""
    return _find(text, spellings(), "a country or group of countries", "ISO 3166 codes such as DEU or DE; EU; EEA")


def parse_origin(text: object) -> str:
    """As `parse_country`; a continent will also do, where traffic is known no better."""
    known = _origin_spellings()
    return _find(
        text, known, "a place traffic comes from", f"ISO 3166 codes such as DEU or DE; EU; EEA; {', '.join(CONTINENTS)}"
    )


def _find(text: object, known: dict[str, str], noun: str, allowed: str) -> str:
    code = known.get(fold(text)) if isinstance(text, str) else None
    if code is None:
        raise fault(f"{show_value(text)} is not {noun}", allowed, near_spelling(text, known))
    return code


Country = Annotated[str, BeforeValidator(parse_country), Field(examples=["DEU", "DE", "EU", "EEA"])]
Origin = Annotated[str, BeforeValidator(parse_origin), Field(examples=["DEU", "US", "EU", "ASIA"])]
