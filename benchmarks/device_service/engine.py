"""A server of a language model on PyTorch: random weights in the shape of an 8B model, continuous batching, OpenAI's API.

    python benchmarks/device_service/engine.py --port 8000 [--slots 32] [--layers 32]

Every step computes the prompts that came, up to a budget of tokens, and gives one token to each sequence in flight. It is a
plain server for measuring how requests wait for each other, not a fast one: eager kernels, no positions, and a word is a token.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import deque
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

BUDGET = 8192  # tokens of prompts in one step
CONTEXT = 1024
WIDTH, HEADS, KV_HEADS, HEAD, INNER, VOCABULARY = 4096, 32, 8, 128, 14336, 128256
HEAD_LINES = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


class Model:
    def __init__(self, slots: int, layers: int) -> None:
        self.torch = torch = import_module("torch")
        device = "cuda" if torch.cuda.is_available() else "cpu"

        def weights(*shape: int) -> Any:
            return torch.empty(*shape, dtype=torch.bfloat16, device=device).normal_(std=0.02)

        self.device = device
        self.embedding = weights(VOCABULARY, WIDTH)
        self.layers = [
            (
                weights(WIDTH, (HEADS + 2 * KV_HEADS) * HEAD),
                weights(HEADS * HEAD, WIDTH),
                weights(WIDTH, 2 * INNER),
                weights(INNER, WIDTH),
            )
            for _ in range(layers)
        ]
        self.cache = torch.zeros(layers, 2, slots, KV_HEADS, CONTEXT, HEAD, dtype=torch.bfloat16, device=device)
        self.places = torch.arange(CONTEXT, device=device)

    def forward(self, tokens: list[list[int]], slots: list[int], starts: list[int]) -> list[int]:
        """The next token of each sequence. All have as many tokens: one each, or there is one prompt."""
        torch, functional = self.torch, self.torch.nn.functional
        with torch.inference_mode():
            number, length = len(tokens), len(tokens[0])
            hidden = self.embedding[torch.tensor(tokens, device=self.device)]
            rows, first = torch.tensor(slots, device=self.device), torch.tensor(starts, device=self.device)
            places = first[:, None] + torch.arange(length, device=self.device)[None]
            end = max(starts) + length
            seen = self.places[None, None, :end] <= places[:, :, None]
            for layer, (attend, out, gate, down) in enumerate(self.layers):
                mixed = functional.rms_norm(hidden, (WIDTH,)) @ attend
                query, keys, values = mixed.split((HEADS * HEAD, KV_HEADS * HEAD, KV_HEADS * HEAD), dim=-1)
                for part, made in enumerate((keys, values)):
                    self.cache[layer, part, rows[:, None], :, places] = made.view(number, length, KV_HEADS, HEAD)
                known = self.cache[layer, :, rows, :, :end]
                attended = functional.scaled_dot_product_attention(
                    query.view(number, length, HEADS, HEAD).transpose(1, 2),
                    known[0],
                    known[1],
                    attn_mask=seen[:, None],
                    enable_gqa=True,
                )
                hidden = hidden + attended.transpose(1, 2).reshape(number, length, HEADS * HEAD) @ out
                left, right = (functional.rms_norm(hidden, (WIDTH,)) @ gate).chunk(2, dim=-1)
                hidden = hidden + (functional.silu(left) * right) @ down
            logits = functional.rms_norm(hidden[:, -1], (WIDTH,)) @ self.embedding.T
            chosen: list[int] = logits.argmax(dim=-1).tolist()  # waits for the device
        return chosen


@dataclass(slots=True)
class Sequence:
    prompt: int
    answer: int
    events: asyncio.Queue[bool]  # one for each token; False: it was the last
    slot: int = -1
    length: int = 0
    given: int = 0
    last: int = 1


@dataclass(slots=True)
class Engine:
    model: Model
    free: list[int]
    waiting: deque[Sequence] = field(default_factory=deque)
    inside: list[Sequence] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def work(self) -> None:
        while True:
            if not self.waiting and not self.inside:
                self.arrived.clear()
                await self.arrived.wait()
            await asyncio.to_thread(self._step)  # meanwhile requests are read and tokens are written
            for one in self.inside:
                one.events.put_nowait(one.given < one.answer)
            self.inside = [one for one in self.inside if one.given < one.answer]

    def _step(self) -> None:
        older, budget = list(self.inside), BUDGET
        while self.waiting and self.free and self.waiting[0].prompt <= budget:
            one = self.waiting.popleft()
            budget -= one.prompt
            one.slot = self.free.pop()
            one.last = self.model.forward([[1] * one.prompt], [one.slot], [0])[0]
            one.length, one.given = one.prompt, 1
            self.inside.append(one)
        if older:
            tokens = self.model.forward(
                [[one.last] for one in older], [one.slot for one in older], [one.length for one in older]
            )
            for one, token in zip(older, tokens, strict=True):
                one.last, one.length, one.given = token, one.length + 1, one.given + 1
        self.free += [one.slot for one in self.inside if one.given >= one.answer]


def _event(document: object) -> bytes:
    content = b"data: " + (document if isinstance(document, bytes) else json.dumps(document).encode()) + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(content), content)


TOKEN = _event({"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "word "}}]})


async def answer(engine: Engine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            if head.startswith(b"GET"):
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                continue
            size = int(head.lower().partition(b"content-length:")[2].split()[0])
            asked = json.loads(await reader.readexactly(size))
            words = len(asked["messages"][-1]["content"].split())
            most = int(asked.get("max_tokens") or asked.get("max_completion_tokens") or 16)
            one = Sequence(max(1, min(words, CONTEXT // 2)), min(most, CONTEXT // 2), asyncio.Queue())
            engine.waiting.append(one)
            engine.arrived.set()
            writer.write(HEAD_LINES)
            while await one.events.get():
                writer.write(TOKEN)
            usage = {"prompt_tokens": one.prompt, "completion_tokens": one.given, "total_tokens": one.prompt + one.given}
            writer.write(TOKEN + _event({"id": "x", "choices": [], "usage": usage}) + _event(b"[DONE]") + b"0\r\n\r\n")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def serve(port: int, slots: int, layers: int) -> None:
    model = Model(slots, layers)
    for number in (1, slots):  # kernels are loaded before the first request
        model.forward([[1]] * number, list(range(number)), [0] * number)
    model.forward([[1] * 256], [0], [0])
    engine = Engine(model, list(range(slots)))
    server = await asyncio.start_server(lambda reader, writer: answer(engine, reader, writer), "127.0.0.1", port)
    async with server:
        await engine.work()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--slots", type=int, default=32)
    parser.add_argument("--layers", type=int, default=32)
    asked_for = parser.parse_args()
    sys.setswitchinterval(0.0005)  # of threads: those that read and write do not wait for a step
    asyncio.run(serve(asked_for.port, asked_for.slots, asked_for.layers))
