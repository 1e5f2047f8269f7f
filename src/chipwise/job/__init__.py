"""chipwise.job: what training code needs to survive being stopped. No framework, no server; NumPy only where arrays are met.

    import chipwise.job as job

    state = {"weights": w, "lr": 0.1}
    for step in job.steps(state, total=1000):   # restores `state`, yields the steps still to do, saves as it goes
        train_one(state)

By hand: `job.Checkpoints(url).save(step, state)` and `.load()`. `job.leaving()` tells whether a notice came. `job.torch` and
`job.jax` hold what is special to them. `job.batches(loader)` counts how long the program waits for data, `job.add_tokens(n)`
what it did: `chipwise watch` shows both. Everything is imported when it is first named: the import itself costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chipwise.job.checkpoints import Checkpoints, Loaded, LoadedFolder
    from chipwise.job.counting import add_tokens, batches
    from chipwise.job.errors import CannotKeep, CannotRestore, CannotSave, Fenced, NoAnswer, NothingWhole
    from chipwise.job.notices import Leaving, leaving, listening
    from chipwise.job.resharding import part
    from chipwise.job.stepping import steps

LEFT = 75  # EX_TEMPFAIL, the exit code that says "saved; start me again"

_HOMES = {
    "counting": ("add_tokens", "batches"),
    "checkpoints": ("Checkpoints", "Loaded", "LoadedFolder"),
    "errors": ("CannotKeep", "CannotRestore", "CannotSave", "Fenced", "NoAnswer", "NothingWhole"),
    "notices": ("Leaving", "leaving", "listening"),
    "resharding": ("part",),
    "stepping": ("steps",),
}
__all__ = [
    "CannotKeep",
    "CannotRestore",
    "CannotSave",
    "Checkpoints",
    "Fenced",
    "LEFT",
    "Leaving",
    "Loaded",
    "LoadedFolder",
    "NoAnswer",
    "NothingWhole",
    "add_tokens",
    "batches",
    "leaving",
    "listening",
    "part",
    "steps",
]


def __getattr__(name: str) -> Any:
    for home, exports in _HOMES.items():
        if name in exports:
            value = getattr(import_module(f"chipwise.job.{home}"), name)
            globals()[name] = value
            return value
    if name in ("torch", "jax"):
        return import_module(f"chipwise.job.{name}")
    raise AttributeError(f"module 'chipwise.job' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "jax", "torch"]
