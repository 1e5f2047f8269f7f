"""Whether the arguments of a call are of the types that its signature states, in messages of our own instead of Python's.

Only plain types are looked at: strings, numbers, truth values, dates, paths and lists of strings. Workloads and
the like are checked where they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import cache
from inspect import Parameter, Signature, signature, unwrap
from math import isfinite, isnan
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from chipwise.errors import BadInput
from chipwise.public.python_values import as_plain

_KINDS = {  # what it is, and what it looks like
    "str": ("a string", '"..."'),
    "Path": ("a path", "Path(...)"),
    "int": ("a whole number", "5"),
    "float": ("a number", "2.5"),
    "bool": ("True or False", "True"),
    "date": ("a date", "date(2026, 11, 15)"),
    "Names": ("a string or a list of strings", '["..."]'),
    "Mapping[str, Any]": ("a dictionary", '{"...": ...}'),
    "Mapping[str, str]": ("a dictionary", '{"...": "..."}'),
    "Job": ("a job", "cw.find_job(...)"),
}
_TYPES: dict[str, type] = {"str": str, "Path": Path, "int": Integral, "float": Real, "bool": bool, "date": date}
_CHECKED_LATER = ("WorkloadOptions", "CompareOptions", "PredictOptions", "FitsOptions")  # their strings, with what is allowed


def checked_call(
    function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The same arguments; numbers that are written as texts are numbers."""
    form = _signature(function)
    try:
        bound = form.bind(*args, **keywords)
    except TypeError as error:
        raise BadInput(_why_unbound(function, form, args, keywords), remedy=_example(function)) from error
    for name, argument in bound.arguments.items():
        parameter, value = form.parameters[name], as_plain(argument)
        if parameter.kind is Parameter.VAR_POSITIONAL:
            listed = [inner for one in value for inner in (one if isinstance(one, list | tuple) else (one,))]
            bound.arguments[name] = tuple(_checked(function, name, str(parameter.annotation), one) for one in listed)
        elif parameter.kind is Parameter.VAR_KEYWORD:
            stated, later = option_types(function, parameter), _owner_name(parameter) in _CHECKED_LATER
            bound.arguments[name] = {
                key: one if later and stated[key] == "str" else _checked(function, key, stated[key], one)
                for key, one in value.items()
            }
        else:
            if value is None and parameter.default is Parameter.empty and parameter.annotation in _KINDS:
                raise _refused(function, name, [str(parameter.annotation)], value)
            bound.arguments[name] = _checked(function, name, str(parameter.annotation), value)
    return bound.args, bound.kwargs


def option_types(function: Callable[..., Any], parameter: Parameter) -> Mapping[str, str]:
    """Of the `TypedDict` that stands for many keywords."""
    owner = unwrap(function).__globals__[_owner_name(parameter)]
    return {name: getattr(kind, "__forward_arg__", str(kind)) for name, kind in owner.__annotations__.items()}


def called_name(function: Callable[..., Any]) -> str:
    """What a program calls it: `cw.open` is no name for a function of a module."""
    return function.__name__.removesuffix("_session")


def _owner_name(parameter: Parameter) -> str:
    return str(parameter.annotation).removeprefix("Unpack[").removesuffix("]")


_BY_KEYWORD = Parameter("named", Parameter.KEYWORD_ONLY)


@cache
def _signature(function: Callable[..., Any]) -> Signature:
    return signature(function)


def _checked(function: Callable[..., Any], name: str, annotation: str, value: Any) -> Any:
    parts = [part.strip() for part in annotation.split("|")]
    kinds = [part for part in parts if part != "None"]
    if value is None or not kinds or not set(kinds) <= set(_KINDS):
        return value
    if isinstance(value, float) and isnan(value):
        raise BadInput(f"{name}=nan is not a number.", remedy="Give a number.")
    if kinds == ["bool"] and type(value) is not bool and as_plain(value) in (0, 1):
        return bool(value)  # a truth value of numpy, or 0 and 1
    if any(_is(value, kind) for kind in kinds):
        if name == "limit" and value < 0:
            raise BadInput(f"limit={value} is below zero.", remedy="Give a number of rows, or leave it out for all of them.")
        return value
    if {"str", "Names"} & set(kinds) and (text := as_plain(value, with_paths=True)) != value:
        return _checked(function, name, annotation, text)  # a path where a text is wanted
    if (number := _number(value, kinds)) is not None:
        return number
    raise _refused(function, name, kinds, value)


def _refused(function: Callable[..., Any], name: str, kinds: Sequence[str], value: Any) -> BadInput:
    wanted = " or ".join(dict.fromkeys(_KINDS[kind][0] for kind in kinds))
    is_listed = _signature(function).parameters.get(name, _BY_KEYWORD).kind is Parameter.VAR_POSITIONAL
    form = f"{called_name(function)}({_KINDS[kinds[0]][1]})" if is_listed else f"{name}={_KINDS[kinds[0]][1]}"
    return BadInput(f"{name}={_short(value)} is not {wanted}.", remedy=f"Write it like {form}.")


def _is(value: Any, kind: str) -> bool:
    if kind == "Names":
        listed = isinstance(value, Iterable) and not isinstance(value, Mapping)
        return isinstance(value, str) or (listed and (iter(value) is value or all(isinstance(one, str) for one in value)))
    if kind == "Job":
        return type(value).__name__ == kind
    if kind.startswith("Mapping"):
        return isinstance(value, Mapping)
    return isinstance(value, _TYPES[kind])


def _number(value: Any, kinds: Sequence[str]) -> int | float | None:
    """3 of "3" and of 3.0 where a whole number is wanted, 2.5 of "2.5"; None: it is no number."""
    if not {"int", "float"} & set(kinds) or not isinstance(value, str | Real):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    if not isfinite(number):
        return None
    if "float" in kinds:
        return number
    return int(number) if number.is_integer() else None


def _why_unbound(function: Callable[..., Any], form: Signature, args: Sequence[Any], keywords: Mapping[str, Any]) -> str:
    parameters = [one for one in form.parameters.values() if one.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)]
    by_place = [one for one in parameters if one.kind is not Parameter.KEYWORD_ONLY]
    own = sum(one.name == "self" for one in by_place)
    if twice := [one.name for one in by_place[: len(args)] if one.name in keywords]:
        return f"{called_name(function)} was given {', '.join(twice)} twice: by place and by name."
    filled = {one.name for one in by_place[: len(args)]} | set(keywords)
    if missing := [one.name for one in parameters if one.default is Parameter.empty and one.name not in filled]:
        return f"{called_name(function)} needs {' and '.join(missing)}."
    accepted = len(by_place) - own
    plural = "s" * (accepted != 1)
    return f"{called_name(function)} takes {accepted} argument{plural} without a name, and {len(args) - own} were given."


def _example(function: Callable[..., Any]) -> str:
    lines = (line.strip() for line in (function.__doc__ or "").splitlines())
    example = next((line.removeprefix(">>> ") for line in lines if line.startswith(">>> ")), None)
    return f"For example: {example}" if example else f"See help({called_name(function)})."


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
