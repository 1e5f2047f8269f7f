"""Files of a kustomization that are no objects by themselves: patches, which say only what they change."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping

from chipwise.auditor.source import Manifest, listed, look


def patched(kustomizations: Mapping[str, Manifest]) -> set[str]:
    """`kustomizations` are by path. Paths of the patches that they name, relative to where the audit began."""
    return {
        posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        for path, kustomization in kustomizations.items()
        for name in _patch_paths(kustomization)
    }


def _patch_paths(kustomization: Manifest) -> Iterator[str]:
    for key in ("patches", "patchesStrategicMerge", "patchesJson6902", "components", "transformers"):
        for patch in listed(kustomization.body.get(key)):
            name = patch if isinstance(patch, str) else look(patch, "path")
            if isinstance(name, str) and "\n" not in name:
                yield name
