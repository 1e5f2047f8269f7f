"""The file of each service, below the data directory: one command changes it at a time, and the gateway reads it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.adapters import state_files
from chipwise.adapters.http.service_gateway import ACCESS_LOG as ACCESS_LOG
from chipwise.adapters.http.service_gateway import SEEN, SERVICE, read_folder
from chipwise.errors import BadInput, TryLater, UnknownName
from chipwise.serving.service import ServiceRecord, written
from chipwise.spelling import nearest

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session

LOCK = "changing.lock"
WAITS_S = 10.0  # for another command


def folder_of(session: Session, name: str) -> Path:
    return session.config.run_dir / "services" / name


def names(session: Session) -> list[str]:
    return sorted(path.parent.name for path in (session.config.run_dir / "services").glob(f"*/{SERVICE}"))


def load(session: Session, name: str) -> ServiceRecord:
    known = names(session)
    if name not in known:
        raise UnknownName("service", name, nearest(name, known), remedy="`chipwise serve status` lists all.")
    return read_folder(folder_of(session, name))


def refuse_running(session: Session, name: str) -> None:
    if name in names(session):
        raise BadInput(
            f"{name} is running already.",
            remedy=f"Change it with `chipwise serve scale` or `rollout`, end it with `chipwise serve stop {name}`, or start "
            "another with --name.",
        )


def only_name(session: Session, name: str | None) -> str:
    """The one that is meant where none is named."""
    if name is not None:
        return name
    known = names(session)
    if len(known) == 1:
        return known[0]
    listed = f"There are {', '.join(known)}." if known else "None is running; `chipwise serve MODEL` starts one."
    raise UnknownName("service", "", remedy=listed)


def store(session: Session, service: ServiceRecord) -> ServiceRecord:
    service = replace(service, revision=service.revision + 1)
    folder = folder_of(session, service.name)
    state_files.make_folder(folder)
    state_files.write(folder, SERVICE, written(service))
    return service


def delete(session: Session, name: str) -> None:
    """Its access log stays."""
    for file in (SERVICE, SEEN):
        with suppress(FileNotFoundError):
            (folder_of(session, name) / file).unlink()


def seen(session: Session, name: str) -> dict[str, Any]:
    """What its gateway wrote last; empty: nothing yet."""
    return state_files.read(folder_of(session, name), SEEN) or {}


@contextmanager
def changing(session: Session, name: str) -> Iterator[None]:
    """One command at a time: a scaling in the middle of a rollout would stop what that one starts."""
    folder = folder_of(session, name)
    state_files.make_folder(folder)
    until = time.monotonic() + WAITS_S
    while (handle := state_files.lock(folder / LOCK)) is None:
        if time.monotonic() > until:
            raise TryLater(f"{name} is being changed by another command.", remedy="Wait for it, or stop it with Ctrl-C.")
        time.sleep(0.05)
    import os

    try:
        yield
    finally:
        os.close(handle)
