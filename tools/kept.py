"""Where tools keep what they got or built: outside the checkout, in one folder that a person may move."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def cache(environ: Mapping[str, str] = os.environ) -> Path:
    """`CHIPWISE_CACHE`, or where the person keeps caches."""
    if own := environ.get("CHIPWISE_CACHE"):
        return Path(own).expanduser()
    shared = environ.get("XDG_CACHE_HOME")
    return (Path(shared).expanduser() if shared else Path.home() / ".cache") / "chipwise"
