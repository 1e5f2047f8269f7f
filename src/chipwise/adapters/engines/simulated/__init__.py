"""A world that is played on a virtual clock: what would happen, and every fault that a test wants to see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.runner.abilities import Traits

if TYPE_CHECKING:
    from .engine import Simulated
    from .world import World

NAME = __name__.rpartition(".")[2].replace("_", "-")
TRAITS = Traits(page="docs/tutorial/simulate.md", plays=True)


def connect(config: World) -> Simulated:
    from .engine import connect

    return connect(config)
