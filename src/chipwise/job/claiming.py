"""Who may write here: the fence, the lock of a living writer, and the session of a sharded run.

An attempt that starts puts up a fence with its number; the highest number in the directory owns it. Since fences are separate
files, two that come at the same moment cannot undo each other, on an object store either. A writer looks at the fence before
it writes and once more before it commits; all names carry the attempt, so that one that comes too late can still not touch
anything of a newer one.

The session is a random word of the rank 0 that runs now. Shards of other ranks must repeat it: a shard that was left by a run
that crashed at the same step can then not slip into a checkpoint of this one.
"""

from __future__ import annotations

import json
import time

from chipwise.job import names
from chipwise.job.errors import Fenced
from chipwise.job.names import Kind
from chipwise.job.store import Store
from chipwise.job.sweeping import sweep
from chipwise.job.writer import Writer, fresh_mark


def put_json(store: Store, name: str, content: object, writer: Writer, *, lasting: bool = True) -> None:
    store.put(name, [json.dumps(content).encode()], writer.temporary(), lasting=lasting)


def highest_fence(store: Store) -> int:
    """0 where there is none: attempts count from there."""
    file_names = (names.read(text) for text in store.names())
    return max((name.attempt for name in file_names if name and name.kind is Kind.FENCE), default=0)


def check_fence(store: Store, writer: Writer) -> None:
    highest = highest_fence(store)
    if highest > writer.attempt:
        raise Fenced(
            f"Attempt {highest} of this job owns {store.location}; this is attempt {writer.attempt} and must not write there.",
            remedy=f"End this process. To go on by hand, set CHIPWISE_ATTEMPT={highest + 1} or give another directory.",
        )


def put_fence(store: Store, writer: Writer) -> None:
    """Raises where a newer attempt was here; removes the fences of older ones, which say nothing any more."""
    check_fence(store, writer)
    if writer.attempt > highest_fence(store):
        # Whole seconds: ranks write it at once, and who looks whether all of it arrived may find another's, as long as its own.
        put_json(store, names.fence(writer.attempt), {"attempt": writer.attempt, "at": int(time.time())}, writer)
        check_fence(store, writer)
        older = (names.read(text) for text in store.names())
        store.remove(*(name.text for name in older if name and name.kind is Kind.FENCE and name.attempt < writer.attempt))


def take(store: Store, writer: Writer) -> str:
    """Claim the place for writing; the session's word. `let_go` ends it."""
    store.prepare()
    check_fence(store, writer)
    sweep(store, writer)
    if not store.hold(names.lock(writer.attempt, writer.rank)):  # before anything is written: what has no lock is swept
        raise Fenced(
            f"Another living process writes checkpoints of attempt {writer.attempt}, rank {writer.rank} into {store.location}.",
            remedy="End it, or give this one another directory.",
        )
    try:
        put_fence(store, writer)
    except BaseException:
        let_go(store, writer)
        raise
    word = fresh_mark()
    if writer.sharded and writer.commits:
        store.remove(names.leave(writer.attempt), names.wish(writer.attempt))
        put_json(store, names.session(writer.attempt), {"session": word}, writer)
    return word


def come(store: Store, writer: Writer) -> None:
    """For one that reads first: older attempts are fenced off from now on, so that what it finds stays the newest."""
    if writer.attempt > highest_fence(store):
        store.prepare()
        if store.hold(names.lock(writer.attempt, writer.rank)):  # else another of this very attempt is doing it
            try:
                put_fence(store, writer)
            finally:
                let_go(store, writer)


def let_go(store: Store, writer: Writer) -> None:
    store.free(names.lock(writer.attempt, writer.rank))


def read_session(store: Store, writer: Writer) -> str | None:
    try:
        return str(json.loads(bytes(store.read(names.session(writer.attempt))))["session"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
