"""A training state as bytes and back, without pickle: a JSON header with the structure, then the arrays as they lie in memory.

    CHIPWISE-STATE 1\\n | length of the header, 8 bytes | header (JSON) | blobs, each at a multiple of 64 bytes

Nothing in it can run code. A node of the header is [kind, ...]: values n(one) B(ool) i f c(omplex) s(tr), containers d(ict)
l(ist) t(uple), blobs b(ytes) y (bytearray) a(rray) z (NumPy scalar), r(andom generator), o(bject with state_dict), T(orch
bytes). Taking a snapshot copies every array at once, so that training may go on while it is written.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from chipwise.errors import BadInput
from chipwise.job import tensors
from chipwise.job.errors import CannotKeep
from chipwise.job.later import Later
from chipwise.job.manifest import Damaged
from chipwise.job.store import Buffer

MAGIC = b"CHIPWISE-STATE 1\n"
_ALIGNED = 64
_DEEPEST = 200
_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
Node = list[Any]


@dataclass(frozen=True, slots=True)
class Blob:
    content: Any  # bytes, an array in C order that is nobody else's, or Later
    dtype: str | None = None
    shape: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    root: Node
    blobs: tuple[Blob, ...]
    outline: list[list[str]]  # how the state looked when training began; see `restoring.py`

    @property
    def about_bytes(self) -> int:
        return sum(
            blob.content.about_bytes if isinstance(blob.content, Later) else memoryview(blob.content).nbytes
            for blob in self.blobs
        )


@dataclass(frozen=True, slots=True)
class Packed:
    """What `torch.save` wrote, still as bytes: read when somebody wants it."""

    content: memoryview


@dataclass(frozen=True, slots=True)
class ObjectState:
    """The state_dict of an object of that class."""

    class_name: str
    state: Any


def snapshot(state: Any, outline: list[list[str]] | None = None) -> Snapshot:
    blobs: list[Blob] = []
    return Snapshot(_node(state, "state", blobs, 0), tuple(blobs), outline or [])


def has_state(value: Any) -> bool:
    return callable(getattr(value, "state_dict", None)) and callable(getattr(value, "load_state_dict", None))


def is_generator(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.random.Generator)


def inside(field: str, key: object) -> str:
    """The place of an entry: state.layers[3].weights."""
    if isinstance(key, str) and key.isidentifier():
        return f"{field}.{key}"
    return f"{field}[{key!r}]"


def _node(value: Any, field: str, blobs: list[Blob], depth: int) -> Node:
    if depth > _DEEPEST:
        raise CannotKeep(field[:80], f"is nested more than {_DEEPEST} deep", "Does it hold itself?")
    kind = type(value)
    if value is None:
        return ["n"]
    if kind is bool:
        return ["B", value]
    if kind is int:
        return ["i", hex(value)]
    if kind is float:
        return ["f", value.hex()]
    if kind is complex:
        return ["c", value.real.hex(), value.imag.hex()]
    if kind is str:
        return ["s", value]
    if kind in (bytes, bytearray):
        return ["b" if kind is bytes else "y", _add(blobs, Blob(bytes(value)))]
    if tensors.is_tensor(value):
        return ["T", _add(blobs, Blob(tensors.later(value)))]
    if has_state(value):
        return ["o", kind.__name__, _of_object(value, field, blobs, depth)]
    if isinstance(value, Mapping):
        return ["d", [[_key(key, field), _node(item, inside(field, key), blobs, depth + 1)] for key, item in value.items()]]
    if kind in (list, tuple):
        items = [_node(item, f"{field}[{at}]", blobs, depth + 1) for at, item in enumerate(value)]
        return ["l" if kind is list else "t", items]
    if isinstance(value, Later):
        return ["b", _add(blobs, Blob(value))]
    return _numpy_node(value, field, blobs, depth)


def _of_object(value: Any, field: str, blobs: list[Blob], depth: int) -> Node:
    content = value.state_dict()
    if tensors.holds_tensors(content):
        return ["T", _add(blobs, Blob(tensors.later(content)))]
    return _node(content, field, blobs, depth + 1)


def _key(key: object, field: str) -> Node:
    if type(key) not in (str, int, bool, float, type(None)):
        raise CannotKeep(field, f"has the key {key!r:.60} of type {type(key).__name__}", "Keys may be text or numbers.")
    return _node(key, field, [], 0)


def _add(blobs: list[Blob], blob: Blob) -> int:
    blobs.append(blob)
    return len(blobs) - 1


def _numpy_node(value: Any, field: str, blobs: list[Blob], depth: int) -> Node:
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.ndarray | numpy.generic | numpy.random.Generator):
        problem = f"is a {type(value).__module__}.{type(value).__qualname__}, which a checkpoint cannot hold"
        raise CannotKeep(
            field,
            problem.replace("builtins.", ""),
            "It may hold numbers, text, bytes, NumPy arrays, dicts, lists, and objects with state_dict and load_state_dict.",
        )
    if isinstance(value, numpy.random.Generator):
        return ["r", _node(value.bit_generator.state, field, blobs, depth + 1)]
    if type(value) not in (numpy.ndarray, numpy.memmap) and not isinstance(value, numpy.generic):
        raise CannotKeep(
            field, f"is a {type(value).__name__}, a special kind of array", "Store numpy.asarray(...) of its parts."
        )
    name = dtype_name(value.dtype, field)
    copied = numpy.array(value, copy=True, order="C", subok=False)
    raw = copied.reshape(-1).view(numpy.uint8) if copied.size and copied.itemsize else b""
    return ["z" if isinstance(value, numpy.generic) else "a", _add(blobs, Blob(raw, name, copied.shape))]


def dtype_name(dtype: Any, field: str) -> str:
    if dtype.kind in "biufcSUMm":
        return str(dtype.str)
    if dtype.type.__module__.partition(".")[0] == "ml_dtypes":  # bfloat16, float8 and the like: raw bytes under their name
        return f"ml_dtypes.{dtype.name}"
    kind = "a structured array" if dtype.names else f"an array of {dtype}"
    raise CannotKeep(field, f"is {kind}", "Store each of its fields as an array of numbers.")


def _dtype(name: str) -> Any:
    import numpy

    if not name.startswith("ml_dtypes."):
        return numpy.dtype(name)
    try:
        ml_dtypes = import_module("ml_dtypes")
    except ImportError as error:
        raise BadInput(f"The checkpoint holds {name.partition('.')[2]} arrays.", remedy="Try: pip install ml_dtypes") from error
    return numpy.dtype(getattr(ml_dtypes, name.partition(".")[2]))


def parts(shot: Snapshot) -> Iterator[Buffer]:
    """The bytes of a data file, in pieces; no second copy of an array is made."""
    contents = [blob.content.make() if isinstance(blob.content, Later) else blob.content for blob in shot.blobs]
    table, offset = [], 0
    for blob, content in zip(shot.blobs, contents, strict=True):
        size = memoryview(content).nbytes
        table.append([offset, size, blob.dtype, list(blob.shape)])
        offset += _padded(size)
    header = json.dumps({"root": shot.root, "blobs": table, "outline": shot.outline}, separators=(",", ":")).encode()
    start = MAGIC + struct.pack("<Q", len(header)) + header
    yield start + bytes(_padded(len(start)) - len(start))
    for content in contents:
        view = memoryview(content)
        if view.nbytes:
            yield view
            yield bytes(_padded(view.nbytes) - view.nbytes)


def _padded(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED


@dataclass(frozen=True, slots=True)
class Content:
    state: Any
    outline: list[list[str]]


def content(data: bytearray) -> Content:
    """The arrays are views into `data`: nothing is copied, and they may be written to."""
    begin = len(MAGIC) + 8
    if not data.startswith(MAGIC):
        raise Damaged("it does not begin as a state does, or was written in a later format")
    try:
        (length,) = struct.unpack_from("<Q", data, len(MAGIC))
        header = json.loads(bytes(data[begin : begin + length]))
        view = memoryview(data)
        first = _padded(begin + length)
        blobs = [_blob(view[first + at : first + at + size], size, dtype, shape) for at, size, dtype, shape in header["blobs"]]
        return Content(_value(header["root"], blobs), header["outline"])
    except (ValueError, KeyError, TypeError, IndexError, RecursionError, struct.error) as error:
        raise Damaged(f"its content cannot be read ({type(error).__name__}: {error})") from error


def _blob(view: memoryview, size: int, dtype: str | None, shape: list[int]) -> Any:
    if view.nbytes != size:
        raise ValueError("it is too short")
    if dtype is None:
        return view
    import numpy

    kind = _dtype(dtype)
    return (numpy.frombuffer(view, kind) if size else numpy.empty(0, kind)).reshape(shape)


def _value(node: Node, blobs: list[Any]) -> Any:
    match node:
        case ["n"]:
            return None
        case ["B" | "s", value]:
            return value
        case ["i", value]:
            return int(value, 16)
        case ["f", value]:
            return float.fromhex(value)
        case ["c", real, imaginary]:
            return complex(float.fromhex(real), float.fromhex(imaginary))
        case ["b", index]:
            return bytes(blobs[index])
        case ["y", index]:
            return bytearray(blobs[index])
        case ["a", index]:
            return blobs[index]
        case ["z", index]:
            return blobs[index][()]
        case ["T", index]:
            return Packed(blobs[index])
        case ["o", class_name, inner]:
            return ObjectState(class_name, _value(inner, blobs))
        case ["r", inner]:
            return _generator(_value(inner, blobs))
        case ["d", items]:
            return {_value(key, blobs): _value(item, blobs) for key, item in items}
        case ["l", items]:
            return [_value(item, blobs) for item in items]
        case ["t", items]:
            return tuple(_value(item, blobs) for item in items)
    raise ValueError(f"unknown kind {node!r:.40}")


def _generator(state: Any) -> Any:
    import numpy

    if state["bit_generator"] not in _GENERATORS:
        raise ValueError(f"unknown generator {state['bit_generator']!r:.40}")
    generator = numpy.random.Generator(getattr(numpy.random, state["bit_generator"])())
    generator.bit_generator.state = state
    return generator


def plain(value: Any, field: str = "state") -> Any:
    """For somebody who has no object to restore into: objects become the dicts they gave, torch bytes become tensors."""
    if isinstance(value, ObjectState):
        return plain(value.state, field)
    if isinstance(value, Packed):
        return tensors.from_bytes(value.content, field)
    if isinstance(value, dict):
        return {key: plain(item, inside(field, key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(plain(item, f"{field}[{at}]") for at, item in enumerate(value))
    return value
