"""Sick machines: what their kernels say of devices (`health-RANK`), judged as everywhere, and what follows for the job. Pure.

A machine that is sick is replaced: its job saves and leaves, and the next attempt gets other machines. One whose program failed
because of its device is lost, and not failed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from chipwise.observe.health import kernel_log
from chipwise.observe.health.decide import HealthPolicy, MachineUse, Move, decide
from chipwise.observe.health.judge import verdicts
from chipwise.runner.job import Job

MARK = "health-"
_POLICY = HealthPolicy(replaces=True)


def sickness(job: Job, marks: Mapping[str, str], read: Callable[[str], Mapping[str, Any]], has_saved: bool) -> str:
    """Why the job must leave its machines; empty: nothing is wrong with them, or it may go on."""
    for mark in sorted(mark for mark in marks if mark.startswith(MARK)):
        lines = read(mark).get("lines")
        log = kernel_log.read(line for line in lines if isinstance(line, str)) if isinstance(lines, list) else None
        judged = verdicts(None, log)
        devices = tuple(verdict.device for verdict in judged)
        machine = MachineUse(
            name=mark.removeprefix(MARK),
            devices=devices,
            is_rented=True,
            jobs={job.id: devices},
            checkpoints=frozenset({job.id} if has_saved else ()),
        )
        for action in decide(judged, machine, _POLICY):
            if isinstance(action, Move):
                place = f" {machine.name} of {job.machines}" if job.machines > 1 else ""
                return f"its machine{place} is unhealthy and is replaced: {action.reason}"
    return ""
