"""Requests at a steady rate to a service while something happens to it, and what became of each."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from urllib.parse import urlsplit

import numpy as np

from chipwise.adapters.http.load import LoadTest, Patience, Target
from chipwise.serving.load_report import Shots
from chipwise.serving.replica import Address

CUT = "answer_cut"  # a stream that had begun


def loaded(
    url: str, per_s: float, seconds: float, then: Callable[[], object], *, tokens: int = 8, after_s: float = 1.0
) -> Shots:
    """Streams through `url` for so long, and `then` in a thread beside them after a while."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    prompt = {"model": "tiny", "messages": [{"role": "user", "content": "When a replica is lost"}], "stream": True}
    body = json.dumps({**prompt, "max_tokens": tokens}).encode()
    due = np.arange(int(per_s * seconds)) / per_s
    test = LoadTest(Target(Address(parts.hostname, parts.port)), due, [body], Patience(answer_s=60.0))

    async def main() -> Shots:
        async def act() -> None:
            await asyncio.sleep(after_s)
            await asyncio.to_thread(then)

        acting = asyncio.ensure_future(act())
        shots = await test.run()
        await acting
        return shots

    return asyncio.run(main())


def errors(shots: Shots) -> Counter[str]:
    return Counter(error for error in shots.errors if error)
