"""The controller as a process: it holds the place's lock while it lives, turns until there is nothing left to do, and goes."""

from __future__ import annotations

import os
import signal
import socket
import time
from typing import TYPE_CHECKING

from chipwise.errors import OutsideFailed
from chipwise.run.loop import Controller, Turn

if TYPE_CHECKING:
    from chipwise.api.wiring import Session

TURN_S = 0.2
RESTS_S = 1.0  # between turns while nothing moves
IDLE_S = 20.0  # without any job, after which it goes
STARTS_WITHIN_S = 3.0
TRIES_AGAIN_S = (1.0, 30.0)  # when the record cannot be reached: the first wait, and the longest


_STARTED_AT = [0.0]  # a controller needs a moment until it holds the lock


def awake(session: Session) -> None:
    """Starts a controller where none is."""
    from chipwise.adapters.supervising import waking
    from chipwise.api.running.place import controller_command

    home = session.config.run_dir
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    if time.monotonic() - _STARTED_AT[0] > STARTS_WITHIN_S and not waking.awake(home / "controller.lock"):
        _STARTED_AT[0] = time.monotonic()
        waking.start(controller_command(), os.environ, home / "controller.log")


def control(session: Session, idle_s: float = IDLE_S) -> None:
    """Until all jobs are over, or somebody asks it to go. Jobs do not notice: their supervisors live on."""
    from chipwise.adapters.supervising import folder
    from chipwise.api.running.place import local_engine, open_record, rules

    home = session.config.run_dir
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = folder.lock(home / "controller.lock")
    if lock is None:
        return
    os.truncate(lock, 0)
    os.write(lock, f"{os.getpid()}\n".encode())  # for people who look
    asked = _asked_to_go()
    record, engine = open_record(session), local_engine(session)
    former = record.leader(engine.place)
    if former is not None:  # it held the lock, so it lives no more
        record.resign(former)
    controller = Controller(record, engine, f"{socket.gethostname()}:{os.getpid()}", rules(session))
    busy_at, trouble_s = time.monotonic(), TRIES_AGAIN_S[0]
    while not asked and home.is_dir():
        try:
            turn = controller.turn(time.time())
        except OutsideFailed as error:
            print(f"{error} Trying again in {trouble_s:.0f} s.", flush=True)
            time.sleep(trouble_s)
            trouble_s = min(2.0 * trouble_s, TRIES_AGAIN_S[1])
            continue
        trouble_s = TRIES_AGAIN_S[0]
        for told in turn.trouble:
            print(told, flush=True)
        now = time.monotonic()
        if turn.live or turn.behind:
            busy_at = now
        elif now - busy_at > idle_s:
            break
        time.sleep(_pause(turn))
    controller.resign()
    record.close()


def _pause(turn: Turn) -> float:
    if turn.behind:
        return 0.0
    return TURN_S if turn.live else RESTS_S


def _asked_to_go() -> list[int]:
    asked: list[int] = []
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, lambda number, frame: asked.append(number))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    return asked
