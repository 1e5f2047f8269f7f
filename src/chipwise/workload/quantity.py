"""Quantities in a workload file: what `chipwise.units` parses, as types that pydantic and editors understand.

A field of type `Bytes` takes "80GiB" or a plain number and holds a float in the one unit of its kind. All of them are
above zero unless the name says otherwise; a JSON Schema of such a field shows examples and allows a number or a text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from chipwise import units
from chipwise.errors import BadInput
from chipwise.workload.part import JsonSchema, fault, show_value

# Words that may follow a number: "4M tokens", "50M documents", "12 req/s".
ITEMS = (
    "item",
    "request",
    "req",
    "query",
    "queries",
    "call",
    "document",
    "doc",
    "image",
    "frame",
    "video",
    "sample",
    "sequence",
    "token",
    "message",
    "msg",
    "order",
    "event",
    "job",
    "task",
    "step",
    "row",
    "record",
    "page",
    "file",
    "prompt",
    "inference",
    "iteration",
    "shot",
    "circuit",
    "simulation",
)

LARGEST, SMALLEST = 1e30, 1e-30  # beyond, products of several quantities outgrow what numbers can hold


@dataclass(frozen=True, slots=True)
class Quantity:
    """Annotates a number: how a text becomes one, and between which bounds it must lie."""

    noun: str  # "a size", as it stands in "'x' is not a size"
    read: Callable[[str | float], float]
    examples: tuple[str | float, ...]
    zero: bool = False
    is_whole: bool = False
    maximum: float | None = None
    minimum: float | None = None

    @property
    def allowed(self) -> str:
        return f"{self.noun} such as {', '.join(str(example) for example in self.examples)}"

    def value(self, content: object) -> float:
        if isinstance(content, bool) or not isinstance(content, str | int | float):
            raise fault(f"{show_value(content)} is not {self.noun}", self.allowed)
        try:
            number = self.read(content)
        except BadInput as error:
            raise fault(error.message.removesuffix("."), self.allowed) from error
        if number < 0 or (number == 0 and not self.zero):
            raise fault(f"{show_value(content)} is not {'at least' if self.zero else 'above'} zero", self.allowed)
        if number > LARGEST or 0 < number < SMALLEST:
            raise fault(f"{show_value(content)} is too {'large' if number > 1 else 'small'} to be {self.noun}", self.allowed)
        if self.minimum is not None and number < self.minimum:
            raise fault(f"{show_value(content)} is below {self.minimum:g}", self.allowed)
        if self.maximum is not None and number > self.maximum:
            raise fault(f"{show_value(content)} is above {self.maximum:g}", self.allowed)
        if self.is_whole:
            if number != int(number):
                raise fault(f"{show_value(content)} is not a whole number", self.allowed)
            return int(number)
        return number

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.value, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        return self.json_schema()

    def json_schema(self) -> JsonSchema:
        number: JsonSchema = {"type": "integer" if self.is_whole else "number"}
        number |= {"minimum": 0} if self.zero else {"exclusiveMinimum": 0}
        if self.maximum is not None:
            number["maximum"] = self.maximum
        return {"anyOf": [number, {"type": "string", "minLength": 1}], "examples": list(self.examples)}


def parse_items(text: str | float) -> float:
    return units.parse_count(text, *ITEMS)


def parse_item_rate(text: str | float) -> float:
    return units.parse_rate(text, *ITEMS, "rps", "qps", "fps")


def parse_tokens(text: str | float) -> float:
    return units.parse_count(text, "token", "tok")


def parse_frame_rate(text: str | float) -> float:
    return units.parse_rate(text, "frame", "fps")


Bytes = Annotated[float, Quantity("a size", units.parse_bytes, ("80GiB", "1.5TB"))]
BytesOrZero = Annotated[float, Quantity("a size or zero", units.parse_bytes, ("80GiB", "0"), zero=True)]
Seconds = Annotated[float, Quantity("a duration", units.parse_seconds, ("50ms", "30min", "72h", "7d"))]
Usd = Annotated[float, Quantity("an amount in USD", units.parse_usd, ("$500", "1,200 USD", "$1.5k"))]
Count = Annotated[float, Quantity("a count", parse_items, ("250k", "50M documents", 4000))]
WholeNumber = Annotated[int, Quantity("a whole number", parse_items, (8, "1.2k"), is_whole=True)]
WholeOrZero = Annotated[
    int, Quantity(noun="a whole number or zero", read=parse_items, examples=(0, 8), is_whole=True, zero=True)
]
Tokens = Annotated[float, Quantity("a count of tokens", parse_tokens, ("4M tokens", "20B", 8192), minimum=1)]
Rate = Annotated[float, Quantity("a rate", parse_item_rate, ("12 req/s", "1.2k/min", "5M tokens/day"))]
RateOrZero = Annotated[float, Quantity("a rate or zero", parse_item_rate, ("0.5 req/s", 0), zero=True)]
FrameRate = Annotated[float, Quantity("a frame rate", parse_frame_rate, (60, "29.97 fps"), maximum=1000)]
Bandwidth = Annotated[float, Quantity("a bandwidth", units.parse_bandwidth, ("25 GB/s", "400 Gbit/s"))]
Flop = Annotated[float, Quantity("an amount of floating-point work", units.parse_flop, ("3e21", "1.5 PFLOP"))]
Headroom = Annotated[float, Quantity("a share", units.parse_share, ("25%", 0.25, 0), zero=True, maximum=10.0)]
Share = Annotated[float, Quantity("a share", units.parse_share, ("60%", 0.6), maximum=1.0)]
Watts = Annotated[float, Quantity("a number of watts", units.parse_count, (15, 350))]
