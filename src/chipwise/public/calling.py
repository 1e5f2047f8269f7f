"""How a verb is called from Python: keywords by another name for the same thing, keywords that there are not, and errors in the
words of Python: messages from below speak of options, `--micro-batch 4`, and here that is `micro_batch=4`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache, wraps
from inspect import Parameter, isfunction, signature
from typing import Any, TypeVar, cast

from chipwise.errors import ChipwiseError, InvalidFile, InvalidSettings, Problem, UnknownOption
from chipwise.public.arguments import checked_call, option_types
from chipwise.spelling import OTHER_NAMES, suggested_options

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

CORRECT = "docs/workloads.md describes every field of a workload."
_OF_SESSION = ("as_of", "config_dir", "data_dir")  # what `cw.open` takes
GIVEN = "arguments"  # what a workload is called that is written down nowhere: options, fields
_PLURAL = {"label": "labels", "secret": "secrets", "stage_engine": "stage_engines", "all": "everything", "out": "folder"}
_OPTION = re.compile(
    r"(?<![\w-])--(?P<name>[a-z][a-z0-9]*(?:-[a-z0-9]+)*)"
    r"(?: (?P<value>[\w.]+=(?:\[[^\]]*\]|\{[^}]*\}|[^\s;]*[^\s,;.])"  # clouds=[aws]
    r"|\$?\d[\w.%]*\b|[A-Z]{2,}[A-Z=,]*\b"  # 50k, CHIP
    r"|(?:(?<=--to )|(?<=--market )|(?<=--commit )|(?<=--precision ))[a-z][a-z0-9-]*))?"  # kubernetes, any, fp8
)


def verb(function: F) -> F:
    """A function of the package as programs call it."""

    @wraps(function)
    def called(*args: Any, **given: Any) -> Any:
        if given:
            given = _known_keywords(function, given)
        args, given = checked_call(function, args, given)
        try:
            return function(*args, **given)
        except ChipwiseError as error:
            changed = in_python(error, keywords(function))
            if changed is error:
                raise
            raise changed from error

    return cast(F, called)


def verbs(owner: type[T]) -> type[T]:
    """Every function of the class that has a name for the public."""
    for name, value in list(vars(owner).items()):
        if isfunction(value) and not name.startswith("_"):
            setattr(owner, name, verb(value))
    return owner


@cache
def keywords(function: Callable[..., Any]) -> tuple[str, ...]:
    """Of its signature, with those of a `TypedDict` that stands for many."""
    names: list[str] = []
    for parameter in signature(function).parameters.values():
        if parameter.kind is Parameter.VAR_KEYWORD:
            names += option_types(function, parameter)
        elif parameter.kind is not Parameter.VAR_POSITIONAL and parameter.name != "self":
            names.append(parameter.name)
    return tuple(names)


def _known_keywords(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    known = keywords(function)
    renamed: dict[str, Any] = {}
    for name, value in given.items():
        other = OTHER_NAMES.get(name)
        keyword = other if name not in known and other in known and other not in given else name
        if keyword not in known:
            if name in _OF_SESSION:
                raise UnknownOption(name, remedy=f"It belongs to a session: cw.open({name}=...).{function.__name__}(...)")
            near = [option if text is None else f"{option}={text!r}" for option, text in suggested_options(name, known)]
            raise UnknownOption(name, near, remedy=f"{function.__name__} takes {', '.join(known)}.")
        renamed[keyword] = value
    return renamed


def in_python(error: ChipwiseError, known: Iterable[str]) -> ChipwiseError:
    """The same error with options as keywords; of a workload that is no file without a line of one."""
    names = frozenset(known)
    if isinstance(error, InvalidFile) and re.fullmatch(rf"{GIVEN}(-\d+)?(\.yaml)?", error.path):
        settings = InvalidSettings(*(replace(_problem(problem, names), line=None) for problem in error.problems))
        settings.remedy = error.remedy or CORRECT
        return settings
    if isinstance(error, InvalidFile | InvalidSettings):
        error.problems = tuple(_problem(problem, names) for problem in error.problems)
        error.remedy = error.remedy or CORRECT
    error.message = as_keywords(error.message, names)
    error.remedy = None if error.remedy is None else as_keywords(error.remedy, names)
    error.args = (error.message, *error.args[1:])
    return error


def _problem(problem: Problem, names: frozenset[str]) -> Problem:
    allowed = None if problem.allowed is None else as_keywords(problem.allowed, names)
    field, message = (as_keywords(text, names) for text in (problem.field, problem.message))
    return replace(problem, field=field, message=message, allowed=allowed)


def as_keywords(text: str, names: frozenset[str]) -> str:
    """A sentence that names options, with the keywords that are in `names` instead."""

    def keyword(option: re.Match[str]) -> str:
        name, value = option["name"].replace("-", "_"), option["value"]
        name = _PLURAL.get(name, name)
        if re.search(r"\bchipwise [a-z]+(?: [^\s`),;]+)* $", text[: option.start()]):
            return option[0]  # of a command that is written out
        if name == "limit" and "limits" in names:
            return "limits" if value is None else _limit(value)
        if name not in names:
            return option[0]
        if name == "force":
            return "force=True"
        if value is None:
            return name
        return f"{name}={value}" if value.isdecimal() else f'{name}="{value}"'

    return _OPTION.sub(keyword, text)


def _limit(pair: str) -> str:
    """clouds=[aws] as limits={"clouds": ["aws"]}"""
    key, _, value = pair.partition("=")
    if "," in value and value[0] not in "[{":
        value = f"[{', '.join(value.split(','))}]"
    quoted = re.sub(r"[A-Za-z][\w-]*", lambda word: f'"{word[0]}"', value)
    return f'limits={{"{key}": {quoted}}}'
