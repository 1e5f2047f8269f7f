"""What jobs on this machine use, as the system counts it; and those elsewhere, of which the record tells."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from chipwise.api.running.installed import DEFAULT, runs_here
from chipwise.api.running.place import is_here
from chipwise.errors import ChipwiseError
from chipwise.runner.abilities import Glances
from chipwise.runner.job import PLACED
from chipwise.runner.record import Wanted
from chipwise.runner.sighting import of_sight

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import psutil

    from chipwise.adapters.gpu_use import GpuUse
    from chipwise.adapters.recordings import Follower
    from chipwise.api.running.asking import Runtime
    from chipwise.observe.current import CurrentFinding
    from chipwise.observe.probe import Probe
    from chipwise.runner.abilities import OnThisMachine
    from chipwise.runner.engine import Sight
    from chipwise.runner.job import Job

_FOLLOWED: dict[Path, tuple[Follower, CurrentFinding]] = {}  # by the folder of an attempt
_KNOWN: dict[int, psutil.Process] = {}  # the share of a processor is counted between two looks at the same process


@dataclass(frozen=True, slots=True)
class Standing:
    id: str
    phase: str
    seconds: float
    gpus: tuple[int, ...]
    cpu_percent: float | None  # None: elsewhere, where nobody here counts it
    memory_bytes: float | None
    step: int | None
    supervisor: int | None = None  # its process
    gpu_percent: float | None = None  # the mean of its GPUs; None: no GPU, or nobody can tell
    gpu_memory_bytes: float | None = None  # of all its GPUs
    gpu_memory_total_bytes: float | None = None
    gpu_sm_percent: float | None = None  # of the multiprocessors, the mean of its GPUs, where the driver counts it
    gpu_power_w: float | None = None  # of all its GPUs
    engine: str = DEFAULT
    place: str = ""
    is_here: bool = True
    asks_gpus: int = 0  # of those elsewhere, for each machine
    machines: int = 1
    finding: str | None = None  # the doctor's first over the last minute, by its rule; empty: none, None: too little to say


def look(runtime: Runtime, measure_s: float) -> list[Standing]:
    """Jobs that hold devices; the processor's share is measured over `measure_s`, or since the last look. Those elsewhere
    stand behind: no cluster or cloud is asked for a list that is shown every two seconds."""
    rows = runtime.record.rows(Wanted(phases=PLACED))
    own = {runtime.engine.place, *(row.place for row in rows if is_here(runtime.session, row))}
    jobs = [job for where in sorted(own) for job in _jobs_at(runtime, where)]
    processes = {job.id: runtime.local_engine(job).processes_of(job.id, len(job.attempts)) for job in jobs}
    all_processes = [process for group in processes.values() for process in group]
    for process in all_processes:
        known = _KNOWN.setdefault(process.pid, process)
        if known != process:
            _KNOWN[process.pid] = process
        with suppress(Exception):
            _KNOWN[process.pid].cpu_percent()
    has_gpus = any(job.attempts[-1].devices for job in jobs)
    probe = _gpu_probe() if has_gpus else None
    if measure_s:
        time.sleep(measure_s)
    use: Mapping[int, GpuUse] = {}
    if has_gpus:
        from chipwise.adapters import gpu_use

        use = gpu_use.look() if probe is None else gpu_use.of_samples(probe.read(time.monotonic()))
    now = time.time()
    folders = {job.id: runtime.local_engine(job).folder(job.id, len(job.attempts)) for job in jobs}
    for gone in _FOLLOWED.keys() - set(folders.values()):
        del _FOLLOWED[gone]
    standings: list[Standing] = []
    for job in jobs:
        cpu, memory = 0.0, 0.0
        for process in processes[job.id]:
            with suppress(Exception):  # it may have ended meanwhile
                cpu += _KNOWN[process.pid].cpu_percent()
                memory += process.memory_info().rss
        last = job.attempts[-1]
        since = last.begun if last.begun is not None else last.placed
        engine = runtime.local_engine(job)
        sight = _sight(engine, job, now)
        sighting = of_sight(job, sight, now)
        ends = sighting.seen if sighting is not None and sighting.is_gone and sighting.seen is not None else now
        supervisor = engine.supervisor_of(job.id, last.number)
        gpu_uses = [use[one] for one in last.devices if one in use]
        gpu = _used(gpu_uses)
        elapsed = max(ends - since, 0.0)
        standings.append(
            Standing(
                job.id,
                str(job.phase) if sighting is None else sighting.phase,
                elapsed,
                last.devices,
                cpu,
                memory,
                sight.step,
                supervisor,
                *gpu,
                gpu_sm_percent=_mean([one.sm_percent for one in gpu_uses]),
                gpu_power_w=_sum([one.power_w for one in gpu_uses]),
                engine=job.spec.engine,
                place=job.spec.place,
                finding=_finding(runtime, folders[job.id]),
            )
        )
    remote_places = {row.place for row in rows if not runs_here(row.engine)}
    return [*standings, *(_elsewhere(job, now) for where in sorted(remote_places) for job in _jobs_at(runtime, where))]


def _finding(runtime: Runtime, folder: Path) -> str | None:
    """Of what its supervisor recorded so far; each file is followed from look to look."""
    from chipwise.adapters.recordings import NAME, Follower
    from chipwise.observe.current import CurrentFinding

    follower, current = _FOLLOWED.get(folder, (None, None))
    with suppress(OSError, ChipwiseError):  # it is not sampled, or not yet
        follower = follower or Follower(folder / NAME)
        samples, is_again = follower.look()
        if follower.header is None:
            return None
        current = current or CurrentFinding(lambda: runtime.session.chip_names, follower.header)
        current.add(samples, is_again=is_again)
        _FOLLOWED[folder] = (follower, current)
    diagnosis = None if current is None else current.diagnosis()
    if diagnosis is None:
        return None
    return "" if diagnosis.first is None or diagnosis.is_healthy else diagnosis.first.rule


def _sight(engine: OnThisMachine, job: Job, now: float) -> Sight:
    key = (job.id, len(job.attempts))
    return engine.glance([job], now)[key] if isinstance(engine, Glances) else engine.look([job], now).attempts[key]


def _jobs_at(held: Runtime, where: str) -> list[Job]:
    return held.record.jobs(Wanted(phases=PLACED, place=where))


def _elsewhere(job: Job, now: float) -> Standing:
    last = job.attempts[-1]
    since = last.begun if last.begun is not None else last.placed
    return Standing(
        id=job.id,
        phase=str(job.phase),
        seconds=max(now - since, 0.0),
        gpus=(),
        cpu_percent=None,
        memory_bytes=None,
        step=last.step,
        engine=job.spec.engine,
        place=job.spec.place,
        is_here=False,
        asks_gpus=job.gpus_of(last),
        machines=job.machines,
    )


def _used(gpus: Sequence[GpuUse]) -> tuple[float | None, float | None, float | None]:
    """Of several: the mean of what they do, the sum of what they hold; of those whose sensors tell."""
    return (
        _mean([one.percent for one in gpus]),
        _sum([one.memory_bytes for one in gpus]),
        _sum([one.memory_total_bytes for one in gpus]),
    )


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


@cache
def _gpu_probe() -> Probe | None:
    """By NVML, which also counts how much of a chip works; None: nvidia-smi is asked instead."""
    from chipwise.adapters.probes import nvidia
    from chipwise.errors import ChipwiseError

    try:
        return nvidia.connect()
    except ChipwiseError:
        return None


def view(one: Standing) -> dict[str, Any]:
    return asdict(one)
