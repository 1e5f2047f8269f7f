"""What a service's gateway wrote to its access log, read back while it goes on writing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .service_gateway import ACCESS_LOG


def log_lines(folder: Path, begins: float) -> Iterator[Mapping[str, Any]]:
    """Of requests that ended since, in seconds since 1970."""
    path = folder / ACCESS_LOG
    for file in (path.with_suffix(".log.1"), path):
        if not file.exists():
            continue
        with file.open(encoding="utf-8", errors="replace") as lines:
            for text in lines:
                try:
                    line = json.loads(text)
                except ValueError:
                    continue  # the last one, while it is written
                if isinstance(line, dict) and line.get("time", 0.0) >= begins:
                    yield line
