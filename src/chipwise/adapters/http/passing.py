"""An answer on its way from a replica to a client: head written again, bytes passed on and counted."""

from __future__ import annotations

import json
from enum import Enum, auto
from http import HTTPStatus

from chipwise.adapters.http.answer_count import AnswerCount
from chipwise.adapters.http.framing import Body
from chipwise.adapters.http.heads import UNTIL_CLOSE, ResponseHead

LAST_CHUNK = b"0\r\n\r\n"
_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}".encode() for status in HTTPStatus}


class Passing(Enum):
    AS_IS = auto()  # with its framing
    CONTENT = auto()  # without: for clients of HTTP/1.0, which know no chunks
    IN_CHUNKS = auto()  # a body that ends by closing, for a client that stays


AS_IS, CONTENT, IN_CHUNKS = Passing  # looking up a member each time is slow


class PassedAnswer(AnswerCount):
    """The head is held back until content comes, so that another replica can be tried until then."""

    __slots__ = ("_held", "_passing", "has_begun", "keeps_alive", "sent", "status")

    def __init__(self, head: ResponseHead, request_id: bytes, client_is_old: bool, client_keeps: bool) -> None:
        super().__init__(head.is_stream)
        self.status = head.status
        self.sent = 0
        self.has_begun = False
        self._passing = AS_IS
        self.keeps_alive = client_keeps
        lines = [_STATUS_LINES.get(head.status) or b"HTTP/1.1 %d " % head.status, *head.passed_lines]
        if head.length >= 0:
            if head.length or head.status not in (204, 304):
                lines.append(b"content-length: %d" % head.length)
        elif client_is_old:
            self._passing = CONTENT
            self.keeps_alive = False
        else:
            if head.length == UNTIL_CLOSE:
                self._passing = IN_CHUNKS
            lines.append(b"transfer-encoding: chunked")
        lines.append(b"x-request-id: " + request_id)
        if not self.keeps_alive:
            lines.append(b"connection: close")
        lines.append(b"\r\n")
        self._held = b"\r\n".join(lines)

    def take(self, data: bytes, body: Body) -> bytes:
        """What is to be written for these bytes of the replica."""
        self.note(data, body)
        if self._passing is not AS_IS:
            data = self._framed(data, body)
        if not self.has_begun:
            self.has_begun = True
            data = self._held + data
        self.sent += len(data)
        return data

    def _framed(self, data: bytes, body: Body) -> bytes:
        content = b"".join(data[start:end] for start, end in body.spans)
        if self._passing is CONTENT:
            return content
        chunk = b"%x\r\n%b\r\n" % (len(content), content) if content else b""
        return chunk + LAST_CHUNK if body.done else chunk

    def cut_notice(self, body: Body, message: str) -> bytes:
        """For a client whose stream of events ends too early: one more event that says so, where there is room for one."""
        if not self.is_stream or self._passing is CONTENT or not body.at_boundary:
            return b""
        event = (
            b"data: "
            + json.dumps({"error": {"message": message, "type": "server_error", "code": "answer_cut"}}).encode()
            + b"\n\n"
        )
        return b"%x\r\n%b\r\n" % (len(event), event)
