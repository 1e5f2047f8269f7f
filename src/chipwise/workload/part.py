"""The ground every part of a workload stands on: frozen, no unknown fields, and its own consistency checks.

A part validates its fields by type and then says in `flaws` what does not fit together. Everything a reader must be told
travels through pydantic as a `fault` or as `flaws`, and `problems.py` turns both into lines a person can act on.
Assumes nothing about files: the same classes serve whoever builds a workload in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from chipwise.spelling import fold, nearest

JsonSchema = dict[str, Any]


Near = Callable[[], Iterable[str]]


def fault(message: str, allowed: str | None = None, near: Near = tuple) -> PydanticCustomError:
    """One thing wrong with one value, to be raised in a validator. `near` is only called for those that are shown."""
    return PydanticCustomError("fault", "{message}", {"message": message, "allowed": allowed, "nearest": near})


def near_spelling(said: object, meanings: Mapping[str, str]) -> Near:
    """What was probably meant, where several spellings have one meaning."""
    return lambda: dict.fromkeys(meanings[name] for name in nearest(said, meanings)) if isinstance(said, str) else ()


@dataclass(frozen=True, slots=True)
class Flaw:
    """Something that does not fit together. `field` is where to show it, `also` the other fields it depends on."""

    field: str
    message: str
    allowed: str | None = None
    also: tuple[str, ...] = ()
    near: Near = tuple


class Section(BaseModel):
    """Base of all sections. `shorthand` names the field meant when a plain value stands where the mapping would."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, populate_by_name=True, allow_inf_nan=False)
    shorthand: ClassVar[str | None] = None

    def flaws(self) -> Iterable[Flaw]:
        """What is inconsistent between the fields, each of which is valid by itself."""
        return ()

    @classmethod
    def expand(cls, value: object) -> object:
        """The mapping meant by a shorter way of writing it; anything else unchanged."""
        if cls.shorthand is None or isinstance(value, Mapping | BaseModel) or value is None:
            return value
        return {cls.shorthand: value}

    @classmethod
    def short_schema(cls, full: JsonSchema) -> JsonSchema | None:
        """The JSON Schema of the shorter way of writing, None where there is none."""
        return full["properties"].get(cls.shorthand) if cls.shorthand else None

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, value: object) -> object:
        return cls.expand(value)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if flaws := tuple(self.flaws()):
            summary = "; ".join(f"{flaw.field}: {flaw.message}" for flaw in flaws)
            raise PydanticCustomError("flaws", "{summary}", {"summary": summary, "flaws": flaws})
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler, /) -> JsonSchema:
        reference = handler(schema)
        definition = handler.resolve_ref_schema(reference)
        if (short := cls.short_schema(definition)) is not None:
            full = dict(definition)
            definition.clear()
            definition.update({"title": full.pop("title"), "anyOf": [short, full]})
        return reference


@dataclass(frozen=True, slots=True)
class EnumChoice:
    """Annotates an enum so that case and separators do not count and a typo is answered with the nearest name."""

    names: type[StrEnum]
    noun: str  # "an objective", as it stands in "'x' is not an objective"
    aliases: tuple[tuple[str, str], ...] = ()  # (what people also write, the member's value)

    @property
    def allowed(self) -> str:
        return ", ".join(member.value for member in self.names)

    def read(self, value: object) -> object:
        if isinstance(value, self.names):
            return value
        known = {fold(member.value): member for member in self.names}
        known |= {fold(alias): self.names(meant) for alias, meant in self.aliases}
        choice = known.get(fold(value)) if isinstance(value, str) else None
        if choice is None:
            spellings = {fold(member.value): member.value for member in self.names} | {fold(a): m for a, m in self.aliases}
            raise fault(f"{show_value(value)} is not {self.noun}", self.allowed, near_spelling(value, spellings))
        return choice

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.read, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        names = handler(schema)
        return {"anyOf": [names, {"enum": [alias for alias, _ in self.aliases]}]} if self.aliases else names


@dataclass(frozen=True, slots=True)
class OneOrMore:
    """Annotates a tuple so that a single value may stand for a list of one."""

    def read(self, value: object) -> object:
        return value if value is None or isinstance(value, list | tuple | Mapping) else (value,)

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.read, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        array = handler(schema)
        return {"anyOf": [array["items"], array]}


def show_value(value: object) -> str:
    """A value as the file has it, short enough for a message."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case Mapping():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case str():
            return repr(value) if len(value) <= 60 else repr(value[:57] + "...")
        case _:
            return str(value)[:60]


def exactly_one(part: BaseModel, *names: str) -> Iterable[Flaw]:
    """A flaw unless exactly one of the named fields is given."""
    present = [name for name in names if getattr(part, name) is not None]
    if len(present) != 1:
        choices = ", ".join(names[:-1]) + " or " + names[-1]
        message = f"{' and '.join(present)} cannot be combined" if present else "one of them is needed"
        yield Flaw(present[1] if present else "", f"{message}: give exactly one of {choices}", also=names)
