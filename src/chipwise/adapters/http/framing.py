"""Where the body of a message ends, found while its bytes pass; nothing is copied."""

from __future__ import annotations

from chipwise.adapters.http.heads import CHUNKED, UNTIL_CLOSE, BadMessage

HEX = b"0123456789abcdefABCDEF"
MOST_SIZE_DIGITS = 12
LONGEST_LINE = 1024  # of a chunk's size with its extensions, and of a trailer
MOST_TRAILER_BYTES = 8192
VISIBLE = bytes([9, *range(0x20, 0x7F)])

Span = tuple[int, int]


class Body:
    """Fed with the bytes as they come. `spans` are the parts of the last ones that are content; `done`: it has ended."""

    __slots__ = ("at_boundary", "done", "spans")

    def __init__(self) -> None:
        self.done = False
        self.spans: list[Span] = []
        self.at_boundary = True  # between chunks: something may be added here

    def feed(self, data: bytes, start: int = 0) -> int:
        """Up to where the bytes belong to this message."""
        raise NotImplementedError


class LengthBody(Body):
    __slots__ = ("_left",)

    def __init__(self, length: int) -> None:
        self.spans: list[Span] = []
        self._left = length
        self.done = length == 0
        self.at_boundary = False

    def feed(self, data: bytes, start: int = 0) -> int:
        end = start + self._left
        if end > len(data):
            end = len(data)
        self._left -= end - start
        self.done = not self._left
        self.spans = [(start, end)]
        return end


class CloseBody(Body):
    """Ends with the connection, so it is never done by what it is given."""

    __slots__ = ()

    def feed(self, data: bytes, start: int = 0) -> int:
        self.spans = [(start, len(data))]
        return len(data)


_SIZE, _CONTENT, _CONTENT_END, _TRAILER = range(4)
_KNOWN_SIZES = {b"%x" % length: length for length in range(1, 4096)}
LONGEST_KNOWN_SIZE = 5  # with its end of line


class ChunkedBody(Body):
    __slots__ = ("_carried", "_left", "_state", "_trailer_bytes")

    def __init__(self) -> None:
        super().__init__()
        self._state = _SIZE
        self._left = 0
        self._carried = b""  # the begin of a line that goes on
        self._trailer_bytes = 0

    def feed(self, data: bytes, start: int = 0) -> int:
        position, size = start, len(data)
        if self.at_boundary:  # most often one event comes as one chunk
            line_end = data.find(b"\r\n", start, start + LONGEST_KNOWN_SIZE)
            length = _KNOWN_SIZES.get(data[start:line_end]) if line_end > 0 else None
            if length is not None and line_end + length + 4 == size and data.endswith(b"\r\n"):
                self.spans = [(line_end + 2, size - 2)]
                return size
        spans: list[Span] = []
        self.spans = spans
        while position < size:
            if self._state == _CONTENT:
                end = position + self._left
                if end > size:
                    spans.append((position, size))
                    self._left = end - size
                    position = size
                    break
                spans.append((position, end))
                self._state = _CONTENT_END
                position = end
                if data[position : position + 2] == b"\r\n":  # nearly always
                    position += 2
                    self._state = _SIZE
                continue
            line_end = data.find(b"\r\n", position)
            if self._carried and self._carried[-1:] == b"\r" and data[position : position + 1] == b"\n":
                line, next_position = self._carried[:-1], position + 1
            elif line_end < 0:
                self._carried += data[position:]
                if len(self._carried) > LONGEST_LINE:
                    raise BadMessage("a chunk without a size")
                position = size
                break
            else:
                line, next_position = self._carried + data[position:line_end], line_end + 2
            self._carried = b""
            position = next_position
            if self._line(line):
                self.done = True
                break
        self.at_boundary = self._state == _SIZE and not self._carried
        return position

    def _line(self, line: bytes) -> bool:
        """A whole line that is no content; True: the message ends with it."""
        if self._state == _CONTENT_END:
            if line:
                raise BadMessage("a chunk that is longer than its size")
            self._state = _SIZE
            return False
        if self._state == _TRAILER:
            self._trailer_bytes += len(line) + 2
            if self._trailer_bytes > MOST_TRAILER_BYTES or line.translate(None, VISIBLE):
                raise BadMessage("bad trailers")
            return not line
        digits, _, extension = line.partition(b";")
        digits = digits.rstrip(b" \t") if extension else digits
        if not digits or len(digits) > MOST_SIZE_DIGITS or digits.translate(None, HEX) or len(line) > LONGEST_LINE:
            raise BadMessage("a chunk without a size")
        if extension and extension.translate(None, VISIBLE):
            raise BadMessage("a chunk with a bad extension")
        self._left = int(digits, 16)
        self._state = _CONTENT if self._left else _TRAILER
        return False


def body_of(length: int) -> Body:
    if length == CHUNKED:
        return ChunkedBody()
    return CloseBody() if length == UNTIL_CLOSE else LengthBody(length)
