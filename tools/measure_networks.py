"""Measures networks beyond compiled Llamas with PyTorch on the present device: a JSON line per case and class of operator.

    python3 tools/measure_networks.py --only vision,encoder --seconds 420 --warm 12 --date 2026-01-31 --out networks.jsonl

Vision (torchvision), encoders, Whisper and language models (transformers), diffusion (`diffusion_networks.py`), and the Llamas
of `measure_models.py` and `measure_variants.py` run eager, with long contexts and with experts. Conventions:
- weights and inputs are random and on the device; inference in the weights' format; training with autocast over fp32 weights
- batch 1 (latency) starts from an idle device; batches follow each other without a pause; cudnn.benchmark stays off
- compile: torch.compile of the whole network; blocks: of its repeated blocks; graph: eager kernels replayed as one CUDA graph
- the median over repeats, spread (90th - 10th percentile over the median), the allocator's peak; clocks are left alone
After its repeats each case is profiled once (`operator_profile.py`); those lines go to --operators.

Needs torch, torchvision and transformers, not chipwise. Cases already in the file are skipped, failed ones leave a reason.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import measure_models as base
from network_cases import Setting, plan, row
from network_kit import Kit


def attempt(kit: Kit, setting: Setting, seconds: float) -> dict[str, Any]:
    try:
        return kit.measure(setting, seconds)
    except Exception as error:
        full = isinstance(error, kit.torch.OutOfMemoryError) or "out of memory" in str(error).lower()
        return {"oom": True} if full else {"error": f"{type(error).__name__}: {error}"[:300]}


def fill_cache(options: argparse.Namespace) -> None:
    """Compiles in several processes at once, into the cache on disk."""
    command = [sys.executable, __file__, "--only", options.only, "--modes", options.modes, "--match", options.match]
    alone = {**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    until = time.perf_counter() + options.warm_seconds
    shards = [[*command, "--shard", f"{i}/{options.warm}"] for i in range(options.warm)]
    running = [subprocess.Popen(shard, env=alone, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for shard in shards]
    for process in running:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.1, until - time.perf_counter()))
        process.kill()  # nothing to one that has ended
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="domains, with commas between them; all unless given")
    parser.add_argument("--modes", default="eager,graph,compile,blocks", help="of these, with commas between them")
    parser.add_argument("--match", default="", help="part of a case's key")
    parser.add_argument("--seconds", type=float, default=420.0, help="start no case after this many seconds")
    parser.add_argument("--repeat-seconds", type=float, default=0.8, help="measuring time per case")
    parser.add_argument("--warm", type=int, default=0, help="processes that fill the compile cache first")
    parser.add_argument("--warm-seconds", type=float, default=120.0, help="time limit for --warm")
    parser.add_argument("--out", type=Path, default=Path("networks.jsonl"))
    parser.add_argument("--operators", type=Path, default=Path("operators.jsonl"))
    parser.add_argument("--date", default="")
    parser.add_argument("--device", choices=("auto", "cpu"), default="auto")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--shard", default="", help="i/n: compile this share of the cases only (used by --warm)")
    options = parser.parse_args()
    began = time.perf_counter()
    cases = [case for case in plan() if case.mode in options.modes.split(",") and options.match in case.key]
    cases = [case for case in cases if not options.only or case.domain in options.only.split(",")]
    if options.list:
        print("\n".join(case.key for case in cases), f"\n{len(cases)} cases")
        return
    if options.warm:
        fill_cache(options)
        print(f"compile cache filled after {time.perf_counter() - began:.0f} s", flush=True)
    torch: Any = importlib.import_module("torch")
    torch._dynamo.config.recompile_limit = 64
    machine = base.Machine(torch, options.device)
    kit = Kit(machine)
    if options.shard:
        index, _, shards = options.shard.partition("/")
        for case in [case for case in cases if case.mode in ("compile", "blocks")][int(index) :: int(shards)]:
            with contextlib.suppress(Exception):
                kit.parameters(case)
                kit.work(case)()
            machine.free()
        return
    seen = base.done(options.out)
    for number, case in enumerate(cases, start=1):
        elapsed = time.perf_counter() - began
        if row(case, machine, options.date, {})["row_id"] in seen:
            continue
        if elapsed > options.seconds:
            sys.exit(f"stopped at {elapsed:.0f} s before case {number} of {len(cases)}")
        line = row(case, machine, options.date, result := attempt(kit, case, options.repeat_seconds))
        machine.free()
        with options.out.open("a") as out:
            out.write(json.dumps(line) + "\n")
        with options.operators.open("a") as out:
            for name, sums in result.get("operators", {}).items():
                out.write(json.dumps({"row_id": line["row_id"], **asdict(case), "class": name, **sums}) + "\n")
        shown = result.get("error") or (
            "out of memory" if "oom" in result else f"{line['metric_value']:.5g} {line['metric_name']}"
        )
        shown += f" ({result['unprofiled']})" if "unprofiled" in result else ""
        spent = time.perf_counter() - began - elapsed
        print(f"{elapsed:4.0f} s {number}/{len(cases)} {case.key} {shown} took {spent:.1f} s", flush=True)
        if "error" in result and not machine.alive():
            sys.exit("the device no longer answers after this case: run the same command again, it goes on with the next")


if __name__ == "__main__":
    main()
