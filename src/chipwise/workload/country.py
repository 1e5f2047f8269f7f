"""Countries, groups and continents as fields of a workload."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from chipwise.countries import CONTINENTS, spellings
from chipwise.spelling import fold
from chipwise.workload.part import fault, near_spelling, show_value


def parse_country(text: object) -> str:
    """ "de" -> "DEU", "EU" -> "EU"."""
    return _find(text, "a country or group of countries")


def parse_origin(text: object) -> str:
    """As `parse_country`, of traffic."""
    return _find(text, "a place traffic comes from")


def _find(text: object, noun: str) -> str:
    code = spellings().get(fold(text)) if isinstance(text, str) else None
    if code is None:
        allowed = f"ISO 3166 codes such as DEU or DE; EU; EEA; {', '.join(CONTINENTS)}"
        raise fault(f"{show_value(text)} is not {noun}", allowed, near_spelling(text, spellings()))
    return code


Country = Annotated[str, BeforeValidator(parse_country), Field(examples=["DEU", "DE", "EU", "EEA"])]
Origin = Annotated[str, BeforeValidator(parse_origin), Field(examples=["DEU", "US", "EU", "ASIA"])]
