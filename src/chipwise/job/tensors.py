"""PyTorch tensors and state dicts as bytes: copied to the CPU at once, written by `torch.save` in the background, read with
`weights_only=True`, so that a checkpoint can hold tensors and plain values, and never code.

torch is never imported here: who has a tensor has imported it.
"""

from __future__ import annotations

import io
import sys
from importlib import import_module
from typing import Any

from chipwise.errors import MissingExtra
from chipwise.job.errors import CannotRestore
from chipwise.job.later import Later


def is_tensor(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, "Tensor", ()))


def is_module(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def unlike_module(live: Any, state: Any, field: str) -> str | None:
    """Where saved weights do not fit a module: the first field."""
    own = live.state_dict()
    for key in own:
        if key not in state:
            return f"{field}.{key} is not in the checkpoint"
        if is_tensor(own[key]) and own[key].shape != state[key].shape:
            return f"{field}.{key} has {tuple(own[key].shape)} values, and {tuple(state[key].shape)} in the checkpoint"
    return next((f"{field}.{key} is in the checkpoint, and not here" for key in state if key not in own), None)


def holds_tensors(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(holds_tensors, value.values()))
    if isinstance(value, list | tuple):
        return any(map(holds_tensors, value))
    return is_tensor(value)


def later(value: Any) -> Later:
    """A copy on the CPU now (training may go on), the bytes in the background."""
    copied: dict[int, Any] = {}
    total = 0

    def copy(item: Any) -> Any:
        nonlocal total
        if is_tensor(item):
            if id(item) not in copied:
                copied[id(item)] = item.detach().to("cpu", copy=True)
                total += item.numel() * item.element_size()
            return copied[id(item)]
        if isinstance(item, dict):
            return {key: copy(item) for key, item in item.items()}
        if isinstance(item, list | tuple):
            return type(item)(map(copy, item)) if type(item) in (list, tuple) else [copy(item) for item in item]
        return item

    snapshot = copy(value)
    return Later(lambda: to_bytes(snapshot), total)


def to_bytes(value: Any) -> bytes:
    torch = sys.modules["torch"]
    written = io.BytesIO()
    torch.save(value, written)
    return written.getvalue()


def from_bytes(content: bytes | bytearray | memoryview, field: str) -> Any:
    try:
        torch = import_module("torch")
    except ImportError as error:
        raise MissingExtra(f"The checkpoint's {field}", "torch") from error
    try:
        return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as error:  # whatever the unpickler says: it is told which field, and that no code is run
        raise CannotRestore(
            f"{field} holds more than tensors and plain values, or was written by another version of torch: {error}.",
            remedy="Keep only tensors, numbers, text and containers of them in state_dict().",
        ) from error
