"""What the files of a checkpoint directory are called, and how a name is read back.

    step-000000000600.attempt-2.manifest.json           a whole checkpoint: written last, names all its files
    step-000000000600.attempt-2.rank-0-of-4.5f1c.state  the state of one rank
    step-000000000600.attempt-2.rank-0-of-4.shard.json  "my part is there", for rank 0
    step-000000000600.attempt-2.5f1c.folder             files that another library wrote (one folder for all ranks)
    fence-000002.json                                   attempt 2 came; the highest such number owns the place
    session-000002.json                                 which run of attempt 2 the shards must belong to
    leave-000002.json, wish-000002.json                 after which step all ranks leave; that a rank has to
    .tmp.attempt-2.rank-0.5f1c                          being written
    .writer.attempt-2.rank-0.lock                       held by a living writer

The attempt is part of every name and data files have a random part, so that no writer can overwrite the file of another,
nor its own earlier one: replacing a checkpoint is one rename of its manifest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    MANIFEST = "manifest"
    DATA = "data"
    SHARD = "shard"
    FOLDER = "folder"
    FENCE = "fence"
    SESSION = "session"
    TEMPORARY = "temporary"
    LOCK = "lock"


@dataclass(frozen=True, slots=True)
class Name:
    text: str
    kind: Kind
    attempt: int
    step: int = -1
    rank: int = -1

    @property
    def order(self) -> tuple[int, int]:
        """Newest is greatest: by step, then by attempt."""
        return (self.step, self.attempt)


_STEP = r"step-(?P<step>\d{12,18})\.attempt-(?P<attempt>\d{1,9})"
_PATTERNS = {
    Kind.MANIFEST: re.compile(_STEP + r"\.manifest\.json"),
    Kind.DATA: re.compile(_STEP + r"\.rank-(?P<rank>\d+)-of-\d+\.[0-9a-f]+\.state"),
    Kind.SHARD: re.compile(_STEP + r"\.rank-(?P<rank>\d+)-of-\d+\.shard\.json"),
    Kind.FOLDER: re.compile(_STEP + r"\.[0-9a-f]+\.folder"),
    Kind.FENCE: re.compile(r"fence-(?P<attempt>\d{6,9})\.json"),
    Kind.SESSION: re.compile(r"session-(?P<attempt>\d{6,9})\.json"),
    Kind.TEMPORARY: re.compile(r"\.tmp\.attempt-(?P<attempt>\d{1,9})\.rank-(?P<rank>\d+)\.[0-9a-f]+"),
    Kind.LOCK: re.compile(r"\.writer\.attempt-(?P<attempt>\d{1,9})\.rank-(?P<rank>\d+)\.lock"),
}


def read(text: str) -> Name | None:
    """None for what is not ours: such files are never touched."""
    for kind, pattern in _PATTERNS.items():
        if match := pattern.fullmatch(text):
            parts = match.groupdict()
            return Name(
                text=text,
                kind=kind,
                attempt=int(parts["attempt"]),
                step=int(parts.get("step", -1)),
                rank=int(parts.get("rank", -1)),
            )
    return None


def manifest(step: int, attempt: int) -> str:
    return f"step-{step:012d}.attempt-{attempt}.manifest.json"


def data(step: int, attempt: int, rank: int, world: int, mark: str) -> str:
    return f"step-{step:012d}.attempt-{attempt}.rank-{rank}-of-{world}.{mark}.state"


def shard(step: int, attempt: int, rank: int, world: int) -> str:
    return f"step-{step:012d}.attempt-{attempt}.rank-{rank}-of-{world}.shard.json"


def folder(step: int, attempt: int, mark: str) -> str:
    return f"step-{step:012d}.attempt-{attempt}.{mark}.folder"


def fence(attempt: int) -> str:
    return f"fence-{attempt:06d}.json"


def session(attempt: int) -> str:
    return f"session-{attempt:06d}.json"


def leave(attempt: int) -> str:
    return f"leave-{attempt:06d}.json"


def wish(attempt: int) -> str:
    return f"wish-{attempt:06d}.json"


def temporary(attempt: int, rank: int, mark: str) -> str:
    return f".tmp.attempt-{attempt}.rank-{rank}.{mark}"


def lock(attempt: int, rank: int) -> str:
    return f".writer.attempt-{attempt}.rank-{rank}.lock"
