"""How names of models are compared: `Llama 3.1 8B`, `llama3.1:8b` and `meta-llama/Llama-3.1-8B` are spellings of one."""

from __future__ import annotations

import re

GRAPHS = (".onnx", ".pt2")  # endings of files that hold a network's graph


def key(name: str) -> str:
    """The form in which spellings of one model are equal: `Llama 3.1 8B`, `llama3.1:8b` -> llama-3.1-8-b.

    Numbers stay whole, so that 3.1-8b is never taken for 3-18b.
    """
    return "-".join(re.findall(r"[a-z]+|\d+(?:\.\d+)*", name.casefold()))


def without_owner(name: str) -> str:
    """`meta-llama/Llama-3.1-8B` -> `Llama-3.1-8B`; `ViT-B/16` stays, for 16 is no name."""
    last = name.rstrip("/").rpartition("/")[2]
    return last if last[:1].isalpha() else name


def names_graph(name: str) -> bool:
    """A file with the graph of a network, by its ending."""
    return name.casefold().endswith(GRAPHS)


def names_file(name: str) -> bool:
    """A file on this machine rather than a model that somebody published."""
    return name.endswith(".json") or name.startswith(".") or names_graph(name)
