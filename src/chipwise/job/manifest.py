"""The manifest of a checkpoint: what makes it whole, as JSON that a person can read and a bit flip cannot pass.

It is written last. Without it the data files are nothing; with it each of them can be verified by size and SHA-256. The
manifest carries the SHA-256 of its own content (keys sorted, no spaces) for the same reason.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

from chipwise.job import names

FORMAT = 1
_LARGEST = 16 << 20  # of a manifest: 100,000 files; more is no manifest of ours


class Damaged(Exception):
    """A file is not what was written: what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file: `rank` is whose state it holds, or the number within a folder."""

    name: str
    size: int
    sha256: str
    rank: int


@dataclass(frozen=True, slots=True)
class Manifest:
    step: int
    attempt: int
    world: int
    replicated: bool  # one state for all ranks
    folder: str | None  # where another library wrote the files
    created: float  # unix time
    files: tuple[Entry, ...]

    def to_bytes(self) -> bytes:
        content: dict[str, Any] = {"format": FORMAT, **asdict(self)}
        content["sha256"] = _own_digest(content)
        return (json.dumps(content, indent=1, sort_keys=True) + "\n").encode()


def _own_digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def parse(text: bytes | bytearray, step: int, attempt: int) -> Manifest:
    """`step` and `attempt` are what the file's name says; Damaged where anything is not as it was written."""
    if len(text) > _LARGEST:
        raise Damaged(f"the manifest has {len(text):,} bytes")
    try:
        content = json.loads(bytes(text))
        digest = content.pop("sha256")
        intact = digest == _own_digest(content)
        version = content.pop("format")
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise Damaged("the manifest is not whole JSON") from error
    if not intact:
        raise Damaged("the manifest does not have the content it was written with")
    if version != FORMAT:
        raise Damaged(f"the manifest has format {version}, and this version of chipwise reads format {FORMAT}")
    try:
        files = tuple(Entry(**entry) for entry in content.pop("files"))
        manifest = Manifest(files=files, **content)
    except (TypeError, KeyError) as error:
        raise Damaged("the manifest has missing or unknown fields") from error
    if (manifest.step, manifest.attempt) != (step, attempt):
        raise Damaged(f"the manifest is of step {manifest.step}, attempt {manifest.attempt}")
    if not all(_own(entry.name, manifest) for entry in manifest.files):
        raise Damaged("the manifest names files that are not its own")
    return manifest


def _own(file: object, manifest: Manifest) -> bool:
    """Files are read and deleted by these names: only those of this checkpoint, in this place."""
    if not isinstance(file, str):
        return False
    top, _, below = file.partition("/")
    name = names.read(top)
    if name is None or name.order != (manifest.step, manifest.attempt):
        return False
    if manifest.folder is None:
        return name.kind is names.Kind.DATA and not below
    return name.kind is names.Kind.FOLDER and top == manifest.folder and not {"", ".", ".."} & set(below.split("/"))
