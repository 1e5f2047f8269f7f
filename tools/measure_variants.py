"""Measures what `measure_models.py` leaves out: adapters, experts, other precisions and other shapes; one JSON line per case.

    python3 tools/measure_variants.py --only lora,moe --seconds 540 --warm 12 --date 2026-01-31 --out variants.jsonl

Conventions are those of `measure_models.py` (blocks compiled, decode as a CUDA graph, random weights, AdamW fused), and:
- lora: frozen bf16 weights; fp32 adapters of rank 16 beside q, k, v, o, gate, up and down, bf16 autocast; AdamW over adapters
- moe: router, top-k, rows sorted by expert, torch._grouped_mm, weighted sum; no capacity limit, no auxiliary loss. Prompts
  and decode steps go where random routers send them; in training every expert gets as many rows as any other
- fp8: weights of the blocks in e4m3 with a scale per row, inputs scaled per token as they come, torch._scaled_mm; bf16 cache
- int4: weights of the blocks in groups of 128 with bf16 scales and zeros, torch._weight_int4pack_mm; decode only
- fp16: autocast with a gradient scaler; tf32 and fp32: no autocast, torch.set_float32_matmul_precision high and highest
- shape: bf16, dense, with one, few or all heads having keys of their own

Standalone: torch, the standard library and `measure_models.py` beside this file.
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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import measure_models as base
from measure_models import Bench, Case, Llama, Machine, Model, Weights

RANK = 16
GROUP = 128  # weights that share an int4 scale
PAIRS = ("q", "k", "v", "out", "gate", "up", "down")
Grid = tuple[tuple[Any, ...], ...]
LLAMA = {model.name: model for model in base.MODELS}
SMALL, MIDDLE, LARGE = (LLAMA[name] for name in ("llama-3.2-1b", "llama-3.2-3b", "llama-3.1-8b"))


@dataclass(frozen=True, slots=True)
class Moe(Model):
    experts: int = 8
    active: int = 2

    @property
    def parameters(self) -> int:
        attention = 2 * self.hidden * self.hidden + 2 * self.hidden * self.kv_size
        block = attention + self.experts * (3 * self.hidden * self.ffn + self.hidden) + 2 * self.hidden
        return self.layers * block + self.hidden + self.vocab * self.hidden * (1 if self.tied else 2)


@dataclass(frozen=True, slots=True)
class Variant(Case):
    kind: str = ""

    @property
    def key(self) -> str:
        tail = f"-{self.checkpointing}" if self.checkpointing else ""
        return f"{self.kind}-{self.model.name}-{self.task}-b{self.batch}-s{self.length}{tail}"


MOES = (
    Moe("moe-8x2-h1024", 8, 1024, 3584, 16, 8, 32000, experts=8, active=2),
    Moe("moe-8x2-h2048", 6, 2048, 7168, 16, 4, 32000, experts=8, active=2),
    Moe("moe-16x4-h1024", 12, 1024, 1536, 16, 16, 50304, experts=16, active=4),
)
SHAPES = (
    Model("variant-mqa-1.4b", 24, 2048, 8192, 16, 1, 32000),
    Model("variant-gqa-2.6b", 28, 2560, 8960, 20, 4, 65536, tied=True),
    Model("variant-mha-1.5b", 24, 2304, 6144, 18, 18, 32000),
)
TINY = (Moe("tiny-moe", 2, 64, 128, 4, 2, 256, experts=4, active=2), Model("tiny-gqa", 2, 128, 256, 4, 2, 256))

# Batch x length (x recomputation), the ones of most worth first.
LORA = (
    (SMALL, ((4, 2048, "none"), (4, 2048, "full"), (8, 1024, "none"), (8, 512, "none"), (16, 2048, "full"), (1, 8192, "full"))),
    (MIDDLE, ((4, 2048, "none"), (4, 2048, "full"), (4, 1024, "none"), (2, 4096, "full"), (8, 512, "none"))),
    (LARGE, ((2, 2048, "none"), (4, 2048, "none"), (4, 2048, "full"), (4, 512, "none"), (1, 4096, "none"), (8, 2048, "full"))),
)
TRAIN_MOE = ((4, 2048, "none"), (4, 2048, "full"), (2, 1024, "none"), (8, 2048, "none"))
PREFILL_MOE, DECODE_MOE = ((1, 2048), (8, 2048), (4, 512)), ((1, 1024), (8, 1024), (64, 1024), (256, 512))
PREFILL_FP8, DECODE_FP8 = ((1, 2048), (8, 2048), (1, 512), (1, 8192)), ((1, 2048), (32, 1024), (128, 1024), (8, 1024))
DECODE_INT4 = ((1, 2048), (8, 1024), (32, 1024))
PRECISIONS = (
    ("fp16", ((4, 2048, "none"), (4, 2048, "full"), (8, 1024, "none"))),
    ("tf32", ((4, 2048, "none"), (4, 2048, "full"), (8, 512, "none"))),
    ("fp32", ((2, 2048, "none"), (4, 512, "full"))),
)
SHAPE_TRAIN = ((3, 2048, "none"), (6, 1024, "full"), (1, 4096, "none"))
SHAPE_PREFILL, SHAPE_DECODE = ((2, 1536), (16, 512)), ((4, 1024), (48, 2048), (192, 512))
KINDS = ("lora", "moe", "fp8", "int4", "fp16", "tf32", "fp32", "shape")


def plan(tiny: bool) -> Iterator[Variant]:
    if tiny:  # some cannot run without a GPU, and say so
        for kind in KINDS:
            yield from _all(TINY[kind != "moe"], kind, ((2, 32),), ((2, 32),), ((2, 32, "none"), (2, 32, "full")))
        return
    for model, adapted in LORA:
        yield from _all(model, "lora", trainings=adapted)
    for moe in MOES:
        yield from _all(moe, "moe", PREFILL_MOE, DECODE_MOE, TRAIN_MOE)
    for model in (LARGE, MIDDLE):
        yield from _all(model, "fp8", PREFILL_FP8, DECODE_FP8)
        yield from _all(model, "int4", decodes=DECODE_INT4)
    yield from _all(LLAMA["llama-2-13b"], "fp8", PREFILL_FP8[:1], DECODE_FP8[:2])
    for kind, cases in PRECISIONS:
        for name in ("gpt-350m-like", "tinyllama-1.1b"):
            yield from _all(LLAMA[name], kind, trainings=cases)
    for model in SHAPES:
        yield from _all(model, "shape", SHAPE_PREFILL, SHAPE_DECODE, SHAPE_TRAIN)


def _all(model: Model, kind: str, prefills: Grid = (), decodes: Grid = (), trainings: Grid = ()) -> Iterator[Variant]:
    for task, grid in (("llm-prefill", prefills), ("llm-decode", decodes), ("pretrain", trainings)):
        for batch, length, *again in grid:
            yield Variant(model, task, batch, length, "".join(again), kind)


class Built(Llama):
    """A Llama whose matrix products and feed-forward differ by kind; one block for all of them."""

    def __init__(self, machine: Machine, model: Model, training: bool, kind: str) -> None:
        super().__init__(machine, model, training and kind != "lora")
        self.kind, self.even = kind, training
        for weights in self.layers:
            if kind == "lora":
                weights.update(self._adapters())
            elif isinstance(model, Moe):
                weights.update(self._experts(model, training))
            elif kind in ("fp8", "int4"):
                for name in ("qkv", "out", "gate", "up", "down"):
                    weights.update(self._narrow(name, weights.pop(name)))

    def _adapters(self) -> Weights:
        model, torch = self.model, self.torch
        h, f, k = model.hidden, model.ffn, model.kv_size
        sizes = {"q": (h, h), "k": (h, k), "v": (h, k), "out": (h, h), "gate": (h, f), "up": (h, f), "down": (f, h)}
        made: Weights = {}
        for name, (inputs, outputs) in sizes.items():
            made[f"{name}_a"] = self.machine.normal(RANK, inputs, dtype=torch.float32, scale=0.02)
            made[f"{name}_b"] = self.machine.normal(outputs, RANK, dtype=torch.float32, scale=0.02)
        return {name: tensor.requires_grad_() for name, tensor in made.items()}

    def _experts(self, model: Moe, training: bool) -> Weights:
        h, f, n = model.hidden, model.ffn, model.experts
        dtype = self.torch.float32 if training else self.torch.bfloat16
        sizes = {"gate": (n, f, h), "up": (n, f, h), "down": (n, h, f), "router": (n, h)}
        made = {name: self.machine.normal(*size, dtype=dtype, scale=0.02) for name, size in sizes.items()}
        return {name: tensor.requires_grad_(training) for name, tensor in made.items()}

    def _narrow(self, name: str, matrix: Any) -> Weights:
        torch = self.torch
        if self.kind == "fp8":
            scale = matrix.abs().amax(1, keepdim=True).float() / 448.0
            return {name: (matrix / scale).to(torch.float8_e4m3fn), f"{name}_scale": scale.t().contiguous()}
        outputs, inputs = matrix.shape
        drawn = torch.randint(0, 256, (outputs, inputs // 2), device=self.machine.device, dtype=torch.uint8)
        scales = self.machine.normal(inputs // GROUP, outputs, 2, dtype=torch.bfloat16, scale=0.01)
        return {name: torch._convert_weight_to_int4pack(drawn, 8), f"{name}_scale": scales}

    def parameters(self) -> list[Any]:
        if self.kind != "lora":
            return super().parameters()
        return [weights[f"{name}_{side}"] for weights in self.layers for name in PAIRS for side in "ab"]

    def linear(self) -> Callable[..., Any]:
        torch = self.torch

        def fp8(x: Any, w: Weights, name: str) -> Any:
            flat = x.reshape(-1, x.shape[-1])
            scale = flat.abs().amax(1, keepdim=True).float().clamp(min=1e-6) / 448.0
            narrow = (flat / scale).to(torch.float8_e4m3fn)
            scales = {"scale_a": scale, "scale_b": w[f"{name}_scale"]}
            y = torch._scaled_mm(narrow, w[name].t(), **scales, out_dtype=torch.bfloat16, use_fast_accum=True)
            return y.view(*x.shape[:-1], -1)

        def int4(x: Any, w: Weights, name: str) -> Any:
            flat = x.reshape(-1, x.shape[-1])
            return torch._weight_int4pack_mm(flat, w[name], GROUP, w[f"{name}_scale"]).view(*x.shape[:-1], -1)

        return {"fp8": fp8, "int4": int4}.get(self.kind, lambda x, w, name: torch.nn.functional.linear(x, w[name]))

    def routed(self, model: Moe) -> Callable[..., Any]:
        torch, functional = self.torch, self.torch.nn.functional
        count, active, even = model.experts, model.active, self.even

        def product(rows: Any, matrices: Any, ends: Any) -> Any:
            return torch._grouped_mm(rows.bfloat16(), matrices.bfloat16().transpose(-2, -1), offs=ends)

        def feed(x: Any, w: Weights) -> Any:
            flat = x.reshape(-1, x.shape[-1])
            scores = functional.linear(flat, w["router"]).float()
            if even:
                chosen = (torch.arange(flat.shape[0] * active, device=flat.device) % count).view(-1, active)
                gates = scores.gather(1, chosen).softmax(-1)
            else:
                top, chosen = scores.topk(active)
                gates = top.softmax(-1)
            expert = chosen.flatten()
            order = expert.argsort()
            ends = (expert[:, None] == torch.arange(count, device=flat.device)).sum(0).cumsum(0).int()
            source = order // active
            rows = flat.index_select(0, source)
            inner = functional.silu(product(rows, w["gate"], ends)) * product(rows, w["up"], ends)
            y = product(inner, w["down"], ends) * gates.flatten().index_select(0, order)[:, None].bfloat16()
            return torch.zeros_like(flat, dtype=y.dtype).index_add(0, source, y).view_as(x)

        return feed

    def block(self, grouped: bool) -> Callable[..., Any]:
        """As that of `measure_models.Llama`, with this kind's products."""
        torch, functional, model = self.torch, self.torch.nn.functional, self.model
        heads, kv_heads, size = model.heads, model.kv_heads, model.head_size
        linear, adapters = self.linear(), self.kind == "lora"
        routed = self.routed(model) if isinstance(model, Moe) else None

        def added(y: Any, x: Any, w: Weights, name: str) -> Any:
            """y with what the named adapter adds to it."""
            return y + functional.linear(functional.linear(x, w[f"{name}_a"]), w[f"{name}_b"]) if adapters else y

        def turn(x: Any, cos: Any, sin: Any) -> Any:
            first, second = x.float().chunk(2, dim=-1)
            return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x.dtype)

        def attend(q: Any, k: Any, v: Any) -> Any:
            if heads != kv_heads and not grouped:
                k, v = (t.repeat_interleave(heads // kv_heads, dim=1) for t in (k, v))
            shared = heads != kv_heads and grouped
            return functional.scaled_dot_product_attention(q, k, v, is_causal=q.shape[2] > 1, enable_gqa=shared)

        def feed(x: Any, w: Weights) -> Any:
            gate, up = (added(linear(x, w, name), x, w, name) for name in ("gate", "up"))
            inner = functional.silu(gate) * up
            return added(linear(inner, w, "down"), inner, w, "down")

        def block(x: Any, w: Weights, cos: Any, sin: Any, cache: tuple[Any, ...]) -> Any:
            batch, length, hidden = x.shape
            normed = functional.rms_norm(x, (hidden,), w["norm1"], 1e-5)
            parts = linear(normed, w, "qkv").split((hidden, kv_heads * size, kv_heads * size), dim=-1)
            q, k, v = (added(part, normed, w, name) for part, name in zip(parts, "qkv", strict=True))
            q = turn(q.view(batch, length, heads, size).transpose(1, 2), cos, sin)
            k = turn(k.view(batch, length, kv_heads, size).transpose(1, 2), cos, sin)
            v = v.view(batch, length, kv_heads, size).transpose(1, 2)
            if cache and cache[2] is not None:
                keys, values, position = cache
                keys[:, :, position] = k
                values[:, :, position] = v
                y = attend(q, keys, values)
            else:
                if cache:
                    cache[0].copy_(k)
                    cache[1].copy_(v)
                y = attend(q, k, v)
            y = y.transpose(1, 2).reshape(batch, length, hidden)
            x = x + added(linear(y, w, "out"), y, w, "out")
            normed = functional.rms_norm(x, (hidden,), w["norm2"], 1e-5)
            return x + (routed or feed)(normed, w)

        return block


def training(llama: Built, optimiser: Any, case: Case, grouped: bool) -> Callable[[], object]:
    machine, model, torch = llama.machine, case.model, llama.torch
    tokens, targets = (machine.integers(model.vocab, case.batch, case.length) for _ in range(2))
    cos, sin = llama.rotary(torch.arange(case.length, device=machine.device))
    block = llama.compiled(grouped)
    checkpoint = importlib.import_module("torch.utils.checkpoint").checkpoint
    half = torch.float16 if llama.kind == "fp16" else torch.bfloat16
    scaler = torch.amp.GradScaler(machine.device, enabled=llama.kind == "fp16")

    def work() -> object:
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast(machine.device, dtype=half, enabled=llama.kind not in ("tf32", "fp32")):
            x = torch.nn.functional.embedding(tokens, llama.embedding)
            for weights in llama.layers:
                if case.checkpointing == "full":
                    x = checkpoint(block, x, weights, cos, sin, (), use_reentrant=False, preserve_rng_state=False)
                else:
                    x = block(x, weights, cos, sin, ())
            loss = torch.nn.functional.cross_entropy(llama.last(x).flatten(0, 1), targets.flatten())
        scaler.scale(loss).backward()
        scaler.step(optimiser)
        scaler.update()
        return loss.detach()

    return work


class VariantBench(Bench):
    """Holds the model that is loaded, by kind too."""

    kind = ""

    def load(self, model: Model, for_training: bool) -> Llama:
        if self.llama is None or self.loaded != (model, for_training) or getattr(self.llama, "kind", "") != self.kind:
            self.unload()
            self.llama = Built(self.machine, model, for_training, self.kind)
            self.loaded = (model, for_training)
            if for_training:
                self.optimiser = self.machine.torch.optim.AdamW(self.llama.parameters(), lr=1e-4, fused=True)
        return self.llama

    def take(self, case: Variant) -> None:
        self.kind = case.kind
        self.machine.wait()
        if self.machine.cuda:  # cuBLAS keeps one for each stream and thread it has seen: peaks would depend on earlier cases
            self.machine.torch._C._cuda_clearCublasWorkspaces()
        self.machine.torch.set_float32_matmul_precision("high" if case.kind == "tf32" else "highest")

    def _work(self, llama: Llama, case: Case) -> tuple[Callable[[], object], str]:
        assert isinstance(llama, Built)  # below: no kernel takes fp32 heads that share keys as they are
        grouped, kernel = (False, "efficient") if self.kind in ("tf32", "fp32") else llama.kernel(case)
        if case.task == "pretrain":
            return training(llama, self.optimiser, case, grouped), kernel
        return (base.prefill if case.task == "llm-prefill" else base.decode)(llama, case, grouped), kernel


def row(case: Variant, machine: Machine, options: argparse.Namespace, result: dict[str, Any]) -> dict[str, object]:
    line = base.row(case, machine, options, result)
    line |= {
        "fp8": {"precision_weights": "fp8", "notes": "torch._scaled_mm"},
        "int4": {"precision_weights": "int4", "notes": "torch._weight_int4pack_mm"},
        "lora": {"task": "lora", "notes": f"rank {RANK}"},
        "moe": {"notes": "torch._grouped_mm"},
        "shape": {},
    }.get(case.kind, {"precision": case.kind})
    if isinstance(case.model, Moe):
        line |= {"moe_experts_total": case.model.experts, "moe_experts_active": case.model.active}
    for name, digits in (("metric_value", 6), ("peak_gb", 4), ("spread", 4)):
        value = line[name]
        line[name] = round(value, digits) if isinstance(value, float) else None
    return {name: value for name, value in line.items() if value is not None} | {"trust": "A"}


def fill_cache(options: argparse.Namespace) -> None:
    """As that of `measure_models`: compiling is most of a run, uses one core, and lands in a cache on disk."""
    command = [sys.executable, __file__, "--only", options.only, "--seconds", str(options.warm_seconds)]
    alone, until = {**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1"}, time.perf_counter() + options.warm_seconds + 20
    shards = [[*command, "--shard", f"{i}/{options.warm}"] for i in range(options.warm)]
    running = [subprocess.Popen(one, env=alone, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT) for one in shards]
    for process in running:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.1, until - time.perf_counter()))
        process.kill()  # nothing to one that has ended
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default=",".join(KINDS), help="kinds, with commas between them")
    parser.add_argument("--seconds", type=float, default=540.0, help="start no case after this many seconds")
    parser.add_argument("--warm", type=int, default=0, help="processes that fill the compile cache first")
    parser.add_argument("--warm-seconds", type=float, default=150.0, help="time limit for --warm")
    parser.add_argument("--out", type=Path, default=Path("variants.jsonl"))
    parser.add_argument("--date", default="")
    parser.add_argument("--device", choices=("auto", "cpu"), default="auto")
    parser.add_argument("--tiny", action="store_true", help="tiny models, to try every path")
    parser.add_argument("--shard", default="", help="i/n: compile this share of the cases only (used by --warm)")
    parser.set_defaults(chip="", chip_key="", repeat_seconds=0.6)
    options = parser.parse_args()
    began = time.perf_counter()
    cases = [case for case in plan(options.tiny) if case.kind in options.only.split(",")]
    if options.warm:
        fill_cache(options)
        print(f"compile cache filled after {time.perf_counter() - began:.0f} s", flush=True)
    torch: Any = importlib.import_module("torch")
    torch._dynamo.config.recompile_limit = 64
    machine = Machine(torch, options.device)
    bench = VariantBench(machine, options)
    if options.shard:
        index, _, shards = options.shard.partition("/")
        for case in cases[int(index) :: int(shards)]:
            if time.perf_counter() - began < options.seconds:
                with contextlib.suppress(Exception):
                    bench.take(case)
                    bench.warm(case)
        return
    seen = base.done(options.out)
    for number, case in enumerate(cases, start=1):
        elapsed = time.perf_counter() - began
        if row(case, machine, options, {})["row_id"] in seen:
            continue
        if elapsed > options.seconds:
            sys.exit(f"stopped at {elapsed:.0f} s before case {number} of {len(cases)}")
        bench.take(case)
        line = row(case, machine, options, result := base.attempts(bench, case))
        with options.out.open("a") as out:
            out.write(json.dumps(line) + "\n")
        shown = result.get("error") or ("out of memory" if "oom" in result else f"{line['metric_value']:.4g}")
        told = f"peak {result.get('peak_gb') or 0.0:.2f} GB  compile {result.get('compile_s', 0.0):.1f} s"
        print(f"{elapsed:5.0f} s  {number}/{len(cases)}  {case.key}  {shown}  {told}", flush=True)
        if "error" in result and not machine.alive():
            sys.exit("the device no longer answers after this case: run the same command again, it goes on with the next")


if __name__ == "__main__":
    main()
