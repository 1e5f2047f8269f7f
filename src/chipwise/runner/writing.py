"""Jobs and events as JSON and back, for every store. Readers and writers are made once per type, since a queue holds thousands.

Fields that a newer version added are left out when an older one reads, and missing ones have their default: a record outlives
the program that wrote it. What lies in `Mapping[str, object]` must be JSON already: a tuple in it comes back as a list. A value
of another type than its field is not read: what decides over machines must not stumble over one later. The same is true of
numbers and of nesting beyond all measure: sums of them could not be written, and a job of which nothing can be written would
hold its devices for ever. Of what was measured such a number is left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from chipwise.runner.events import Event
from chipwise.runner.job import Job, Wish

Step = Callable[[Any], Any]  # None stands for one that changes nothing, so that it is not called
KINDS: dict[str, type] = {kind.__name__.lower(): kind for kind in get_args(Event)}
_NAMES: dict[type, str] = {kind: name for name, kind in KINDS.items()}
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, ensure_ascii=False, check_circular=False).encode


LARGEST_COUNT = 2**53  # whole numbers that a float holds exactly
LARGEST_NUMBER = 1e18
LAST_MOMENT = 253402300799  # the end of the year 9999, in seconds: a calendar has no later one
DEEPEST = 32  # mappings and lists within each other


class Unreadable(ValueError):
    """What a store holds is not what we write."""


def job_text(job: Job) -> str:
    return _text(job)


def job_of(text: str) -> Job:
    found: Job = _read(Job, text)
    return found


def event_text(event: Event) -> tuple[str, str]:
    """Its kind, and the rest."""
    return _NAMES[type(event)], _text(event)


def event_of(kind: str, text: str) -> Event:
    if kind not in KINDS:
        raise Unreadable(f"no event is called {kind!r}")
    event: Event = _read(KINDS[kind], text)
    return event


def _text(value: object) -> str:
    kind: Any = type(value)
    return _encode(_of_writer(kind)(value))


def _read(kind: type, text: str) -> Any:
    try:
        return _of_reader(kind)(json.loads(text))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError) as error:
        raise Unreadable(f"{text!r:.200} is not a {kind.__name__}: {error}") from error


@cache
def _of_writer(kind: Any) -> Step:
    """A value as a dictionary, without the fields that have their default: most fields of most jobs."""
    hints = get_type_hints(kind)
    parts = [(one.name, _default(one), _writer(hints[one.name])) for one in fields(kind)]

    def write(value: Any) -> dict[str, Any]:
        written = {}
        for name, default, plain in parts:
            content = getattr(value, name)
            if content is default or (content == default and type(content) is type(default)):
                continue
            written[name] = content if plain is None or content is None else plain(content)
        return written

    return write


def _default(one: Any) -> Any:
    return one.default if one.default_factory is MISSING else one.default_factory()


def _writer(kind: Any) -> Step | None:
    if is_dataclass(kind):
        return _of_writer(cast(Any, kind))
    origin, inner = get_origin(kind), get_args(kind)
    if kind in _PLAIN:
        return None if kind in (str, bool) else _PLAIN[kind]
    if origin in (Union, UnionType):
        return _writer(_real(kind))
    if origin is tuple:
        write = _writer(inner[0])
        return list if write is None else lambda value: [write(held) for held in value]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return lambda value: value.value
    if origin in (Mapping, dict) and inner[1] is str:
        return dict
    return _plain


def _plain(value: object, depth: int = 0) -> object:
    """What is typed as an object: whatever a caller put there. A number that is none, or beyond measure, is nothing."""
    kind = type(value)
    if kind is str:  # what most are comes first: a job may hold a million of them
        return value
    if kind is not list and isinstance(value, Enum):
        return value.value
    if kind is list or isinstance(value, Mapping | tuple | list):
        if depth >= DEEPEST:
            raise ValueError(f"more than {DEEPEST} mappings or lists are within each other")
        if kind is not list and isinstance(value, Mapping):
            return {str(key): _plain(held, depth + 1) for key, held in value.items()}
        return [_plain(held, depth + 1) for held in cast(Any, value)]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value if -LARGEST_NUMBER <= value <= LARGEST_NUMBER else None
    return value


@cache
def _of_reader(kind: Any) -> Step:
    hints = get_type_hints(kind)
    readers = {one.name: _reader(hints[one.name]) for one in fields(kind)}
    if kind is Job:
        readers["wish"] = _a_wish

    def read(value: Any) -> Any:
        known = {}
        for name, content in value.items():
            if name in readers:
                step = readers[name]
                known[name] = content if step is None else step(content)
        return kind(**known)

    return read


def _reader(kind: Any) -> Step | None:
    if kind is Any or kind is object:
        return None
    if kind in _PLAIN:
        return _PLAIN[kind]
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        real = _reader(_real(kind))
        return None if real is None else lambda value: None if value is None else real(value)
    if origin is tuple:
        assert inner[1:] == (Ellipsis,), f"{kind} is not a row of one type"
        read = _reader(inner[0])
        return tuple if read is None else lambda value: tuple(map(read, value))
    if origin in (Mapping, dict):
        assert inner[1] in (str, object), f"{kind} holds more than plain JSON"
        return _texts if inner[1] is str else lambda value: _plain(_mapping(value))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {one.value: one for one in kind}.__getitem__
    assert is_dataclass(kind), f"{kind} has no reader"
    return _of_reader(cast(Any, kind))


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r:.80} is not a mapping")
    return value


def _texts(value: Any) -> dict[str, str]:
    for text in _mapping(value).values():
        _a_text(text)
    return cast(dict[str, str], value)


def _a_text(value: Any) -> Any:
    if type(value) is not str:
        raise TypeError(f"{value!r:.80} is not a text")
    return value


def _a_count(value: Any) -> Any:
    if not isinstance(value, int) or not -LARGEST_COUNT <= value <= LARGEST_COUNT:
        raise TypeError(f"{str(value)[:40]} is not a whole number up to 2^53")
    return value


def _a_number(value: Any) -> float:
    if not isinstance(value, int | float) or not -LARGEST_NUMBER <= value <= LARGEST_NUMBER:
        raise TypeError(f"{value!r:.40} is not a number up to 1e18")
    return float(value)


def _a_wish(value: Any) -> Wish:
    """One that is unknown is none: its job goes on, and its owner can still stop it."""
    return next((one for one in Wish if one.value == value), Wish.RUN)


def _a_truth(value: Any) -> Any:
    if type(value) is not bool:
        raise TypeError(f"{value!r:.80} is neither true nor false")
    return value


_PLAIN: dict[Any, Step] = {str: _a_text, int: _a_count, float: _a_number, bool: _a_truth}


def _real(kind: Any) -> Any:
    real = [one for one in get_args(kind) if one is not NoneType]
    assert len(real) == 1, f"{kind} cannot be recognised by its JSON"
    return real[0]
