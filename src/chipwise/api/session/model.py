"""A model by whatever the user has: a name, a config.json or a graph on disk, or a hub id when online."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from chipwise.errors import OutsideFailed, UnknownName
from chipwise.workload.model.registry import Model, Registry
from chipwise.workload.model.spelled import names_file, names_graph


class Models:
    """Where a session finds models; the registry is read when it is first needed."""

    def __init__(self, load: Callable[[], Registry]) -> None:
        self._load = load

    @property
    def registry(self) -> Registry:
        return self._load()

    def find(self, name: str, online: bool = True) -> Model:
        return find(name, self.registry, online)


def find(name: str, registry: Registry, online: bool) -> Model:
    """Registry first, then a file or directory of this name, then the hub; the registry's own error when all fail."""
    looks_like_path = names_file(name) or name.startswith(("/", "~")) or (name.endswith("/") and _exists(name))
    if not looks_like_path:
        try:
            return registry.find(name)
        except UnknownName as unknown:
            if _exists(name):
                return _from_file(name)
            if online and name.count("/") == 1:
                return _from_hub(name, unknown)
            raise
    return _from_file(name)


def _exists(name: str) -> bool:
    try:
        return Path(name).expanduser().exists()
    except (OSError, ValueError, RuntimeError):
        return False  # too long, or not a path at all


def _from_file(name: str) -> Model:
    from chipwise.api.session.graph import graph_model, path_of
    from chipwise.workload.model.huggingface import read_config, shape_from_config

    if names_graph(name):
        return graph_model(name)
    path = path_of(name)
    shape = shape_from_config(read_config(path))
    label = path.parent.name if path.is_file() else path.name
    return Model(
        name=label or path.stem,
        aliases=(),
        family="own",
        shape=shape,
        context=None,
        published_parameters=None,
        source=f"config.json at {name}",
        as_of="read now",
        local=True,
    )


def _from_hub(name: str, unknown: UnknownName) -> Model:
    from chipwise.adapters.hub import fetch_config
    from chipwise.workload.model.huggingface import shape_from_config

    try:
        config = fetch_config(name, os.environ.get("HF_ENDPOINT") or None)
    except OutsideFailed as error:
        # Both halves matter: the name is not ours, and the hub could not be asked.
        raise type(error)(f"{unknown.message} {error.message}", remedy=error.remedy) from error
    return Model(
        name=name,
        aliases=(),
        family="hub",
        shape=shape_from_config(config),
        context=None,
        published_parameters=None,
        source=f"config.json of {name} on the hub",
        as_of="read now",
    )
