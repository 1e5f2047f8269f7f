"""`Checkpoints`: save and load, by hand. `steps()` in `stepping.py` is the same with the loop.

ck = Checkpoints("checkpoints", keep=2)
found = ck.load(into=state)          # newest whole one, or None
ck.save(step, state)                 # a snapshot now, the writing in the background
ck.close()                           # waits for what is being written, and raises what went wrong
"""

from __future__ import annotations

import atexit
import logging
import math
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from chipwise.errors import BadInput, InvalidSettings, Problem
from chipwise.job import claiming, exiting, reading, resharding, restoring, sweeping, tree, writing
from chipwise.job.answering import Expects, Result, answered
from chipwise.job.background import Background, GivenUp
from chipwise.job.errors import CannotRestore, CannotSave, NoAnswer
from chipwise.job.local import Local
from chipwise.job.manifest import Damaged, Manifest
from chipwise.job.opening import open_store
from chipwise.job.progress import Progress
from chipwise.job.resharding import Split
from chipwise.job.store import Store
from chipwise.job.tree import Snapshot
from chipwise.job.writer import Writer, fresh_mark, ranks, whole_number

log = logging.getLogger("chipwise.job")
Reshard = Callable[[list[Any], int, int], Any]  # (states of all ranks, our rank, our world) -> our state
SAVE_WITHIN_S = 600.0  # that one waits for a checkpoint to be written, or
SAVE_TIMES = 10.0  # what saving takes, so many times
_SMOOTHING = 0.3  # weight of the newest save in the measured save time
_open: weakref.WeakSet[Checkpoints] = weakref.WeakSet()


@dataclass(frozen=True, slots=True)
class Loaded:
    step: int  # steps that were done when it was saved
    state: Any
    attempt: int = 0
    saved_at: float = 0.0  # unix time


@dataclass(frozen=True, slots=True)
class LoadedFolder:
    step: int
    path: Path


class Checkpoints:
    """Checkpoints in one place: `url` is a path or what fsspec opens; default $CHIPWISE_CHECKPOINTS or ./checkpoints."""

    def __init__(
        self,
        url: str | os.PathLike[str] | None = None,
        *,
        keep: int = 2,
        rank: int | None = None,
        world: int | None = None,
        attempt: int | None = None,
        replicated: bool = False,
        split: Split | None = None,
        reshard: Reshard | None = None,
        patience_s: float = 600.0,
        store: Store | None = None,
    ) -> None:
        self.writer = _writer(rank, world, attempt, replicated, keep)
        if split is not None and (replicated or reshard is not None):
            raise InvalidSettings(Problem("split", "is given together with replicated or reshard", allowed="one of them"))
        self.split = resharding.fields(split)
        self.store = store or open_store(url if url is not None else os.environ.get("CHIPWISE_CHECKPOINTS") or "checkpoints")
        self.keep = keep
        self.saved_step: int | None = None  # of the newest checkpoint known to be committed
        self.resumed_step: int | None = None  # of the checkpoint that was loaded first; 0: there was none; None: nobody looked
        self.save_seconds: float | None = None  # a running mean
        self.progress: Progress | None = None  # where checkpoints are reported; that of `steps()` counts steps too
        self.has_loop = False  # whether `steps()` reports what was loaded
        self.skipped = 0  # periodic saves that found two others under way
        self.outline: list[list[str]] = []
        self._process = os.getpid()
        self._reshard = reshard
        self._patience_s = patience_s
        self._save_within_s = _save_within()
        self._session: str | None = None
        self._origin = 0
        self._damaged: frozenset[str] = frozenset()
        self._background: Background[tuple[int, Snapshot]] = Background(
            self._write, "chipwise-checkpoints", self._limit_s, self._say_waiting
        )
        _open.add(self)

    def claim(self) -> None:
        """Make this place ours for writing (the first save does it too); Fenced where a newer attempt or another process is."""
        if self._session is None:
            with writing.save_errors(self.store, None), self._waiting():
                self._session = self._answer(lambda _: claiming.take(self.store, self.writer))

    def save(self, step: int, state: Any, *, wait: bool = False, when_busy: Literal["skip", "wait"] = "skip") -> bool:
        """A snapshot of `state` now; written in the background, or before this returns with `wait`.

        Returns whether it was taken: with one checkpoint being written and another waiting it is skipped (and counted), unless
        `wait` or `when_busy="wait"`. Raises what went wrong with an earlier one.
        """
        if not isinstance(step, int) or step < 0:
            raise InvalidSettings(Problem("step", f"is {step!r}", allowed="a whole number, 0 or more"))
        earlier = self._background.failure()
        if earlier is not None and not wait:
            raise earlier
        if earlier is not None:
            log.warning("An earlier checkpoint failed: %s", earlier)
        self.claim()
        if self.writer.replicated and not self.writer.commits:
            if wait:
                writing.await_commit(self.store, self.writer, step, self._patience_s)
            return True
        block = wait or when_busy == "wait" or self.writer.sharded  # ranks must not skip different steps
        with self._waiting():
            ticket = self._background.offer(lambda: (step, tree.snapshot(state, self.outline)), block=block)
        if ticket is None:
            self.skipped += 1
            log.info("The checkpoint of step %d was skipped: two others are under way (%d so far)", step, self.skipped)
            return False
        if wait:
            with self._waiting():
                self._background.result(ticket)
        return True

    def load(self, into: Any = None) -> Loaded | None:
        """The newest whole checkpoint, verified; None where there is none. With `into` that state is overwritten in place."""
        self._ready()
        newest = self._newest(self._wanted)
        if newest is None:
            self._report_loaded(0)
            return None
        manifest = newest.manifest
        title = f"The checkpoint of step {manifest.step} in {self.store.location}"
        try:
            contents = {rank: tree.content(data) for rank, data in newest.content.items()}
        except Damaged as error:  # verified, and yet not readable: of another version, not of a broken disk
            raise CannotRestore(f"{title} cannot be read: {error}.", remedy="Was it written by a newer chipwise?") from error
        own = contents.get(self.writer.rank, contents[min(contents)])
        state, begun = own.state, own.outline
        if self._anew(manifest):
            states, begun = [contents[rank].state for rank in sorted(contents)], []
            if self.split is not None:
                state = resharding.joined(states, self.writer.rank, self.writer.world, self.split, title)
            else:
                assert self._reshard is not None
                state = self._reshard(list(map(tree.plain, states)), self.writer.rank, self.writer.world)
        if into is None:
            state = tree.plain(state)
        else:
            restoring.restore(into, state, begun, self.outline, title)
            state = into
        self._resume(manifest, newest.damaged)
        return Loaded(manifest.step, state, manifest.attempt, manifest.created)

    def save_folder(
        self, step: int, fill: Callable[[Path], None], *, mark: str | None = None, together: Callable[[], None] | None = None
    ) -> None:
        """A checkpoint whose files another library writes: `fill(path)` is called on every rank with one folder for all.

        With several ranks give a `mark` that is the same on all, and `together`, a barrier. It is committed with checksums as
        others are; the call returns when it is. Local directories only.
        """
        if not isinstance(self.store, Local):
            raise BadInput(
                f"{self.store.location} is no directory, and another library is to write there.", remedy="Give a path."
            )
        if self.writer.world > 1 and (mark is None or together is None):
            raise InvalidSettings(Problem("mark, together", "are needed with several ranks"))
        self.claim()
        manifest = writing.in_folder(self.store, self.writer, step, fill, mark or fresh_mark(), together or (lambda: None))
        self.saved_step = step
        self._report(step)
        if manifest is not None:
            sweeping.prune(self.store, self.writer, manifest, self.keep, self._damaged)

    def load_folder(self) -> LoadedFolder | None:
        """The newest whole one that `save_folder` made; it may be read until the next save."""
        if not isinstance(self.store, Local):
            return None
        self._ready()
        newest = self._newest(lambda manifest: frozenset(), folders=True)
        if newest is None or newest.manifest.folder is None:
            self._report_loaded(0)
            return None
        self._resume(newest.manifest, newest.damaged)
        return LoadedFolder(newest.manifest.step, self.store.directory / newest.manifest.folder)

    def flush(self) -> None:
        """Wait for what is being written, and raise what went wrong."""
        with self._waiting():
            self._background.idle()
        if (error := self._background.failure()) is not None:
            raise error

    def close(self) -> None:
        """Wait for what is being written, give the place free, and raise what went wrong."""
        if os.getpid() != self._process:  # a forked child has neither the thread nor the lock
            return
        try:
            self.flush()
        finally:
            self._background.close()
            if self._session is not None and self._background.given_up is None:  # else the store would be asked once more
                claiming.let_go(self.store, self.writer)
            self._session = None
            _open.discard(self)

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _ready(self) -> None:
        self.flush()
        with writing.save_errors(self.store, None), self._waiting(NoAnswer):
            self._answer(lambda _: claiming.come(self.store, self.writer))

    def _newest(self, wanted: Callable[[Manifest], frozenset[int]], *, folders: bool = False) -> reading.ReadCheckpoint | None:
        with self._waiting(NoAnswer):
            return self._answer(lambda expects: reading.newest_whole(self.store, wanted, folders=folders, expects=expects))

    def _answer(self, call: Callable[[Expects], Result]) -> Result:
        """Of the store; where it was given up once it is not asked again."""
        if self._background.given_up is not None:
            raise self._background.given_up
        try:
            return answered(call, self._limit_s(), self._say_waiting)
        except GivenUp as error:
            self._background.given_up = error
            raise

    def _limit_s(self) -> float:
        """How long one waits for a checkpoint to be written: other ranks may be late, and a large state takes long."""
        if self._save_within_s is not None:
            return self._save_within_s
        late_s = self._patience_s if self.writer.world > 1 else 0.0
        return max(SAVE_WITHIN_S, SAVE_TIMES * (self.save_seconds or 0.0)) + late_s

    def _say_waiting(self, limit_s: float) -> None:
        log.warning("Still waiting for %s; given up after %.0f s", self.store.location, limit_s)

    @contextmanager
    def _waiting(self, kind: type[CannotSave | NoAnswer] = CannotSave) -> Iterator[None]:
        try:
            yield
        except GivenUp as error:
            failed = "did not take a checkpoint" if kind is CannotSave else "did not answer the search for checkpoints"
            raise kind(
                f"{self.store.location} {failed} within {error.limit_s:g} s. Earlier ones are untouched.",
                remedy="Is the store reachable? Set CHIPWISE_SAVE_WITHIN_S to wait longer.",
            ) from error

    def _report(self, step: int | None) -> None:
        if self.progress is None:
            self.progress = Progress(None, None, self.writer.rank)
        self.progress.resumed = self.resumed_step
        self.progress.committed(step, self.save_seconds)

    def _report_loaded(self, step: int) -> None:
        """What it really goes on from: what it saved before may be damaged or gone."""
        if self.resumed_step is None:  # a later look is not the beginning
            self.resumed_step = step
            if not self.has_loop:
                self._report(self.saved_step)

    def _resume(self, manifest: Manifest, damaged: frozenset[str]) -> None:
        self.saved_step = self._origin = manifest.step
        self._damaged = damaged
        self._report_loaded(manifest.step)

    def _anew(self, manifest: Manifest) -> bool:
        """Whether its states are to be put together and split for our ranks. One that ran alone has it all."""
        if self.writer.replicated:
            return False
        if self.split is not None:
            return (1 if manifest.replicated else manifest.world) != self.writer.world
        shared = manifest.replicated and manifest.world > 1
        return self._reshard is not None and not shared and manifest.world != self.writer.world

    def _wanted(self, manifest: Manifest) -> frozenset[int]:
        if self._anew(manifest):
            return frozenset({0} if manifest.replicated else range(manifest.world))
        if manifest.replicated or self.writer.replicated:
            return frozenset({0})
        if manifest.world == self.writer.world:
            return frozenset({self.writer.rank})
        raise CannotRestore(
            f"The checkpoint of step {manifest.step} in {self.store.location} has the states of {manifest.world} ranks, and "
            f"this job has {self.writer.world}.",
            remedy="Start it with as many, or say which arrays are split along which axis, as in split={'momentum': 0} "
            "(replicated=True where all ranks have the same state, reshard= where it is more than that).",
        )

    def _write(self, work: tuple[int, Snapshot]) -> None:
        """In the background thread."""
        from time import monotonic

        step, shot = work
        start = monotonic()
        assert self._session is not None
        manifest = writing.write(self.store, self.writer, self._session, self._patience_s, self._origin, step, shot)
        duration = monotonic() - start
        self.save_seconds = (
            duration if self.save_seconds is None else self.save_seconds + _SMOOTHING * (duration - self.save_seconds)
        )
        self.saved_step = step
        self._report(step)
        if manifest is not None:
            sweeping.prune(self.store, self.writer, manifest, self.keep, self._damaged)
            self._damaged = frozenset()


def _writer(rank: int | None, world: int | None, attempt: int | None, replicated: bool, keep: int) -> Writer:
    problems: list[Problem] = []
    writer = Writer(whole_number(attempt, "CHIPWISE_ATTEMPT", 0, problems), *ranks(rank, world, problems), replicated)
    if not isinstance(keep, int) or keep < 1:
        problems.append(Problem("keep", f"is {keep!r}", allowed="1 or more"))
    if problems:
        raise InvalidSettings(*problems)
    return writer


def _save_within() -> float | None:
    text = os.environ.get("CHIPWISE_SAVE_WITHIN_S")
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < threading.TIMEOUT_MAX:
        raise InvalidSettings(Problem("CHIPWISE_SAVE_WITHIN_S", f"is {text!r:.40}", allowed="a number of seconds above 0"))
    return seconds


@atexit.register
def _close_all() -> None:
    """A program that ends without close() still gets what it saved, and does not end well where it does not."""
    for checkpoints in list(_open):
        try:
            checkpoints.close()
        except Exception as error:
            if log.hasHandlers():  # else it would be printed twice
                log.error("The last checkpoint was not written: %s", error)
            exiting.fail(f"The last checkpoint was not written: {error}")
