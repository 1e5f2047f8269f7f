"""What pydantic found wrong, in words: the field as the file has it, its line, what is allowed, the nearest name.

`check` validates one layered file and reports everything in one go. Checks across fields only run on parts whose fields are
all valid, so a second look is taken without the fields that were bad, and what follows merely from leaving them out is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from functools import cache
from typing import Any, Literal, TypeGuard, cast, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from chipwise.errors import Problem
from chipwise.files.source import FieldPath
from chipwise.spelling import nearest, suggested_options
from chipwise.workload.common import Common
from chipwise.workload.overlay import Layered, Spot
from chipwise.workload.part import EnumChoice, Flaw, show_value
from chipwise.workload.pipeline import KINDS, Workload
from chipwise.workload.quantity import Quantity

_LONG = 80  # letters of what is allowed
_FIELDS = {  # options of `chipwise plan` and words for them, by where a file has them
    "arrival": ("rps", "qps", "rate", "requests", "load"),
    "goals": ("ttft", "tpot", "latency", "deadline", "budget", "confidence", "throughput"),
    "limits": ("market", "commit", "max_price_age", "large"),
    "limits.clouds": ("cloud", "clouds", "provider"),
    "limits.regions": ("region", "regions"),
    "limits.countries": ("country", "countries"),
    "limits.chips": ("chip", "chips", "gpu"),
    "limits.purchase": ("spot", "on_demand", "purchase"),
    "input_tokens": ("input",),
    "output_tokens": ("output",),
    "sequence_length": ("seq",),
    "traffic": ("users_in",),
    "items": ("samples",),  # of a batch
    "samples": ("items",),  # of training
}
MAX_PROBLEMS = 50  # beyond which nobody reads on


EMPTY_LIST = "is an empty list; at least one is needed"
_LocatedProblem = tuple[FieldPath, tuple[FieldPath, ...], Problem]  # the place, other places it depends on, the problem


@cache
def adapter() -> TypeAdapter[Workload]:
    return TypeAdapter(Workload)


def _kind_of(data: object) -> type[Common] | None:
    name = data.get("kind") if isinstance(data, Mapping) else None
    return next((kind for kind in KINDS if kind.model_fields["kind"].default == name), None)


def check(layered: Layered) -> Workload | list[Problem]:
    """The workload, or everything that is wrong with it."""
    if (kind := _kind_of(layered.data)) is not None:  # the adapter of all kinds takes long to build: only mistakes need it
        with suppress(ValidationError):
            return cast(Workload, kind.model_validate(layered.data))
    try:
        return adapter().validate_python(layered.data)
    except ValidationError as error:
        first = _without_echoes(list(_located(error, layered)))
    problems = [problem for _, _, problem in first]
    if len(problems) > MAX_PROBLEMS:
        return problems
    bad = {where for where, _, _ in first if where in layered.spots and where}
    pruned = _without(layered.data, bad, ())
    try:
        adapter().validate_python(pruned)
    except ValidationError as error:
        for place, causes, problem in _without_echoes(list(_located(error, layered))):
            if not any(_touches(cause, known) for cause in (place, *causes) for known in bad) and problem not in problems:
                problems.append(problem)
    return _allowed_once(sorted(problems, key=lambda problem: problem.line or 0))


def _allowed_once(problems: list[Problem]) -> list[Problem]:
    """A long list of what is allowed is printed at the first problem that has it."""
    seen: set[str] = set()
    once = []
    for problem in problems:
        allowed = problem.allowed or ""
        once.append(replace(problem, allowed=None) if len(allowed) > _LONG and allowed in seen else problem)
        seen.add(allowed)
    return once


def _without_echoes(located: list[_LocatedProblem]) -> list[_LocatedProblem]:
    """A list whose every row is wrong is called empty as well; what is wrong with the rows says it all."""
    return [
        (place, causes, problem)
        for place, causes, problem in located
        if problem.message != EMPTY_LIST or not any(other[: len(place)] == place and other != place for other, _, _ in located)
    ]


def spot_of(field_path: FieldPath, spots: Mapping[FieldPath, Spot], *, keep_last: bool = False) -> tuple[FieldPath, Spot]:
    """Where the file has this value. Steps that are not in the file (the tag of a union, a shorthand) are skipped."""
    known_path: FieldPath = ()
    for step in field_path:
        if (*known_path, step) in spots:
            known_path = (*known_path, step)
    spot = spots.get(known_path) or Spot("", 1)
    if keep_last and field_path and (not known_path or known_path[-1] != field_path[-1]):
        last = field_path[-1]
        name = f"{spot.field}[{last}]" if isinstance(last, int) else f"{spot.field}.{last}".removeprefix(".")
        return (*known_path, last), Spot(name, spot.line)
    return known_path, spot


def _located(error: ValidationError, layered: Layered) -> Iterator[tuple[FieldPath, tuple[FieldPath, ...], Problem]]:
    """(the place, other places it depends on, the problem) for each error; at most as many as a person would read."""
    count = 0
    for detail in error.errors(include_url=False, include_input=True):
        loc: FieldPath = detail["loc"]
        context = detail.get("ctx", {})
        if detail["type"] == "flaws":
            located = [_from_flaw(loc, flaw, layered) for flaw in context["flaws"][: MAX_PROBLEMS + 1]]
        else:
            located = [_from_detail(detail["type"], loc, context, detail["input"], detail["msg"], layered)]
        for item in located:
            count += 1
            if count > MAX_PROBLEMS:
                yield (), (), Problem("", "and more problems; fix these first")
                return
            yield item


def _from_flaw(loc: FieldPath, flaw: Flaw, layered: Layered) -> tuple[FieldPath, tuple[FieldPath, ...], Problem]:
    part, _ = spot_of(loc, layered.spots)
    place, spot = spot_of((*part, *_steps(flaw.field)), layered.spots, keep_last=bool(flaw.field))
    causes = tuple((*part, *_steps(name)) for name in flaw.also)
    return (
        place,
        causes,
        Problem(field=spot.field, message=flaw.message, line=spot.line, allowed=flaw.allowed, nearest=tuple(flaw.near())),
    )


def _steps(field: str) -> FieldPath:
    return tuple(int(step) if step.isdigit() else step for step in re.findall(r"[^.\[\]]+", field))


def _from_detail(
    kind: str, loc: FieldPath, context: Mapping[str, Any], content: object, message: str, layered: Layered
) -> tuple[FieldPath, tuple[FieldPath, ...], Problem]:
    keep_last = kind == "missing"
    allowed: str | None = context.get("allowed")
    near: tuple[str, ...] = ()
    value = show_value(content)
    match kind:
        case "fault":
            message, near = context["message"], tuple(context["nearest"]())
        case "missing":
            message, allowed = "is required", _expected(loc)
        case "extra_forbidden":
            fields = _fields(loc[:-1])
            title = _title(loc[:-1])
            near = _elsewhere(str(loc[-1]), content, fields) or _near_fields(str(loc[-1]), fields)
            message, allowed = f"is not a field of {title}", ", ".join(sorted(fields))
        case "union_tag_not_found":
            loc, keep_last, message, allowed = (*loc, "kind"), True, "is required", _tags(loc)
        case "union_tag_invalid":
            tag = content.get("kind") if isinstance(content, Mapping) else content
            names = _tags(loc)
            loc, keep_last = (*loc, "kind"), True
            message, allowed, near = f"{show_value(tag)} is not a kind", names, nearest(str(tag), names.split(", "))
        case "string_type":
            message, allowed = f"{value} is not a text", "text; in quotes if it looks like a number"
        case "string_too_short":
            message = "is empty"
        case "bool_type" | "bool_parsing":
            message, allowed = f"{value} is neither true nor false", "true, false"
        case "dict_type" | "mapping_type":
            message, allowed = f"{value} stands where a mapping belongs", "names with a value each, such as {one: 1, two: 2}"
        case "model_type" | "model_attributes_type":
            message, allowed = f"{value} stands where a mapping of fields belongs", _mapping(loc)
        case "tuple_type" | "list_type":
            message, allowed = (
                f"{value} stands where a list belongs",
                "a list, such as [one, two] or lines that start with '- '",
            )
        case "too_short":
            message = EMPTY_LIST
        case "literal_error":
            allowed = context["expected"].replace("'", "")
            message, near = f"{value} is not one of the choices", nearest(str(content), re.split(r", | or ", allowed))
        case _ if kind.startswith(("int_", "float_", "greater_", "less_", "finite")):
            message = f"{value} is not valid: {message[0].lower()}{message[1:]}"
    place, spot = spot_of(loc, layered.spots, keep_last=keep_last)
    return place, (), Problem(field=spot.field, message=message, line=spot.line, allowed=allowed, nearest=near)


def _without(value: Any, bad: set[FieldPath], field_path: FieldPath) -> Any:
    """A copy of the data without the bad places."""
    if isinstance(value, Mapping):
        return {key: _without(inner, bad, (*field_path, key)) for key, inner in value.items() if (*field_path, key) not in bad}
    if isinstance(value, list):
        return [_without(inner, bad, (*field_path, index)) for index, inner in enumerate(value)]
    return value


def _touches(place: FieldPath, bad: FieldPath) -> bool:
    """One lies inside the other."""
    short = min(len(place), len(bad))
    return place[:short] == bad[:short] and short > 0


def _is_model(thing: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(thing, type) and issubclass(thing, BaseModel)


def _models(annotation: object) -> list[type[BaseModel]]:
    """The classes that may stand where the annotation does, out of unions, lists and annotations."""
    if _is_model(annotation):
        return [annotation]
    return [model for inner in get_args(annotation) if get_origin(annotation) is not Literal for model in _models(inner)]


def _field(model: type[BaseModel], name: object) -> FieldInfo | None:
    return next((info for key, info in model.model_fields.items() if (info.alias or key) == name), None)


def _tag(model: type[BaseModel]) -> object:
    return model.model_fields["kind"].default if "kind" in model.model_fields else None


def _models_at(loc: FieldPath) -> list[type[BaseModel]]:
    """The classes whose fields may stand at a place, following pydantic's own path with its tags of unions."""
    current: list[type[BaseModel]] = list(KINDS)
    for step in loc:
        inner = [model for owner in current if (info := _field(owner, step)) for model in _models(info.annotation)]
        current = [model for model in current if _tag(model) == step] or inner or current
    return current


def _fields(loc: FieldPath) -> list[str]:
    models = _models_at(loc)
    names = dict.fromkeys(info.alias or key for model in models for key, info in model.model_fields.items() if key != "root")
    if len(loc) == 1 and models and models[0] in KINDS:
        names["environments"] = None
    return list(names)


def _mapping(loc: FieldPath) -> str | None:
    """What a mapping at this place would hold."""
    if len(_models_at(loc)) > 1:
        return f"kind and the fields of that kind; kinds are {_tags(loc)}"
    return ", ".join(_fields(loc)) or None


def _elsewhere(name: str, value: object, fields: list[str]) -> tuple[str, ...]:
    """Where a file has what an option or a dotted name says: limits.clouds of cloud, goals: {ttft: 1s} of goals.ttft."""
    first, dot, rest = name.partition(".")
    if dot and first in fields and rest:
        return (f"{first}: {{{rest}: {value}}}" if isinstance(value, str | int | float) else f"{first}: {{{rest}: ...}}",)
    place = next((place for place, names in _FIELDS.items() if name.replace("-", "_") in names), "")
    if place.partition(".")[0] not in fields:
        return ()
    if place == "arrival" and isinstance(value, int | float):
        return (f"arrival: {value:g} req/s",)
    return (f"{place}.{name}" if place in ("goals", "limits") else place,)


def _near_fields(name: str, fields: list[str]) -> tuple[str, ...]:
    return tuple(field for field, _ in suggested_options(name, fields))


def _title(loc: FieldPath) -> str:
    models = _models_at(loc)
    tag = _tag(models[0]) if len(models) == 1 else None
    steps = [step for step in loc if isinstance(step, str) and step != tag]
    if not steps:
        return f"the kind {tag}" if tag else "a workload"
    return f"{steps[-1]} of the kind {tag}" if tag else steps[-1]


def _tags(loc: FieldPath) -> str:
    return ", ".join(str(tag) for model in _models_at(loc) if (tag := _tag(model)))


def _expected(loc: FieldPath) -> str | None:
    """What a missing field would take, where its type can say so."""
    info = next((info for model in _models_at(loc[:-1]) if (info := _field(model, loc[-1]))), None)
    if info is None:
        return None
    for mark in (*info.metadata, *(inner for part in get_args(info.annotation) for inner in getattr(part, "__metadata__", ()))):
        if isinstance(mark, Quantity | EnumChoice):
            return mark.allowed
    if isinstance(info.annotation, type) and issubclass(info.annotation, StrEnum):
        return ", ".join(info.annotation)
    return (
        f"for example {info.examples[0]}"
        if info.examples
        else (", ".join(_fields(loc)) or None if _models(info.annotation) else None)
    )
