"""Verdicts and a policy in, actions out, as values: engines carry them out, and the reason goes into a job's history.

Nothing is drained on a single corrected error: `fine` and `watch` never move a job. A job that goes on in spite of the fault,
and has no checkpoint to move from, is left to finish on its drained device.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from chipwise.observe.health.verdict import Condition, JobEffect, Verdict, rank


@dataclass(frozen=True, slots=True)
class HealthPolicy:
    drains: bool = True
    cordons: bool = True  # nodes of a cluster, whose scheduler cannot leave out one device
    moves: bool = True  # jobs, from their last checkpoint
    replaces: bool = False  # machines: it costs a start, and only where a machine can be had again
    tolerated: int = 0  # drained devices of a machine before the whole machine is replaced


@dataclass(frozen=True, slots=True)
class MachineUse:
    """Where devices are, and what runs on them."""

    name: str
    devices: Sequence[str] = ()
    is_node: bool = False  # of a cluster
    is_rented: bool = False  # it can be replaced by another one
    jobs: Mapping[str, Sequence[str]] = field(default_factory=dict)  # job: its devices
    checkpoints: frozenset[str] = frozenset()  # jobs that have one


@dataclass(frozen=True, slots=True)
class Drain:
    device: str
    reason: str


@dataclass(frozen=True, slots=True)
class Cordon:
    machine: str
    reason: str


@dataclass(frozen=True, slots=True)
class Move:
    job: str
    away_from: str
    from_checkpoint: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Replace:
    machine: str
    reason: str


@dataclass(frozen=True, slots=True)
class HealthReport:
    """For people; nothing is done."""

    device: str
    reason: str
    job: str = ""  # whose own fault it is


Action = Drain | Cordon | Move | Replace | HealthReport


def decide(verdicts: Iterable[Verdict], machine: MachineUse, policy: HealthPolicy | None = None) -> tuple[Action, ...]:
    """In the order in which they are to be done: nothing new comes before something old leaves."""
    rules = policy or HealthPolicy()
    local = sorted(
        (verdict for verdict in verdicts if verdict.device in machine.devices or verdict.device == f"node:{machine.name}"),
        key=lambda verdict: (-rank(verdict.state), verdict.device),
    )
    sick = [verdict for verdict in local if rank(verdict.state) >= rank(Condition.DRAIN)]
    actions: list[Action] = [action for verdict in local for action in _reports(verdict, machine)]
    if not sick or not rules.drains:
        return (*actions, *(HealthReport(verdict.device, verdict.reason) for verdict in sick))
    if rules.cordons and machine.is_node:
        actions.append(Cordon(machine.name, sick[0].reason))
    actions += [Drain(verdict.device, verdict.reason) for verdict in sick if verdict.device in machine.devices]
    if rules.moves:
        actions += _moves(sick, machine)
    broken = [verdict for verdict in sick if verdict.state is Condition.REPLACE]
    if rules.replaces and machine.is_rented and (broken or len(sick) > max(rules.tolerated, 0)):
        actions.append(Replace(machine.name, (broken or sick)[0].reason))
    return tuple(actions)


def _reports(verdict: Verdict, machine: MachineUse) -> Iterator[HealthReport]:
    if verdict.is_programs_fault:
        jobs = [job for job, devices in machine.jobs.items() if verdict.device in devices]
        yield HealthReport(verdict.device, verdict.reason, jobs[0] if len(jobs) == 1 else "")
    elif verdict.state is Condition.WATCH:
        yield HealthReport(verdict.device, verdict.reason)


def _moves(sick: Sequence[Verdict], machine: MachineUse) -> Iterator[Move]:
    for job, devices in machine.jobs.items():
        hit = next((one for one in sick if one.device in devices or one.device == f"node:{machine.name}"), None)
        if hit is None:
            continue
        has_checkpoint = job in machine.checkpoints
        if has_checkpoint or hit.job is not JobEffect.CONTINUES:
            yield Move(job=job, away_from=hit.device, from_checkpoint=has_checkpoint, reason=hit.reason)
