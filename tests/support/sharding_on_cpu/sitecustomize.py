"""Lets accelerate divide a model over processes without GPUs, which it does on all other devices. Python imports it at its
start where this folder is on PYTHONPATH; nothing else of any library is changed."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "accelerate.state":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        loader: Any = spec.loader
        run = loader.exec_module

        def changed(module: Any) -> None:
            run(module)
            allow(module)

        loader.exec_module = changed
        return spec


def allow(module: Any) -> None:
    state, kinds = module.AcceleratorState, module.DistributedType
    made = state.__init__

    def begin(self: Any, *words: Any, **named: Any) -> None:
        made(self, *words, **named)
        plugin = named.get("fsdp_plugin")
        if plugin is not None and self.distributed_type == kinds.MULTI_CPU:
            self.distributed_type, self.fsdp_plugin = kinds.FSDP, plugin
            if self._mixed_precision != "no":
                plugin.set_mixed_precision(self._mixed_precision)

    state.__init__ = begin


sys.meta_path.insert(0, Finder())
