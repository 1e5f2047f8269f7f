"""The verb `doctor`: why a program is slow, from a recording, a process or a job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.api.observe import watching
from chipwise.errors import BadInput, NoResult, UnknownName
from chipwise.observe.current import judged
from chipwise.observe.diagnosis import Diagnosis
from chipwise.observe.diagnosis import every_rule as every_rule
from chipwise.observe.recording import load

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session
    from chipwise.observe.sample import Recording

USUAL_S = 30.0


def from_file(session: Session, path: Path) -> Diagnosis:
    return diagnosed(session, load(path).recording)


def from_process(session: Session, pid: int, seconds: float, tick: Callable[[float], None]) -> Diagnosis:
    return diagnosed(session, watching.recorded(session, seconds, pid=pid, tick=tick))


def from_job(session: Session, name: str, seconds: float, tick: Callable[[float], None]) -> Diagnosis:
    return diagnosed(session, watching.recorded(session, seconds, job=name, tick=tick))


def of_target(session: Session, target: str, seconds: float, tick: Callable[[float], None]) -> Diagnosis:
    """A file, if there is one of that name; else a job."""
    if Path(target).is_file() or target.endswith(".jsonl") or "/" in target:
        return from_file(session, Path(target))
    try:
        return from_job(session, target, seconds, tick)
    except UnknownName as error:
        remedy = f"{error.remedy or ''} A recording is named by its file, a process by --pid.".strip()
        raise BadInput(f"{target!r} is neither a job nor a file.", remedy=remedy) from error


def diagnosed(session: Session, recording: Recording) -> Diagnosis:
    """Raises where there is too little to judge by."""
    diagnosis = judged(session.chip_names, recording)
    if not diagnosis.is_enough:
        raise NoResult(diagnosis.notes[0], remedy="Record for longer: --for 30s, or chipwise watch --record FILE.")
    return diagnosis
