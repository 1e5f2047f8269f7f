"""Measures whole Llama-shaped models with PyTorch on the present device and appends one JSON line per case.

    python3 tools/measure_models.py --only inference --seconds 540 --warm 8 --date 2026-01-31 --out models.jsonl

What is measured, so that a line can stand beside others of the engine "PyTorch":
- blocks compiled by torch.compile with static shapes (fused qkv, separate gate and up); embedding, last norm, head, loss eager
- prefill: one forward over batch x input_len tokens, KV cache written, head for the last token only; from an idle device
- decode: one step over a full static KV cache of input_len tokens, greedy token included; replays of one CUDA graph
- pretrain: forward, backward, fused AdamW; bf16 autocast over fp32 weights; loss over all tokens
Weights, tokens and caches are random, since zeros draw less power and clock higher.

Standalone: torch and the standard library only, because it runs where chipwise is not installed. A case that fails is
written as a line with "oom" or "error" and the next one goes on; cases already in the file are skipped.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

# Both must be set before torch is imported: one compile cache for all processes, and no memory lost to fragments.
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(Path(tempfile.gettempdir()) / "chipwise_inductor"))
os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")

CHIPS = {"NVIDIA H200": ("H200-SXM-141GB", "H200"), "NVIDIA H100 80GB HBM3": ("H100-SXM-80GB", "H100")}
GB = 1e9
Weights = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Model:
    name: str
    layers: int
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    vocab: int
    tied: bool = False

    @property
    def head_size(self) -> int:
        return self.hidden // self.heads

    @property
    def kv_size(self) -> int:
        return self.kv_heads * self.head_size

    @property
    def parameters(self) -> int:
        block = 2 * self.hidden * self.hidden + 2 * self.hidden * self.kv_size + 3 * self.hidden * self.ffn + 2 * self.hidden
        return self.layers * block + self.hidden + self.vocab * self.hidden * (1 if self.tied else 2)


@dataclass(frozen=True, slots=True)
class Case:
    model: Model
    task: str
    batch: int
    length: int
    checkpointing: str = ""

    @property
    def key(self) -> str:
        tail = f"-{self.checkpointing}" if self.checkpointing else ""
        return f"{self.model.name}-{self.task}-b{self.batch}-s{self.length}{tail}"


# "-like" and "-shape" say that only the shape is that model's (biases left out, SwiGLU instead of GELU, layers cut).
MODELS = (
    Model("llama-3.1-8b", 32, 4096, 14336, 32, 8, 128256),
    Model("tinyllama-1.1b", 22, 2048, 5632, 32, 4, 32000),
    Model("llama-2-7b", 32, 4096, 11008, 32, 32, 32000),
    Model("llama-3.2-1b", 16, 2048, 8192, 32, 8, 128256, tied=True),
    Model("llama-2-13b", 40, 5120, 13824, 40, 40, 32000),
    Model("gpt-125m-like", 12, 768, 3072, 12, 12, 50304, tied=True),
    Model("llama-3.2-3b", 28, 3072, 8192, 24, 8, 128256, tied=True),
    Model("codellama-34b", 48, 8192, 22016, 64, 8, 32000),
    Model("gpt-350m-like", 24, 1024, 4096, 16, 16, 50304, tied=True),
    Model("qwen2.5-14b-like", 48, 5120, 13824, 40, 8, 152064),
    Model("smollm2-360m", 32, 960, 2560, 15, 5, 49152, tied=True),
    Model("phi-shape-3.6b", 32, 2560, 10240, 32, 32, 51200),
    Model("qwen2.5-1.5b-like", 28, 1536, 8960, 12, 2, 151936, tied=True),
    Model("llama-70b-shape-20L", 20, 8192, 28672, 64, 8, 128256),
    Model("mha-2.0b-odd", 20, 2880, 7680, 30, 30, 32000),
)
TINY = (Model("tiny-gqa", 2, 64, 176, 4, 2, 256), Model("tiny-tied", 2, 96, 384, 6, 6, 300, tied=True))

# By tier: a run that is cut short has the first tier of all models before the second of any.
PREFILL = (((1, 2048), (8, 2048), (1, 512)), ((1, 128), (16, 512), (1, 8192)), ((4, 1024), (1, 32768)))
DECODE = (((1, 2048), (32, 1024), (128, 1024)), ((1, 128), (8, 1024), (64, 4096)), ((256, 512), (1, 16384), (16, 8192)))
TRAIN = (
    ((2048, 4, "none"), (2048, 4, "full"), (1024, 4, "none")),
    ((512, 8, "none"), (2048, 16, "full"), (4096, 2, "none"), (8192, 1, "full")),
    ((2048, 1, "none"), (2048, 16, "none"), (8192, 1, "none"), (512, 8, "full")),
)
TRAIN_LARGE = (((2048, 1, "full"), (1024, 1, "full"), (2048, 4, "full")), ((512, 4, "full"), (4096, 1, "full")), ())
# Shapes and sizes that no factor was fitted on, to check the model against the device: --set check.
CHECK_MODELS = (
    Model("check-qwen-8b", 36, 4096, 12288, 32, 8, 151936),
    Model("check-0.6b", 28, 1024, 3072, 16, 8, 151936, tied=True),
    Model("check-2.7b", 32, 2560, 6912, 20, 20, 32000),
    Model("check-1.7b", 24, 2048, 6144, 16, 8, 49152, tied=True),
)
CHECK = (
    (((2, 1024), (3, 4096)), ((4, 512), (24, 2048)), ((1536, 6, "none"), (3072, 2, "full"))),
    (((32, 256), (1, 1536)), ((1, 8192), (96, 768)), ((1024, 12, "none"), (6144, 1, "none"))),
)
LARGE = 4.5e9  # parameters above which AdamW in fp32 leaves room for little else


def plan(models: tuple[Model, ...], only: str, tiny: bool) -> list[Case]:
    cases: list[Case] = []
    for tier in range(3):
        for model in models:
            small = (2, 32) if tiny else None
            if only in ("prefill", "inference", "all"):
                cases += [Case(model, "llm-prefill", *(small or pair)) for pair in PREFILL[tier]]
            if only in ("decode", "inference", "all"):
                cases += [Case(model, "llm-decode", *(small or pair)) for pair in DECODE[tier]]
            if only in ("training", "all") and model.parameters < 9e9:
                grid = TRAIN_LARGE if model.parameters > LARGE else TRAIN
                cases += [Case(model, "pretrain", *(small or (batch, seq)), full) for seq, batch, full in grid[tier]]
    return list(dict.fromkeys(cases))


def check_plan(only: str) -> list[Case]:
    cases: list[Case] = []
    for prefills, decodes, trainings in CHECK:
        for model in CHECK_MODELS:
            if only in ("prefill", "inference", "all"):
                cases += [Case(model, "llm-prefill", *pair) for pair in prefills]
            if only in ("decode", "inference", "all"):
                cases += [Case(model, "llm-decode", *pair) for pair in decodes]
            if only in ("training", "all") and model.parameters < LARGE:
                cases += [Case(model, "pretrain", batch, seq, full) for seq, batch, full in trainings]
    return cases


def bytes_needed(case: Case) -> float:
    """A lower estimate, to skip what cannot fit; what may fit is tried."""
    model, tokens = case.model, case.batch * case.length
    if case.task == "pretrain":
        kept = tokens * model.layers * model.hidden * (4 if case.checkpointing == "full" else 30)
        return 16 * model.parameters + kept + 10 * tokens * model.vocab
    cache = 4 * tokens * model.layers * model.kv_size
    return 2 * model.parameters + cache + (tokens * (8 * model.hidden + 4 * model.ffn) if case.task == "llm-prefill" else 0)


class Machine:
    """The present device: where tensors are made, how time and memory are read."""

    def __init__(self, torch: Any, wanted: str) -> None:
        self.torch = torch
        self.cuda = wanted != "cpu" and torch.cuda.is_available()
        self.device = "cuda" if self.cuda else "cpu"
        self.name = torch.cuda.get_device_name() if self.cuda else "cpu"
        self.capacity = torch.cuda.mem_get_info()[1] if self.cuda else 8 * GB
        # One for all warm-ups: cuBLAS keeps a workspace of 34 MB for every stream it has seen, and peaks would grow.
        self.side: Any = torch.cuda.Stream() if self.cuda else None

    def wait(self) -> None:
        if self.cuda:
            self.torch.cuda.synchronize()

    def normal(self, *size: int, dtype: Any, scale: float = 1.0) -> Any:
        return self.torch.randn(*size, device=self.device, dtype=dtype).mul_(scale)

    def integers(self, limit: int, *size: int) -> Any:
        return self.torch.randint(0, limit, size, device=self.device)

    def free(self) -> None:
        gc.collect()
        if self.cuda:
            with contextlib.suppress(RuntimeError):  # after a fatal error; alive() tells
                self.torch.cuda.empty_cache()

    def alive(self) -> bool:
        """False after an error that no later call of this process survives (an illegal access, say)."""
        try:
            self.torch.zeros(1, device=self.device).add_(1)
            self.wait()
        except RuntimeError:
            return False
        return True

    def times(self, work: Callable[[], object], seconds: float, chained: bool) -> list[float]:
        """Seconds of each repeat; `chained` queues them back to back, as decode steps follow each other."""
        began = time.perf_counter()
        work()
        self.wait()
        once = max(time.perf_counter() - began, 1e-5)
        repeats = max(3, min(60, int(seconds / once)))
        if not self.cuda:
            return [_clocked(work) for _ in range(repeats)]
        marks = [(self._event(), self._event()) for _ in range(repeats)]
        for start, end in marks:
            if not chained:
                self.wait()
            start.record()
            work()
            end.record()
        self.wait()
        return [start.elapsed_time(end) / 1e3 for start, end in marks]

    def _event(self) -> Any:
        return self.torch.cuda.Event(enable_timing=True)


def _clocked(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


class Llama:
    """Weights as dictionaries of tensors and one block function, so that one compilation serves every layer."""

    def __init__(self, machine: Machine, model: Model, training: bool) -> None:
        torch = machine.torch
        self.machine, self.model, self.torch = machine, model, torch
        dtype = torch.float32 if training else torch.bfloat16
        sizes = {
            "qkv": (model.hidden + 2 * model.kv_size, model.hidden),
            "out": (model.hidden, model.hidden),
            "gate": (model.ffn, model.hidden),
            "up": (model.ffn, model.hidden),
            "down": (model.hidden, model.ffn),
        }

        def made(*size: int) -> Any:
            return machine.normal(*size, dtype=dtype, scale=0.02).requires_grad_(training)

        def norm() -> Any:
            return (machine.normal(model.hidden, dtype=dtype, scale=0.02) + 1).detach().requires_grad_(training)

        self.layers: list[Weights] = [
            {**{name: made(*size) for name, size in sizes.items()}, "norm1": norm(), "norm2": norm()}
            for _ in range(model.layers)
        ]
        self.embedding = made(model.vocab, model.hidden)
        self.head = self.embedding if model.tied else made(model.vocab, model.hidden)
        self.norm = norm()

    def parameters(self) -> list[Any]:
        outer = [self.embedding, self.norm] if self.model.tied else [self.embedding, self.norm, self.head]
        return outer + [tensor for weights in self.layers for tensor in weights.values()]

    def rotary(self, positions: Any) -> tuple[Any, Any]:
        half = self.model.head_size // 2
        steps = self.torch.arange(half, device=self.machine.device, dtype=self.torch.float32) / half
        angles = positions.float()[:, None] * (500000.0**-steps)[None, :]
        return angles.cos(), angles.sin()

    def block(self, grouped: bool) -> Callable[..., Any]:
        """The block; `cache` is (keys, values, position): position None fills it (prefill), () there is no cache."""
        torch, model = self.torch, self.model
        functional = torch.nn.functional
        heads, kv_heads, size = model.heads, model.kv_heads, model.head_size

        def turn(x: Any, cos: Any, sin: Any) -> Any:
            first, second = x.float().chunk(2, dim=-1)
            return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x.dtype)

        def attend(q: Any, k: Any, v: Any) -> Any:
            if heads != kv_heads and not grouped:
                k, v = (t.repeat_interleave(heads // kv_heads, dim=1) for t in (k, v))
            shared = heads != kv_heads and grouped
            return functional.scaled_dot_product_attention(q, k, v, is_causal=q.shape[2] > 1, enable_gqa=shared)

        def block(x: Any, w: Weights, cos: Any, sin: Any, cache: tuple[Any, ...]) -> Any:
            batch, length, hidden = x.shape
            normed = functional.rms_norm(x, (hidden,), w["norm1"], 1e-5)
            q, k, v = functional.linear(normed, w["qkv"]).split((hidden, kv_heads * size, kv_heads * size), dim=-1)
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
            x = x + functional.linear(y.transpose(1, 2).reshape(batch, length, hidden), w["out"])
            normed = functional.rms_norm(x, (hidden,), w["norm2"], 1e-5)
            inner = functional.silu(functional.linear(normed, w["gate"])) * functional.linear(normed, w["up"])
            return x + functional.linear(inner, w["down"])

        return block

    def compiled(self, grouped: bool) -> Callable[..., Any]:
        self.torch._dynamo.reset()  # else every call would test the guards of all earlier cases
        compiled: Callable[..., Any] = self.torch.compile(self.block(grouped), dynamic=False)
        return compiled

    def last(self, x: Any) -> Any:
        """Logits, after the last norm."""
        functional = self.torch.nn.functional
        return functional.linear(functional.rms_norm(x, (self.model.hidden,), self.norm, 1e-5), self.head)

    def kernel(self, case: Case) -> tuple[bool, str]:
        """Whether a fused kernel takes heads that share keys as they are, and the kernel's name. On an H200 that was the
        fastest for prompts and for single tokens (cuDNN splits a long context), so it is decided by rule, not by trial."""
        torch, model, made = self.torch, self.model, self.machine.normal
        queries = 1 if case.task == "llm-decode" else case.length
        q = made(case.batch, model.heads, queries, model.head_size, dtype=torch.bfloat16)
        k = made(case.batch, model.kv_heads, case.length, model.head_size, dtype=torch.bfloat16)
        names = {0: "math", 1: "flash", 2: "efficient", 3: "cudnn", 4: "overrideable"}
        shared = model.heads != model.kv_heads
        try:
            name = names.get(torch._fused_sdp_choice(q, k, k, is_causal=queries > 1, enable_gqa=shared), "?")
        except Exception:
            return False, "?"
        return name != "math" or not self.machine.cuda, name


def prefill(llama: Llama, case: Case, grouped: bool) -> Callable[[], object]:
    machine, model, torch = llama.machine, case.model, llama.torch
    tokens = machine.integers(model.vocab, case.batch, case.length)
    caches = _caches(llama, case)
    cos, sin = llama.rotary(torch.arange(case.length, device=machine.device))
    block = llama.compiled(grouped)

    def work() -> object:
        with torch.no_grad():
            x = torch.nn.functional.embedding(tokens, llama.embedding)
            for weights, (keys, values) in zip(llama.layers, caches, strict=True):
                x = block(x, weights, cos, sin, (keys, values, None))
            return llama.last(x[:, -1:]).argmax(-1)

    return work


def decode(llama: Llama, case: Case, grouped: bool) -> Callable[[], object]:
    machine, model, torch = llama.machine, case.model, llama.torch
    tokens = machine.integers(model.vocab, case.batch, 1)
    caches = _caches(llama, case)
    position = torch.tensor([case.length - 1], device=machine.device)
    cos, sin = llama.rotary(position)
    block = llama.compiled(grouped)

    def step() -> object:
        with torch.no_grad():
            x = torch.nn.functional.embedding(tokens, llama.embedding)
            for weights, (keys, values) in zip(llama.layers, caches, strict=True):
                x = block(x, weights, cos, sin, (keys, values, position))
            return llama.last(x).argmax(-1)

    return step


def captured(machine: Machine, step: Callable[[], object]) -> Callable[[], object]:
    """The step as a CUDA graph; the step itself where there are none."""
    if not machine.cuda:
        return step
    torch, side = machine.torch, machine.side
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            step()
    torch.cuda.current_stream().wait_stream(side)
    machine.wait()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side, capture_error_mode="thread_local"):
        kept = step()

    def replay() -> object:
        graph.replay()
        return kept

    return replay


def _caches(llama: Llama, case: Case) -> list[tuple[Any, Any]]:
    made, model, dtype = llama.machine.normal, case.model, llama.torch.bfloat16
    size = (case.batch, model.kv_heads, case.length, model.head_size)
    return [(made(*size, dtype=dtype), made(*size, dtype=dtype)) for _ in llama.layers]


def training(llama: Llama, optimiser: Any, case: Case, grouped: bool) -> Callable[[], object]:
    machine, model, torch = llama.machine, case.model, llama.torch
    tokens, targets = (machine.integers(model.vocab, case.batch, case.length) for _ in range(2))
    cos, sin = llama.rotary(torch.arange(case.length, device=machine.device))
    block = llama.compiled(grouped)
    checkpoint = importlib.import_module("torch.utils.checkpoint").checkpoint

    def work() -> object:
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast(machine.device, dtype=torch.bfloat16):
            x = torch.nn.functional.embedding(tokens, llama.embedding)
            for weights in llama.layers:
                if case.checkpointing == "full":
                    x = checkpoint(block, x, weights, cos, sin, (), use_reentrant=False, preserve_rng_state=False)
                else:
                    x = block(x, weights, cos, sin, ())
            loss = torch.nn.functional.cross_entropy(llama.last(x).flatten(0, 1), targets.flatten())
        loss.backward()
        optimiser.step()
        return loss.detach()

    return work


class Bench:
    """Holds the model that is loaded, since many cases share one."""

    def __init__(self, machine: Machine, options: argparse.Namespace) -> None:
        self.machine, self.options = machine, options
        self.loaded: tuple[Model, bool] | None = None
        self.llama: Llama | None = None
        self.optimiser: Any = None

    def load(self, model: Model, for_training: bool) -> Llama:
        if self.llama is None or self.loaded != (model, for_training):
            self.unload()
            self.llama = Llama(self.machine, model, for_training)
            self.loaded = (model, for_training)
            if for_training:
                self.optimiser = self.machine.torch.optim.AdamW(self.llama.parameters(), lr=1e-4, fused=True)
        return self.llama

    def unload(self) -> None:
        self.llama = self.optimiser = self.loaded = None
        self.machine.free()

    def warm(self, case: Case) -> None:
        """Compiles the case with one layer and a narrow vocabulary, to leave it in the cache on disk."""
        case = replace(case, model=replace(case.model, layers=1, vocab=512))
        work, _ = self._work(self.load(case.model, case.task == "pretrain"), case)
        work()
        self.machine.wait()

    def measure(self, case: Case) -> dict[str, object]:
        machine, torch = self.machine, self.machine.torch
        llama = self.load(case.model, case.task == "pretrain")
        began = time.perf_counter()
        work, attention = self._work(llama, case)
        for _ in range(2):
            work()
        machine.wait()
        compiling = time.perf_counter() - began
        if machine.cuda:
            torch.cuda.empty_cache()
            torch._C._cuda_clearCublasWorkspaces()  # those of earlier cases would count in this one
            torch.cuda.reset_peak_memory_stats()
        timed = captured(machine, work) if case.task == "llm-decode" else work
        times = machine.times(timed, self.options.repeat_seconds, chained=case.task == "llm-decode")
        peak = torch.cuda.max_memory_allocated() / GB if machine.cuda else None
        return {"times": times, "peak_gb": peak, "attention": attention, "compile_s": compiling}

    def _work(self, llama: Llama, case: Case) -> tuple[Callable[[], object], str]:
        grouped, kernel = llama.kernel(case)
        if case.task == "llm-prefill":
            return prefill(llama, case, grouped), kernel
        if case.task == "llm-decode":
            return decode(llama, case, grouped), kernel
        return training(llama, self.optimiser, case, grouped), kernel


METRICS = {"llm-prefill": ("ttft_ms", 1e3), "llm-decode": ("tpot_ms", 1e3), "pretrain": ("step_time_s", 1.0)}


def row(case: Case, machine: Machine, options: argparse.Namespace, result: dict[str, Any]) -> dict[str, object]:
    model, torch = case.model, machine.torch
    chip, chip_key = CHIPS.get(machine.name, (machine.name, machine.name))
    inference = case.task != "pretrain"
    metric, scale = METRICS[case.task]
    times = sorted(result.get("times", ()))
    middle = statistics.median(times) if times else None
    spread = (times[int(0.9 * (len(times) - 1))] - times[int(0.1 * (len(times) - 1))]) / middle if middle else None
    build = f"torch {torch.__version__}, CUDA {torch.version.cuda}, torch.compile per block"
    line: dict[str, object] = {
        "row_id": f"chipwise-{options.chip_key or chip_key}-{case.key}".lower(),
        "source_repo": "chipwise",
        "model": model.name,
        "params_b": round(model.parameters / 1e9, 4),
        "layers": model.layers,
        "hidden": model.hidden,
        "ffn_hidden": model.ffn,
        "heads": model.heads,
        "kv_heads": model.kv_heads,
        "vocab": model.vocab,
        "task": case.task,
        "engine": "PyTorch" if inference else None,
        "chip": options.chip or chip,
        "chip_key": options.chip_key or chip_key,
        "chips": 1,
        "precision": None if inference else "bf16",
        "precision_weights": "bf16" if inference else None,
        "precision_kv": "bf16" if inference else None,
        "tp": 1,
        "pp": 1,
        "batch_or_concurrency": case.batch if inference else None,
        "input_len": case.length if inference else None,
        "output_len": int(case.task == "llm-decode") if inference else None,
        "seq_len": None if inference else case.length,
        "micro_batch": None if inference else case.batch,
        "global_batch_sequences": None if inference else case.batch,
        "activation_checkpointing": case.checkpointing or None,
        "metric_name": metric,
        "metric_value": middle * scale if middle else None,
        "peak_gb": result.get("peak_gb"),
        "date": options.date,
        "software": f"{build}, sdpa {result.get('attention', '?')}" + (", CUDA graph" if case.task == "llm-decode" else ""),
        "spread": spread,
        "repeats": len(times),
    }
    return line | {name: result[name] for name in ("oom", "error") if name in result}


def done(path: Path) -> set[str]:
    """Row ids already in the file, failed ones too (delete their lines to try again); a cut last line is passed over."""
    seen: set[str] = set()
    for line in path.read_text().splitlines() if path.exists() else ():
        with contextlib.suppress(ValueError, KeyError, TypeError):
            seen.add(json.loads(line)["row_id"])
    return seen


def fill_cache(options: argparse.Namespace, arguments: list[str]) -> None:
    """Compiles in several processes at once: compiling is most of a run, uses one core, and lands in a cache on disk."""
    limit = options.warm_seconds
    environment = {**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    command = [sys.executable, __file__, *arguments, "--seconds", str(limit)]
    shards = [
        subprocess.Popen(
            [*command, "--shard", f"{i}/{options.warm}"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for i in range(options.warm)
    ]
    until = time.perf_counter() + limit + 20
    for shard in shards:
        try:
            shard.wait(max(0.1, until - time.perf_counter()))
        except subprocess.TimeoutExpired:
            shard.kill()
            shard.wait()


def attempts(bench: Bench, case: Case) -> dict[str, Any]:
    """The result of one case, or a dictionary that says how it failed."""
    try:
        return bench.measure(case)
    except Exception as error:
        # Libraries below torch (cuBLAS, cuDNN, graph capture) say it in words only.
        full = isinstance(error, bench.machine.torch.OutOfMemoryError) or "out of memory" in str(error).lower()
        failed: dict[str, Any] = {"oom": True} if full else {"error": f"{type(error).__name__}: {error}"[:400]}
    bench.unload()  # outside of the except clause, so that the traceback no longer holds tensors
    return failed


def wanted(options: argparse.Namespace, machine: Machine | None) -> Iterator[Case]:
    models = TINY if options.tiny else MODELS
    for case in check_plan(options.only) if options.set == "check" else plan(models, options.only, options.tiny):
        if re.search(options.models, case.model.name) and (machine is None or bytes_needed(case) < 0.99 * machine.capacity):
            yield case


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=("inference", "prefill", "decode", "training", "all"), default="all")
    parser.add_argument("--models", default="", help="regular expression over model names")
    parser.add_argument("--seconds", type=float, default=540.0, help="start no case after this many seconds")
    parser.add_argument("--repeat-seconds", type=float, default=0.8, help="measuring time per case")
    parser.add_argument("--warm", type=int, default=0, help="processes that fill the compile cache first")
    parser.add_argument("--warm-seconds", type=float, default=100.0, help="time limit for --warm")
    parser.add_argument("--out", type=Path, default=Path("models.jsonl"))
    parser.add_argument("--chip", default="")
    parser.add_argument("--chip-key", default="")
    parser.add_argument("--date", default="")
    parser.add_argument("--device", choices=("auto", "cpu"), default="auto")
    parser.add_argument("--set", choices=("fit", "check"), default="fit", help="check: shapes that nothing was fitted on")
    parser.add_argument("--tiny", action="store_true", help="two tiny models, to try every path without a GPU")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--shard", default="", help="i/n: compile this share of the cases only (used by --warm)")
    options = parser.parse_args()
    began = time.perf_counter()
    if options.list:
        for case in wanted(options, None):
            print(f"{case.key}  at least {bytes_needed(case) / GB:.1f} GB")
        return
    if options.warm and not options.shard:
        fill_cache(options, sys.argv[1:])
        print(f"compile cache filled after {time.perf_counter() - began:.0f} s", flush=True)

    torch: Any = importlib.import_module("torch")
    torch._dynamo.config.recompile_limit = 64
    machine = Machine(torch, options.device)
    bench = Bench(machine, options)
    seen = done(options.out)
    cases = [case for case in wanted(options, machine) if row(case, machine, options, {})["row_id"] not in seen]
    if options.shard:
        index, count = (int(part) for part in options.shard.split("/"))
        for case in cases[index::count]:
            if time.perf_counter() - began > options.seconds:
                return
            with contextlib.suppress(Exception):
                bench.warm(case)
        return

    for number, case in enumerate(cases, start=1):
        elapsed = time.perf_counter() - began
        if elapsed > options.seconds:
            print(f"stopped at {elapsed:.0f} s before case {number} of {len(cases)}", flush=True)
            return
        result = attempts(bench, case)
        line = row(case, machine, options, result)
        with options.out.open("a") as out:
            out.write(json.dumps(line) + "\n")
        shown = result.get("error") or ("out of memory" if "oom" in result else f"{line['metric_value']:.4g}")
        peak, compiling = result.get("peak_gb") or 0.0, result.get("compile_s", 0.0)
        print(
            f"{elapsed:5.0f} s  {number}/{len(cases)}  {case.key}  {line['metric_name']} {shown}"
            f"  peak {peak:.1f} GB  compile {compiling:.1f} s  spread {line['spread'] or 0:.1%}",
            flush=True,
        )
        if "error" in result and not machine.alive():
            sys.exit("the device no longer answers after this case: run the same command again, it goes on with the next")


if __name__ == "__main__":
    main()
