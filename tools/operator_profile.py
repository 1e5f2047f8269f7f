"""What every operator of a PyTorch program multiplies and moves, and how long its kernels take, summed by class of operator.

A dispatch mode sees each operator with its tensors: FLOP from shapes (2 per multiply-accumulate, causal attention by half),
bytes as each input read once and each output written once. The profiler times the kernels below it. The ideal time of an
operator is the longer of FLOP over the peak of its format and bytes over the bandwidth, by the data sheet; its efficiency is
ideal over measured time. Compiled programs have no operators left: their kernels are classed by name, without FLOP and bytes.
"""

from __future__ import annotations

import importlib
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

PEAK = {"bfloat16": 989.4e12, "float16": 989.4e12, "tf32": 494.7e12, "float32": 66.9e12}  # H200 SXM, dense
BANDWIDTH = 4.8e12
FEW = 64  # rows of a product that streams its weights
MARK = "operator:"
SILENT = ("empty", "_unsafe_view", "new_empty", "lift_fresh", "_local_scalar_dense", "detach")
CLASSES = (  # the first whose word is in the operator's name
    ("optimizer", ("_fused_adam", "_fused_sgd", "_foreach", "lerp", "addcdiv", "addcmul")),
    ("native attention", ("multi_head",)),  # with its projections; no FLOP are counted
    ("attention", ("scaled_dot_product", "flash_attention")),
    ("dense", ("grouped_mm", "scaled_mm", "addmm", "bmm", "mm")),
    ("normalisation", ("norm",)),
    ("softmax", ("softmax", "nll_loss")),
    ("pooling", ("pool",)),
    ("gather", ("embedding", "index", "gather", "scatter", "sort", "topk", "histc", "bincount", "nonzero")),
    ("copy", ("copy", "clone", "cat", "fill", "zero", "ones", "roll", "_pad", "stack", "upsample")),
    ("reduction", ("sum", "mean", "amax", "argmax", "max", "cumsum", "var")),
)
KERNELS = (
    ("fused reduction", ("triton_red", "triton_per")),
    ("fused elementwise", ("triton_poi",)),
    ("attention", ("flash", "fmha", "sdpa", "attention")),
    ("convolution", ("conv", "fprop", "dgrad", "wgrad", "winograd")),
    ("dense", ("gemm", "nvjet", "cutlass", "gemv", "splitk", "triton_tem")),
    ("optimizer", ("multi_tensor",)),
    ("normalisation", ("norm",)),
    ("softmax", ("softmax",)),
    ("pooling", ("pool",)),
    ("gather", ("index", "gather", "scatter", "embedding", "sort", "topk")),
    ("copy", ("memcpy", "memset", "copy", "cat")),
    ("reduction", ("reduce",)),
)
Sums = dict[str, dict[str, float]]


def _tensors(torch: Any, value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = tuple(value.values())
    return [tensor for item in value for tensor in _tensors(torch, item)] if isinstance(value, list | tuple) else []


def _named(func: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    return dict(zip((argument.name for argument in func._schema.arguments), args, strict=False)) | (kwargs or {})


def _convolution(arguments: dict[str, Any]) -> str:
    groups, area = arguments.get("groups", 1), math.prod(arguments["weight"].shape[2:])
    if groups > 1:
        return "depthwise" if arguments["weight"].shape[1] == 1 else "grouped convolution"
    return "pointwise convolution" if area == 1 else "convolution"


def class_of(name: str, arguments: dict[str, Any], flop: float, out: list[Any]) -> str:
    if "convolution" in name:
        return _convolution(arguments)
    kind = next((kind for kind, words in CLASSES if any(word in name for word in words)), "elementwise")
    if kind == "dense" and not flop:
        return "elementwise"
    if kind == "attention" and arguments["query"].shape[2] == 1:
        return "attention, one query"
    rows = out[0].shape[-2] if kind == "dense" and out and out[0].dim() > 1 else FEW + 1
    return "dense, few rows" if rows <= FEW else kind


def flop_of(registry: Any, func: Any, args: Any, kwargs: Any, out: Any, arguments: dict[str, Any]) -> float:
    name = func._schema.name
    if "scaled_dot_product" in name and "query" in arguments:
        batch, heads, queries, size = arguments["query"].shape
        half = 0.5 if arguments.get("is_causal") and queries > 1 else 1.0
        return float((10.0 if "backward" in name else 4.0) * batch * heads * queries * arguments["key"].shape[2] * size * half)
    if "grouped_mm" in name:
        return float(2.0 * args[0].shape[-2] * args[0].shape[-1] * args[1].shape[-1])
    formula = registry.get(func._overloadpacket)
    return float(formula(*args, **(kwargs or {}), out_val=out)) if formula else 0.0


def bytes_of(name: str, arguments: dict[str, Any], inputs: list[Any], outputs: list[Any]) -> float:
    def size(tensors: list[Any]) -> float:
        return float(sum(t.numel() * t.element_size() for t in tensors if t.is_cuda))

    if name.startswith("index_put"):  # only the places that are named
        return 2 * size([arguments["values"]])
    if name in ("index", "index_select", "gather", "embedding"):
        return 2 * size(outputs)
    if "grouped_mm" in name:  # only the experts that have rows
        unread = max(0.0, 1.0 - float(inputs[0].shape[-2] / inputs[1].shape[0]))
        return size(inputs) + size(outputs) - unread * size(inputs[1:2])
    return size(outputs) + (0.0 if name.startswith(("fill", "zero")) else size(inputs))


def by_operator(torch: Any, work: Callable[[], object], tf32: bool) -> Sums:
    """Of one call: operators, FLOP, bytes, ideal and measured seconds by class."""
    registry = importlib.import_module("torch.utils.flop_counter").flop_registry
    record = torch.profiler.record_function
    sums: Sums = {}

    def dispatch(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name.removeprefix("aten::")
        if func.is_view or name.startswith(SILENT):
            return func(*args, **(kwargs or {}))
        arguments = _named(func, args, kwargs)
        inputs = _tensors(torch, (args, kwargs or {}))
        label = MARK + str(len(labels))
        with record(label):
            out = func(*args, **(kwargs or {}))
        outputs = _tensors(torch, out)
        flop = flop_of(registry, func, args, kwargs, out, arguments)
        kind = class_of(name, arguments, flop, outputs)
        labels.append(kind)
        moved = bytes_of(name, arguments, inputs, outputs)
        width = str(inputs[0].dtype).removeprefix("torch.") if inputs else "float32"
        peak = PEAK["tf32"] if width == "float32" and tf32 else PEAK.get(width, PEAK["float32"])
        entry = sums.setdefault(kind, {"calls": 0.0, "flop": 0.0, "bytes": 0.0, "ideal_s": 0.0, "measured_s": 0.0})
        for key, amount in (("calls", 1.0), ("flop", flop), ("bytes", moved), ("ideal_s", max(flop / peak, moved / BANDWIDTH))):
            entry[key] += amount
        return out

    labels: list[str] = []
    mode: Any = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode
    counting = type("Counting", (mode,), {"__torch_dispatch__": dispatch})
    with _profile(torch) as profile, counting():
        work()
        _wait(torch)
    for event in profile.events():
        if event.name.startswith(MARK) and "CPU" in str(event.device_type):
            sums[labels[int(event.name.removeprefix(MARK))]]["measured_s"] += event.device_time_total / 1e6
    return sums


def by_kernel(torch: Any, work: Callable[[], object]) -> Sums:
    """Of one call of a compiled program: kernels and their seconds by class of name."""
    calls: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    with _profile(torch) as profile:
        work()
        _wait(torch)
    for event in profile.events():
        if "CUDA" in str(event.device_type) and not event.is_user_annotation:
            name = event.name.lower()
            kind = next((kind for kind, words in KERNELS if any(word in name for word in words)), "elementwise")
            calls[kind] += 1
            seconds[kind] += event.device_time_total / 1e6
    return {kind: {"calls": float(count), "measured_s": float(seconds[kind])} for kind, count in calls.items()}


def _profile(torch: Any) -> Any:
    kinds = torch.profiler.ProfilerActivity
    return torch.profiler.profile(activities=[kinds.CPU, *([kinds.CUDA] if torch.cuda.is_available() else [])])


def _wait(torch: Any) -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
