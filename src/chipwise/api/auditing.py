"""The verb `audit`: a directory, a file or standard input, looked at as a careful engineer would."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from chipwise.audit.auditing import Audit, kind_of
from chipwise.audit.auditing import audit as _audit
from chipwise.errors import BadInput

LARGEST = 5_000_000  # bytes of one file; more is no manifest
MOST_FILES = 5_000
_SKIPPED = {".git", ".terraform", "node_modules", ".venv", "__pycache__"}


def audit(path: str, standard_input: str = "") -> Audit:
    if path == "-":
        return _audit([("-", standard_input)])
    where = Path(path)
    if not where.exists():
        raise BadInput(f"There is no {path!r}.", remedy="Give a directory or a file, or - for standard input.")
    files = list(_files(where)) if where.is_dir() else [where]
    if len(files) > MOST_FILES:
        raise BadInput(f"{path} has more than {MOST_FILES:,} files.", remedy="Give the directory that holds the manifests.")
    root = where if where.is_dir() else where.parent
    return _audit((str(file.relative_to(root)), _text(file)) for file in sorted(files))


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if not _SKIPPED & set(path.relative_to(folder).parts) and path.is_file() and kind_of(str(path)):
            yield path


def _text(file: Path) -> str:
    if file.stat().st_size > LARGEST:
        raise BadInput(f"{file} is larger than {LARGEST / 1e6:g} MB.", remedy="It is no manifest; move it elsewhere.")
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{file} is not UTF-8 text: {error.reason} at byte {error.start}.", remedy="Save it as UTF-8."
        ) from error
