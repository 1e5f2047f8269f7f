"""What a run was made of that the next run of the same work may find changed: its program and the system below it."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

MOST_BYTES = 4 << 20  # of each file; a larger one is data
MOST_FILES = 16
_DIGEST_LETTERS = 8  # letters of a digest
_LONGEST = 100


def of_program(command: Sequence[object], folder: str = "") -> dict[str, str]:
    """The kernel, and the files that a command names (`python train.py --config big.yaml`) with what they hold."""
    names = [str(word).partition("=")[2] or str(word) for word in command]
    digests: list[str] = []
    for name in dict.fromkeys(names[1:] or names):
        with suppress(OSError, ValueError):  # no file, or one that may not be read
            path = Path(folder, name)
            if path.is_file() and path.stat().st_size <= MOST_BYTES and len(digests) < MOST_FILES:
                digests.append(f"{path.name[:_LONGEST]} {sha256(path.read_bytes()).hexdigest()[:_DIGEST_LETTERS]}")
    return {"kernel": platform.release()} | ({"program": ", ".join(digests)} if digests else {})
