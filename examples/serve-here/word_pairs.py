"""Writes a model that llama.cpp can serve: python word_pairs.py tiny.gguf

It has the shape of a small Llama and knows one thing, which word follows which in the text below: the pairs are counted, and
the logarithms of their shares are its output weights. So it is made in a moment, without a framework, and answers in words.
"""

from __future__ import annotations

import struct
import sys
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np

TEXT = """
A service answers requests. A gateway takes every request and sends it to a replica. A replica reads the prompt and writes
the answer, one token after the other. When a replica is lost, the gateway sends the request to another replica, and the
service starts the replica again. When many requests come, they wait in a queue until a replica has room. When a new version
comes, a small share of the requests goes to the new version first. If the new version answers well, the share grows. If the
new version is slow, the share goes back to the old version. A replica that leaves gets no new requests, and it answers the
requests that it has. So no request is lost. The plan says how many replicas the service needs and what each token costs.
"""
LAYERS, HEADS, HIDDEN, CONTEXT = 2, 4, 512, 8192
END = "<end>"
SMOOTHING = 1e-6  # share of pairs that the text does not have
_TEXTS, _INTEGERS, _FLOATS = 8, 4, 6  # kinds of values in a GGUF file: string, uint32, float32
_ARRAY, _F32 = 9, 0
_ALIGNED = 32


def words_of(text: str) -> list[str]:
    """Words with the blank before them; stops and commas are words too."""
    return [f" {word}" if word.isalpha() else word for word in text.replace(",", " ,").replace(".", " .").split()]


def vocabulary(text: str) -> list[str]:
    """Of the tokenizer that takes the longest token that fits: an end, single characters, then words with and without blank."""
    words = sorted(set(words_of(text)))
    plain = sorted({word.strip() for word in words} | {word.strip().lower() for word in words})
    # Every byte that is no letter is written as \xNN: the tokenizer is that of RWKV, whose tokens are escaped so.
    single = [chr(code) if 32 <= code < 127 and code != 92 else f"\\x{code:02x}" for code in range(1, 256)]
    return list(dict.fromkeys([END, *single, *words, *plain]))


def tensors(text: str) -> dict[str, np.ndarray]:
    tokens = vocabulary(text)
    numbers = {token: number for number, token in enumerate(tokens)}
    count = len(tokens)
    width = -(-count // 64) * 64  # each token has a direction of its own
    shares = np.full((count, count), SMOOTHING)
    words = [*words_of(text), END]
    for (first, second), number in Counter(pairwise(words)).items():
        for spelled in {first, first.strip(), first.strip().lower()}:
            shares[numbers[spelled], numbers[second]] += number
    unseen = shares.sum(axis=1) < 0.5
    shares[unseen, numbers[" the"]] = 1.0
    logits = np.log(shares / shares.sum(axis=1, keepdims=True))
    embedding = np.eye(count, width, dtype=np.float32)
    output = np.zeros((count, width), np.float32)
    output[:, :count] = logits.T / np.sqrt(width)  # the norm before it makes each embedding as long as that root
    chance = np.random.default_rng(1)
    made: dict[str, np.ndarray] = {"token_embd.weight": embedding, "output_norm.weight": np.ones(width, np.float32)}
    made["output.weight"] = output
    for layer in range(LAYERS):
        sizes = {"attn_q": (width, width), "attn_k": (width, width), "attn_v": (width, width), "attn_output": (width, width)}
        sizes |= {"ffn_gate": (HIDDEN, width), "ffn_up": (HIDDEN, width), "ffn_down": (width, HIDDEN)}
        for name, size in sizes.items():
            weights = chance.normal(0.0, 0.02, size).astype(np.float32)
            # What a layer would add to the meaning of a token is nothing, and it takes its time all the same.
            made[f"blk.{layer}.{name}.weight"] = weights if name not in ("attn_output", "ffn_down") else 0.0 * weights
        for name in ("attn_norm", "ffn_norm"):
            made[f"blk.{layer}.{name}.weight"] = np.ones(width, np.float32)
    return made


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def _field(name: str, value: str | int | float | list[str]) -> bytes:
    if isinstance(value, list):
        body = struct.pack("<IIQ", _ARRAY, _TEXTS, len(value)) + b"".join(map(_text, value))
    elif isinstance(value, str):
        body = struct.pack("<I", _TEXTS) + _text(value)
    elif isinstance(value, int):
        body = struct.pack("<II", _INTEGERS, value)
    else:
        body = struct.pack("<If", _FLOATS, value)
    return _text(name) + body


def gguf(fields: Iterable[bytes], weights: dict[str, np.ndarray]) -> bytes:
    """The format as ggml's docs/gguf.md describes it, version 3."""
    fields = list(fields)
    parts = [b"GGUF", struct.pack("<IQQ", 3, len(weights), len(fields)), *fields]
    offset = 0
    for name, array in weights.items():
        sizes = array.shape[::-1]
        parts.append(_text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, _F32, offset))
        offset += -(-array.nbytes // _ALIGNED) * _ALIGNED
    head = b"".join(parts)
    padding = b"\0" * (-len(head) % _ALIGNED)
    data = [array.tobytes() + b"\0" * (-array.nbytes % _ALIGNED) for array in weights.values()]
    return b"".join((head, padding, *data))


def write(path: Path, text: str = TEXT) -> None:
    tokens, weights = vocabulary(text), tensors(text)
    width = weights["output_norm.weight"].size
    fields: dict[str, str | int | float | list[str]] = {
        "general.architecture": "llama",
        "general.name": "word pairs",
        "llama.block_count": LAYERS,
        "llama.context_length": CONTEXT,
        "llama.embedding_length": width,
        "llama.feed_forward_length": HIDDEN,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": HEADS,
        "llama.rope.dimension_count": width // HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-6,
        "llama.vocab_size": len(tokens),
        "tokenizer.ggml.model": "rwkv",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.eos_token_id": 0,
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.chat_template": "{% for message in messages %}{{ message['content'] }}{% endfor %}",
    }
    path.write_bytes(gguf((_field(name, value) for name, value in fields.items()), weights))


if __name__ == "__main__":
    if len(sys.argv) != 2 or not sys.argv[1].endswith(".gguf"):
        sys.exit("Usage: python word_pairs.py FILE.gguf")
    write(Path(sys.argv[1]))
    print(f"{sys.argv[1]}: {Path(sys.argv[1]).stat().st_size / 1e6:.1f} MB")
