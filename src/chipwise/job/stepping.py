"""`steps()`: the loop of a training program that may be stopped at any moment.

A step number is yielded when it is to be done; when the loop comes back for the next one, it is done. A checkpoint's step is
the number of steps done, so that a program that is started again yields exactly those that are not in the checkpoint.
"""

from __future__ import annotations

import itertools
import logging
import math
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Any, Literal

from chipwise.errors import InvalidSettings, Problem
from chipwise.job import LEFT, agreeing, notices, resharding, restoring
from chipwise.job.agreeing import Agree, Agreement
from chipwise.job.checkpoints import Checkpoints, Reshard
from chipwise.job.interval import DEFAULT_PER_HOUR, interval_s
from chipwise.job.progress import Progress
from chipwise.job.resharding import Split

log = logging.getLogger("chipwise.job")
Interval = int | Literal["auto"]


def steps(
    state: Any,
    total: int | None = None,
    *,
    every: Interval = "auto",
    keep: int = 2,
    directory: str | os.PathLike[str] | None = None,
    rank: int | None = None,
    world: int | None = None,
    replicated: bool = False,
    split: Split | None = None,
    reshard: Reshard | None = None,
    agree: Agree | None = None,
    signals: bool = True,
    checkpoints: Checkpoints | None = None,
) -> Iterator[int]:
    """The steps of `total` still to do (endless without), with `state` restored in place and saved as they go.

    state        a dict, list or array, or an object with state_dict() and load_state_dict(); nested as you like
    every        steps between checkpoints, or "auto": by Young and Daly, from what saving takes and
                 $CHIPWISE_INTERRUPTIONS_PER_HOUR (0.05 where nobody says)
    keep         how many checkpoints stay
    directory    a path or URL; default $CHIPWISE_CHECKPOINTS, else ./checkpoints
    rank, world  default RANK and WORLD_SIZE; each rank saves its own state, unless `replicated`: then rank 0 saves for all
    split        which arrays are split over the ranks, along which axis, as {"momentum": 0}; all else is the same on all of
                 them. A checkpoint then fits any number of ranks; `part` says which rows a rank has
    reshard      (states of all ranks, rank, world) -> state, for checkpoints of another number of ranks
    agree        (number) -> the greatest over all ranks; see `agreeing.py`
    signals      hear SIGTERM
    checkpoints  where they are, instead of directory, keep, rank, world, replicated, split and reshard

    $CHIPWISE_STEPS, where it is set, is the most steps that are done in all, as when `chipwise bench` measures a few of many.

    A notice to leave (SIGTERM, or the supervisor's notice file) ends the current step, saves and raises SystemExit(75): "saved;
    start me again". After the last step the state is saved too. Leaving the loop by `break` saves nothing more.
    """
    _check(total, every)
    total = _at_most(total)
    archive = checkpoints or Checkpoints(
        url=directory, keep=keep, rank=rank, world=world, replicated=replicated, split=split, reshard=reshard
    )
    if archive.writer.world > 1 and every == "auto" and agree is None:
        raise InvalidSettings(
            Problem(
                "every", '"auto" needs agree= with several ranks: each would choose its own moment', allowed="a number of steps"
            )
        )
    try:
        archive.outline = restoring.outline(state)
        if archive.split is not None:
            resharding.check(archive.split, {field for field, _ in archive.outline}, restoring.objects(state))
        archive.has_loop = True
        archive.claim()
        loaded = archive.load(into=state)
    except BaseException:
        archive.close()
        raise
    first = loaded.step if loaded else 0
    if without_chance(state):
        log.warning(
            "The state holds a model of torch without the random generators: after an interruption other numbers are drawn "
            "than without one. job.torch.State(model=..., optimizer=...) adds them."
        )
    if loaded:
        log.info("Going on from step %d of %s", first, archive.store.location)
    agreement: Agreement
    if agree is not None:
        agreement = agreeing.ByFunction(agree)
    elif archive.writer.world > 1:
        agreement = agreeing.ByFiles(archive.store, archive.writer)
    else:
        agreement = agreeing.Alone()
    return _run(state, total, first, archive, _Clock(every, first, archive), agreement, signals)


def without_chance(state: Any) -> bool:
    """Whether a plain state holds a model of torch, whose dropout or data draw numbers, and not what they are drawn from.
    By the names of types: torch is not imported for it."""
    if not isinstance(state, Mapping):
        return False
    names = {f"{kind.__module__}.{kind.__qualname__}" for one in state.values() for kind in type(one).__mro__}
    return "torch.nn.modules.module.Module" in names and "chipwise.job.torch.State" not in names


def _check(total: int | None, interval: Interval) -> None:
    problems = []
    if total is not None and (type(total) is not int or total < 0):
        problems.append(Problem("total", f"is {total!r}", allowed="a whole number, 0 or more, or None for endless"))
    if interval != "auto" and (type(interval) is not int or interval < 1):
        problems.append(Problem("every", f"is {interval!r}", allowed='1 or more steps, or "auto"'))
    if problems:
        raise InvalidSettings(*problems)


def _at_most(total: int | None) -> int | None:
    text = os.environ.get("CHIPWISE_STEPS")
    if not text:
        return total
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise InvalidSettings(Problem("CHIPWISE_STEPS", f"is {text!r:.40}", allowed="a whole number of steps"))
    return int(text) if total is None else min(total, int(text))


class _Clock:
    """When the next checkpoint is due."""

    def __init__(self, interval: Interval, first: int, checkpoints: Checkpoints) -> None:
        self._every = interval
        self._kept = checkpoints
        self._last = time.monotonic()
        text = os.environ.get("CHIPWISE_INTERRUPTIONS_PER_HOUR") or str(DEFAULT_PER_HOUR)
        try:
            self._per_hour = float(text)
        except ValueError:
            self._per_hour = math.nan
        if not 0 <= self._per_hour < math.inf:  # by another nothing more would be saved, or all fail in the middle
            problem = Problem("CHIPWISE_INTERRUPTIONS_PER_HOUR", f"is {text!r:.40}", allowed="a number, 0 or more")
            raise InvalidSettings(problem)
        self._measuring = interval == "auto"

    def due(self, step: int) -> bool:
        if self._every != "auto":
            return step % self._every == 0
        if self._measuring:  # the first one tells what saving takes, and shows early that it works
            return True
        save_s = self._kept.save_seconds
        return save_s is not None and time.monotonic() - self._last >= interval_s(save_s, self._per_hour)

    def saved(self) -> None:
        self._measuring = False
        self._last = time.monotonic()


def _run(
    state: Any, total: int | None, first: int, checkpoints: Checkpoints, clock: _Clock, agreement: Agreement, signals: bool
) -> Iterator[int]:
    progress = checkpoints.progress = Progress(total, first, checkpoints.writer.rank)
    progress.resumed = checkpoints.resumed_step
    completed = first
    saved = first if checkpoints.saved_step == first else -1
    try:
        with notices.listening() if signals else nullcontext():
            for step in itertools.count(first) if total is None else range(first, total):
                own = agreeing.Own(save=completed != first and clock.due(completed), leave=notices.leaving() is not None)
                decided = agreement.decide(own, completed, progress.rate)
                if decided == agreeing.LEAVE:
                    _leave(state, completed, saved, checkpoints, progress)
                if decided == agreeing.SAVE:
                    if checkpoints.save(completed, state):
                        saved = completed
                    clock.saved()
                progress.tell(completed, checkpoints.saved_step, checkpoints.save_seconds)
                yield step
                completed = step + 1
                progress.count(completed)
            if saved != completed:
                checkpoints.save(completed, state, wait=True)
            checkpoints.flush()
            progress.tell(completed, checkpoints.saved_step, checkpoints.save_seconds, now=True)
    except GeneratorExit:  # the loop was left within a step, mostly by an error: which step it was tells a bug from bad luck
        progress.tell(completed, checkpoints.saved_step, checkpoints.save_seconds, now=True)
        raise
    finally:
        checkpoints.close()


def _leave(state: Any, step: int, saved: int, checkpoints: Checkpoints, progress: Progress) -> None:
    notice = notices.leaving()
    reason = notice.reason if notice else "another rank was asked to stop"
    left = notice.seconds_left if notice else None
    if left is not None and checkpoints.save_seconds is not None and left < checkpoints.save_seconds:
        log.warning("%s: %.1f s are left and saving takes %.1f s; trying", reason, left, checkpoints.save_seconds)
    start = time.monotonic()
    if saved != step:
        checkpoints.save(step, state, wait=True)
    checkpoints.flush()
    log.info("%s: step %d is saved (%.1f s); leaving", reason, step, time.monotonic() - start)
    progress.tell(step, checkpoints.saved_step, checkpoints.save_seconds, now=True)
    raise SystemExit(LEFT)
