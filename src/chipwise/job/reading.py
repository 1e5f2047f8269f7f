"""Finding the newest whole checkpoint: newest manifest first, every file verified by size and SHA-256 before anything is used.

A damaged one is told (a warning of the logger `chipwise.job`) and the one before it is taken. A file that vanishes while it is
read, together with its manifest, was deleted by a living writer that has newer ones: then the search begins again. Every rank
verifies all files, not only its own, so that all ranks take the same checkpoint.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from chipwise.job import names
from chipwise.job.errors import NothingWhole
from chipwise.job.manifest import Damaged, Entry, Manifest, parse
from chipwise.job.names import Kind, Name
from chipwise.job.store import Store
from chipwise.job.sweeping import listed

log = logging.getLogger("chipwise.job")
_TRIES = 20  # of a search that a living writer disturbs


@dataclass(frozen=True, slots=True)
class ReadCheckpoint:
    manifest: Manifest
    content: dict[int, bytearray]  # by rank, those that were asked for; none of a folder
    damaged: frozenset[str] = field(default_factory=frozenset)  # manifests that were passed over


class _Vanished(Exception):
    pass


def newest_whole(
    store: Store,
    wanted: Callable[[Manifest], frozenset[int]],
    *,
    folders: bool = False,
    expects: Callable[[int], None] = lambda size: None,
) -> ReadCheckpoint | None:
    """`wanted` says which ranks' states of a checkpoint are to be read, or raises where it cannot be used. `expects` is called
    before each request, with the bytes that it reads."""
    for _ in range(_TRIES):
        try:
            return _search(store, wanted, folders, expects)
        except _Vanished:
            continue
    raise NothingWhole(f"{store.location} changes faster than it can be read.", remedy="Does another job write there?")


def _search(
    store: Store, wanted: Callable[[Manifest], frozenset[int]], folders: bool, expects: Callable[[int], None]
) -> ReadCheckpoint | None:
    expects(0)
    manifests = [name for name in listed(store) if name.kind is Kind.MANIFEST]
    damaged: list[str] = []
    for name in sorted(manifests, key=lambda one: one.order, reverse=True):
        try:
            expects(0)
            manifest = _manifest(store, name)
            if bool(manifest.folder) != folders:
                continue
            return ReadCheckpoint(manifest, _verified(store, manifest, wanted(manifest), expects), frozenset(damaged))
        except Damaged as error:
            log.warning(
                "%s: the checkpoint of step %d (attempt %d) is damaged: %s", store.location, name.step, name.attempt, error
            )
            damaged.append(name.text)
    if damaged:
        raise NothingWhole(
            f"None of the {len(damaged)} checkpoints in {store.location} is whole; the log says what is wrong with each.",
            remedy="Bring the directory back from a copy, or give an empty one to start over.",
        )
    return None


def _manifest(store: Store, name: Name) -> Manifest:
    try:
        return parse(store.read(name.text), name.step, name.attempt)
    except FileNotFoundError as error:
        raise _Vanished from error
    except OSError as error:
        raise Damaged(f"the manifest cannot be read ({error})") from error


def _verified(store: Store, manifest: Manifest, wanted: frozenset[int], expects: Callable[[int], None]) -> dict[int, bytearray]:
    content: dict[int, bytearray] = {}
    try:
        for entry in manifest.files:
            expects(0)
            if (size := store.size(entry.name)) != entry.size:
                raise Damaged(f"{entry.name} has {size:,} bytes instead of {entry.size:,}")
        for entry in manifest.files:
            expects(entry.size)
            if not manifest.folder and entry.rank in wanted:
                content[entry.rank] = _read_entry(store, entry)
            else:
                _digest(store, entry, expects)
    except FileNotFoundError as error:
        if names.manifest(manifest.step, manifest.attempt) not in store.names():
            raise _Vanished from error
        raise Damaged(f"a file is missing ({error})") from error
    except OSError as error:
        raise Damaged(f"a file cannot be read ({error})") from error
    return content


def _read_entry(store: Store, entry: Entry) -> bytearray:
    """Read once: what was verified is what is restored."""
    data = store.read(entry.name)
    _check_digest(entry, hashlib.sha256(data).hexdigest())
    return data


def _digest(store: Store, entry: Entry, expects: Callable[[int], None]) -> None:
    digest = hashlib.sha256()
    for chunk in store.chunks(entry.name):
        expects(0)
        digest.update(chunk)
    _check_digest(entry, digest.hexdigest())


def _check_digest(entry: Entry, digest: str) -> None:
    if digest != entry.sha256:
        raise Damaged(f"the content of {entry.name} is not what was written (SHA-256 differs)")
