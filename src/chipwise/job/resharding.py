"""A checkpoint of some number of ranks for another number: what is split is put together and split anew, the rest is the same.

The program says which fields are split, and along which axis: `split={"momentum": 0, "layers[3].weights": 1}`. Parts are
joined in the order of the ranks, whatever their sizes, and split as `part` says: in order, as evenly as it goes, the first ones
larger by one. Every other field must be the same on all ranks to the last bit, since nobody could say otherwise whose counts:
where it is not, nothing is restored and the field is named.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from chipwise.errors import InvalidSettings, Problem
from chipwise.job import tensors
from chipwise.job.errors import CannotRestore
from chipwise.job.tree import ObjectState, Packed, inside, is_generator
from chipwise.job.writer import ranks

Split = Mapping[str, int]


def part(length: int, rank: int | None = None, world: int | None = None) -> slice:
    """Which of `length` rows are this rank's; rank and world are $RANK and $WORLD_SIZE where they are not given."""
    problems: list[Problem] = []
    rank, world = ranks(rank, world, problems)
    if type(length) is not int or length < 0:
        problems.append(Problem("length", f"is {length!r:.40}", allowed="a whole number, 0 or more"))
    if problems:
        raise InvalidSettings(*problems)
    share, remainder = divmod(length, world)
    begin = rank * share + min(rank, remainder)
    return slice(begin, begin + share + (rank < remainder))


def fields(split: Split | None) -> dict[str, int] | None:
    """With the names that messages use: state.momentum."""
    if split is None:
        return None
    if not isinstance(split, Mapping):
        example = "fields by name with their axis, as in split={'momentum': 0}"
        raise InvalidSettings(Problem("split", f"is {split!r:.60}", allowed=example))
    bad = [
        Problem(f"split[{name!r:.60}]", "is not named by a text", allowed="the name of a field, such as 'layers[3].weights'")
        for name in split
        if not isinstance(name, str)
    ]
    bad += [
        Problem(f"split[{name!r:.60}]", f"is {axis!r:.60}", allowed="the number of an axis")
        for name, axis in split.items()
        if type(axis) is not int or axis < 0
    ]
    if bad:
        raise InvalidSettings(*bad)
    return {f"state{name}" if name.startswith("[") else f"state.{name}": axis for name, axis in split.items()}


def check(split: Mapping[str, int], known: Collection[str], objects: Sequence[str]) -> None:
    """Names that are not in a state are found when training begins, and not when machines are lost. Of `objects` only the
    name is known."""
    unknown = [field for field in split if field not in known and not any(_below(field, one) for one in objects)]
    if unknown:
        raise InvalidSettings(*(Problem(f"split: {field.removeprefix('state.')}", "is not in the state") for field in unknown))


def joined(states: Sequence[Any], rank: int, world: int, split: Mapping[str, int], title: str) -> Any:
    """The state of one rank of `world`, from those of all ranks that saved."""
    joining = _Joining(rank=rank, world=world, split=split, where=title, had=len(states))
    state = joining.join(states, "state")
    if missing := sorted(set(split) - joining.met):
        raise CannotRestore(
            f"{title} cannot be split for {world} ranks: it has no {', '.join(missing)}.",
            remedy="Name in split= what the program that saved it had.",
        )
    return state


class _Joining:
    def __init__(self, rank: int, world: int, split: Mapping[str, int], where: str, had: int) -> None:
        self._rank, self._world, self._split, self._where, self._had = rank, world, split, where, had
        self.met: set[str] = set()

    def join(self, values: Sequence[Any], field: str) -> Any:
        first = values[0]
        if any(type(one) is not type(first) for one in values):
            raise self._differs(field)
        if isinstance(first, Packed):
            split = field in self._split or any(_below(one, field) for one in self._split)
            if not split and all(one.content == first.content for one in values):
                return first
            return self.join([tensors.from_bytes(one.content, field) for one in values], field)
        if field in self._split:
            self.met.add(field)
            return self._cut(values, self._split[field], field)
        if isinstance(first, ObjectState):
            return ObjectState(first.class_name, self.join([one.state for one in values], field))
        if isinstance(first, dict):
            if any(list(one) != list(first) for one in values):
                raise self._differs(field, "its entries differ")
            return {key: self.join([one[key] for one in values], inside(field, key)) for key in first}
        if isinstance(first, list | tuple):
            if any(len(one) != len(first) for one in values):
                raise self._differs(field, "its lengths differ")
            return type(first)(self.join(list(each), f"{field}[{at}]") for at, each in enumerate(zip(*values, strict=True)))
        if not all(_identical(first, one) for one in values[1:]):
            raise self._differs(field)
        return first

    def _cut(self, values: Sequence[Any], axis: int, field: str) -> Any:
        if not all(_is_array(one) or tensors.is_tensor(one) for one in values):
            raise self._cannot(f"{field} is no array, and only arrays can be split")
        shapes = [tuple(one.shape) for one in values]
        if any(len(shape) <= axis for shape in shapes):
            raise self._cannot(f"{field} has {len(shapes[0])} axes, and is to be split along axis {axis}")
        if len({(shape[:axis], shape[axis + 1 :], str(one.dtype)) for shape, one in zip(shapes, values, strict=True)}) > 1:
            sizes = ", ".join("x".join(map(str, shape)) for shape in shapes[:8])
            raise self._cannot(f"the parts of {field} do not fit together along axis {axis}: {sizes}")
        own, offset, pieces = part(sum(shape[axis] for shape in shapes), self._rank, self._world), 0, []
        for shape, value in zip(shapes, values, strict=True):  # only what is ours is copied
            begin, end = max(own.start - offset, 0), min(own.stop - offset, shape[axis])
            if begin < end:
                pieces.append(value[(*[slice(None)] * axis, slice(begin, end))])
            offset += shape[axis]
        if not pieces:
            pieces = [values[0][(*[slice(None)] * axis, slice(0, 0))]]
        if tensors.is_tensor(values[0]):
            return sys.modules["torch"].cat(pieces, dim=axis)
        import numpy

        return numpy.concatenate(pieces, axis=axis)

    def _differs(self, field: str, detail: str = "it differs") -> CannotRestore:
        return self._cannot(
            f"{field} is not the same on all ranks ({detail}), and it is not stated how it is split",
            "Name it in split= with its axis; what each rank has for itself, such as a random generator, draw from the step "
            "instead; or give reshard=, or start as many ranks as before.",
        )

    def _cannot(
        self, problem: str, remedy: str = "Fix split=, give reshard=, or start as many ranks as before."
    ) -> CannotRestore:
        return CannotRestore(f"{self._where} of {self._had} ranks cannot be split for {self._world}: {problem}.", remedy=remedy)


def _below(field: str, top: str) -> bool:
    return field.startswith((f"{top}.", f"{top}["))


def _is_array(value: object) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def _identical(left: Any, right: Any) -> bool:
    """To the last bit, so that NaN is the same as itself."""
    if type(left) is not type(right):
        return False
    if tensors.is_tensor(left):
        return left.shape == right.shape and left.dtype == right.dtype and bool((_raw(left) == _raw(right)).all())
    if is_generator(left):
        return _identical(left.bit_generator.state, right.bit_generator.state)
    if hasattr(left, "tobytes"):
        return bool(left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes())
    if isinstance(left, dict):
        return list(left) == list(right) and all(_identical(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(_identical(a, b) for a, b in zip(left, right, strict=True))
    return left.hex() == right.hex() if isinstance(left, float) else bool(left == right)


def _raw(tensor: Any) -> Any:
    return tensor.contiguous().reshape(-1).view(sys.modules["torch"].uint8)
