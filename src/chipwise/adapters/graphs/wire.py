"""An ONNX file without its weights: the messages are copied field by field, and data of large tensors is passed over.

ONNX files are protocol buffers (https://protobuf.dev/programming-guides/encoding/): a field is a tag, (number << 3) | wire
type, and its content. Field numbers are those of `onnx.proto`. What is kept is held in memory, so it is bounded; what is passed
over may be of any size and is never read. Descriptions and meta data are dropped, since nothing asks for them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import BinaryIO

from chipwise.errors import BadInput

SMALL = 4_096  # bytes of a tensor that are copied: shapes, axes, scales
GRAPH_BYTES = 48_000_000  # bytes of a graph without its weights; those of the largest known networks are below 10 MB
MOST_FIELDS = 4_000_000
DEEPEST = 24  # graphs within graphs, each three messages deep
_VARINT, _EIGHT, _LENGTH, _FOUR = 0, 1, 2, 5
_NOT_ONNX = "Give an ONNX file, as torch.onnx.export writes it; if it is one, it was cut or damaged on its way."


@dataclass(frozen=True, slots=True)
class Message:
    """Which fields of a message are messages themselves, which are dropped, and which hold a tensor's data."""

    inner: dict[int, Message] = field(default_factory=dict)
    dropped: frozenset[int] = frozenset()
    data: frozenset[int] = frozenset()


_TENSOR = Message(dropped=frozenset({12, 16}), data=frozenset({4, 5, 6, 7, 9, 10, 11}))
_SPARSE = Message({1: _TENSOR, 2: _TENSOR})
_ATTRIBUTE = Message({5: _TENSOR, 10: _TENSOR, 22: _SPARSE, 23: _SPARSE}, frozenset({13}))
_NODE = Message({5: _ATTRIBUTE}, frozenset({6, 9}))
_GRAPH = Message({1: _NODE, 5: _TENSOR, 15: _SPARSE}, frozenset({10, 14, 16}))
_ATTRIBUTE.inner.update({6: _GRAPH, 11: _GRAPH})
_FUNCTION = Message({7: _NODE, 11: _ATTRIBUTE}, frozenset({8, 14}))
_MODEL = Message({7: _GRAPH, 25: _FUNCTION}, frozenset({6, 14, 20}))


def without_weights(stream: BinaryIO, title: str) -> bytes:
    """The model in `stream`, a file that can be sought in; BadInput where it cannot be one."""
    size = stream.seek(0, 2)
    stream.seek(0)
    if not size:
        raise BadInput(f"{title} is empty.", remedy=_NOT_ONNX)
    return _Copy(stream, title).message(size, _MODEL, 0)


class _Copy:
    def __init__(self, stream: BinaryIO, title: str) -> None:
        self._stream, self._title = stream, title
        self._kept = self._fields = 0

    def message(self, end: int, layout: Message, depth: int) -> bytes:
        """From where the stream is up to `end`."""
        if depth > 3 * DEEPEST:
            raise BadInput(f"{self._title} nests graphs in more than {DEEPEST} others.", remedy=_NOT_ONNX)
        copied, data, data_bytes, position = bytearray(), bytearray(), 0, self._stream.tell()
        while position < end:
            self._fields += 1
            if self._fields > MOST_FIELDS:
                raise self._too_large(f"{MOST_FIELDS:,} fields")
            tag, position = self._varint(position, end)
            number, wire = tag >> 3, tag & 7
            length, start = self._length(wire, position, end)
            if number == 0 or start + length > end:
                raise self._broken(position)
            if number in layout.data:
                data_bytes += length
                if data_bytes <= SMALL:
                    self._keep(length)
                    self._append(data, tag, wire, self._read(start, length))
            elif number in layout.inner and wire == _LENGTH:
                self._stream.seek(start)
                self._append(copied, tag, wire, self.message(start + length, layout.inner[number], depth + 1))
            elif number not in layout.dropped:
                self._keep(length)
                self._append(copied, tag, wire, self._read(start, length))
            position = start + length
        self._stream.seek(position)
        return bytes(copied + data) if data_bytes <= SMALL else bytes(copied)

    def _length(self, wire: int, position: int, end: int) -> tuple[int, int]:
        """Bytes of a field's content, and where it begins."""
        if wire == _LENGTH:
            return self._varint(position, end)
        if wire == _VARINT:
            return self._varint(position, end)[1] - position, position
        if wire in (_EIGHT, _FOUR):
            return (8 if wire == _EIGHT else 4), position
        raise self._broken(position)

    def _varint(self, position: int, end: int) -> tuple[int, int]:
        self._stream.seek(position)
        value = 0
        for place, byte in enumerate(self._stream.read(min(10, max(end - position, 0)))):
            value |= (byte & 0x7F) << (7 * place)
            if not byte & 0x80:
                return value, position + place + 1
        raise self._broken(position)

    def _read(self, start: int, length: int) -> bytes:
        self._stream.seek(start)
        content = self._stream.read(length)
        if len(content) != length:
            raise self._broken(start)
        return content

    def _keep(self, length: int) -> None:
        self._kept += length
        if self._kept > GRAPH_BYTES:
            raise self._too_large(f"{GRAPH_BYTES // 1_000_000} MB beside its weights")

    @staticmethod
    def _append(copied: bytearray, tag: int, wire: int, content: bytes) -> None:
        copied += _encoded(tag)
        if wire == _LENGTH:
            copied += _encoded(len(content))
        copied += content

    def _broken(self, position: int) -> BadInput:
        return BadInput(f"{self._title} is not a whole ONNX file: it makes no sense at byte {position:,}.", remedy=_NOT_ONNX)

    def _too_large(self, what: str) -> BadInput:
        return BadInput(f"{self._title} has more than {what}: no network's graph is that large.", remedy=_NOT_ONNX)


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
