"""A program's runs, put together: the timed one, the one that was counted, and those with other numbers of threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from chipwise.observe.characterise import amdahl, steady
from chipwise.observe.characterise.counts import StepCounts, counted, from_counters
from chipwise.observe.characterise.values import (
    BAR,
    FORWARD,
    JOB,
    LOADER,
    OPTIMIZER,
    REPEAT,
    RUN,
    SECOND,
    Bounded,
    Characterisation,
    Hardware,
    Observed,
    Quantity,
)
from chipwise.observe.sample import NoReading, Sample

MARKED = (OPTIMIZER, BAR, FORWARD, LOADER)  # kinds whose steps have times, the surest first
RUN_ERROR = 0.05  # of the time of one run: what the next would differ by, a rule of thumb
NET_ERROR = 0.15  # of a step's time that is what counting left of it
CROWDED = 0.1  # of the time that it could have run
FIRST_STEP_S = 60.0  # in which a program that imports PyTorch may load, compile and warm up until its first steps
SHORTEST_S = 0.5  # a run that ends sooner tells nothing of what it would do for longer


@dataclass(frozen=True, slots=True)
class ProgramRuns:
    command: tuple[str, ...]
    timed: Observed
    counted: Observed | None
    by_threads: Mapping[int, Observed]
    hardware: Hardware
    stated_steps: float | None = None


@dataclass(frozen=True, slots=True)
class Pace:
    """What a step is, how long it takes, since when that is steady, and until when it was seen."""

    step: str
    seconds: tuple[float, float, float]
    since_s: float
    basis: str


def marked_kind(observed: Observed) -> str | None:
    """The surest kind of steps of which there are enough."""
    kinds = [kind for kind in MARKED if len(observed.step_times.get(kind, ())) > steady.LEAST_STEPS]
    if not kinds:
        return None
    if OPTIMIZER in kinds:
        return OPTIMIZER
    return min(kinds, key=MARKED.index)


def steady_since(observed: Observed) -> float | None:
    """When it became steady, on the clock of its times; None: it has not."""
    kind = marked_kind(observed)
    if kind is not None:
        return steady.steady_steps(observed.step_times[kind])
    facts = observed.counts or {}
    if "torch" in (facts.get("imports"), facts.get("framework")) and observed.wall_s < FIRST_STEP_S:
        return None  # importing and loading keep a core busy, too, and are not what it does
    return steady.steady_samples(observed.samples)


def pace(observed: Observed, counts: Mapping[str, object] | None) -> Pace | None:
    """None: it neither ended nor became steady."""
    kind = marked_kind(observed)
    if kind is not None:
        times = observed.step_times[kind]
        since = steady.steady_steps(times)
        if since is not None:
            return Pace(kind, steady.step_seconds([time for time in times if time >= since]), since, "the times of its steps")
    if observed.progress is not None and (rate := observed.progress.get("steady")):
        return Pace(JOB, _near(1 / rate, RUN_ERROR), observed.began_s, "what it reports by chipwise.job")
    if counts is not None and counts.get("step") == REPEAT and _number(counts, "step_net_s") > 0:
        net_s = _number(counts, "step_net_s")
        return Pace(REPEAT, _near(net_s, NET_ERROR), observed.began_s, "its operations, without what counting them took")
    if observed.ended:
        return Pace(RUN, _near(observed.wall_s, RUN_ERROR), observed.began_s, "the time of the whole run")
    since = steady.steady_samples(observed.samples)
    return None if since is None else Pace(SECOND, (1.0, 1.0, 1.0), since, "its definition")


def characterise(seen: ProgramRuns) -> Characterisation | None:
    """None where its speed never became steady."""
    timed, run = seen.timed, seen.counted
    counts = None if run is None else run.counts
    rhythm = pace(timed, counts)
    if rhythm is None:
        return None
    per_step = _per_step(seen, rhythm)
    window = [sample for sample in timed.samples if sample.at_s >= rhythm.since_s] or list(timed.samples)
    steps_in_window = (window[-1].at_s - window[0].at_s) / rhythm.seconds[0] if len(window) > 1 else 0.0
    facts = counts or timed.counts or {}
    network = per_step.network
    kind = "hpc" if network is None else {OPTIMIZER: "train", FORWARD: "batch"}.get(rhythm.step, "hpc")
    cores = _mean(window, "cpu", "its processes in /proc")
    delayed = delayed_share(window, cores)
    steps_counted = _number(facts, "counted_steps")
    return Characterisation(
        command=seen.command,
        kind=kind,
        step=rhythm.step,
        step_s=Bounded(*rhythm.seconds, rhythm.basis),
        steady_after_s=rhythm.since_s - timed.began_s if rhythm.step not in (RUN, REPEAT, JOB) else None,
        flop=per_step.flop,
        moved=per_step.moved,
        precision=per_step.precision,
        parallel=_parallel(seen, rhythm, cores, delayed, str(facts.get("device") or "cpu")),
        memory=_peak(timed.samples, "memory_used"),
        device_memory=_stated(facts, "device_memory", "PyTorch's allocator", "no device memory was seen in use"),
        read=_grown(window, "io_read", steps_in_window, "read calls"),
        read_from_disk=_grown(window, "disk_read", steps_in_window, "reads that reached a disk"),
        data_wait=_waited(timed, rhythm),
        transfers=_sum_of(facts.get("transfers"), steps_counted, "copies between devices", "no copies between devices"),
        communication=_sum_of(facts.get("communication"), steps_counted, "collectives", _silent(window)),
        pattern=_pattern(facts.get("communication")),
        steps=_steps(seen, rhythm),
        cores=cores,
        network=network if kind != "hpc" else None,
        optimizer=str(facts.get("optimizer") or ""),
        hardware=seen.hardware,
        delayed=delayed,
        notes=_crowded(delayed),
    )


def _crowded(delayed: float) -> tuple[str, ...]:
    """Whether others held the cores that it could have used: its speed is then lower than on a quiet machine."""
    if delayed < CROWDED:
        return ()
    words = f"Other programs held the cores for {delayed:.0%} of the time in which it was ready to run"
    return (f"{words}: times and the parallel share are worse than on a quiet machine.",)


def delayed_share(samples: Sequence[Sample], cores: Quantity) -> float:
    values = [(sample.at_s, value) for sample in samples if (value := sample.value("cpu_delayed")) is not None]
    if len(values) < 2 or isinstance(cores, NoReading):
        return 0.0
    delayed = max(values[-1][1] - values[0][1], 0.0) / (values[-1][0] - values[0][0])
    return delayed / (delayed + cores.value) if delayed + cores.value > 0 else 0.0


def _per_step(seen: ProgramRuns, rhythm: Pace) -> StepCounts:
    run = seen.counted
    steps = {RUN: 1.0, SECOND: None}.get(rhythm.step)
    counts = None if run is None else run.counts
    if rhythm.step == SECOND and counts is not None and _number(counts, "net_s") > 0:
        steps = _number(counts, "net_s")
    if rhythm.step == RUN and run is not None and not run.ended:
        steps = None
    if run is None:
        per_step = StepCounts(NoReading("no run was counted"), NoReading("no run was counted"), "fp64")
    else:
        per_step = counted(counts, rhythm.step, steps)
        if counts is not None and "step_flop" in counts and counts.get("step") in MARKED:
            per_step = per_step.times(_counted_steps_of(seen.timed, rhythm, str(counts["step"])), rhythm.step)
    counters = seen.timed.counters
    if isinstance(per_step.flop, NoReading) and not isinstance(counters, NoReading) and counters.get("flop"):
        return from_counters(counters, seen.timed.wall_s / rhythm.seconds[0], per_step.precision)
    if isinstance(per_step.flop, NoReading) and isinstance(counters, NoReading):
        reason = f"{per_step.flop.reason}; the processor's counters: {counters.reason}"
        return StepCounts(NoReading(reason), NoReading(reason), per_step.precision)
    return per_step


def _counted_steps_of(timed: Observed, rhythm: Pace, kind: str) -> float | None:
    """How many steps of the kind that was counted one step of the program is; None: nobody knows."""
    if rhythm.step in (kind, JOB):
        return 1.0
    total = len(timed.step_times.get(kind, ()))
    if rhythm.step == RUN:
        return float(total) or None
    return total / len(timed.step_times[rhythm.step]) if total and rhythm.step in timed.step_times else None


def _parallel(seen: ProgramRuns, rhythm: Pace, cores: Quantity, delayed: float, device: str) -> Quantity:
    """Where others held the cores, each time may be as much shorter on a quiet machine as it waited for them."""
    if device != "cpu":
        return NoReading(f"the work is done by {device}, whatever the number of threads")
    times: dict[int, tuple[float, float, float]] = {}
    for threads, observed in seen.by_threads.items():
        rhythm_there = pace(observed, observed.counts)
        if rhythm_there is not None and rhythm_there.step == rhythm.step and rhythm_there.step != SECOND:
            waited = _delayed_there(observed, rhythm_there)
            delayed = max(delayed, waited)
            value, low, high = rhythm_there.seconds
            times[threads] = value, min(low, value * (1.0 - waited)), high
    if len(times) > 1:
        return _known(amdahl.parallel_share(times), delayed)
    if isinstance(cores, NoReading) or seen.hardware.vcpus is None:
        return NoReading("neither runs with other numbers of threads nor the cores in use are known")
    share = amdahl.share_of_cores(cores.value, seen.hardware.vcpus)
    alone = amdahl.share_of_cores(cores.value / max(1.0 - delayed, 0.01), seen.hardware.vcpus)
    if isinstance(share, NoReading) or isinstance(alone, NoReading):
        return share
    return _known(replace(share, high=max(share.high, alone.high)), delayed)


def _delayed_there(observed: Observed, rhythm: Pace) -> float:
    window = [sample for sample in observed.samples if sample.at_s >= rhythm.since_s] or list(observed.samples)
    return delayed_share(window, _mean(window, "cpu", "its processes in /proc"))


def _known(share: Quantity, delayed: float) -> Quantity:
    """An interval from nothing to all says nothing."""
    if isinstance(share, NoReading) or delayed < CROWDED or share.low > 0.0 or share.high < 1.0:
        return share
    return NoReading(f"other programs held the cores for {delayed:.0%} of the time: characterize it on a quiet machine")


def _steps(seen: ProgramRuns, rhythm: Pace) -> Quantity:
    timed = seen.timed
    if seen.stated_steps is not None:
        return Bounded(seen.stated_steps, seen.stated_steps, seen.stated_steps, "--steps")
    if timed.progress is not None and (total := timed.progress.get("total")):
        return Bounded(total, total, total, "what it reports by chipwise.job")
    if rhythm.step == RUN:
        return Bounded(1.0, 1.0, 1.0, "it ended by itself")
    if timed.ended and rhythm.step in timed.step_times:
        seen_steps = float(len(timed.step_times[rhythm.step]))
        return Bounded(seen_steps, seen_steps, seen_steps, "it ended by itself")
    if timed.ended:
        return Bounded.near(timed.wall_s / rhythm.seconds[0], 0.2, "it ended by itself; its start counts as steps")
    facts = timed.counts or {}
    if rhythm.step == BAR and (total := _number(facts, "bar_total")):
        return Bounded(total, total, total, "the length of its progress bar")
    if rhythm.step in (OPTIMIZER, LOADER, FORWARD) and (epoch := _number(facts, "batches_per_epoch")):
        return NoReading(f"an epoch has {epoch:,.0f} batches; how many epochs there are is not known")
    return NoReading("the program does not tell")


def _waited(timed: Observed, rhythm: Pace) -> Quantity:
    facts = timed.counts or {}
    batches, waited = _number(facts, "batches"), _number(facts, "data_wait_s")
    if not batches:
        return NoReading("it has no DataLoader")
    return Bounded.near(min(waited / batches / rhythm.seconds[0], 1.0), 0.1, "the time that the DataLoader took")


def _near(value: float, relative: float) -> tuple[float, float, float]:
    return value, value * (1 - relative), value * (1 + relative)


def _mean(samples: Sequence[Sample], name: str, basis: str) -> Quantity:
    values = [value for sample in samples if (value := sample.value(name)) is not None]
    return Bounded(fmean(values), min(values), max(values), basis) if values else NoReading("it was over before it was sampled")


def _peak(samples: Sequence[Sample], name: str) -> Quantity:
    values = [value for sample in samples if (value := sample.value(name)) is not None]
    if not values:
        return NoReading("it was over before it was sampled")
    return Bounded(max(values), max(values), 1.05 * max(values), "the highest of all samples")


def _grown(samples: Sequence[Sample], name: str, steps: float, basis: str) -> Quantity:
    values = [value for sample in samples if (value := sample.value(name)) is not None]
    if len(values) < 2 or steps <= 0:
        return NoReading("the system does not show it for this program")
    return Bounded.near(max(values[-1] - values[0], 0.0) / steps, 0.1, basis)


def _stated(facts: Mapping[str, object], name: str, basis: str, reason: str) -> Quantity:
    value = _number(facts, name)
    return Bounded(value, value, value, basis) if value else NoReading(reason)


def _sum_of(value: object, steps: float, basis: str, reason: str) -> Quantity:
    total = sum(value.values()) if isinstance(value, Mapping) else 0.0
    return Bounded.near(total / steps, 0.01, basis) if total and steps else NoReading(reason)


def _silent(samples: Sequence[Sample]) -> str:
    processes = max((sample.value("processes") or 1.0 for sample in samples), default=1.0)
    if processes > 1:
        return f"{processes:.0f} processes: what they send each other was not measured"
    return "one process: nothing was sent to others that could be seen"


def _pattern(value: object) -> str:
    if not isinstance(value, Mapping) or not value:
        return "none"
    name = max(value, key=lambda key: float(value[key]))
    return str(name) if name != "other" else "none"


def _number(facts: Mapping[str, object], name: str) -> float:
    value = facts.get(name)
    return float(value) if isinstance(value, int | float) else 0.0
