"""Python imports this when it starts: it installs our hook, then imports the module of this name that it stands before."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def _hook() -> None:
    try:
        importlib.import_module("chipwise_hook.starting").start()
    except Exception as error:  # the program must run as it would without us
        if os.environ.get("CHIPWISE_HOOK_DEBUG"):
            raise
        del error


def _own_sitecustomize() -> None:
    places = [place for place in sys.path if os.path.abspath(place or ".") != _FOLDER]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", places)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if os.environ.get("CHIPWISE_HOOK"):
    _hook()
    _own_sitecustomize()
