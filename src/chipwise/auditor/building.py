"""What a tool makes of a directory of templates or patches, or why there is nothing."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Build:
    """Of one directory: manifests as text, or the reason that there are none."""

    text: str = ""
    reason: str = ""
    fix: str = ""


def charts(paths: Iterable[str]) -> Iterator[str]:
    """Directories of Helm charts; those inside another are parts of it."""
    roots = sorted(posixpath.dirname(path) for path in paths if posixpath.basename(path) == "Chart.yaml")
    for root in roots:
        if not any(other != root and inside(root, posixpath.join(other, "charts")) for other in roots):
            yield root


def inside(path: str, directory: str) -> bool:
    return not directory or path == directory or path.startswith(f"{directory}/")
