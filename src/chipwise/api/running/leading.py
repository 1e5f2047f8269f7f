"""The process that leads a place: turns of the controller until all jobs are over, under a lock that only one can hold."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.api.running.controlling import awake, environment
from chipwise.api.running.spot_rules import named_policies
from chipwise.errors import BadInput, OutsideFailed, TryLater
from chipwise.runner.job import LIVE
from chipwise.runner.loop import Controller, Turn
from chipwise.runner.record import Unread, Wanted

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session
    from chipwise.runner.record import Record

SOON_S = 0.2
RESTS_S = 1.0  # between turns while nothing moves
IDLE_S = 20.0  # without any job, after which it goes
SUBMITTED_WITHIN_S = 3600.0  # secrets are laid before their job is recorded
GIVES_UP_S = 600.0  # without a record that lets it act, where it knows of no job
TRIES_AGAIN_S = (1.0, 30.0)  # when the record cannot be reached: the first wait, and the longest


def control(session: Session, idle_s: float = IDLE_S, place: str = "") -> None:
    """Until all jobs are over, or somebody asks it to go. Jobs do not notice: they live on without it."""
    from chipwise.adapters import clock, state_files, waking
    from chipwise.adapters.hand_offs import HandOffs
    from chipwise.api.running.engines import of_place
    from chipwise.api.running.installed import traits
    from chipwise.api.running.place import DEVICES, LOOKED, engine_here, home_of, open_record, passing_dir, rules

    os.environ.update(environment(session))  # supervisors and jobs stand elsewhere
    home = home_of(session, place)
    state_files.make_folder(home)
    serves_others = state_files.is_shared(session.config.data_dir)
    if serves_others:
        os.umask(0o027)
        _open_for_secrets(passing_dir(session))
    lock = state_files.lock(home / "controller.lock")
    if lock is None:
        raise TryLater(
            f"A controller {_number(home / 'controller.lock')}leads {place or 'this machine'} already.",
            remedy="One is enough: let the service manager wait before it starts another.",
        )
    with suppress(OSError):  # for people who look; a full disk must not matter
        os.truncate(lock, 0)
        os.write(lock, f"{os.getpid()}\n".encode())
    pulse = waking.Pulse(lock, home)
    signals = _asked_to_go()
    engine: Any = of_place(session, place) if place else engine_here(session)
    if not place:
        engine.ready()
        with suppress(OSError):
            devices = {"pid": os.getpid(), "gpus": list(engine.config.gpus), "cpus": list(engine.config.cpus)}
            state_files.write(home, DEVICES, devices)
    own = f"{socket.gethostname()}:{sha256(str(home.absolute()).encode()).hexdigest()[:8]}:"
    known = traits(engine.name)
    limits, hand_offs = rules(session), HandOffs(looks_at=known.looks_at)

    def beginning() -> Controller:
        record = open_record(session)
        try:
            former = record.leader(engine.place)
            # It held this lock, so it lives no more. What is damaged there may be no text, and is passed over after a while.
            if former is not None and str(former.holder).startswith(own):
                record.resign(former)
            if not place:
                _tidy(passing_dir(session), record)
        except BaseException:
            record.close()
            raise
        return Controller(
            record=record,
            engine=engine,
            holder=f"{own}{os.getpid()}",
            rules=limits,
            policy=named_policies(),
            checked=hand_offs.checked,
            elapsed=clock.boottime,
        )

    controller, idle, live = beginning(), False, 0
    busy_at, trouble_s, log = time.monotonic(), TRIES_AGAIN_S[0], _TroubleLog()
    while not signals and home.is_dir():
        pulse.turned()
        try:
            turn = controller.turn(time.time())
        except OutsideFailed as error:
            log.say(f"{error} Trying again.")
            if not live and time.monotonic() - busy_at > GIVES_UP_S:  # nothing waits for it, as far as it ever saw
                break
            until = time.monotonic() + trouble_s
            while not signals and time.monotonic() < until:  # a signal does not end a sleep
                time.sleep(SOON_S)
            trouble_s = min(2.0 * trouble_s, TRIES_AGAIN_S[1])
            with suppress(OutsideFailed):  # another file may lie there by now, and be the record that people see
                if home.is_dir():  # else all was removed, and nothing is made again
                    former, controller = controller, beginning()
                    former.record.close()
            continue
        trouble_s = TRIES_AGAIN_S[0]
        if place and turn.looked:  # here whoever asks looks for himself
            with suppress(OSError):
                (home / LOOKED).touch()
        log.say(*turn.trouble)
        now = time.monotonic()
        live = turn.live
        if live or turn.behind:
            busy_at = now
        elif now - busy_at > idle_s and not serves_others:  # others cannot start it again
            idle = True
            break
        time.sleep(_pause(turn, known.turn_s))
    pulse.stop()
    with suppress(OutsideFailed):  # the lease runs out by itself
        controller.resign()
        os.close(lock)
        if not place:
            _tidy(passing_dir(session), controller.record)
        # Whoever submitted while the lock was still held took it that somebody is there.
        if idle and controller.record.jobs(Wanted(LIVE, place=engine.place)):  # for a damaged one nobody needs to stay
            awake(session, place)
        controller.record.close()
    engine.close()


def _number(lock: Path) -> str:
    from chipwise.adapters import state_files

    with suppress(OSError, ValueError):
        return f"(process {int(state_files.regular_bytes(lock))}) "
    return ""


def _open_for_secrets(passing: Path) -> None:
    """The group may lay something down there, and can neither see what is there nor replace what another laid down."""
    passing.mkdir(exist_ok=True)
    passing.chmod(0o3730)


class _TroubleLog:
    """What is wrong, once: turns are many, and the file of it has no end."""

    def __init__(self) -> None:
        self.last: tuple[str, ...] = ()

    def say(self, *trouble: str) -> None:
        if trouble != self.last:
            self.last = trouble
            with suppress(OSError):  # a full disk
                for line in trouble:
                    print(line, flush=True)


def _tidy(passing: Path, record: Record) -> None:
    """Secrets of jobs that are over and never began, or whose controller died before it could remove them."""
    from chipwise.adapters.state_files import taken_over

    kept = [one for one in (passing, taken_over(passing)) if one.is_dir()]
    for folder in [folder for one in kept for folder in one.iterdir()]:
        with suppress(OSError, BadInput, Unread):  # one that cannot be read may still need them
            job = record.job(folder.name)
            if job.phase.over if job is not None else time.time() - folder.stat().st_mtime > SUBMITTED_WITHIN_S:
                shutil.rmtree(folder)


def _pause(turn: Turn, busy_s: float) -> float:
    if turn.behind:
        return 0.0
    return busy_s if turn.live else max(busy_s, RESTS_S)


def _asked_to_go() -> list[int]:
    signals: list[int] = []
    for kind in (signal.SIGTERM, signal.SIGINT):
        signal.signal(kind, lambda number, frame: signals.append(number))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    return signals
