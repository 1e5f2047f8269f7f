"""Parts that are found by their name: files and folders of a package of ours, and entry points of other packages.

The name of a file or folder is what the user types, with a hyphen where it has an underscore. A part is imported when it is
first asked for, so that an SDK that is missing matters only to who asks for that part.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType


def typed(name: str) -> str:
    return name.replace("_", "-")


def own(package: str) -> tuple[str, ...]:
    """Of our package alone. Read anew each time: a file that was added is there at once."""
    return tuple(sorted(typed(module.name) for module in pkgutil.iter_modules(import_module(package).__path__)))


def names(package: str, group: str) -> tuple[str, ...]:
    return tuple(sorted({*own(package), *_installed(group)}))


def load(package: str, group: str, name: str) -> ModuleType | None:
    """None: there is no such key. Ours comes first, so that no other package takes its place."""
    if typed(name) in own(package):
        return import_module(f"{package}.{typed(name).replace('-', '_')}")
    entry = _installed(group).get(typed(name))
    return None if entry is None else entry()


@cache
def _installed(group: str) -> dict[str, Callable[[], ModuleType]]:
    """What is installed does not change while we run."""
    from importlib.metadata import entry_points  # takes longer than all else here, and most commands need none

    return {typed(entry.name): entry.load for entry in entry_points(group=group)}
