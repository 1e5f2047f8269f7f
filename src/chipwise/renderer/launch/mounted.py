"""Which directories are there when a program starts: the same answer for every target."""

from __future__ import annotations

import re

from chipwise.renderer.deployment import Deployment, Volume


def mounted_volumes(deployment: Deployment) -> tuple[Volume, ...]:
    """Directories that are volumes. What lies in an object store is read by the user's program itself; a command that names the
    directory knows files only, so that they must be there."""
    return tuple(one for one in deployment.volumes if one.url is None or _in_command(deployment, one.path))


def to_be_filled(deployment: Deployment) -> str:
    """Of those, what somebody has to put there first; empty: nothing."""
    volumes = [one for one in mounted_volumes(deployment) if one.url is not None and one.name == "data"]
    return "\n".join(f"Fill {one.path} from {one.url} first: the program reads files, not the object store." for one in volumes)


def _in_command(deployment: Deployment, path: str) -> bool:
    """Whether the command has the directory, or something in it, in one of its words."""
    pattern = re.compile(rf"(^|[=:,]){re.escape(path.rstrip('/'))}(/|$)")
    return any(pattern.search(word) for word in deployment.software.command)
