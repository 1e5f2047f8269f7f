"""What is audited, as text: the files of a directory, one file or a stream, and what Helm and Kustomize make of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TextIO

from chipwise.adapters.stores.whole_set import PREFIX
from chipwise.auditor.auditing import kind_of
from chipwise.auditor.building import Build, charts
from chipwise.auditor.kustomize import NAMES, is_remote, parts, tops
from chipwise.auditor.source import Manifest, Unreadable
from chipwise.auditor.yaml_files import read_yaml
from chipwise.errors import BadInput
from chipwise.text import decimal_size

LARGEST = 5_000_000  # bytes of one file; more is no manifest
LARGEST_TERRAFORM = 500_000  # its reader takes seconds for so much
MOST_BYTES = 50_000_000  # of all files together
MOST_FILES = 20_000
_SKIPPED = {".git", ".terraform", "node_modules", ".venv", "__pycache__"}


@dataclass(frozen=True, slots=True)
class AuditedFiles:
    texts: Sequence[tuple[str, str | Unreadable]]  # by path below the directory; of those that cannot be read, why
    builds: Mapping[str, Build]  # by directory


def read(path: str, stdin: TextIO | None = None) -> AuditedFiles:
    """`stdin`: standard input, for the path `-`."""
    if path == "-":
        return AuditedFiles([("-", _read_stream(stdin))], {})
    source = Path(path)
    if not path or not source.exists():
        raise BadInput(f"There is no {path[:200]!r}.", remedy="Give a directory or a file, or - for standard input.")
    if not source.is_dir() and not source.is_file():  # a pipe or a device: reading it may never end
        raise BadInput(f"{path} is neither a file nor a directory.", remedy="Give - and let it come by standard input.")
    unread: list[tuple[str, str | Unreadable]] = []
    files = list(islice(_files(source, unread), MOST_FILES + 1)) if source.is_dir() else [source] if kind_of(path) else []
    if len(files) > MOST_FILES:
        raise BadInput(f"{path} has more than {MOST_FILES:,} files.", remedy="Give the directory that holds the manifests.")
    if sum(_size(file) for file in files) > MOST_BYTES:
        raise BadInput(
            f"The files of {path} are more than {decimal_size(MOST_BYTES)}.",
            remedy="Give the directory that holds the manifests.",
        )
    root = source if source.is_dir() else source.parent
    texts = [(file.relative_to(root).as_posix(), _text(file)) for file in sorted(files)]
    builds = _builds(source, texts) if source.is_dir() else {}
    return AuditedFiles([*texts, *unread], builds)


def _builds(root: Path, texts: Sequence[tuple[str, str | Unreadable]]) -> dict[str, Build]:
    """What Helm and Kustomize make of directories that are theirs, where they are installed."""
    from chipwise.adapters import building

    builds = {chart: building.helm_build(root / chart) for chart in charts(path for path, _ in texts)}
    kustomizations = {
        path: document
        for path, text in texts
        if path.rpartition("/")[2] in NAMES and isinstance(text, str)
        for document in read_yaml(path, text)
        if isinstance(document, Manifest)
    }
    for top in tops(kustomizations):
        if any(is_remote(kustomizations[path]) for path in parts(top, kustomizations)):
            fix = "Audit what it writes: kustomize build OVERLAY | chipwise audit -"
            builds[top] = Build(reason="it builds upon something on another machine", fix=fix)
        else:
            builds[top] = building.kustomize_build(root / top)
    return builds


def _files(folder: Path, unread: list[tuple[str, str | Unreadable]]) -> Iterator[Path]:
    """Links to directories are not followed: they may lead round. A directory that is closed to us is told."""

    def closed(error: OSError) -> None:
        unread.append((os.path.relpath(error.filename, folder), Unreadable(_reason(error))))

    for directory, names, files in os.walk(folder, onerror=closed):
        names[:] = sorted(name for name in names if name not in _SKIPPED and not name.startswith(PREFIX))
        for name in sorted(files):
            path = Path(directory, name)
            if kind_of(name) and not name.startswith(PREFIX) and _is_file(path):
                yield path


def _is_file(path: Path) -> bool:
    """A pipe or a device is none; one whose link leads nowhere neither."""
    try:
        return path.is_file()
    except OSError:
        return True  # reading it says why


def _size(file: Path) -> int:
    """What of it will be read."""
    try:
        return min(file.stat().st_size, LARGEST)
    except OSError:
        return 0


def _read_stream(stream: TextIO | None) -> str:
    if stream is None:
        raise BadInput("Standard input is closed.", remedy="Pipe a manifest into it, or give a directory or a file.")
    try:
        text = stream.read(LARGEST + 1)
    except UnicodeDecodeError as error:
        raise BadInput(f"Standard input is not UTF-8 text: {error.reason}.", remedy="Give it as UTF-8.") from error
    if len(text) > LARGEST:
        raise BadInput(f"Standard input has more than {decimal_size(LARGEST)}.", remedy="Give a directory with the manifests.")
    text = text.removeprefix("\ufeff")
    if kind_of("-", text) == "terraform" and len(text) > LARGEST_TERRAFORM:
        raise BadInput(f"Standard input: {_too_large(LARGEST_TERRAFORM)}.", remedy="Split it, or give a directory.")
    return text


def _too_large(most: int) -> str:
    return f"it is larger than {decimal_size(most)}"


def _text(file: Path) -> str | Unreadable:
    """Or why there is none; what is too large to be a manifest is none of ours."""
    limit = LARGEST_TERRAFORM if kind_of(str(file)) == "terraform" else LARGEST
    try:
        with file.open("rb") as stream:
            content = stream.read(limit + 1)
    except OSError as error:
        return Unreadable(_reason(error))
    if len(content) > limit:
        return Unreadable(_too_large(limit), foreign=not str(file).endswith(".tf"))
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):  # as PowerShell writes what it is given
        encoding, name = "utf-16", "UTF-16"
    else:
        encoding, name = "utf-8-sig", "UTF-8"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return Unreadable(f"it is not {name} text ({error.reason} at byte {error.start})", line)


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
