"""Tokens of an answer are counted from its bytes, however they are cut."""

from __future__ import annotations

import pytest

from chipwise.adapters.http.answer_count import AnswerCount
from chipwise.adapters.http.framing import CloseBody


def event(document: str) -> bytes:
    return b"data: " + document.encode() + b"\n\n"


ROLE = event('{"choices":[{"delta":{"role":"assistant","content":""}}]}')
NULL = event('{"choices":[{"delta":{"role":"assistant","content":null}}]}')
ONLY_ROLE = event('{"choices": [{"delta": {"role": "assistant"}}]}')
WORD = event('{"choices":[{"delta":{"content":"a"}}]}')
SPACED = event('{"choices": [{"delta": {"content": " a"}}]}')
QUOTE = event('{"choices":[{"delta":{"content":"\\""}}]}')
THOUGHT = event('{"choices":[{"delta":{"content":null,"reasoning_content":"so"}}]}')
CALL = event('{"choices":[{"delta":{"content":null,"tool_calls":[{"index":0,"function":{"name":"f"}}]}}]}')
NO_CALL = event('{"choices":[{"delta":{"content":"","tool_calls":[]}}]}')
TEXT = event('{"choices":[{"index":0,"text":"a"}]}')
NO_TEXT = event('{"choices":[{"index":0,"text":"","finish_reason":"stop"}]}')
TGI = event('{"token":{"id":1,"text":"a"},"generated_text":null,"details":null}')
FINISH = event('{"choices":[{"delta":{},"finish_reason":"stop"}]}')
LAST_WORD = event('{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}')
TIMED = event('{"choices":[{"delta":{},"finish_reason":"stop"}],"timings":{"prompt_n":4,"predicted_n":9}}')
USAGE = event('{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":9}}')
DONE = event("[DONE]")
OTHER = event('{"piece":"of a format of its own"}')


def counted(pieces: list[bytes]) -> tuple[AnswerCount, int | None]:
    """And the number of the piece with which the first content came."""
    count, body, first = AnswerCount(is_stream=True), CloseBody(), None
    for number, piece in enumerate(pieces):
        body.feed(piece)
        count.note(piece, body)
        if first is None and count.has_content:
            first = number
    return count, first


@pytest.mark.parametrize(
    ("events", "first", "tokens"),
    [
        pytest.param([WORD, WORD, FINISH, DONE], 0, 2, id="chat"),
        pytest.param([ROLE, SPACED, QUOTE, FINISH, DONE], 1, 2, id="role with empty content"),
        pytest.param([NULL, WORD, FINISH, DONE], 1, 1, id="role with null"),
        pytest.param([ONLY_ROLE, WORD, WORD, LAST_WORD, DONE], 1, 3, id="role alone, last word with its finish"),
        pytest.param([ROLE, WORD, ROLE, WORD, FINISH, DONE], 1, 3, id="half a character in the middle is a token"),
        pytest.param([ROLE, THOUGHT, WORD, FINISH, DONE], 1, 2, id="reasoning"),
        pytest.param([ROLE, NO_CALL, CALL, CALL, FINISH, DONE], 2, 2, id="tool calls"),
        pytest.param([TEXT, TEXT, NO_TEXT, DONE], 0, 2, id="completions"),
        pytest.param([TGI, TGI], 0, 2, id="TGI"),
        pytest.param([ROLE, WORD, TIMED, DONE], 1, 9, id="timings of llama.cpp"),
        pytest.param([ROLE, WORD, FINISH, USAGE, DONE], 1, 9, id="usage"),
        pytest.param([ROLE, FINISH, DONE], None, 0, id="an empty answer"),
        pytest.param([OTHER, OTHER, DONE], 0, 2, id="an unknown format"),
    ],
)
def test_only_events_with_content_are_tokens(events: list[bytes], first: int | None, tokens: int) -> None:
    """However they come: one by one, all at once, each in two halves."""
    halves = [half for event in events for half in (event[:12], event[12:])]
    count, seen = counted(events)
    assert (seen, count.tokens()) == (first, tokens)
    for pieces in ([b"".join(events)], halves):
        count, _ = counted(pieces)
        assert (count.has_content, count.tokens()) == (first is not None, tokens)
