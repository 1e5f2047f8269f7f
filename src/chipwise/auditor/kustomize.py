"""Files of a kustomization that are no objects by themselves: patches, which say only what they change."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping

from chipwise.auditor.source import Manifest, listed, look


def patched(found: Mapping[str, Manifest]) -> set[str]:
    """`found`: kustomizations by path. Paths of the patches that they name, relative to where the audit began."""
    return {
        posixpath.normpath(posixpath.join(posixpath.dirname(path), name)) for path, one in found.items() for name in _named(one)
    }


def _named(one: Manifest) -> Iterator[str]:
    for key in ("patches", "patchesStrategicMerge", "patchesJson6902", "components", "transformers"):
        for patch in listed(one.body.get(key)):
            name = patch if isinstance(patch, str) else look(patch, "path")
            if isinstance(name, str) and "\n" not in name:
                yield name
