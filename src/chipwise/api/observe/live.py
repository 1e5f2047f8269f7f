"""A recording of what runs on this machine now, or of a job: samples of `watching`, gathered for some time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from chipwise.errors import OutsideFailed
from chipwise.observe.sample import Recording, Sample

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session

EVERY_S = 0.2
_WATCHING = "chipwise.api.observe.watching"


def recorded(
    session: Session,
    seconds: float,
    *,
    job: str | None = None,
    pid: int | None = None,
    tick: Callable[[float], None] = lambda passed_s: None,
) -> Recording:
    """Neither a job nor a process: the devices and the host."""
    source = _source(session, job, pid)
    samples: list[Sample] = []
    started = time.monotonic()
    try:
        while (passed := time.monotonic() - started) < seconds and not source.is_over():
            new, came_again = source.look()
            samples = [*new] if came_again else [*samples, *new]
            tick(passed)
            time.sleep(max(EVERY_S - (time.monotonic() - started - passed), 0.0))
        header: Recording = source.header
    finally:
        source.close()
    return replace(header, samples=tuple(samples))


def _source(session: Session, job: str | None, pid: int | None) -> Any:
    if find_spec(_WATCHING) is None:
        raise OutsideFailed("This installation cannot sample.", remedy="Give a recording: chipwise doctor FILE.")
    watching = import_module(_WATCHING)
    return watching.opened(session, watching.WatchTarget(job=job, pid=pid))
