"""One file for several environments: `environments: {dev: {...}, prod: {...}}`, each laid over the rest.

Mappings merge field by field; lists and plain values replace; null removes, as in RFC 7386. A mapping whose `kind` changes
replaces the one below, because the fields of one kind mean nothing in another. Every value remembers where it was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chipwise.files.source import Document, FieldPath, show_where

KEY = "environments"


@dataclass(frozen=True, slots=True)
class Spot:
    """Where the file says something: its field there and its line."""

    field: str
    line: int


@dataclass(frozen=True, slots=True)
class Layered:
    """What one environment amounts to, and where each value of it was written."""

    data: Mapping[str, object]
    spots: Mapping[FieldPath, Spot]


def layer(document: Document, environment: str | None) -> Layered:
    """The document with one of its environments laid over it; None leaves it as it is without any."""
    spots: dict[FieldPath, Spot] = {(): Spot("", document.lines.get((), 1))}
    base = {key: value for key, value in document.data.items() if key != KEY}
    environments = document.data.get(KEY)
    overlay = environments.get(environment) if environment is not None and isinstance(environments, Mapping) else None
    merged = _merge(document, base, overlay if isinstance(overlay, Mapping) else {}, (), (KEY, environment or ""), spots)
    return Layered(merged, spots)


def _merge(
    document: Document,
    base: Mapping[str, object],
    overlay: Mapping[str, object],
    field_path: FieldPath,
    root: FieldPath,
    spots: dict[FieldPath, Spot],
) -> dict[str, object]:
    merged: dict[str, object] = {}
    for key in dict.fromkeys([*base, *overlay]):
        inner_path: FieldPath = (*field_path, key)
        below, above = base.get(key), overlay.get(key)
        if key not in overlay:
            if below is not None:
                merged[key] = _place(document, below, inner_path, inner_path, spots)
        elif above is None:
            continue
        elif isinstance(below, Mapping) and isinstance(above, Mapping) and not _other_kind(below, above):
            origin = (*root, *inner_path)
            spots[inner_path] = _spot(document, origin)
            merged[key] = _merge(document, below, above, inner_path, root, spots)
        else:
            merged[key] = _place(document, above, inner_path, (*root, *inner_path), spots)
    return merged


def _other_kind(below: Mapping[str, object], above: Mapping[str, object]) -> bool:
    return "kind" in above and above["kind"] != below.get("kind")


def _place(document: Document, value: object, field_path: FieldPath, origin: FieldPath, spots: dict[FieldPath, Spot]) -> object:
    """The value, with its spots noted and empty fields left out: a field without a value counts as not given."""
    spots[field_path] = _spot(document, origin)
    if isinstance(value, Mapping):
        return {
            key: _place(document, inner, (*field_path, key), (*origin, key), spots)
            for key, inner in value.items()
            if inner is not None
        }
    if isinstance(value, list):
        return [_place(document, inner, (*field_path, index), (*origin, index), spots) for index, inner in enumerate(value)]
    return value


def _spot(document: Document, origin: FieldPath) -> Spot:
    return Spot(show_where(origin), document.lines.get(origin, 1))
