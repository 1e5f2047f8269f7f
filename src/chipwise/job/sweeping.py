"""What may be deleted, and what not.

Old checkpoints go when a newer one is committed: the manifest first, so that at no moment a manifest names a file that is gone.
Files that no manifest names go when they are of an earlier step than the newest checkpoint: whoever still writes
them comes too late. (Ranks write their steps in order, and rank 0 commits a step when all have written it.) Nothing of a newer
attempt is touched, nor anything whose name is not ours.

Temporary files go when their writer is known to be dead: its lock is free on this host. Where that cannot be known (another
host, an object store), time tells: ten quiet minutes where the writer's attempt is fenced off, a day otherwise.
"""

from __future__ import annotations

import logging

from chipwise.errors import OutsideFailed
from chipwise.job import names
from chipwise.job.manifest import Damaged, Manifest, parse
from chipwise.job.names import Kind, Name
from chipwise.job.store import Store
from chipwise.job.writer import Writer

log = logging.getLogger("chipwise.job")
_QUIET_S = 600.0
_DAY_S = 86400.0


def listed(store: Store) -> list[Name]:
    return [name for name in map(names.read, store.names()) if name]


def prune(store: Store, writer: Writer, committed: Manifest, keep: int, damaged: frozenset[str]) -> None:
    """After a commit. Failing to delete is a warning: the checkpoint is there."""
    try:
        _prune(store, writer, committed, keep, damaged)
    except (OSError, OutsideFailed) as error:
        log.warning("%s: old checkpoints could not be deleted: %s", store.location, error)


def _prune(store: Store, writer: Writer, committed: Manifest, keep: int, damaged: frozenset[str]) -> None:
    files = [name for name in listed(store) if name.attempt <= writer.attempt]
    new = names.manifest(committed.step, committed.attempt)
    manifests = sorted((name for name in files if name.kind is Kind.MANIFEST), key=lambda name: name.order, reverse=True)
    intact = [name for name in manifests if name.text not in damaged or name.text == new]
    retained = {name.text for name in intact[:keep]} | {new}
    expired = [name for name in manifests if name.text not in retained]
    of_damaged = [file for name in expired if name.text in damaged for file in _files(store, name)]
    if expired:
        store.remove(*(name.text for name in expired))
    used = {file for name in manifests if name.text in retained for file in _files(store, name)}
    unused = [name.text for name in files if _superseded(name, writer, committed) and name.text not in used]
    if leftovers := sorted({*unused, *of_damaged} - used):
        store.remove(*leftovers)


def _superseded(name: Name, writer: Writer, committed: Manifest) -> bool:
    if name.kind not in (Kind.DATA, Kind.SHARD, Kind.FOLDER):
        return False
    if name.step == committed.step:  # the same step saved again: only where no other rank can be in the middle of it
        return not writer.sharded or name.attempt < writer.attempt
    return name.step < committed.step


def _files(store: Store, name: Name) -> list[str]:
    try:
        manifest = parse(store.read(name.text), name.step, name.attempt)
    except (Damaged, FileNotFoundError):
        return []
    return [manifest.folder] if manifest.folder else [entry.name for entry in manifest.files]


def sweep(store: Store, writer: Writer) -> None:
    """Temporary files of dead writers: of this rank, and by rank 0 of all. Before this one takes its lock."""
    try:
        files = [name for name in listed(store) if name.attempt <= writer.attempt and writer.rank in (name.rank, 0)]
        dead: dict[tuple[int, int], bool | None] = {}
        for name in files:
            owner = (name.attempt, name.rank)
            if name.kind in (Kind.TEMPORARY, Kind.LOCK) and owner not in dead:
                dead[owner] = store.abandoned(names.lock(*owner))
        old = [name for name in files if name.kind is Kind.TEMPORARY and _dead(store, name, writer, dead)]
        if old:
            log.info("%s: %d files of interrupted saves removed", store.location, len(old))
            store.remove(*(name.text for name in old))
    except (OSError, OutsideFailed) as error:
        log.warning("%s: leftovers could not be removed: %s", store.location, error)


def _dead(store: Store, name: Name, writer: Writer, dead: dict[tuple[int, int], bool | None]) -> bool:
    known = dead[(name.attempt, name.rank)]
    if known is not None:
        return known
    age = store.age_s(name.text)
    return age is not None and age > (_QUIET_S if name.attempt < writer.attempt else _DAY_S)
