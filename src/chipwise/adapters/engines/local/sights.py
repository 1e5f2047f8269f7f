"""What the folder of an attempt says about it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chipwise.adapters import clock
from chipwise.runner.engine import Room, Sight, State

from . import folder

STARTS_WITHIN_S = 10.0  # a supervisor, on a busy machine; after that another is started, and one of them gets the lock
NOTES_WITHIN_S = 3.0  # a supervisor, what it started, where it can


def is_starting(path: Path, now: float) -> bool:
    """It was ordered, and its supervisor has the lock or will have it in a moment."""
    if folder.locked(path / folder.LOCK):
        return True
    try:
        return abs(now - (path / folder.ORDER).stat().st_mtime) < STARTS_WITHIN_S  # a clock that was set back makes no wait
    except OSError:
        return False


def ordered(path: Path) -> Room:
    """The devices that its supervisor was told to use."""
    order = folder.read(path, folder.ORDER) or {}
    gpus, cpus = (tuple(one for one in order.get(name) or () if isinstance(one, int)) for name in ("gpus", "cpus"))
    return Room(gpus, cpus)


def progress_of(path: Path) -> dict[str, Any]:
    """As the fields of a sight."""
    progress = folder.read(folder.of_program(path), folder.PROGRESS, follows_links=False, max_bytes=folder.STATUS_BYTES) or {}
    step, saved, resumed = (folder.integer(progress, name) for name in ("step", "saved_step", "resumed_step"))
    return {"step": step, "saved": saved, "resumed": resumed, "rate": folder.number(progress, "steady")}


def notice_of(path: Path) -> tuple[float | None, str]:
    """Until when it must leave, and why, where the machine and not the controller wants that."""
    wish = folder.read(path, folder.LEAVE)
    if wish is None or not wish.get("notice"):
        return None, ""
    return folder.number(wish, "by") or 0.0, folder.words(wish, "reason")


def unanswered(path: Path) -> str:
    """What a service that runs still lacks; empty: it answered its check, or has none."""
    health = folder.read(path, folder.HEALTH)
    if health is None or folder.number(health, "answered") is not None:
        return ""
    detail = ": ".join(filter(None, (folder.words(health, "url"), folder.words(health, "instead"))))
    return f"it does not pass its health check yet{f' ({detail[:300]})' if detail else ''}"


def ended_sight(ended: Mapping[str, Any], begun: float | None, path: Path, notice: tuple[float | None, str]) -> Sight:
    code, (deadline, notice_reason) = folder.integer(ended, "code"), notice
    state = State.LOST if code is None else State.EXITED
    reason = folder.words(ended, "reason") or (notice_reason if code != 0 else "")
    return Sight(
        state=state,
        code=code,
        reason=reason,
        since=begun,
        until=folder.number(ended, "at"),
        handle=str(path),
        leave_by=deadline,
        watched=folder.read(path, folder.WATCHED, max_bytes=folder.STATUS_BYTES) or {},
    )


def sessions_of(state: Mapping[str, Any]) -> list[int]:
    held = state.get("sessions")
    return [one for one in held if isinstance(one, int)] if isinstance(held, list) else []


def may_start_yet(state: Mapping[str, Any]) -> bool:
    """Of a supervisor below which nothing lives: just after it began it has not started its program. One that is stopped, or
    finds the disk full, tells nobody that its program ended, nor which it started."""
    began = folder.number(state, "boottime")
    return not state.get("sessions") and (began is None or clock.boottime() - began < NOTES_WITHIN_S)


def mark_of(id: str, number: int, root: Path) -> str:
    return f"{root}/{id}/{number}"
