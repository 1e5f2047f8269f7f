"""A stand-in for PyTorch: tensors without values, one operator (a product), and modes that see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__version__ = "stand-in"
MODES: list[Any] = []
GRADIENTS = [True]


class Tensor:
    dtype = "torch.float32"

    class device:  # noqa: N801
        type = "cpu"

    def __init__(self, *shape: int) -> None:
        self.shape = shape

    def numel(self) -> int:
        size = 1
        for length in self.shape:
            size *= length
        return size

    def element_size(self) -> int:
        return 4

    def dim(self) -> int:
        return len(self.shape)

    def is_floating_point(self) -> bool:
        return True


class Operator:
    """An overload of an operator; the packet of its overloads is itself."""

    namespace = "aten"
    is_view = False

    def __init__(self, name: str, function: Callable[..., Tensor]) -> None:
        self.name, self.function = name, function

    def __str__(self) -> str:
        return f"aten.{self.name}"

    def __call__(self, *args: Any) -> Any:
        if MODES:
            mode = MODES.pop()
            try:
                return mode.__torch_dispatch__(self, (), args, {})
            finally:
                MODES.append(mode)
        return self.function(*args)


mm = Operator("mm", lambda left, right: Tensor(left.shape[0], right.shape[1]))
relu = Operator("relu", lambda value: Tensor(*value.shape))


def is_grad_enabled() -> bool:
    return GRADIENTS[0]


class cuda:  # noqa: N801
    @staticmethod
    def is_available() -> bool:
        return False

    @staticmethod
    def is_initialized() -> bool:
        return False


from . import nn as nn  # noqa: E402
from . import optim as optim  # noqa: E402
from . import utils as utils  # noqa: E402
