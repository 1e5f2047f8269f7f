"""`engines.yaml` of the config directory, as it was written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chipwise.files.source import Document

REMEDY = "Each engine is a name with its fields; see docs/running/engines.md."


def read(path: Path) -> Document:
    from chipwise.files.source import (
        FileKind,
        read_text,
        read_yaml,
    )  # most machines have no such file, and lists need no YAML

    kind = FileKind("engines", REMEDY, 100_000)
    return read_yaml(read_text(path, kind), str(path), kind)
