"""Heads of HTTP/1.1 messages, read strictly: what two programs could understand differently is refused.

Refused are bare CR or LF, control characters, blanks before a colon, folded lines, two lengths, a length beside chunks, codings
other than chunked, targets that are no path, and HTTP versions other than 1.0 and 1.1 (RFC 9112, sections 2.2, 5.1, 6.1, 11.2).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum, auto
from typing import Generic, NamedTuple, TypeVar

GOOD = bytes([9, *range(0x20, 0x7F), *range(0x80, 0x100)])
TOKEN = b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
DIGITS = b"0123456789"
MOST_DIGITS = 15  # of a length: below 2**53
REQUEST_LINE = re.compile(rb"([A-Z]{1,16}) (/[!-~]{0,4095}) HTTP/1\.([01])")
STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: [^\r\n]*)?")

CHUNKED = -1  # in place of a length
UNTIL_CLOSE = -2
MOST_LINES, LONGEST_LINE = 4096, 256  # that are remembered

# Between two neighbours only (RFC 9110, 7.6.1), or written again here.
_HOP = frozenset(b"keep-alive proxy-connection te trailer upgrade proxy-authenticate proxy-authorization".split())


class BadMessage(Exception):
    """What is wrong with the bytes of a neighbour; `status` is the answer to a client."""

    def __init__(self, reason: str, status: int = 400) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


class RequestLine(NamedTuple):
    method: str
    path: str  # without its query
    is_old: bool  # HTTP/1.0: knows no chunks
    forwarded: bytes  # as it is written to a replica


class RequestHead(NamedTuple):
    line: RequestLine
    length: int  # of the body; CHUNKED
    keeps_alive: bool
    expects_continue: bool
    authorization: bytes
    request_id: bytes
    passed_lines: list[bytes]  # header lines for the replica


class ResponseHead(NamedTuple):
    status: int
    length: int  # CHUNKED, UNTIL_CLOSE
    keeps_alive: bool
    is_stream: bool  # of server-sent events
    passed_lines: list[bytes]


Meaning = TypeVar("Meaning")


class Remembered(dict[bytes, Meaning], Generic[Meaning]):
    """Lines and their meaning. Neighbours send the same ones again and again, so each is checked once. What is unlike all
    others is not kept, nor more than MOST_LINES."""

    def __init__(self, read: Callable[[bytes], Meaning], keeps: Callable[[Meaning], bool] = lambda _: True) -> None:
        self._read = read
        self._keeps = keeps

    def __missing__(self, line: bytes) -> Meaning:
        meaning = self._read(line)
        if len(line) <= LONGEST_LINE and self._keeps(meaning):
            if len(self) >= MOST_LINES:
                self.clear()
            self[line] = meaning
        return meaning


class HeaderUse(Enum):
    """What a header is for."""

    FORWARDED = auto()
    STREAM = auto()  # passed: the answer is a stream of events
    LEFT_OUT = auto()
    LENGTH = auto()
    CHUNKS = auto()
    OTHER_CODING = auto()
    CLOSE = auto()
    CONTINUE = auto()
    OTHER_EXPECTATION = auto()
    HOST = auto()
    AUTHORIZATION = auto()
    REQUEST_ID = auto()


# Names of the module: looking up a member of an enumeration is slow, and this is done for each line of each head.
(
    FORWARDED,
    STREAM,
    LEFT_OUT,
    LENGTH,
    CHUNKS,
    OTHER_CODING,
    CLOSE,
    CONTINUE,
    OTHER_EXPECTATION,
    HOST,
    AUTHORIZATION,
    REQUEST_ID,
) = HeaderUse
Header = tuple[HeaderUse, bytes]  # with its value


def _name_and_value(line: bytes) -> tuple[bytes, bytes]:
    name, colon, value = line.partition(b":")
    if line.translate(None, GOOD):
        raise BadMessage("control characters in a head")
    if not colon or not name or name.translate(None, TOKEN):
        raise BadMessage("a header without a valid name")
    return name.lower(), value.strip(b" \t")


def _between_neighbours(name: bytes, value: bytes) -> HeaderUse | None:
    """Headers that mean the same in both directions."""
    if name == b"content-length":
        return LENGTH
    if name == b"transfer-encoding":
        return CHUNKS if value.lower() == b"chunked" else OTHER_CODING
    if name == b"connection":
        return CLOSE if b"close" in value.lower() else LEFT_OUT
    return LEFT_OUT if name in _HOP else None


_OF_REQUESTS = {
    b"host": HOST,
    b"authorization": AUTHORIZATION,
    b"x-request-id": REQUEST_ID,
    b"accept-encoding": LEFT_OUT,  # tokens are counted in what passes
}


def _request_header(line: bytes) -> Header:
    name, value = _name_and_value(line)
    if name == b"expect":
        return CONTINUE if value.lower() == b"100-continue" else OTHER_EXPECTATION, value
    return _between_neighbours(name, value) or _OF_REQUESTS.get(name, FORWARDED), value


def _response_header(line: bytes) -> Header:
    name, value = _name_and_value(line)
    if name in (b"expect", b"x-request-id"):
        return LEFT_OUT, value
    use = _between_neighbours(name, value)
    if use is None:
        is_stream = name == b"content-type" and b"text/event-stream" in value.lower()
        use = STREAM if is_stream else FORWARDED
    return use, value


def _request_line(line: bytes) -> RequestLine:
    first = REQUEST_LINE.fullmatch(line)
    if first is None:
        raise BadMessage("no request line of HTTP/1.1")
    method, target, minor = first.groups()
    path = target.partition(b"?")[0]
    return RequestLine(method.decode("ascii"), path.decode("ascii"), minor == b"0", b"%b %b HTTP/1.1" % (method, target))


def _status_line(line: bytes) -> tuple[int, bool]:
    """And whether the answer is of HTTP/1.1."""
    first = STATUS_LINE.fullmatch(line)
    if first is None or line.translate(None, GOOD):
        raise BadMessage("no status line of HTTP/1.1")
    return int(first[2]), first[1] == b"1"


_request_lines, _status_lines = Remembered(_request_line), Remembered(_status_line)
_request_headers = Remembered(_request_header, lambda header: header[0] is not REQUEST_ID)
_response_headers = Remembered(_response_header)


def _length(value: bytes, before: int | None) -> int:
    if before is not None:
        raise BadMessage("more than one length")
    if not value or value.translate(None, DIGITS) or len(value) > MOST_DIGITS:
        raise BadMessage("a length that is no number")
    return int(value)


def read_request(head: bytes, most_headers: int = 100) -> RequestHead:
    """Of the bytes before the empty line."""
    lines = head.split(b"\r\n")
    if len(lines) - 1 > most_headers:
        raise BadMessage("too many headers", 431)
    first = _request_lines[lines.pop(0)]
    length: int | None = None
    is_chunked = expects = closes = False
    hosts = 0
    authorization = request_id = b""
    passed_lines: list[bytes] = []
    headers = _request_headers
    for line in lines:
        use, value = headers[line]
        if use is FORWARDED:
            passed_lines.append(line)
        elif use is HOST:
            hosts += 1
        elif use is LENGTH:
            length = _length(value, length)
        elif use is AUTHORIZATION:
            if authorization:
                raise BadMessage("more than one authorization")
            authorization = value
        elif use is REQUEST_ID:
            request_id = value
        elif use is CLOSE:
            closes = True
        elif use is CHUNKS or use is OTHER_CODING:
            if is_chunked or use is OTHER_CODING or first.is_old:
                raise BadMessage("a transfer coding other than chunked", 501)
            is_chunked = True
        elif use is CONTINUE:
            expects = True
        elif use is OTHER_EXPECTATION:
            raise BadMessage("an unknown expectation", 417)
    if is_chunked and length is not None:
        raise BadMessage("a length beside chunks")
    if hosts != 1 and (hosts or not first.is_old):
        raise BadMessage("not exactly one host")
    return RequestHead(
        first,
        CHUNKED if is_chunked else length or 0,
        keeps_alive=not closes and not first.is_old,
        expects_continue=expects and not first.is_old,
        authorization=authorization,
        request_id=request_id,
        passed_lines=passed_lines,
    )


def read_response(head: bytes, most_headers: int = 200) -> ResponseHead:
    lines = head.split(b"\r\n")
    if len(lines) - 1 > most_headers:
        raise BadMessage("too many headers", 431)
    status, is_new = _status_lines[lines.pop(0)]
    length: int | None = None
    is_chunked = closes = is_stream = False
    passed_lines: list[bytes] = []
    headers = _response_headers
    for line in lines:
        use, value = headers[line]
        if use is FORWARDED:
            passed_lines.append(line)
        elif use is LENGTH:
            length = _length(value, length)
        elif use is CHUNKS or use is OTHER_CODING:
            if is_chunked or use is OTHER_CODING:
                raise BadMessage("a transfer coding other than chunked")
            is_chunked = True
        elif use is STREAM:
            is_stream = True
            passed_lines.append(line)
        elif use is CLOSE:
            closes = True
    if is_chunked and length is not None:
        raise BadMessage("a length beside chunks")
    if status < 200 or status in (204, 304):
        framing = 0
    elif is_chunked:
        framing = CHUNKED
    else:
        framing = UNTIL_CLOSE if length is None else length
    keeps_alive = not closes and is_new and framing != UNTIL_CLOSE
    return ResponseHead(status, length=framing, keeps_alive=keeps_alive, is_stream=is_stream, passed_lines=passed_lines)
