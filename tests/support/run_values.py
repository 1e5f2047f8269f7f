"""Values of running, at random: jobs, events, and stories (events that can follow one another). For laws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from chipwise.runner import events as e
from chipwise.runner.events import Event
from chipwise.runner.job import Job, Needs, Phase, Retry, Spec
from chipwise.runner.writing import LARGEST_COUNT, LARGEST_NUMBER

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
NUMBERS = st.floats(-LARGEST_NUMBER, LARGEST_NUMBER, width=64)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-LARGEST_COUNT, LARGEST_COUNT) | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)


_TRIES = st.integers(0, 100)
_BOUNDED: dict[Any, dict[str, st.SearchStrategy[Any]]] = {  # else no record takes it, or none that a team shares
    Needs: {"processes": st.integers(1, 1024)},
    Spec: {"priority": st.integers(-100, 100)},
    Retry: {"failures": _TRIES, "kills": _TRIES, "same_step": _TRIES, "losses": _TRIES},
}


def of(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of a type, found by its annotations: a field that is added is in the laws from then on."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return st.one_of([of(one) for one in inner])
    if origin is tuple:
        return st.lists(of(inner[0]), max_size=2).map(tuple)
    if origin in (Mapping, dict):
        return st.dictionaries(TEXT, of(inner[1]), max_size=2)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(list(kind))
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        shape: Any = kind
        return st.builds(shape, **{one.name: of(hints[one.name]) for one in fields(kind)} | _BOUNDED.get(shape, {}))
    plain: dict[Any, st.SearchStrategy[Any]] = {
        str: TEXT,
        int: st.integers(-(2**40), 2**40),
        float: NUMBERS,
        bool: st.booleans(),
        NoneType: st.none(),
        object: JSON,
    }
    return plain[kind]


specs = of(Spec)
jobs = of(Job)
events: st.SearchStrategy[Event] = st.one_of([of(kind) for kind in get_args(Event)])
_LATER = tuple(kind for kind in get_args(Event) if kind is not e.Submitted)


@st.composite
def stories(draw: st.DrawFn, longest: int = 12) -> tuple[Spec, list[tuple[float, tuple[Event, ...]]]]:
    """A spec, and groups of events, each at a time, every one of which can follow the one before."""
    spec: Spec = draw(specs)
    job, at, told = e.first("x", e.Submitted(spec), 0.0), 0.0, []
    for _ in range(draw(st.integers(0, longest))):
        at += draw(st.floats(0, 1e6))
        group: list[Event] = []
        for _ in range(draw(st.integers(1, 3))):
            event = _fitting(draw, job)
            try:
                job = e.after(job, event, at)
            except e.Impossible:
                continue
            group.append(event)
        if group:
            told.append((at, tuple(group)))
    return spec, told


def _fitting(draw: st.DrawFn, job: Job) -> Event:
    """Mostly what can follow; numbers of attempts are made to fit."""
    kinds: tuple[type, ...] = (
        (e.Begun, e.Leaving, e.Ended, e.Told) if job.phase.placed else (e.Placed, e.Over, e.Again, e.Wished)
    )
    kind: Any = draw(st.sampled_from((*kinds, *_LATER)))
    event: Any = draw(of(kind))
    number = len(job.attempts) + (kind is e.Placed)
    changes: dict[str, object] = {"number": number} if "number" in {one.name for one in fields(event)} else {}
    if kind is e.Over:
        changes["phase"] = draw(st.sampled_from([phase for phase in Phase if phase.over]))
    values = {one.name: getattr(event, one.name) for one in fields(event)} | changes
    made: Event = kind(**values)
    return made
