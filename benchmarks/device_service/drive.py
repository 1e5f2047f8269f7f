"""How requests wait for each other on a real device: `chipwise load` at three rates against what the queueing model says.

    python benchmarks/device_service/drive.py [--seconds 90] [--layers 8]

`chipwise serve` starts the engine of this folder. A few requests tell what one prompt and one step of n sequences take, from
outside; from these alone the model says the percentiles under load. It needs torch; without a device it measures the processor.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from chipwise.perf.arrays import column
from chipwise.perf.queueing import GRID, Service, waits
from figure import Figure

MODEL = "engine"  # as a command is served that names none
PROMPT, ANSWER, SLOTS = 256, 64, 32
LOADS = (0.3, 0.6, 0.85)  # of the capacity
SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
GOAL = 20.0  # percent
PATIENCE_S = 60.0


async def stream(port: int, answer: int) -> list[float]:
    """Seconds from the request to each token."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps(
        {"model": MODEL, "messages": [{"role": "user", "content": "word " * PROMPT}], "max_tokens": answer, "stream": True}
    ).encode()
    began = time.perf_counter()
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
    seconds: list[float] = []
    status = await reader.readline()
    if b" 200 " not in status:
        raise SystemExit(f"the service answers {status.decode().strip()}")
    while line := await reader.readline():
        if b"[DONE]" in line:
            break
        if b'"content"' in line:
            seconds.append(time.perf_counter() - began)
    writer.close()
    return seconds


async def together(port: int, number: int, answer: int = 2) -> list[list[float]]:
    return await asyncio.wait_for(asyncio.gather(*(stream(port, answer) for _ in range(number))), PATIENCE_S)


def service_of(port: int) -> Service:
    """What a prompt and steps take, seen from outside."""
    asyncio.run(together(port, 4))
    first = float(np.median([asyncio.run(together(port, 1))[0][0] for _ in range(5)]))
    eight = float(np.median([min(one[0] for one in asyncio.run(together(port, 8))) for _ in range(5)]))
    prompt_s = (eight - first) / 7
    batches = SLOTS ** (np.arange(GRID) / (GRID - 1))
    numbers = [1, 2, 4, 8, 16, SLOTS]
    gaps = [
        float(np.median(np.diff(np.array(asyncio.run(together(port, number, ANSWER))), axis=1)[:, ANSWER // 4 :]))
        for number in numbers
    ]
    steps_s = np.interp(batches, numbers, gaps)
    steps = ", ".join(f"{number}: {1e3 * gap:.2f}" for number, gap in zip(numbers, gaps, strict=True))
    print(
        f"prompt {1e3 * prompt_s:.2f} ms, first token alone {1e3 * first:.2f} ms; ms of a step by sequences: {steps}",
        flush=True,
    )
    return Service(
        prompt_s=column(prompt_s),
        batches=batches[None, :],
        steps_s=steps_s[None, :],
        prompt_tokens=column(PROMPT),
        answer_tokens=column(ANSWER),
        fixed_s=column(0.0),
        extra_prompt_s=column(first - prompt_s - gaps[0]),
    )


def chipwise(*words: str, environment: dict[str, str]) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "chipwise", *words], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode > 1 or not done.stdout:
        raise SystemExit(f"chipwise {' '.join(words)}: {done.stderr or done.stdout}")
    return json.loads(done.stdout)


def figures(seconds: float, layers: int) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "CHIPWISE_DATA_DIR": folder, "CHIPWISE_CONFIG_DIR": folder}
        engine = [sys.executable, str(Path(__file__).with_name("engine.py")), "--port", "{port}"]
        engine += ["--slots", str(SLOTS), "--layers", str(layers)]
        gpus = ["--gpus", "1"] if import_module("torch").cuda.is_available() else []  # without, a service sees no GPU
        asked = [
            "serve",
            "--name",
            "device",
            "--port",
            "0",
            "--health",
            "/health",
            "--ready-within",
            "5m",
            "--json",
            *gpus,
            "--",
            *engine,
        ]
        started = chipwise(*asked, environment=environment)
        print(json.dumps(started)[:600])
        try:
            yield from _loaded(started["url"], seconds, environment)
        finally:
            subprocess.run([sys.executable, "-m", "chipwise", "serve", "stop", "device"], env=environment, check=False)


def _loaded(url: str, seconds: float, environment: dict[str, str]) -> Iterator[Figure]:
    service = service_of(int(url.rstrip("/").rsplit(":", 1)[1]))
    capacity = float(service.capacity[0])
    yield Figure("device_service_capacity", capacity, "req/s", {})
    for load in LOADS:
        lengths = ["--input", str(PROMPT), "--output", str(ANSWER), "--rate", f"{load * capacity:.3f}"]
        timed = ["--model", MODEL, "--for", f"{seconds:.0f}s", "--warm-up", "5s", "--json"]
        measured = chipwise("load", url, *lengths, *timed, environment=environment)
        predicted = waits(service, load * service.capacity)
        for metric, key in (("ttft", "ttft_s"), ("tpot", "tpot_s")):
            for share, at in SHARES.items():
                told, seen = float(predicted.seconds(metric, at)[0]), float(measured[key][share])
                print(f"{load:.0%} {metric} {share}: measured {1e3 * seen:.1f} ms, predicted {1e3 * told:.1f} ms", flush=True)
                yield Figure(
                    f"device_service_{metric}_{share}_at_{100 * load:.0f}",
                    100 * (told / seen - 1),
                    "%",
                    {"max": GOAL, "min": -GOAL},
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=90.0)
    parser.add_argument("--layers", type=int, default=8)
    wanted = parser.parse_args()
    for figure in figures(wanted.seconds, wanted.layers):
        print(figure.line())
