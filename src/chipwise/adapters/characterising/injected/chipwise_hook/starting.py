"""Installs the hook: what watches a library is added when the program has imported that library, not before."""

from __future__ import annotations

import atexit
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from .report import Report

Watcher = Callable[[ModuleType, Report], None]
# Library, the mode in which it is watched, and the module here that does so by its function `watch`.
_WATCHED = {
    "torch": ("", "torch_steps"),
    "numpy": ("count", "numpy_counts"),
    "tqdm": ("", "bars"),
}


def start() -> None:
    report = Report(json.loads(os.environ["CHIPWISE_HOOK"]))
    report.note(python=sys.version.split()[0], pid=report.pid, argv=sys.argv[:1] if hasattr(sys, "argv") else [])
    atexit.register(report.finish)
    wanted = {name: module for name, (mode, module) in _WATCHED.items() if mode in ("", report.mode)}
    sys.meta_path.insert(0, _Finder(wanted, report))


class _Finder(importlib.abc.MetaPathFinder):
    """Lets the usual finders find a library, and adds to its loading what watches it."""

    def __init__(self, wanted: dict[str, str], report: Report) -> None:
        self._wanted = wanted
        self._report = report

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        watcher = self._wanted.pop(fullname, None)
        if watcher is None:
            return None
        if fullname == "torch":
            self._report.note(imports=fullname)  # which takes seconds, and looks like steady work
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            _add(spec.loader, watcher, self._report)
        return spec


def _add(loader: Any, watcher: str, report: Report) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        try:
            importlib.import_module(f"chipwise_hook.{watcher}").watch(module, report)
        except Exception as error:  # of a version that we do not know; the program goes on
            report.note(error=f"{watcher}: {type(error).__name__}: {error}"[:300])

    loader.exec_module = exec_module
