"""The controller with 10,000 jobs in the queue: CPU of one decision, of one whole turn, and of a play through all of them.

The devices are ours, so that the queue decides who is next, and half of the jobs are too large for what is free: the costly
case. A whole turn reads the record in memory, looks, decides, writes and orders; a store on a disk has figures of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

from chipwise.adapters.engines.simulated.engine import Simulated
from chipwise.adapters.engines.simulated.play import simulate
from chipwise.adapters.engines.simulated.world import Program, World
from chipwise.adapters.stores.memory_record import MemoryRecord
from chipwise.runner.engine import Room, Seen, Sight, State
from chipwise.runner.events import Begun, Placed, Submitted, after, first
from chipwise.runner.job import Job, MachinePlace, Needs, Spec
from chipwise.runner.loop import Controller
from chipwise.runner.queue import Rules, Share, why_waiting
from chipwise.runner.step import step
from figure import Figure, cpu_here

QUEUED = 10_000
ROOM = Room(tuple(range(64)), tuple(range(512)))
RULES = Rules({f"team-{n}": Share(gpus=32 if n % 2 else None, weight=1.0 + n) for n in range(10)})


def _spec(number: int, random: Random) -> Spec:
    return Spec(
        ("python", "train.py"),
        f"job-{number}",
        engine="simulated",
        place="simulated",
        team=f"team-{random.randrange(10)}",
        priority=random.randrange(3),
        needs=Needs(random.choice((0, 1, 2, 4, 8, 16, 32)), random.choice((1, 4, 16, 64))),
        expected_s=random.choice((None, 600.0, 3600.0, 36_000.0)),
    )


def _queued(number: int) -> dict[str, Job]:
    random = Random(1)
    return {f"j{n:05}": first(f"j{n:05}", Submitted(_spec(n, random)), random.uniform(0.0, 1000.0)) for n in range(number)}


def _with_running(jobs: dict[str, Job], now: float) -> tuple[dict[str, Job], Seen]:
    """As after the first turn: the devices are given out, and what got them runs."""
    jobs = dict(jobs)
    for act in step(jobs, Seen(now, room=ROOM), now, RULES):
        assert act.job is not None
        assert isinstance(act.events[0], Placed)
        job = after(act.job, act.events[0], now)
        jobs[job.id] = after(job, Begun(1, "h"), now)
    sights = {(job.id, 1): Sight(State.RUNNING, handle="h") for job in jobs.values() if job.attempts}
    return jobs, Seen(now, sights, ROOM)


def figures() -> Iterator[Figure]:
    now = 2000.0
    waiting = _queued(QUEUED)
    full, seen = _with_running(waiting, now)
    freed = dict(full)
    for id in [id for id, job in full.items() if job.attempts][:3]:
        del freed[id]
    yield _ms("controller step, 10,000 queued, devices free", lambda: step(waiting, Seen(now, room=ROOM), now, RULES))
    yield _ms("controller step, 10,000 queued, devices taken", lambda: step(full, seen, now, RULES))
    yield _ms("controller step, 10,000 queued, some freed", lambda: step(freed, seen, now, RULES))
    for state in (State.PENDING, State.RUNNING):
        placed, sights = _placed(waiting, state)
        yield _ms(f"controller step, 10,000 {state}", lambda jobs=placed, seen=sights: step(jobs, seen, now))  # type: ignore[misc]
    last, all_jobs = [job for job in full.values() if not job.attempts][-1], list(full.values())
    yield _ms("why one of 10,000 waits", lambda: why_waiting(last, all_jobs, ROOM, RULES, now))
    yield Figure("whole turn, 10,000 queued", 1e3 * _turn_s(), "ms CPU", {"max": 100})
    yield Figure("spot job of 72 h played", cpu_here(_play_spot, 3), "s CPU", {"max": 3})
    yield Figure("10,000 jobs played to their end", cpu_here(_play_all, 1), "s CPU", {"max": 120})


def _ms(name: str, work: Callable[[], object]) -> Figure:
    return Figure(name, 1e3 * cpu_here(work), "ms CPU", {"max": 100})


def _placed(jobs: dict[str, Job], state: State) -> tuple[dict[str, Job], Seen]:
    """All of them with an engine that finds machines by itself."""
    placed = {id: after(job, Placed(1, MachinePlace()), 0.0) for id, job in jobs.items()}
    if state is State.RUNNING:
        placed = {id: after(job, Begun(1, "h"), 0.0) for id, job in placed.items()}
    return placed, Seen(0.0, {(id, 1): Sight(state, held_since=0.0, handle="h") for id in placed})


def _turn_s() -> float:
    """In the steady state, with nothing new in the record."""
    random, record = Random(1), MemoryRecord()
    record.submit([(f"j{n:05}", _spec(n, random)) for n in range(QUEUED)], 0.0)
    engine = Simulated(World(gpus=64, cpus=512, other=Program(10_000, 10.0)))
    controller = Controller(record, engine, "benchmark", RULES)
    now = 0.0
    while controller.turn(now).behind:
        pass
    ticks = iter(range(1, 1000))
    return cpu_here(lambda: controller.turn(now + next(ticks)))


def _play_spot() -> object:
    from chipwise.catalog.offer import Purchase

    spot = MachinePlace(Purchase.SPOT, "aws", "eu-west-1", "eu-west-1a", "p5.48xlarge", 30.0)
    stays = replace(spot, purchase=Purchase.ON_DEMAND, usd_per_hour=98.0)
    wanted = Spec(
        ("python", "train.py"),
        "train",
        places=(spot, stays),
        expected_s=72 * 3600.0,
        deadline=96 * 3600.0,
        checkpoints="s3://bucket/run",
        interruptions_per_hour=0.5,
        predicted={"steps": 100_000},
    )
    done = simulate([("j1", wanted)])
    assert done.is_over
    assert not done.late
    return done


def _play_all() -> object:
    random = Random(2)
    world = World(gpus=64, cpus=512, other=Program(60, 10.0))
    specs = [(f"j{n:05}", replace(_spec(n, random), needs=Needs(1, 1))) for n in range(QUEUED)]
    done = simulate(specs, world, rules=Rules({f"team-{n}": Share() for n in range(10)}))
    assert done.is_over
    return done


if __name__ == "__main__":
    for figure in figures():
        print(figure.line())
