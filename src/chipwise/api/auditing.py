"""The verb `audit`: a directory, a file or standard input, looked at as a careful engineer would."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TextIO

from chipwise.adapters.stores.whole_set import PREFIX
from chipwise.audit.auditing import Audit, kind_of
from chipwise.audit.auditing import audit as _audit
from chipwise.errors import BadInput

LARGEST = 5_000_000  # bytes of one file; more is no manifest
LARGEST_TERRAFORM = 500_000  # its reader takes seconds for so much
MOST_BYTES = 50_000_000  # of all files together
MOST_FILES = 5_000
_SKIPPED = {".git", ".terraform", "node_modules", ".venv", "__pycache__"}


def audit(path: str, given: TextIO | None = None) -> Audit:
    """`given`: standard input, for the path `-`."""
    if path == "-":
        return _audit([("-", _given(given))])
    where = Path(path)
    if not path or not where.exists():
        raise BadInput(f"There is no {path[:200]!r}.", remedy="Give a directory or a file, or - for standard input.")
    if not where.is_dir() and not where.is_file():  # a pipe or a device: reading it may never end
        raise BadInput(f"{path} is neither a file nor a directory.", remedy="Give - and let it come by standard input.")
    files = list(islice(_files(where), MOST_FILES + 1)) if where.is_dir() else [where] if kind_of(path) else []
    if len(files) > MOST_FILES:
        raise BadInput(f"{path} has more than {MOST_FILES:,} files.", remedy="Give the directory that holds the manifests.")
    if sum(file.stat().st_size for file in files) > MOST_BYTES:
        raise BadInput(
            f"The files of {path} are more than {MOST_BYTES / 1e6:g} MB.", remedy="Give the directory that holds the manifests."
        )
    root = where if where.is_dir() else where.parent
    return _audit((str(file.relative_to(root)), _text(file)) for file in sorted(files))


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        hidden = _SKIPPED & set(parts) or any(part.startswith(PREFIX) for part in parts)
        if not hidden and kind_of(str(path)) and path.is_file():
            yield path


def _given(stream: TextIO | None) -> str:
    if stream is None:
        raise BadInput("Standard input is closed.", remedy="Pipe a manifest into it, or give a directory or a file.")
    try:
        text = stream.read(LARGEST + 1)
    except UnicodeDecodeError as error:
        raise BadInput(f"Standard input is not UTF-8 text: {error.reason}.", remedy="Give it as UTF-8.") from error
    if len(text) > LARGEST:
        raise BadInput(f"Standard input has more than {LARGEST / 1e6:g} MB.", remedy="Give a directory with the manifests.")
    if kind_of("-", text) == "terraform" and len(text) > LARGEST_TERRAFORM:
        raise _too_large("Standard input", LARGEST_TERRAFORM)
    return text


def _too_large(what: str, most: int) -> BadInput:
    return BadInput(f"{what} is larger than {most / 1e6:g} MB.", remedy="It is no manifest; move it elsewhere, or split it.")


def _text(file: Path) -> str:
    most = LARGEST_TERRAFORM if kind_of(str(file)) == "terraform" else LARGEST
    with file.open("rb") as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise _too_large(str(file), most)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{file} is not UTF-8 text: {error.reason} at byte {error.start}.", remedy="Save it as UTF-8."
        ) from error
