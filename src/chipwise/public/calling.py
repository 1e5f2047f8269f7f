"""How a verb is called from Python: keywords by another name for the same thing, keywords that there are not, and errors in the
words of Python: messages from below speak of options, `--micro-batch 4`, and here that is `micro_batch=4`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache, wraps
from inspect import CO_VARKEYWORDS, Parameter, isfunction, signature, unwrap
from textwrap import wrap
from typing import Any, TypeVar, cast

from chipwise.errors import BadInput, ChipwiseError, InvalidFile, InvalidSettings, Problem, UnknownOption
from chipwise.planner.options import OPTION_FIELDS
from chipwise.public.arguments import called_name, checked_call, option_types
from chipwise.public.command_words import GIVEN, UNNAMED, as_calls
from chipwise.spelling import OTHER_NAMES, suggested_options

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

CORRECT = "docs/workloads.md describes every field of a workload."
_OF_SESSION = ("as_of", "config_dir", "data_dir")  # what `cw.open` takes
_PLURAL = {"label": "labels", "secret": "secrets", "stage_engine": "stage_engines", "all": "everything", "out": "folder"}
_OPTION = re.compile(
    r"(?<![\w-])--(?P<name>[a-z][a-z0-9]*(?:-[a-z0-9]+)*)"
    r"(?: (?P<value>[\w.]+=(?:\[[^\]]*\]|\{[^}]*\}|[^\s;]*[^\s,;.])"  # clouds=[aws]
    r"|\$?\d[\w.%-]*\b|[A-Z]{2,}[A-Z=,]*\b"  # 50k, CHIP
    r"|(?:(?<=--to )|(?<=--market )|(?<=--commit )|(?<=--precision )|(?<=--cloud )|(?<=--chip )|(?<=--shape ))"
    r"(?!(?:and|or|is|are|in|to|with|does|goes)\b)[A-Za-z][A-Za-z0-9-]*(?:,[A-Za-z][A-Za-z0-9-]*)*))?"  # kubernetes, aws,gcp
)
_ADJACENT = re.compile(r'\b\w+=(?:[\d.]+|"[^"]*"|True)(?= \w+=(?:\d|"|True))')  # keywords that no comma separates


def verb(function: F) -> F:
    """A function of the package as programs call it."""

    _describe(function)

    @wraps(function)
    def called(*args: Any, **given: Any) -> Any:
        if given:
            given = _known_keywords(function, given)
        args, given = checked_call(function, args, given)
        try:
            return function(*args, **given)
        except ChipwiseError as error:
            changed = in_python(error, keywords(function), called_name(function), tuple(given))
            if changed is error:
                raise
            raise changed from error
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError) as error:
            if error.filename is None:
                raise
            raise BadInput(
                f"{error.filename}: {error.strerror}.", remedy="Give the path of a file that can be read."
            ) from error

    return cast(F, called)


def _describe(function: Callable[..., Any]) -> None:
    """Keywords that one `TypedDict` stands for, in what `help()` shows."""
    if not function.__code__.co_flags & CO_VARKEYWORDS or not function.__doc__:
        return
    options = next(one for one in signature(function).parameters.values() if one.kind is Parameter.VAR_KEYWORD)
    listed = ", ".join(f"{name}: {kind}" for name, kind in option_types(function, options).items())
    lines = "\n        ".join(wrap(f"Keywords: {listed}.", 100, break_long_words=False))
    function.__doc__ = f"{function.__doc__.rstrip()}\n\n        {lines}\n        "


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
                raise UnknownOption(name, remedy=f"It belongs to a session: cw.open({name}=...).{called_name(function)}(...)")
            near = [option if text is None else f"{option}={text!r}" for option, text in suggested_options(name, known)]
            raise UnknownOption(name, near, remedy=f"{called_name(function)} takes {', '.join(known)}.")
        renamed[keyword] = value
    return renamed


def in_python(error: ChipwiseError, known: Iterable[str], name: str = "plan", stated: Iterable[str] = ()) -> ChipwiseError:
    """The same error with options as keywords; of a workload that is no file without a line of one. `name`: the function's;
    `stated`: the keywords of the call, which fields of a workload are named by that they set."""
    names = frozenset(known)
    if isinstance(error, InvalidFile) and re.fullmatch(rf"{GIVEN}(-\d+)?(\.yaml)?", error.path):
        problems = [replace(_problem(problem, names), line=None) for problem in error.problems]
        by_keyword = [replace(problem, field=_keyword(problem.field, stated)) for problem in problems]
        settings = InvalidSettings(*by_keyword)
        settings.remedy = error.remedy or (CORRECT if by_keyword == problems else f"help(cw.{name}) says what it takes.")
        return settings
    if isinstance(error, InvalidFile | InvalidSettings):
        error.problems = tuple(_problem(problem, names) for problem in error.problems)
        is_workload = isinstance(error, InvalidFile) and error.path.endswith((".yaml", ".yml", "text"))
        error.remedy = error.remedy or (CORRECT if is_workload else f"help(cw.{name}) says what it takes.")
    error.message = as_keywords(error.message, names)
    error.remedy = None if error.remedy is None else as_keywords(error.remedy, names)
    error.args = (error.message, *error.args[1:])
    return error


def _keyword(field: str, stated: Iterable[str]) -> str:
    """The keyword that set a field of the workload; the field where none did."""
    options = {name: OPTION_FIELDS.get(OTHER_NAMES.get(name, name), OPTION_FIELDS.get(name, ())) for name in stated}
    starts = {start: name for name, fields in options.items() for start in fields}
    names = (name for start, name in starts.items() if field == start or field.startswith((f"{start}.", f"{start}[")))
    return next(names, field)


def _problem(problem: Problem, names: frozenset[str]) -> Problem:
    allowed = None if problem.allowed is None else as_keywords(problem.allowed, names)
    field, message = (as_keywords(text, names) for text in (problem.field, problem.message))
    return replace(problem, field=field, message=message, allowed=allowed)


@cache
def _parameters() -> dict[str, tuple[str, ...]]:
    """The keywords of every function of the package."""
    import chipwise

    return {name: keywords(unwrap(getattr(chipwise, name))) for name in chipwise._VERBS}


def as_keywords(text: str, names: frozenset[str] = frozenset()) -> str:
    """A sentence that names commands and options, with calls and keywords instead: those in `names`, else of any function."""
    if "--" not in text and "chipwise " not in text and not re.search(rf"\b{UNNAMED} is\b", text):
        return text
    text = as_calls(text, _parameters().get)
    text = re.sub(rf"(?P<before>^|\. )?\b{UNNAMED} is\b", _subject, text)
    known = frozenset(name for keywords in _parameters().values() for name in keywords)

    def keyword(option: re.Match[str]) -> str:
        name, value = option["name"].replace("-", "_"), option["value"]
        name = name if name in names else _PLURAL.get(name, name)
        if name == "limit" and ("limits" in names or "limit" not in names):
            return "limits" if value is None else _limit(value)
        if name not in names and name not in known:
            return option[0]
        if name in ("force", "large"):
            return f"{name}=True"
        if value is None:
            return name
        return f"{name}={value}" if re.fullmatch(r"\d+(?:\.\d+)?", value) else f'{name}="{value}"'

    return _ADJACENT.sub(r"\g<0>,", _OPTION.sub(keyword, text))


def spoken(value: Any) -> Any:
    """Texts all the way down, with calls and keywords in place of commands and options."""
    if isinstance(value, str):
        return as_keywords(value)
    if isinstance(value, Mapping):
        return {key: spoken(inner) for key, inner in value.items()}
    return type(value)(map(spoken, value)) if isinstance(value, list | tuple) else value


def _subject(workload: re.Match[str]) -> str:
    """Of a sentence about a workload without a file."""
    noun = f"workload {workload['place']}" if workload["place"] else "the workload"
    return f"{noun} is" if workload["before"] is None else f"{workload['before']}{noun[0].upper()}{noun[1:]} is"


def _limit(pair: str) -> str:
    """clouds=[aws] as limits={"clouds": ["aws"]}"""
    key, _, value = pair.partition("=")
    if "," in value and value[0] not in "[{":
        value = f"[{', '.join(value.split(','))}]"
    quoted = re.sub(r"[A-Za-z][\w-]*", lambda word: f'"{word[0]}"', value)
    return f'limits={{"{key}": {quoted}}}'
