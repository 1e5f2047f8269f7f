"""A network from a file that holds its graph: read once while the file stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.adapters.graphs.sizes import Sizes
from chipwise.errors import BadInput
from chipwise.workload.graph.summary import missing, shape_of
from chipwise.workload.model.registry import Model
from chipwise.workload.model.spelled import names_graph

if TYPE_CHECKING:
    from chipwise.workload.graph.values import Graph

__all__ = ["Sizes", "graph_model", "graph_of", "model_of", "names_graph", "path_of", "read_view"]

_STATED = Sizes()


def path_of(name: str) -> Path:
    try:
        return Path(name).expanduser()
    except RuntimeError as error:  # ~nobody
        raise BadInput(f"There is no home directory for {name[:80]!r}.", remedy="Check the path.") from error


def graph_of(name: str, sizes: Sizes = _STATED) -> Graph:
    """The graph in a file of this name; BadInput says what is wrong with it."""
    path = path_of(name)
    try:
        state = path.stat()
    except (OSError, ValueError):
        return _read(path, sizes, ())  # which says why it cannot
    return _read(path, sizes, (state.st_mtime_ns, state.st_size, state.st_ino))


@lru_cache(maxsize=16)
def _read(path: Path, sizes: Sizes, state: Sequence[int]) -> Graph:
    if path.suffix.casefold() == ".pt2":
        from chipwise.adapters.graphs.torch_export import read
    else:
        from chipwise.adapters.graphs.apart import read
    return read(path, sizes)


def graph_model(name: str, sizes: Sizes = _STATED) -> Model:
    """The network as prediction takes it, per sample."""
    return model_of(name, graph_of(name, sizes))


def read_view(name: str, sizes: Sizes) -> dict[str, Any]:
    """The network in a file as plain data, with every operator."""
    from chipwise.views.graph import graph_view

    graph = graph_of(name, sizes)
    try:
        model: Model | BadInput = model_of(name, graph)
    except BadInput as error:
        model = error
    return graph_view(path_of(name).name, graph, model)


def model_of(name: str, graph: Graph) -> Model:
    return Model(
        name=path_of(name).name,
        aliases=(),
        family="own",
        shape=shape_of(graph),
        context=None,
        published_parameters=None,
        source=f"the graph in {name}",
        as_of="read now",
        local=True,
        notes=(*graph.notes, *missing(graph)),
    )
