"""Which directories are there when a program starts: the same answer for every target."""

from __future__ import annotations

import re

from chipwise.renderer.deployment import Deployment, Volume
from chipwise.text import decimal_size


def mounted_volumes(deployment: Deployment, custom: bool = False) -> tuple[Volume, ...]:
    """Directories that are volumes. What lies in an object store is read by the user's program itself; a command of ours knows
    files only, so that what it names must be there. `custom`: the same for a command of the user's own, where all it takes is a
    folder beside the file."""
    by_us = custom or not deployment.software.is_custom
    return tuple(one for one in deployment.volumes if one.url is None or (by_us and _in_command(deployment, one.path)))


def large_copies(deployment: Deployment, size_bytes: float, largest_bytes: float) -> str:
    """Machines without a file system between them have a copy each of what they read, of an archive the whole. What is to be
    said where no disk holds it; empty: it fits."""
    if size_bytes <= largest_bytes:
        return ""
    names = ", ".join(one.path for one in deployment.volumes)
    machines = "The machine" if deployment.machines == 1 else f"Each of {deployment.machines:,} machines"
    ends = f"its own disk, which ends at {decimal_size(largest_bytes)}"
    return f"{machines} would copy {names} ({decimal_size(size_bytes)}) to {ends}."


def to_be_filled(deployment: Deployment) -> str:
    """Of those, what somebody has to put there first; empty: nothing."""
    volumes = [one for one in mounted_volumes(deployment) if one.url is not None and one.name == "data"]
    return "\n".join(f"Fill {one.path} from {one.url} first: the program reads files, not the object store." for one in volumes)


def _in_command(deployment: Deployment, path: str) -> bool:
    """Whether the command has the directory, or something in it, in one of its words."""
    pattern = re.compile(rf"(^|[=:,]){re.escape(path.rstrip('/'))}(/|$)")
    return any(pattern.search(word) for word in deployment.software.command)
