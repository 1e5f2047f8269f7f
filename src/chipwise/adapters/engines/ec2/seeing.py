"""What is seen of an attempt, from what EC2 says of its machines and what S3 keeps of it. Pure.

An attempt has exited when each of its machines said so; what EC2 says of them then no longer matters. A machine that is gone
without a word is lost. While any machine of an attempt may still run, the attempt is not over: of a region that does not answer
only the word of its machines counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from chipwise.catalog.offer import Purchase
from chipwise.observe import device_summary
from chipwise.runner.engine import Sight, State
from chipwise.runner.job import Job, MachinePlace
from chipwise.runner.recovery import LEFT

from .cloud import InstanceData, Key
from .health import sickness

KNOWN_S = 300.0  # after which EC2 shows every machine that it started
_ENDED = re.compile(r"ended-(\d+)-(\d+)")
_TIMESTAMP = re.compile(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)")
_REASONS = {
    "Server.SpotInstanceTermination": "AWS reclaimed the spot machine",
    "Server.SpotInstanceShutdown": "AWS reclaimed the spot machine",
    "Server.InsufficientInstanceCapacity": "there was no machine of this type in its zone",
    "Server.InternalError": "AWS could not start the machine",
    "Client.VolumeLimitExceeded": "the quota for disks is used up",
    "Client.InternalError": "the machine could not start: check the rights to the key of its encrypted disk",
    "Client.UserInitiatedShutdown": "its machine was ended",
    "Client.InstanceInitiatedShutdown": "its machine shut itself down without a message",
}

Reading = Callable[[str], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Instance:
    id: str
    state: str  # pending, running, shutting-down, terminated, stopping, stopped
    type: str
    zone: str
    spot: bool
    launched: float
    reason: str = ""
    until: float | None = None

    @property
    def is_gone(self) -> bool:
        return self.state in ("terminated", "stopped")


def handle(key: Key) -> str:
    return f"{key[0]}/{key[1]}"


def key_of_handle(text: str) -> Key | None:
    job, _, number = text.rpartition("/")
    return (job, int(number)) if job and number.isdecimal() else None


def machine(instance: InstanceData) -> Instance:
    reason = instance.get("StateReason", {})
    match = _TIMESTAMP.search(instance.get("StateTransitionReason") or "")
    until = datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp() if match else None
    message = _REASONS.get(reason.get("Code", "")) or str(reason.get("Message", ""))
    return Instance(
        id=instance["InstanceId"],
        state=instance["State"]["Name"],
        type=instance.get("InstanceType", ""),
        zone=instance.get("Placement", {}).get("AvailabilityZone", ""),
        spot=instance.get("InstanceLifecycle") == "spot",
        launched=instance["LaunchTime"].timestamp(),
        reason=message,
        until=until,
    )


def sight(
    job: Job, machines: Sequence[Instance], marks: Mapping[str, str], read: Reading, now: float, silent: str = ""
) -> Sight:
    """`read(mark)`: what a mark says. `silent`: why nobody knows of its machines now."""
    status = _unanswered(job, marks, read, silent) if silent else _seen(job, machines, marks, read, now)
    progress = read("progress") if "progress" in marks else {}
    status = _with_health(status, sickness(job, marks, read, _integer(progress.get("saved_step")) is not None), job, now)
    launched = min((one.launched for one in machines), default=None)
    return replace(
        status,
        handle=handle((job.id, len(job.attempts))),
        step=_integer(progress.get("step")),
        saved=_integer(progress.get("saved_step")),
        resumed=_integer(progress.get("resumed_step")),
        rate=steady if isinstance(steady := progress.get("steady"), float) else None,
        held_since=launched,
        since=_begun(job, marks, read),
        place=place_of(job, machines),
        watched=device_summary.read([read(mark) for mark in sorted(marks) if mark.startswith("watched-")]),
    )


def _with_health(status: Sight, sick: str, job: Job, now: float) -> Sight:
    """One that runs on a sick machine is to leave it, and one that failed there did not fail by itself."""
    if not sick:
        return status
    if status.state is State.RUNNING and status.leave_by is None:
        return replace(status, reason=sick, leave_by=now + job.spec.grace_s)
    if status.state is State.EXITED and status.code not in (0, LEFT) and status.leave_by is None:
        return replace(status, state=State.LOST, reason=sick)
    return status


def _seen(job: Job, machines: Sequence[Instance], marks: Mapping[str, str], read: Reading, now: float) -> Sight:
    count, ended = job.machines, _ended(marks)
    if len(ended) >= count:
        return _exited(ended, read)
    if not machines:
        return _without_machines(marks, read, now)
    left = [one for one in machines if not one.is_gone]
    lost = [one for one in machines if one.is_gone]
    if len(lost) > len(ended) and not left:
        ends = [one.until for one in lost if one.until is not None and one.launched <= one.until <= now]
        broken = [str(read(mark).get("reason", "")) for mark in marks if mark.startswith("broken-")]
        reason = next((one for one in (*broken, *(each.reason for each in lost)) if one), "")
        return Sight(State.LOST, reason=reason or "its machine is gone", until=max(ends, default=None))
    begun = _has_begun(job, marks)
    state = State.RUNNING if begun else State.PENDING
    if any(one.state == "shutting-down" for one in left) or (lost and len(lost) > len(ended)):
        reason = next((one.reason for one in (*lost, *left) if one.reason), "its machine is being removed")
        deadline = now + job.spec.grace_s if len(left) > sum(one.state == "shutting-down" for one in left) else None
        return Sight(state, reason=reason, leave_by=deadline)
    return _noticed(state, marks, read) or Sight(state, reason="" if begun else _waits(left, count))


def _unanswered(job: Job, marks: Mapping[str, str], read: Reading, reason: str) -> Sight:
    ended = _ended(marks)
    if len(ended) >= job.machines:
        return _exited(ended, read)
    if "refused" in marks or not marks:
        return _without_machines(marks, read, 0.0)
    if not _has_begun(job, marks):
        return Sight(State.PENDING, reason=reason)
    return _noticed(State.RUNNING, marks, read) or Sight(State.RUNNING)


def _ended(marks: Mapping[str, str]) -> dict[int, tuple[int, str]]:
    """By rank: its code, and the mark that says more."""
    return {int(found[1]): (int(found[2]), mark) for mark in marks if (found := _ENDED.fullmatch(mark))}


def _has_begun(job: Job, marks: Mapping[str, str]) -> bool:
    return sum(mark.startswith("begun-") for mark in marks) >= job.machines


def _noticed(state: State, marks: Mapping[str, str], read: Reading) -> Sight | None:
    notices = [read(mark) for mark in marks if mark.startswith("notice-")]
    times = [float(one["by"]) for one in notices if isinstance(one.get("by"), int | float)]
    return Sight(state, reason=str(notices[0].get("reason", "")), leave_by=min(times)) if times else None


def _exited(ended: Mapping[int, tuple[int, str]], read: Reading) -> Sight:
    """The code of the machine that failed first; the others were told to leave because of it."""
    exits = sorted(
        ((_time(read(mark)), rank, code, read(mark)) for rank, (code, mark) in ended.items()), key=lambda one: one[:2]
    )
    failed = [one for one in exits if one[2] != 0]
    _, _, code, first = failed[0] if failed else exits[0]
    noticed = next((said["noticed"] for *_, said in exits if isinstance(said.get("noticed"), dict)), None)
    deadline = noticed.get("by") if noticed else None
    return Sight(
        state=State.EXITED,
        code=code,
        reason=str(first.get("reason", "")),
        until=max(one[0] for one in exits) or None,
        leave_by=float(deadline) if isinstance(deadline, int | float) else None,
    )


def _without_machines(marks: Mapping[str, str], read: Reading, now: float) -> Sight:
    if "refused" in marks:
        return Sight(State.LOST, reason=str(read("refused").get("reason", "")) or "no machine was available")
    if "fleet" in marks:
        if now - _time(read("fleet")) < KNOWN_S:
            return Sight(State.PENDING, reason="its machines were requested")
        return Sight(State.LOST, reason="EC2 no longer knows its machines")
    return Sight(State.ABSENT)  # an order of which no answer came: it is given again, and gives the same machines


def _waits(left: Sequence[Instance], many: int) -> str:
    coming = sum(one.state == "pending" for one in left)
    return f"{coming} of {many} machines are starting" if coming else "its machines are booting"


def _begun(job: Job, marks: Mapping[str, str], read: Reading) -> float | None:
    times = [float(said) for mark in marks if mark.startswith("begun-") and isinstance(said := read(mark).get("value"), int)]
    return max(times) if times and len(times) >= job.machines else None


def place_of(job: Job, machines: Sequence[Instance]) -> MachinePlace | None:
    """What it really got, at the price that the plan has for it; an unknown price counts as the highest, never as none."""
    if not machines:
        return None
    actual, own = machines[0], job.attempts[-1].where
    purchase = Purchase.SPOT if actual.spot else Purchase.ON_DEMAND
    region = own.region or actual.zone[:-1]
    known = [one for one in (own, *job.spec.places) if one.region in ("", region)]
    alike = [one for one in known if one.purchase is purchase and one.usd_per_hour is not None]
    near = [one for one in alike if one.machine == actual.type]
    exact = [one for one in near if one.zone == actual.zone]
    dearest = max((one.usd_per_hour for one in alike or known if one.usd_per_hour is not None), default=None)
    price = (exact or near)[0].usd_per_hour if exact or near else dearest
    return MachinePlace(
        purchase=purchase,
        provider=own.provider or "aws",
        region=region,
        zone=actual.zone,
        machine=actual.type,
        usd_per_hour=price,
    )


def _time(said: Mapping[str, Any]) -> float:
    at = said.get("at")
    return float(at) if isinstance(at, int | float) else 0.0


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
