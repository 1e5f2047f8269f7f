"""The paths that a gateway speaks, what each is for, and what the body of a request says about its size."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from chipwise.errors import BadInput

BLOCK_BYTES = 1024  # of a prompt, hashed together with all before it
MOST_BLOCKS = 512
MOST_ANSWERS = 128  # of one request: `n` of OpenAI


class EndpointKind(StrEnum):
    CHAT = "chat"
    COMPLETION = "completion"
    EMBEDDING = "embedding"
    GENERATE = "generate"  # of TGI
    TOKENIZE = "tokenize"
    ABOUT = "about"  # passed to any replica
    MODELS = "models"
    HEALTH = "health"  # answered here
    METRICS = "metrics"  # answered here


class Dialect(StrEnum):
    """How errors are written."""

    OPENAI = "openai"
    TGI = "tgi"


@dataclass(frozen=True, slots=True)
class Endpoint:
    path: str
    method: str
    kind: EndpointKind
    dialect: Dialect
    has_prompt: bool = False


_decode = json.JSONDecoder().raw_decode
_BLANKS = " \t\n\r"
# Looking up a member of an enumeration each time is slow.
_CHAT, _COMPLETION, _GENERATE = EndpointKind.CHAT, EndpointKind.COMPLETION, EndpointKind.GENERATE
_ALL = (
    Endpoint("/v1/chat/completions", "POST", EndpointKind.CHAT, Dialect.OPENAI, has_prompt=True),
    Endpoint("/v1/completions", "POST", EndpointKind.COMPLETION, Dialect.OPENAI, has_prompt=True),
    Endpoint("/v1/embeddings", "POST", EndpointKind.EMBEDDING, Dialect.OPENAI, has_prompt=True),
    Endpoint("/v1/models", "GET", EndpointKind.MODELS, Dialect.OPENAI),
    Endpoint("/", "POST", EndpointKind.GENERATE, Dialect.TGI, has_prompt=True),  # what huggingface_hub sends to a URL
    Endpoint("/generate", "POST", EndpointKind.GENERATE, Dialect.TGI, has_prompt=True),
    Endpoint("/generate_stream", "POST", EndpointKind.GENERATE, Dialect.TGI, has_prompt=True),
    Endpoint("/tokenize", "POST", EndpointKind.TOKENIZE, Dialect.TGI, has_prompt=True),
    Endpoint("/info", "GET", EndpointKind.ABOUT, Dialect.TGI),
    Endpoint("/health", "GET", EndpointKind.HEALTH, Dialect.TGI),
    Endpoint("/metrics", "GET", EndpointKind.METRICS, Dialect.TGI),
)
ENDPOINTS: Mapping[str, Endpoint] = MappingProxyType({endpoint.path: endpoint for endpoint in _ALL})


class Prompt(NamedTuple):
    """What a body says; nothing is refused here that a replica may understand."""

    model: str = ""
    text: bytes = b""
    tokens: int | None = None  # where the client sent tokens instead of text
    answer_limit: float | None = None  # tokens of each answer
    answers: int = 1
    session: str = ""

    def blocks(self) -> tuple[int, ...]:
        """Hashes of the whole blocks; equal only within one process."""
        text, before, hashes = self.text, 0, []
        for end in range(BLOCK_BYTES, min(len(text), MOST_BLOCKS * BLOCK_BYTES) + 1, BLOCK_BYTES):
            before = hash((before, text[end - BLOCK_BYTES : end]))
            hashes.append(before)
        return tuple(hashes)


def read_prompt(kind: EndpointKind, body: bytes) -> Prompt:
    """Raises BadInput where the body is no JSON object in UTF-8."""
    try:
        text = body.decode().strip(_BLANKS)
        document, end = _decode(text)
    except UnicodeDecodeError as error:
        raise BadInput(f"The body is not UTF-8: byte {error.start}.") from error
    except RecursionError as error:
        raise BadInput("The body is nested too deeply.") from error
    except ValueError as error:
        raise BadInput("The body is not valid JSON.") from error
    if end != len(text):
        raise BadInput("The body is not valid JSON.")
    if not isinstance(document, dict):
        raise BadInput("The body must be a JSON object.")
    if kind is _CHAT:
        pieces, tokens = _chat(document.get("messages")), None
        limit = document.get("max_completion_tokens", document.get("max_tokens"))
    elif kind is _COMPLETION:
        pieces, tokens = _texts(document.get("prompt"))
        limit = document.get("max_tokens", 16)
    elif kind is _GENERATE:
        pieces, tokens = _texts(document.get("inputs"))
        parameters = document.get("parameters")
        limit = parameters.get("max_new_tokens", 100) if isinstance(parameters, dict) else 100
    else:
        pieces, tokens = _texts(document.get("input", document.get("inputs")))
        limit = 0
    return Prompt(
        model=_word(document.get("model")),
        text="\n".join(pieces).encode("utf-8", "surrogatepass"),
        tokens=tokens,
        answer_limit=_number(limit),
        answers=_answers(document.get("n")),
        session=_word(document.get("prompt_cache_key") or document.get("user")),
    )


def _chat(messages: Any) -> list[str]:
    pieces: list[str] = []
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, str):
            pieces.append(content)
        elif isinstance(content, list):
            texts = (part.get("text") for part in content if isinstance(part, dict))
            pieces += [text for text in texts if isinstance(text, str)]
    return pieces


def _texts(value: Any) -> tuple[list[str], int | None]:
    """A text, texts, tokens, or lists of tokens: all that OpenAI takes as a prompt."""
    if isinstance(value, str):
        return [value], None
    if not isinstance(value, list):
        return [], None
    if all(isinstance(piece, str) for piece in value):
        return value, None
    return [], sum(len(piece) if isinstance(piece, list) else 1 for piece in value)


def _word(value: Any) -> str:
    return value[:256] if isinstance(value, str) else ""


def _number(value: Any) -> float | None:
    return min(float(value), 1e9) if isinstance(value, int | float) and 0 <= value <= 1e18 else None


def _answers(value: Any) -> int:
    return min(MOST_ANSWERS, value) if isinstance(value, int) and value > 0 else 1
