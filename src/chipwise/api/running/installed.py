"""Engines that are installed, by name: folders of `adapters/engines/`, and entry points of other packages.

What a job, a list or a help text wants to know of an engine by its name alone is asked here; only its package is imported for
that, and no SDK.
"""

from __future__ import annotations

from functools import cache
from typing import cast

from chipwise import plugins
from chipwise.errors import UnknownName
from chipwise.runner.abilities import Configurable, Connects, RunsHere, Traits
from chipwise.spelling import nearest

FOLDER, GROUP = "chipwise.adapters.engines", "chipwise.engines"
DEFAULT = "local"  # carries out what no engine is named for


def names() -> tuple[str, ...]:
    """Of all, as the user types them."""
    return plugins.names(FOLDER, GROUP)


def choices() -> tuple[str, ...]:
    """Those that a job can be given to, the default first."""
    real = {name for name in names() if isinstance(package(name), RunsHere | Configurable)}
    return (DEFAULT, *sorted(real - {DEFAULT}))


def configurable() -> tuple[str, ...]:
    """Those that engines.yaml can give settings and other names."""
    return tuple(name for name in names() if isinstance(package(name), Configurable))


@cache
def package(name: str) -> Connects:
    if (connector := package_or_none(name)) is None:
        raise UnknownName("engine", name, nearest(name, names()), remedy=f"There are: {', '.join(choices())}.")
    return connector


@cache
def package_or_none(name: str) -> Connects | None:
    """None: it is not installed here, as may be in a team's record; nothing is known of it then."""
    return cast("Connects | None", plugins.load(FOLDER, GROUP, name))


def traits(name: str) -> Traits:
    found = package_or_none(name)
    return Traits() if found is None else found.TRAITS


def runs_here(name: str) -> bool:
    """Whether jobs of that engine run on the machine where they were submitted."""
    return isinstance(package_or_none(name), RunsHere)
