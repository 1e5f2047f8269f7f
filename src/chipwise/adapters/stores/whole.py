"""Text files that are written whole or not at all: beside their place first, then moved over the old one in one step."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write(path: Path, text: str) -> Path:
    """Whatever happens, the old file is whole until the new one is. Raises OSError that names `path`.

    A pipe or a device has nothing to be replaced and is written to as it is.
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    try:
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_text(text, encoding="utf-8", newline="")
            return path
        _replace(target, text)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    return path


def _replace(target: Path, text: str) -> None:
    temporary = target.parent / f".{target.name[:60]}.{os.getpid()}.{secrets.token_hex(4)}.tmp"
    try:
        with temporary.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o777)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def remove(path: Path) -> bool:
    """False where there was nothing to remove."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True
