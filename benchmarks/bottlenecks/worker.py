"""Runs programs one after the other, as lines of JSON on standard input name them: place, kind, size, seconds."""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def run(task: dict[str, Any]) -> str:
    """Empty, or why it cannot run here."""
    from bottlenecks import cpu_programs, gpu_programs, healthy_programs

    place, kind, size = task["place"], task["kind"], task["size"]
    program = (
        partial(healthy_programs.PROGRAMS[kind])
        if place == "healthy"
        else partial({"gpu": gpu_programs.PROGRAMS, "cpu": cpu_programs.PROGRAMS}[place][kind], size)
    )
    if place != "cpu":
        import torch

        torch.backends.cuda.matmul.allow_tf32 = True
        torch.zeros(1, device="cuda")
    started: list[float] = []

    def until() -> bool:
        """The time counts from when the program is ready."""
        if not started:
            started.append(time.monotonic())
        return bool(time.monotonic() - started[0] < task["seconds"])

    try:
        program(until)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        if place != "cpu":
            import gc

            gc.collect()
            torch.cuda.empty_cache()
    return ""


def main() -> None:
    for line in sys.stdin:
        problem = run(json.loads(line))
        print(json.dumps({"problem": problem}), flush=True)


if __name__ == "__main__":
    main()
