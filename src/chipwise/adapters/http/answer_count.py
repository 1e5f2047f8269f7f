"""Tokens of an answer, counted from its bytes while they pass: nothing is parsed, and only the first events are read.

An event of a stream is a token where it has content. At the begin and at the end some have none: the role, the reason for the
end, the usage, `[DONE]`. One in the middle without any is a token all the same: half a character, which comes with the next.
"""

from __future__ import annotations

import re

from chipwise.adapters.http.framing import Body

# Within a text of JSON quotes have backslashes, so no name is found there.
CONTENT = re.compile(
    rb'"(?:content|reasoning_content|reasoning|refusal|text)"\s*:\s*"(?!")|"tool_calls"\s*:\s*\[\s*[^\]\s]|"function_call"\s*:\s*\{'
)
KNOWN = re.compile(rb'"(?:choices|token|usage|error)"\s*:|\[DONE\]')  # in other formats every event has content
NUMBER = re.compile(rb"\s*:\s*(\d{1,9})(?!\d)")
ANSWER_NAMES = (b'"completion_tokens"', b'"generated_tokens"', b'"predicted_n"')  # of OpenAI, TGI, llama.cpp
TAIL_BYTES = 4096  # at the end of an answer, in which its usage and its last events are looked for
LONGEST_EMPTY = 1 << 16  # bytes: a longer line has content


class AnswerCount:
    __slots__ = ("_ends", "_ends_bytes", "_event", "_leading", "events", "has_content", "is_stream")

    def __init__(self, is_stream: bool) -> None:
        self.is_stream = is_stream
        self.events = 0  # with content or without
        self.has_content = False  # the first token of a stream has come
        self._event = b""  # the begin of a line, as long as there was no content
        self._leading = 0  # events before the first content
        self._ends: list[bytes] = []  # at least the last TAIL_BYTES
        self._ends_bytes = 0

    def note(self, data: bytes, body: Body) -> None:
        if self.is_stream:
            for start, end in body.spans:
                # An event begins with a line `data:`. Content is JSON, in which no line begins.
                self.events += data.count(b"\ndata:", start, end) + data.startswith(b"data:", start, end)
            if not self.has_content:
                self._seek(b"".join([data[start:end] for start, end in body.spans]))
        self._ends.append(data)
        self._ends_bytes += len(data)
        if self._ends_bytes > 2 * TAIL_BYTES:
            tail = b"".join(self._ends)[-TAIL_BYTES:]
            self._ends, self._ends_bytes = [tail], len(tail)

    def _seek(self, content: bytes) -> None:
        *lines, self._event = (self._event + content).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                if has_content(line):
                    self.has_content = True
                    break
                self._leading += 1
        if self.has_content or len(self._event) > LONGEST_EMPTY:
            self.has_content = True
            self._event = b""

    def usage(self) -> tuple[int | None, int | None]:
        """Tokens of the prompt and of the answer, which the replica reports at its end, if at all."""
        tail = b"".join(self._ends)[-TAIL_BYTES:]
        answers = (_number_after(tail, name) for name in ANSWER_NAMES)
        return _number_after(tail, b'"prompt_tokens"'), next((number for number in answers if number is not None), None)

    def content_events(self) -> int:
        return self.events - self._leading - self._trailing() if self.has_content else 0

    def tokens(self) -> int:
        """Of the answer: as it reports them, else its events with content."""
        _, reported = self.usage()
        return self.content_events() if reported is None else reported

    def _trailing(self) -> int:
        """Events without content after the last token."""
        _, *events = (b"\n" + b"".join(self._ends)).split(b"\ndata:")
        count = 0
        for event in reversed(events):
            if has_content(event):
                break
            count += 1
        return count


def has_content(event: bytes) -> bool:
    return CONTENT.search(event) is not None or KNOWN.search(event) is None


def _number_after(text: bytes, name: bytes) -> int | None:
    """Where the name stands last."""
    position = text.rfind(name)
    match = NUMBER.match(text, position + len(name)) if position >= 0 else None
    return int(match[1]) if match is not None else None
