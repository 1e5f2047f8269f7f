"""Programs that write a record and may be killed at any moment, for the tests of records and for `benchmarks/faults`.

python record_writers.py submit URL PREFIX        job after job, each told on a line once the record has it
python record_writers.py tell URL ID TIMES        adds that many events to one job, beside whoever else does
python record_writers.py live URL PREFIX          takes jobs through whole lives, each change told as "ID VERSION"
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import sys
import time

from chipwise.adapters.stores.record import connect
from chipwise.runner.events import Again, Begun, Ended, Event, Over, Placed, Told
from chipwise.runner.job import Job, MachinePlace, Outcome, Phase, Spec
from chipwise.runner.record import Change, Record, Stale

LIFE: tuple[tuple[Event, ...], ...] = (
    (Placed(1, MachinePlace(), cpus=(0,)),),
    (Begun(1, "a"),),
    (Ended(1, Outcome.LOST), Again(0.0, "its machine was removed")),
    (Placed(2, MachinePlace(), cpus=(1,)), Begun(2, "b")),
    (Ended(2, Outcome.DONE, 0), Over(Phase.DONE, "")),
)


def submit(record: Record, prefix: str) -> None:
    for number in itertools.count():
        job = f"{prefix}-{number:05}"
        record.submit([(job, Spec(("true",), prefix, place="here"))], time.time())
        _say(job)


def tell(record: Record, id: str, times: int) -> None:
    told = 0
    while told < times:
        job = record.job(id)
        assert job is not None
        [answer] = record.write([Change(job, (Told(0, f"{os.getpid()}: {told}"),))], time.time())
        told += not isinstance(answer, Stale)
    _say("done")


def live(record: Record, prefix: str) -> None:
    for number in itertools.count():
        [job] = record.submit([(f"{prefix}-{number:05}", Spec(("true",), prefix, place="here"))], time.time())
        _say(f"{job.id} {job.version}")
        for events in LIFE:
            [answer] = record.write([Change(job, events)], time.time())
            assert isinstance(answer, Job), answer
            job = answer
            _say(f"{job.id} {job.version}")


def deaths(url: str, times: int, seed: int) -> None:
    """Three write at once. The oldest is killed, once it has told something, and another takes its place."""
    chance = random.Random(seed)
    writers = [_forked(url, f"w{number}") for number in range(min(times, 3))]
    for number in range(times):
        pid, pipe = writers.pop(0)
        heard = os.read(pipe, 1 << 16)  # it is in the middle of it
        time.sleep(chance.uniform(0.0, 0.03))
        os.kill(pid, signal.SIGKILL)
        while part := os.read(pipe, 1 << 16):
            heard += part
        os.close(pipe)
        _, status = os.waitpid(pid, 0)
        if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
            raise SystemExit(f"writer {number} ended by itself: {heard[-500:]!r}")
        os.write(1, heard)
        if number + 3 < times:
            writers.append(_forked(url, f"w{number + 3}"))


def _forked(url: str, prefix: str) -> tuple[int, int]:
    theirs, ours = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(ours, 1)
            os.close(theirs)
            os.close(ours)
            live(connect(url), prefix)
        finally:
            os._exit(70)
    os.close(ours)
    return pid, theirs


def fork(record: Record) -> None:
    record.submit([("before", Spec((), "a"))], 1.0)
    child = os.fork()
    for number in range(20):
        record.submit([(f"{'child' if child == 0 else 'parent'}-{number}", Spec((), "a"))], 1.0)
    if child == 0:
        known = record.job("before")
        record.close()
        os._exit(0 if known is not None else 2)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    record.submit([(f"ended with {code}", Spec((), "a"))], 1.0)


def _say(line: str) -> None:
    """In one write: a line is whole or not there."""
    os.write(1, f"{line}\n".encode())


def main(arguments: list[str]) -> None:
    if arguments[0] == "deaths":
        deaths(arguments[1], int(arguments[2]), int(arguments[3]))
        return
    record = connect(arguments[1])
    try:
        if arguments[0] == "fork":
            fork(record)
        elif arguments[0] == "tell":
            tell(record, arguments[2], int(arguments[3]))
        else:
            {"submit": submit, "live": live}[arguments[0]](record, arguments[2])
    finally:
        record.close()


if __name__ == "__main__":
    main(sys.argv[1:])
