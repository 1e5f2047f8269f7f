"""Counts of every operator that a PyTorch program runs: operations, bytes, time, formats, and what goes between devices.

Products, convolutions and attention are counted by PyTorch's own formulas (`torch.utils.flop_counter`); any other operator
that computes with floating-point numbers counts one operation for each value that it gives, and views count nothing. Bytes are
those of all inputs and results, once each: what an operator would move if no cache kept anything between two operators.
"""

from __future__ import annotations

import importlib
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

_FORMATS = {
    "torch.float64": "fp64",
    "torch.float32": "fp32",
    "torch.bfloat16": "bf16",
    "torch.float16": "fp16",
    "torch.float8_e4m3fn": "fp8",
    "torch.float8_e5m2": "fp8",
    "torch.int8": "int8",
}
_NO_WORK = (
    "empty",
    "new_empty",
    "view",
    "reshape",
    "detach",
    "alias",
    "expand",
    "permute",
    "transpose",
    "unsqueeze",
    "squeeze",
    "slice",
    "select",
)
_MOVED_ONLY = (
    "copy",
    "clone",
    "cat",
    "stack",
    "empty",
    "zero",
    "fill",
    "ones",
    "full",
    "arange",
    "index",
    "embedding",
    "gather",
)
_ATTENTION = ("scaled_dot_product", "_flash_attention", "_efficient_attention")
_PATTERNS = {"allreduce": "allreduce", "all_reduce": "allreduce", "reduce_scatter": "allreduce", "allgather": "broadcast"}
_PATTERNS |= {"all_gather": "broadcast", "broadcast": "broadcast", "alltoall": "alltoall", "all_to_all": "alltoall"}


def _tensors(value: Any, kind: type) -> Iterator[Any]:
    if isinstance(value, kind):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item, kind)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()), kind)


class Counting:
    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._formulas = importlib.import_module("torch.utils.flop_counter").flop_registry
        self._mode = self._make_mode()
        self.products: dict[str, float] = {}  # FLOP of products and attention, by format
        self.others: dict[str, float] = {}
        self.operators: dict[str, list[float]] = {}
        self.transfers: Counter[str] = Counter()
        self.sent: Counter[str] = Counter()
        self.step_flop: list[float] = []
        self.step_bytes: list[float] = []
        self.forward_flop = self.activations = self.product_calls = self.moved = self.inside_s = self.overhead_s = 0.0
        self.attention_flop = self.convolution_flop = self.depthwise_flop = 0.0
        self.samples = 0.0
        self.shapes: dict[str, object] = {}
        self._in_forward = False
        self._began = 0.0

    def _make_mode(self) -> Any:
        base = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode
        counting = self

        class Mode(base):  # type: ignore[misc, valid-type]
            def __torch_dispatch__(
                self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
            ) -> Any:
                return counting.run(func, args, kwargs or {})

        return Mode()

    def begin(self) -> None:
        self._wait()
        self._began = time.monotonic()
        self._mode.__enter__()

    def outermost(self, module: Any, inputs: tuple[Any, ...]) -> None:
        self._in_forward = True
        shaped = list(_tensors(inputs, self._torch.Tensor))
        if not shaped:
            return
        first = shaped[0]
        self.samples += float(first.shape[0]) if first.dim() else 1.0
        parameters = {id(parameter): parameter.numel() for parameter in module.parameters()}
        self.shapes = {"module": type(module).__name__, "parameters": sum(parameters.values()), "input": list(first.shape)}
        self.shapes["tokens"] = not first.is_floating_point() and first.dim() == 2
        self.shapes["tables"] = sum(
            part.weight.numel() for part in module.modules() if isinstance(part, self._torch.nn.Embedding)
        )

    def returned(self) -> None:
        self._in_forward = False

    def step_ended(self) -> None:
        self.step_flop.append(sum(self.products.values()) + sum(self.others.values()) - sum(self.step_flop))
        self.step_bytes.append(self.moved - sum(self.step_bytes))

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        packet = getattr(func, "_overloadpacket", func)
        if packet not in self._formulas and (decompose := getattr(func, "decompose", None)) is not None:
            with self._mode:  # in inference mode operators come as a whole: their parts are counted
                parts = decompose(*args, **kwargs)
            if parts is not NotImplemented:
                return parts
        start = time.perf_counter()
        result = func(*args, **kwargs)
        middle = time.perf_counter()
        self._count(func, args, kwargs, result, middle - start)
        self.inside_s += middle - start
        self.overhead_s += time.perf_counter() - middle
        return result

    def _count(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, seconds: float) -> None:
        packet = getattr(func, "_overloadpacket", func)
        name = str(packet).rpartition(".")[2] or str(packet)
        space = str(getattr(func, "namespace", ""))
        results = list(_tensors(result, self._torch.Tensor))
        operands = list({id(tensor): tensor for tensor in _tensors((args, kwargs), self._torch.Tensor)}.values())
        if "c10d" in space:
            self.sent[next((pattern for word, pattern in _PATTERNS.items() if word in name), "other")] += _size(operands)
            return
        if name.startswith(_NO_WORK) or getattr(func, "is_view", False):
            return
        size, is_attention = float(_size(operands) + _size(results)), any(word in name for word in _ATTENTION)
        flop, is_product = 0.0, packet in self._formulas or is_attention
        if is_attention and packet not in self._formulas:
            flop = _attention_flop(name, operands)
        elif is_product:
            flop = float(self._formulas[packet](*args, **kwargs, out_val=result))
        elif results and not name.startswith(_MOVED_ONLY) and any(tensor.is_floating_point() for tensor in results):
            flop = float(sum(tensor.numel() for tensor in results if tensor.is_floating_point()))
        self._between_devices(name, operands, results)
        self.moved += size
        precision = next((_FORMATS[str(one.dtype)] for one in (*operands, *results) if str(one.dtype) in _FORMATS), "fp32")
        kinds = self.products if is_product else self.others
        kinds[precision] = kinds.get(precision, 0.0) + flop
        row = self.operators.setdefault(name, [0.0, 0.0, 0.0, 0.0])
        for place, value in enumerate((1.0, flop, size, seconds)):
            row[place] += value
        if is_product:
            self._sort_product(name, args, flop, results)

    def _sort_product(self, name: str, args: tuple[Any, ...], flop: float, results: list[Any]) -> None:
        if any(word in name for word in _ATTENTION) or name in ("bmm", "baddbmm"):
            self.attention_flop += flop
        elif "convolution" in name:
            groups = next((arg for arg in reversed(args) if isinstance(arg, int) and not isinstance(arg, bool)), 1)
            self.convolution_flop += flop
            self.depthwise_flop += flop if groups > 8 else 0.0
        if self._in_forward:
            self.forward_flop += flop
            self.product_calls += 1
            self.activations += float(results[0].numel()) if results else 0.0

    def _between_devices(self, name: str, operands: list[Any], results: list[Any]) -> None:
        if name not in ("_to_copy", "copy_") or not operands or not results:
            return
        source, target = (operands[-1], operands[0]) if name == "copy_" else (operands[0], results[0])
        if source.device.type != target.device.type:
            side = "from_device" if target.device.type == "cpu" else "to_device"
            self.transfers[side] += _size([source])

    def _wait(self) -> None:
        if self._torch.cuda.is_available() and self._torch.cuda.is_initialized():
            self._torch.cuda.synchronize()

    def end(self) -> dict[str, object]:
        self._mode.__exit__(None, None, None)
        self._wait()
        wall = time.monotonic() - self._began
        steps = max(len(self.step_flop), 1)
        cuda = self._torch.cuda.is_available() and self._torch.cuda.is_initialized()
        slowest = sorted(self.operators.items(), key=lambda item: -item[1][1] - item[1][2])[:20]
        return {
            "counted_steps": steps,
            "step_flop": self.step_flop,
            "step_bytes": self.step_bytes,
            "products": dict(self.products),
            "others": dict(self.others),
            "operators": [[name, *row] for name, row in slowest],
            "transfers": dict(self.transfers),
            "communication": dict(self.sent),
            "inside_s": self.inside_s,
            "overhead_s": self.overhead_s,
            "wall_s": wall,
            "samples": self.samples / steps,
            "forward_flop": self.forward_flop / steps,
            "activations": self.activations / steps,
            "product_calls": self.product_calls / steps,
            "attention_flop": self.attention_flop / steps,
            "convolution_flop": self.convolution_flop / steps,
            "depthwise_flop": self.depthwise_flop / steps,
            "device": self._torch.cuda.get_device_name() if cuda else "cpu",
            "device_memory": float(self._torch.cuda.max_memory_reserved()) if cuda else None,
            "compiled": any(name.startswith("inductor") for name in self.operators),
            **self.shapes,
        }


def _attention_flop(name: str, operands: list[Any]) -> float:
    """Where PyTorch has no formula, as on processors: two products, and five in the backward pass."""
    backward = "backward" in name
    query, key, value = operands[1:4] if backward else operands[:3]
    scores = 2.0 * float(query.numel()) * float(key.shape[-2])
    mixed = 2.0 * float(query.numel() // query.shape[-1]) * float(key.shape[-2]) * float(value.shape[-1])
    return 3.0 * scores + 2.0 * mixed if backward else scores + mixed


def _size(tensors: list[Any]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
