"""Which weights of the hub a workload means: models of one shape share a row, and a short name stands for one of them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from chipwise.renderer.quoting import is_hub_id
from chipwise.workload.model.registry import Model
from chipwise.workload.model.spelled import key, without_owner


def named_id(written: str, known: Model) -> str | None:
    """The one that a workload names, with its owner or without. None: the name is of the shape, and any of them has it."""
    if _is_id(written) and not written.endswith(".json"):
        return written
    matches = (name for name in _ids(known) if key(without_owner(name)) == key(written))
    exact = next(matches, None)
    if exact is not None or key(written) == key(known.name):
        return exact
    closest = closest_id(written, known)
    return closest if closest != closest_id(known.name, known) else None


def closest_id(written: str, known: Model) -> str | None:
    """Of those that share the row, the one with most words of the name and fewest others; the first of several."""
    wanted = _words(written)

    def distance(name: str) -> tuple[int, int]:
        words = _words(without_owner(name))
        return -len(words & wanted), len(words - wanted)

    return min(_ids(known), key=distance, default=None)


def _ids(known: Model) -> Iterable[str]:
    return [name for name in known.aliases if _is_id(name)]


def _is_id(text: str) -> bool:
    """ViT-B/16 is how papers write a network, and not a model of an owner."""
    return is_hub_id(text) and re.search(r"[A-Za-z]", text.partition("/")[2]) is not None


def _words(name: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]+", name.lower()))
