"""Modules with global hooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

BEFORE: list[Callable[..., Any]] = []
AFTER: list[Callable[..., Any]] = []


class Handle:
    def __init__(self, hooks: list[Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self.hooks, self.hook = hooks, hook
        hooks.append(hook)

    def remove(self) -> None:
        self.hooks.remove(self.hook)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> Handle:
    return Handle(BEFORE, hook)


def register_module_forward_hook(hook: Callable[..., Any], *, always_call: bool = False) -> Handle:
    return Handle(AFTER, hook)


class Module:
    weights: tuple[Any, ...] = ()

    def forward(self, value: Any) -> Any:
        return value

    def __call__(self, value: Any) -> Any:
        for hook in BEFORE:
            hook(self, (value,))
        result = self.forward(value)
        for hook in AFTER:
            hook(self, (value,), result)
        return result

    def parameters(self) -> Iterator[Any]:
        return iter(self.weights)

    def modules(self) -> Iterator[Any]:
        return iter((self,))

    def register_forward_hook(self, hook: Callable[..., Any]) -> Handle:
        return Handle(AFTER, lambda module, *rest: hook(module, *rest) if module is self else None)


class Embedding(Module):
    pass
