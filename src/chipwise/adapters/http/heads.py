"""Heads of HTTP/1.1 messages, read strictly: what two programs could understand differently is refused.

Refused are bare CR or LF, control characters, blanks before a colon, folded lines, two lengths, a length beside chunks, codings
other than chunked, targets that are no path, and HTTP versions other than 1.0 and 1.1 (RFC 9112, sections 2.2, 5.1, 6.1, 11.2).
"""

from __future__ import annotations

import re
from typing import NamedTuple

GOOD = bytes([9, *range(0x20, 0x7F), *range(0x80, 0x100)])
TOKEN = b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
DIGITS = b"0123456789"
MOST_DIGITS = 15  # of a length: below 2**53
REQUEST_LINE = re.compile(rb"([A-Z]{1,16}) (/[!-~]{0,4095}) HTTP/1\.([01])")
STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: [^\r\n]*)?")

CHUNKED = -1  # in place of a length
UNTIL_CLOSE = -2
BAD_NAME = "a header without a valid name"

# Between two neighbours only (RFC 9110, 7.6.1), or written again here.
_HOP = frozenset(
    b"connection keep-alive proxy-connection te trailer transfer-encoding upgrade content-length expect "
    b"proxy-authenticate proxy-authorization".split()
)
_OWN_OF_REQUEST = frozenset((b"host", b"authorization", b"accept-encoding", b"x-request-id"))


class BadMessage(Exception):
    """What is wrong with the bytes of a neighbour; `status` is the answer to a client."""

    def __init__(self, reason: str, status: int = 400) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


class RequestHead(NamedTuple):
    method: str
    path: str  # without its query
    target: bytes
    length: int  # of the body; CHUNKED
    keeps_alive: bool
    is_old: bool  # HTTP/1.0: knows no chunks
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


def _lines(head: bytes, most_headers: int) -> list[bytes]:
    lines = head.split(b"\r\n")
    if head.translate(None, GOOD) != b"\r\n" * (len(lines) - 1):
        raise BadMessage("control characters in a head")
    if len(lines) - 1 > most_headers:
        raise BadMessage("too many headers", 431)
    return lines


def _length(value: bytes, before: int | None) -> int:
    if before is not None:
        raise BadMessage("more than one length")
    if not value or value.translate(None, DIGITS) or len(value) > MOST_DIGITS:
        raise BadMessage("a length that is no number")
    return int(value)


def read_request(head: bytes, most_headers: int = 100) -> RequestHead:
    """Of the bytes before the empty line."""
    lines = _lines(head, most_headers)
    first = REQUEST_LINE.fullmatch(lines[0])
    if first is None:
        raise BadMessage("no request line of HTTP/1.1")
    target = first[2]
    is_old = first[3] == b"0"
    length: int | None = None
    is_chunked = expects = closes = False
    hosts = 0
    authorization = request_id = b""
    passed_lines: list[bytes] = []
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        if not colon or not name or name.translate(None, TOKEN):
            raise BadMessage(BAD_NAME)
        name = name.lower()
        if name in _HOP:
            value = value.strip(b" \t")
            if name == b"content-length":
                length = _length(value, length)
            elif name == b"transfer-encoding":
                if is_chunked or value.lower() != b"chunked" or is_old:
                    raise BadMessage("a transfer coding other than chunked", 501)
                is_chunked = True
            elif name == b"connection":
                closes = closes or b"close" in value.lower()
            elif name == b"expect":
                if value.lower() != b"100-continue":
                    raise BadMessage("an unknown expectation", 417)
                expects = True
        elif name in _OWN_OF_REQUEST:
            value = value.strip(b" \t")
            if name == b"host":
                hosts += 1
            elif name == b"authorization":
                if authorization:
                    raise BadMessage("more than one authorization")
                authorization = value
            elif name == b"x-request-id":
                request_id = value
        else:
            passed_lines.append(line)
    if is_chunked and length is not None:
        raise BadMessage("a length beside chunks")
    if hosts > 1 or (hosts == 0 and not is_old):
        raise BadMessage("not exactly one host")
    return RequestHead(
        method=first[1].decode("ascii"),
        path=target.partition(b"?")[0].decode("ascii"),
        target=target,
        length=CHUNKED if is_chunked else length or 0,
        keeps_alive=not closes and not is_old,
        is_old=is_old,
        expects_continue=expects and not is_old,
        authorization=authorization,
        request_id=request_id,
        passed_lines=passed_lines,
    )


def read_response(head: bytes, most_headers: int = 200) -> ResponseHead:
    lines = _lines(head, most_headers)
    first = STATUS_LINE.fullmatch(lines[0])
    if first is None:
        raise BadMessage("no status line of HTTP/1.1")
    status = int(first[2])
    length: int | None = None
    is_chunked = closes = is_stream = False
    passed_lines: list[bytes] = []
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        if not colon or not name or name.translate(None, TOKEN):
            raise BadMessage(BAD_NAME)
        name = name.lower()
        if name in _HOP:
            value = value.strip(b" \t").lower()
            if name == b"content-length":
                length = _length(value, length)
            elif name == b"transfer-encoding":
                if is_chunked or value != b"chunked":
                    raise BadMessage("a transfer coding other than chunked")
                is_chunked = True
            elif name == b"connection":
                closes = closes or b"close" in value
        elif name != b"x-request-id":
            is_stream = is_stream or (name == b"content-type" and b"text/event-stream" in value.lower())
            passed_lines.append(line)
    if is_chunked and length is not None:
        raise BadMessage("a length beside chunks")
    if status < 200 or status in (204, 304):
        framing = 0
    elif is_chunked:
        framing = CHUNKED
    else:
        framing = UNTIL_CLOSE if length is None else length
    keeps_alive = not closes and first[1] == b"1" and framing != UNTIL_CLOSE
    return ResponseHead(status=status, length=framing, keeps_alive=keeps_alive, is_stream=is_stream, passed_lines=passed_lines)
