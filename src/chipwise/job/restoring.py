"""Putting a saved state into the living one, in place, all of it or nothing.

First the whole tree is compared, then objects are given their state (if one fails, those before it get back what they had),
then arrays are overwritten and values replaced, which cannot fail. Arrays, dicts, lists and objects stay the same objects, so
that whoever holds a reference to them sees the restored values.

A state may grow while it is trained: a list of losses, a buffer made at the first step. So that this can be told from a changed
model, a checkpoint also has the outline of the state as it was when training began. A program that begins with the same outline
may get back anything. Where the outlines differ, or there is none (a checkpoint saved by hand), arrays must fit as they are,
every field of the living state must be in the checkpoint, and what was added while training is added.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

from chipwise.job import tensors
from chipwise.job.errors import CannotRestore
from chipwise.job.tree import ObjectState, Packed, dtype_name, has_state, inside, is_generator, plain

_REMEDY = "Train with the program that saved it, or give another directory to start over."


def outline(state: Any) -> list[list[str]]:
    """[field, what it is] for every field of a state."""
    return [[field, _kind(value, field)] for field, value in _walked(state, "state")]


def objects(state: Any) -> list[str]:
    """Fields that keep a state of their own, into which nobody sees."""
    return [field for field, value in _walked(state, "state") if has_state(value)]


def _walked(value: Any, field: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    yield field, value
    if depth > 200 or has_state(value):
        return
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _walked(item, inside(field, key), depth + 1)
    elif type(value) in (list, tuple):
        for index, item in enumerate(value):
            yield from _walked(item, f"{field}[{index}]", depth + 1)


def _kind(value: Any, field: str) -> str:
    if tensors.is_tensor(value):
        return f"a tensor of {_shape(value.shape)} {str(value.dtype).removeprefix('torch.')}"
    if has_state(value):
        return f"an object {type(value).__name__}"
    if is_generator(value):
        return "a random generator"
    if _is_array(value):
        return f"an array of {_shape(value.shape)} {dtype_name(value.dtype, field)}"
    if isinstance(value, Mapping):
        return "a dict"
    return f"a {type(value).__name__} of {len(value)}" if type(value) in (list, tuple) else "a value"


def _shape(shape: Any) -> str:
    return "x".join(map(str, shape)) or "one"


def _is_array(value: object) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def restore(live: Any, saved: Any, begun: list[list[str]], expected: list[list[str]], title: str) -> None:
    """`begun` is the outline in the checkpoint, `expected` that of the living state; both may be empty."""
    fitting = _Fitting(title, anything=bool(begun) and begun == expected, begun=frozenset(field for field, _ in begun))
    if fitting.fit(live, saved, "state") is not live:
        raise CannotRestore(
            f"The state is a {type(live).__name__}, which cannot be changed in place.",
            remedy="Give a dict, a list or an array.",
        )
    fitting.apply()


class _Fitting:
    """Compares first; collects what is to be done; does it."""

    def __init__(self, title: str, *, anything: bool, begun: frozenset[str]) -> None:
        self._where = title
        self._anything = anything
        self._begun = begun  # what the program that saved it had from its beginning
        self._objects: list[tuple[str, Any, Any]] = []
        self._assignments: list[Callable[[], object]] = []

    def fit(self, live: Any, saved: Any, field: str) -> Any:
        """What stands at `field` afterwards."""
        if isinstance(saved, ObjectState):
            if not has_state(live):
                raise self._unlike(field, live, f"an object {saved.class_name}")
            state = plain(saved.state, field)
            if unlike := _unlike_object(live, state, field):
                raise CannotRestore(f"{self._where} does not fit: {unlike}.", remedy=_REMEDY)
            self._objects.append((field, live, state))
            return live
        if has_state(live):
            raise self._unlike(field, live, _saved_kind(saved, field))
        if isinstance(saved, Packed) or tensors.is_tensor(saved):
            opened = tensors.from_bytes(saved.content, field) if isinstance(saved, Packed) else saved
            return self._tensor(live, opened, field)
        if isinstance(live, MutableMapping) and isinstance(saved, dict):
            return self._mapping(live, saved, field)
        if type(live) in (list, tuple) and type(live) is type(saved):
            return self._sequence(live, saved, field)
        if is_generator(live) and is_generator(saved):
            if live.bit_generator.state["bit_generator"] != saved.bit_generator.state["bit_generator"]:
                raise self._unlike(field, live, f"of {saved.bit_generator.state['bit_generator']}")
            self._assignments.append(lambda: setattr(live.bit_generator, "state", saved.bit_generator.state))
            return live
        if _is_array(live) and _is_array(saved):
            return self._array(live, saved, field)
        if live is None or self._anything or _kind(live, field) == _saved_kind(saved, field) == "a value":
            return plain(saved, field)
        raise self._unlike(field, live, _saved_kind(saved, field))

    def apply(self) -> None:
        restored: list[tuple[Any, Any]] = []
        for field, live, state in self._objects:
            before = None if _checks(live) else copy.deepcopy(live.state_dict())
            try:
                live.load_state_dict(state)
            except Exception as error:
                for target, state_before in [*restored, (live, before)]:
                    if state_before is not None:
                        target.load_state_dict(state_before)
                raise CannotRestore(
                    f"{self._where}: {field} ({type(live).__name__}) does not take its state: {error}", remedy=_REMEDY
                ) from error
            restored.append((live, before))
        for assign in self._assignments:
            assign()

    def _mapping(self, live: MutableMapping[Any, Any], saved: dict[Any, Any], field: str) -> Any:
        for key in live:
            if key not in saved:
                raise self._unlike(inside(field, key), live[key], "missing")
        for key, item in saved.items():
            if key not in live and (place := inside(field, key)) in self._begun:
                kind = _saved_kind(item, place)
                raise CannotRestore(f"{self._where} does not fit: {place} is {kind} there, and not here.", remedy=_REMEDY)
        bound = {
            key: self.fit(live[key], item, inside(field, key)) if key in live else plain(item, inside(field, key))
            for key, item in saved.items()
        }
        self._assignments.append(lambda: live.update(bound))
        return live

    def _sequence(self, live: Any, saved: Any, field: str) -> Any:
        if len(live) == len(saved):
            bound = [self.fit(one, other, f"{field}[{at}]") for at, (one, other) in enumerate(zip(live, saved, strict=True))]
        elif self._anything or all(_kind(item, field) == "a value" for item in live):
            bound = list(plain(saved, field))
        else:
            raise self._unlike(field, live, _saved_kind(saved, field))
        if isinstance(live, tuple):
            unchanged = all(one is other for one, other in zip(live, bound, strict=False)) and len(live) == len(bound)
            return live if unchanged else tuple(bound)
        self._assignments.append(lambda: live.__setitem__(slice(None), bound))
        return live

    def _array(self, live: Any, saved: Any, field: str) -> Any:
        if live.shape == saved.shape and live.dtype == saved.dtype and live.flags.writeable:
            self._assignments.append(lambda: live.__setitem__(..., saved))
            return live
        if self._anything or (live.shape == saved.shape and live.dtype == saved.dtype):
            return saved
        raise self._unlike(field, live, _saved_kind(saved, field))

    def _tensor(self, live: Any, saved: Any, field: str) -> Any:
        if tensors.is_tensor(live) and live.shape == saved.shape and live.dtype == saved.dtype:
            self._assignments.append(lambda: live.data.copy_(saved))
            return live
        if live is None or self._anything:
            return saved
        raise self._unlike(field, live, f"a tensor of {_shape(saved.shape)}")

    def _unlike(self, field: str, live: Any, other: str) -> CannotRestore:
        there = "it is not in the checkpoint" if other == "missing" else f"the checkpoint has {other}"
        return CannotRestore(f"{self._where} does not fit: {field} is {_kind(live, field)}, and {there}.", remedy=_REMEDY)


def _saved_kind(saved: Any, field: str) -> str:
    if isinstance(saved, ObjectState):
        return f"an object {saved.class_name}"
    return "a tensor" if isinstance(saved, Packed) else _kind(saved, field)


def _checks(live: Any) -> bool:
    """Whether it is known before that it takes the state: no copy of it is needed then, which would cost its memory again."""
    return tensors.is_module(live) or callable(getattr(live, "check_state_dict", None))


def _unlike_object(live: Any, state: Any, field: str) -> str | None:
    if tensors.is_module(live):
        return tensors.unlike_module(live, state, field)
    check = getattr(live, "check_state_dict", None)
    problem = check(state, field) if callable(check) else None
    return str(problem) if problem else None
