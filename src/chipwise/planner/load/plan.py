"""A plan's load over time and its place in the world: what `plan/loading` and `plan/placing` need, from workload and catalog.

`arrivals` says how requests come in (a rate and a schedule, or a recorded trace), `with_recording` fills in what a trace tells,
`with_load` adds to a plan which layers carry the load over a month and, where traffic is given, in which regions to stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from chipwise.money.layering import MOST_MACHINES, Alone
from chipwise.planner.defaults import NEARLY, NOTEBOOK_IDLE_S
from chipwise.planner.load.advice import advise
from chipwise.planner.load.curve import (
    Answering,
    Base,
    Carried,
    LoadCurve,
    carry,
    hours_of,
    lower_loads,
    machines_of,
    pattern_of,
    recorded,
    sessions,
    steady,
)
from chipwise.planner.load.day import assumed_of, day_note, hours_of_week, week_curve
from chipwise.planner.load.machines import Kinds, answering_of
from chipwise.planner.load.regions import placed
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.load import LoadPlan, MachineHours
from chipwise.planner.values.placement import Placement
from chipwise.planner.values.plan import Plan
from chipwise.text import duration, usd
from chipwise.units import WEEK
from chipwise.workload.common import Common
from chipwise.workload.demand import Length
from chipwise.workload.kinds import Interactive, Serve
from chipwise.workload.schedule import Always, Bursts
from chipwise.workload.trace import MOST_ROWS, Floats, Recording, read_trace

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

MOST_KINDS = 40  # machine types and regions that are layered
MOST_FLAT = 10  # where the load never changes: only promises beside the offers can change the order
MOST_BASES = 2  # owned machine types that are tried as the base
WITH_BASE = 10  # rented ones that are tried above them
W = TypeVar("W", bound=Common)


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """How requests come in over a week."""

    curve: LoadCurve
    recording: Recording | None = None


def arrivals(known: Known, work: Serve, path: str) -> Arrivals:
    """Of a rate, a day, a trace beside the file at `path`, or a number of callers."""
    arrival = work.arrival
    if arrival.trace is not None:
        recording = _recording(known, work, path)
        burst = 1.0 if _latency_stated(work) else recording.burstiness
        return Arrivals(recorded(recording.rates, recording.step_s, work.schedule, burst), recording)
    if arrival.concurrency is not None:
        schedule = Always() if isinstance(work.schedule, Bursts) else work.schedule  # so many at all times, bursts or not
        return Arrivals(steady(float(arrival.concurrency), schedule, unit="callers"))
    burst = 1.0 if _latency_stated(work) else arrival.burstiness
    if arrival.peak is not None:
        return Arrivals(week_curve(known, work, burst))
    return Arrivals(steady(float(arrival.rate or 0.0), work.schedule, burst))


def quieter_loads(known: Known, work: Serve, path: str) -> tuple[float, ...]:
    """Loads below the peak at which it is looked at what a replica is planned for. Only bursts make a difference, and where
    goals are: without goals machines are counted for bursts by themselves. A device has the load of its place alone."""
    bursty = work.arrival.burstiness > 1 and work.arrival.concurrency is None and not work.devices
    return lower_loads(arrivals(known, work, path).curve) if bursty and _latency_stated(work) else ()


def _latency_stated(work: Serve) -> bool:
    """The rate that a machine answers within latency goals counts bursts; without goals machines are counted for them."""
    return any(getattr(work.goals, name) is not None for name in ("ttft", "tpot", "latency"))


def _recording(known: Known, work: Serve, path: str) -> Recording:
    """Read once, as long as the file stays the same."""
    trace = work.arrival.trace
    assert trace is not None
    file = trace.path_from(path)
    stamp = file.stat() if file.is_file() else None
    key = ("trace", f"{file}|{trace.format}|{stamp.st_mtime_ns if stamp else 0}|{stamp.st_size if stamp else 0}")
    recording = known.memo.get(key)
    if recording is None:
        recording = known.memo[key] = read_trace(trace, path)
    stored: Recording = recording
    return stored


def with_recording(known: Known, work: W, path: str) -> W:
    """With the mean rate of a day or a trace; of a trace also burstiness and lengths, where the file does not say otherwise."""
    if isinstance(work, Serve) and work.arrival.peak is not None:
        mean = arrivals(known, work, path).curve.mean
        return work.model_copy(update={"arrival": work.arrival.model_copy(update={"rate": mean})})
    if not isinstance(work, Serve) or work.arrival.trace is None:
        return work
    recording = _recording(known, work, path)
    stated = {"rate": recording.mean, "burstiness": min(recording.burstiness, 100.0)}
    filled: dict[str, object] = {"arrival": work.arrival.model_copy(update=stated)}
    for name, lengths in (("input_tokens", recording.input_tokens), ("output_tokens", recording.output_tokens)):
        if getattr(work, name) is None and lengths is not None:
            filled[name] = Length(mean=lengths.mean, max=lengths.longest)
    return work.model_copy(update=filled)


def recorded_pairs(known: Known, work: Serve, path: str) -> Floats:
    """Prompts and answers as they came together; none without a trace that has both."""
    return _recording(known, work, path).pairs if work.arrival.trace is not None else np.zeros((0, 2))


def with_load(known: Known, path: str, work: Common, plan: Plan) -> Plan:
    """The plan with its load over time and its regions, where it is a service; else as it is."""
    if plan.per != "month" or not isinstance(work, Serve | Interactive) or getattr(work, "devices", None):
        return plan
    notes = plan.notes
    if isinstance(work, Serve) and work.arrival.trace is not None:
        notes = (*notes, _trace_note(arrivals(known, work, path)))
    if isinstance(work, Serve) and work.arrival.peak is not None:
        notes = (*notes, day_note(work, arrivals(known, work, path).curve))
    load, first = load_plan(known, work, plan, path), plan.winner
    if load is not None and first is not None and first.layered_usd is not None and first.over_time is not None:
        always = first.over_time.always_cost.usd
        if load.usd < (1 - NEARLY) * always:
            peak = f"for the peak {first.over_time.always} it would cost {usd(always)}"
            costs = f"{load.title} costs {usd(load.usd)} a month; {peak}"
            notes = (*notes, f"The budget is compared with the cost of the load over time: {costs}.")
    return replace(plan, load=load, placement=placement(known, work, plan, path), notes=notes)


def _trace_note(traffic: Arrivals) -> str:
    recording, curve = traffic.recording, traffic.curve
    assert recording is not None
    cut = f" (only the first {MOST_ROWS:,} rows were read)" if recording.cut else ""
    return (
        f"The trace has {recording.requests:,} requests in {duration(recording.span_s)}{cut}: mean {curve.mean:.3g}, busiest "
        f"{duration(recording.step_s)} {curve.busiest:.3g} requests/s, burstiness {recording.burstiness:.2g} within; "
        f"planned for {curve.peak:.3g}."
    )


def load_plan(known: Known, work: Common, plan: Plan, path: str) -> LoadPlan | None:
    """The cheapest layers over all likely machines; None where nothing fits."""
    if plan.rows is None or plan.winner is None or not plan.rows.kept or not isinstance(work, Serve | Interactive):
        return None
    if not told_apart(work):
        return None
    curve = curve_of(known, work, path)
    kinds = Kinds(known=known, work=work, rows=plan.rows, curve=curve, path=path)
    limit = 1 if plan.objective != "cost" else MOST_FLAT if curve.flat else MOST_KINDS
    rented, owned = kinds.pairs(limit)
    if (leading := kinds.row_of(plan.winner)) is not None and leading not in (*rented, *owned):
        rented.append(leading)
    bases = [(kinds.base(at), at) for at in owned[:MOST_BASES]] if rented else []
    carried: list[tuple[Carried, int]] = []
    for rank, row in enumerate(rented or owned):
        kind = kinds.kind(row)
        if kind is None or beyond(curve, kind.answering):
            continue
        above: Sequence[tuple[Base | None, int]] = (bases if rank < WITH_BASE else ()) or [(None, row)]
        carried += [
            _with_other_costs(kinds, *_alone_if_enough(kinds, carry(curve, kind, base), row, own)) for base, own in above
        ]
    if not carried:
        return None
    best, row = _leading(plan.winner, carried)
    return _finished(work, plan, curve, kinds, best, row, len({place for _, place in carried}))


def _alone_if_enough(kinds: Kinds, carried: Carried, row: int, own: int) -> tuple[Carried, int]:
    """Where machines of one's own carry all of the load, the answer is those: nothing is rented above them."""
    if carried.base is None or carried.load.peak > 0 or (kind := kinds.kind(own)) is None:
        return carried, row
    return replace(carried, kind=kind), own


def _with_other_costs(kinds: Kinds, carried: Carried, row: int) -> tuple[Carried, int]:
    return replace(carried, other_usd=kinds.other_usd(row)), row


def _leading(winner: Choice, carried: Sequence[tuple[Carried, int]]) -> tuple[Carried, int]:
    """The plan's own machines; cheaper ones only where something is promised or owned. What is bought by the hour alone was
    ranked with the plan's own, and lost by more than its cost: by porting, headroom, or a speed or a price that is unsure."""
    ranked = [pair for pair in carried if pair[0].has_commitment or pair[0].kind.is_of(winner)] or carried
    best, row = min(ranked, key=lambda pair: pair[0].usd)
    for rival, place in ranked:
        if rival.kind.is_of(winner) and rival.usd <= (1 + NEARLY) * best.usd:
            return rival, place
    return best, row


def told_apart(work: Serve | Interactive) -> bool:
    """Whether layers are reckoned at all: of more people than these machines are not told apart."""
    return not isinstance(work, Interactive) or (work.at_once or work.people) <= MOST_MACHINES


def beyond(curve: LoadCurve, answering: Answering) -> bool:
    """Layers are told machine by machine, and of more than these nobody could."""
    return bool(machines_of(curve, answering).max() > MOST_MACHINES)


def curve_of(known: Known, work: Serve | Interactive, path: str) -> LoadCurve:
    if isinstance(work, Serve):
        return arrivals(known, work, path).curve
    return sessions(int(work.at_once or work.people), work.busy, work.idle_after, work.schedule)


def _finished(
    work: Serve | Interactive, plan: Plan, curve: LoadCurve, kinds: Kinds, best: Carried, row: int, count: int
) -> LoadPlan:
    choice = plan.winner if plan.winner is not None and best.kind.is_of(plan.winner) else kinds.choice(row)
    answering = answering_of(choice, work, curve)
    mean, peak = np.array([curve.mean]), np.array([curve.peak])
    starts_s = kinds.start_s(row)
    hours = hours_of(curve, answering, starts_s)
    pattern = pattern_of(curve, work.schedule)
    advice = advise(pattern, curve, best, hours)
    if isinstance(work, Interactive) and work.idle_after is None:
        minutes = NOTEBOOK_IDLE_S / 60
        stopped = hours_of(sessions(int(work.at_once or work.people), work.busy, NOTEBOOK_IDLE_S, work.schedule), answering)
        advice += f" With idle_after: {minutes:g}min about {stopped.autoscaled:,.0f} machine-hours would do."
    assumed = _assumed(kinds, starts_s, hours)
    if any(one.committed for one in best.layering.layers):
        assumed.append("commitments are paid for their whole term: the load must last as long")
    return LoadPlan(
        pattern=pattern,
        unit=curve.unit,
        mean=curve.mean,
        busiest=curve.busiest,
        peak=curve.peak,
        hours_per_week=curve.on_hours,
        provider=best.kind.provider,
        machine=best.kind.machine,
        region=best.kind.region,
        country=choice.country,
        chip=best.kind.chip,
        per_machine=answering.per_machine,
        replicas_mean=int(answering.replicas(mean)[0]),
        replicas_peak=int(answering.replicas(peak)[0]),
        machines_mean=int(answering.machines(mean)[0]),
        machines_peak=int(answering.machines(peak)[0]),
        machine_hours=hours,
        layers=best.layers,
        usd=best.usd,
        other_usd=best.other_usd,
        low_usd=best.usd * choice.low_usd / max(choice.usd, 1e-12),
        high_usd=best.usd * choice.high_usd / max(choice.usd, 1e-12),
        alone=_alone(best),
        recommendation=advice,
        changed=_changed(plan, best, kinds, curve),
        steps=_steps(best),
        kind_count=count,
        assumed=tuple(assumed),
        by_hour=hours_of_week(work, curve, answering) if isinstance(work, Serve) and work.arrival.shape is not None else (),
    )


def _alone(best: Carried) -> tuple[Alone, ...]:
    """The whole load on one option, with what is paid beside the machines."""
    alone = best.layering.alone if best.base is None else ()
    return tuple(option if option.usd is None else replace(option, usd=option.usd + best.other_usd) for option in alone)


def _assumed(kinds: Kinds, starts_s: float, hours: MachineHours) -> list[str]:
    work, curve, notes = kinds.work, kinds.curve, []
    arrival = work.arrival if isinstance(work, Serve) else None
    if isinstance(work, Serve) and arrival is not None and arrival.trace is not None:
        span_s = _recording(kinds.known, work, kinds.path).span_s
        if span_s < WEEK:
            notes.append(
                f"the {duration(span_s)} that were recorded stand for every hour of the schedule: nights and weekends too"
            )
    if isinstance(work, Serve) and arrival is not None and arrival.shape is not None:
        notes += assumed_of(kinds.known, work)
    if curve.peak > curve.busiest:
        notes.append(
            f"peak = busiest + 2.33 sqrt((c^2 - 1) busiest / 60 s), burstiness c = {curve.burstiness:.3g}: 99 of 100 minutes"
        )
    if curve.short:
        notes.append("an autoscaler stops machines one step late")
    if isinstance(work, Interactive) and work.idle_after is not None:
        notes.append("people work in stretches of about an hour; sessions up at once follow the binomial law")
    if hours.starting > 0:
        notes.append(
            f"a machine is ordered {duration(starts_s)} before it is needed (boot, image, weights, compilation) and paid for "
            f"from then on: {hours.starting:,.3g} machine-hours a month"
        )
    elif curve.cycles <= 0 and (curve.off_hours > 0 or not curve.flat):
        notes.append("starting and stopping machines is not paid for")
    return notes


def _steps(best: Carried) -> tuple[tuple[int, float], ...]:
    if best.base is not None and best.load.peak == 0:
        return ((best.base.machines, best.load.horizon_hours),)
    return tuple(zip(best.load.machines.tolist(), best.load.hours.tolist(), strict=True))


def _changed(plan: Plan, best: Carried, kinds: Kinds, curve: LoadCurve) -> str:
    """Why others than the plan's own machines carry the load for less; both costs are of the whole load."""
    winner = plan.winner
    if winner is None or best.kind.is_of(winner):
        return ""
    row = kinds.row_of(winner)
    first = None if row is None else kinds.kind(row)
    own_usd = (
        winner.usd
        if row is None or first is None or beyond(curve, first.answering)
        else carry(curve, first).usd + kinds.other_usd(row)
    )
    costs = f"{usd(best.usd)} a month, against {usd(own_usd)} for {winner.where}"
    if best.usd < (1 - NEARLY) * own_usd:
        return f"over the load's curve it costs {costs}"
    return f"over the load's curve it costs nearly the same, {costs}"


def placement(known: Known, work: Common, plan: Plan, path: str) -> Placement | None:
    """The regions to stand in; None where nothing is said of traffic, or nothing fits."""
    if not work.traffic or plan.rows is None or plan.winner is None or not plan.rows.kept or not isinstance(work, Serve):
        return None
    return placed(known, work, plan.rows, arrivals(known, work, path).curve, path)
