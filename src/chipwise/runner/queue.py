"""Who runs next on devices of our own: priorities, fair shares, quotas of teams, and backfill.

The team goes first that holds least for its weight; in it the owner who holds least; among equals, who was given devices
longest ago, and then who came first. So neither many jobs of one owner come before those of others, nor one that fails at once
and is tried again. Priority counts between the jobs of one owner. A job that does not fit now is passed over, but it is not
forgotten: the moment at which it will fit is reckoned from how long the running ones take (EASY backfill), and a later one
goes ahead only if it is over by then or leaves what is needed. Where nobody knows how long the running ones take, later ones go
ahead until the first has waited for `patience_s`; then the devices are kept for it as they become free. One that needs more
than there is keeps nothing from others, nor does one that waits for a service; one that waits for other jobs of its own owner
keeps devices from this owner alone.

A job that holds no device starts in its turn, too, as one of a bounded number: each has processes.

A job that can do with fewer GPUs than it wants starts, in its turn, with as many as it may have then; later it may grow, but
only by what nobody waits for.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from chipwise.runner.engine import Room
from chipwise.runner.job import Job, Move, Phase, Wish
from chipwise.runner.reservation import DeviceReservation, FreeDevices, Seat, is_for_own, keep, least_gpus, person
from chipwise.text import plural

NEXT = "next in the queue"
MOST_WITHOUT_DEVICES = 64  # jobs at a time that hold neither a GPU nor a CPU


@dataclass(frozen=True, slots=True)
class Share:
    """What a team may hold at once (None: no limit), and how much it counts beside others."""

    gpus: int | None = None
    cpus: int | None = None
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Rules:
    teams: Mapping[str, Share] = field(default_factory=dict)
    default_share: Share = Share()  # of teams that are not named
    patience_s: float = 3600.0
    served: Mapping[tuple[str, str], float] = field(
        default_factory=dict
    )  # by team and owner: when they were last given devices
    order: Callable[[Job, float], float] | None = None  # the rank of a job by a policy, the lowest first; None: by fair shares
    is_strict: bool = False  # by that policy nobody overtakes one that does not fit yet

    def share(self, team: str) -> Share:
        return self.teams.get(team, self.default_share)


@dataclass(slots=True)
class _Usage:
    """GPUs and CPUs that are held, and when each owner was last given some."""

    teams: dict[str, tuple[int, int]]
    owners: dict[tuple[str, str], tuple[int, int]]
    served: dict[tuple[str, str], float]

    def add(self, job: Job, gpus: int, cpus: int, since: float) -> None:
        team, owner = job.spec.team, _owner(job)
        self.teams[team] = (self.teams[team][0] + gpus, self.teams[team][1] + cpus)
        self.owners[owner] = (self.owners[owner][0] + gpus, self.owners[owner][1] + cpus)
        self.serve(owner, since)

    def serve(self, owner: tuple[str, str], since: float) -> None:
        self.served[owner] = max(self.served.get(owner, -inf), since)


def _owner(job: Job) -> tuple[str, str]:
    return job.spec.team, job.spec.owner


def admit(jobs: Iterable[Job], room: Room, rules: Rules, now: float) -> list[Seat]:
    """Seats for those that start now. `jobs` are all that are not over: the placed ones hold devices."""
    placed: list[Job] = []
    waiting: list[Job] = []
    for job in jobs:
        (placed if job.phase.placed else waiting).append(job)
    free = _free(placed, room)
    if not waiting or not (free.gpus or free.cpus):
        return []
    usage = _usage(placed, rules)
    seats: list[Seat] = []
    reservation: DeviceReservation | None = None
    own_reservations: dict[tuple[str, str], DeviceReservation] = {}  # which hold for the jobs of their owner alone
    too_large: set[tuple[int, int]] = set()
    for job in _in_turn(waiting, usage, rules, now):
        needs = job.spec.needs
        wanted = (least_gpus(job), needs.cpus)
        if wanted in too_large or not within_share(job, usage.teams, rules):
            continue
        if not free.fits(*wanted):
            too_large.add(wanted)
            if reservation is None and any(wanted) and ever_fits(job, room):
                kept = keep(job, placed, seats, free, now, rules.patience_s)
                if kept.start < inf and is_for_own(job, placed, seats, free, now):
                    own_reservations.setdefault(person(job), kept)
                else:
                    reservation = kept
                if rules.is_strict:
                    break
            continue
        quota = _quota_left(job, usage.teams, rules)
        limit = min(needs.gpus, len(free.gpus), quota)
        granted: int | None = limit
        for one in (own_reservations.get(person(job)), reservation):
            granted = granted if one is None or granted is None else one.allowed(job, granted, now)
        if granted is None:
            continue
        short = ""
        if granted < needs.gpus:
            cause = (
                _reserved_for(reservation)
                if granted < limit
                else _beyond(job)
                if quota < len(free.gpus)
                else _holders(placed, seats)
            )
            short = _fewer(job, granted, cause)
        gpus, cpus = free.take(granted, needs.cpus)
        seats.append(Seat(job, gpus, cpus, short))
        usage.add(job, len(gpus), len(cpus), now)
        if not free.cpus and not free.gpus:
            break
    return seats


def grown(
    placed: Sequence[Job], waiting: Sequence[Job], room: Room, rules: Rules, now: float, worth: Callable[[Job, int], bool]
) -> tuple[Job, int] | None:
    """One that has run on fewer GPUs than it wants for long enough, and how many it could have now, if that is worth a move.

    Nothing may be in motion and nobody may wait: one that is asked to leave for more could otherwise come back to less. It may
    do so only every `grow_after_s`, and what it has is never taken from it for others: so it does not go up and down.
    """
    small = [job for job in placed if _small(job, now)]
    if not small or any(job.phase is not Phase.RUNNING for job in placed) or any(_could(job, room, rules) for job in waiting):
        return None
    free, usage = len(_free(placed, room).gpus), _usage(placed, rules).teams
    for job in sorted(small, key=lambda job: (job.attempts[-1].placed, -job.spec.priority, job.submitted, job.id)):
        has = len(job.attempts[-1].devices)
        could = min(job.spec.needs.gpus, has + min(free, _quota_left(job, usage, rules)))
        if could > has and worth(job, could):
            return job, could
    return None


def _small(job: Job, now: float) -> bool:
    needs, attempt = job.spec.needs, job.attempts[-1]
    if needs.fewest_gpus >= needs.gpus or len(attempt.devices) >= needs.gpus or Move.MORE not in job.spec.recover:
        return False
    return job.wish is Wish.RUN and attempt.begun is not None and now - attempt.begun >= job.spec.retry.grow_after_s


def _could(job: Job, room: Room, rules: Rules) -> bool:
    """Whether one that waits may start one day as things are."""
    return ever_fits(job, room) and within_share(job, {}, rules)


def _quota_left(job: Job, held: Mapping[str, tuple[int, int]], rules: Rules) -> int:
    limit = rules.share(job.spec.team).gpus
    return job.spec.needs.gpus if limit is None else max(limit - held.get(job.spec.team, (0, 0))[0], 0)


def _fewer(job: Job, granted: int, cause: str) -> str:
    wanted = job.spec.needs.gpus
    rest = "the other is" if wanted - granted == 1 else f"the other {wanted - granted} are"
    return f"{'continues' if job.attempts else 'starts'} with {granted} of {plural(wanted, 'GPU')}: {rest} {cause}"


def _holders(placed: Sequence[Job], seats: Sequence[Seat]) -> str:
    holding = [job.spec.name for job in placed if job.attempts[-1].devices] + [one.job.spec.name for one in seats if one.gpus]
    names = list(dict.fromkeys(holding))
    suffix = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"in use by {', '.join(names[:3])}{suffix}" if names else "not there"


def _reserved_for(reservation: DeviceReservation | None) -> str:
    return f"reserved for {reservation.job.spec.name}" if reservation is not None else ""


def _beyond(job: Job) -> str:
    return f"more than {f'team {job.spec.team}' if job.spec.team else 'jobs without a team'} may use now"


def ever_fits(job: Job, room: Room) -> bool:
    """Whether there are as many devices at all, free or not."""
    return least_gpus(job) <= len(room.gpus or ()) and job.spec.needs.cpus <= len(room.cpus or ())


def within_share(job: Job, usage: Mapping[str, tuple[int, int]], rules: Rules) -> bool:
    """Whether its team may hold it too."""
    share, (gpus, cpus) = rules.share(job.spec.team), usage.get(job.spec.team, (0, 0))
    fewest, cpus_needed = least_gpus(job), job.spec.needs.cpus
    return (share.gpus is None or gpus + fewest <= share.gpus) and (share.cpus is None or cpus + cpus_needed <= share.cpus)


def why_waiting(job: Job, jobs: Sequence[Job], room: Room, rules: Rules, now: float) -> str:
    """In words, when somebody asks. It is not recorded: with every start it changes for all that wait."""
    return _reason(job, jobs, room, rules, now, ahead=True) or NEXT


def why_short(job: Job, jobs: Sequence[Job], room: Room, rules: Rules, now: float) -> str:
    """The same, by those that run and those that come before it alone: how many wait ahead of it, they do not say."""
    return _reason(job, jobs, room, rules, now, ahead=False)


def _reason(job: Job, jobs: Sequence[Job], room: Room, rules: Rules, now: float, *, ahead: bool) -> str:
    if (ready := job.ready_at(now)) > now:
        again = f"tried again in {ready - now:.0f} s"
        return f"{again}: {job.waiting}" if job.waiting else again
    if before := [one.spec.name for one in jobs if one.id in job.spec.after and one.phase is not Phase.DONE]:
        return f"waits for {', '.join(before)}"
    if room.gpus is None and room.cpus is None:
        return job.waiting or "its engine is looking for machines"
    placed = [one for one in jobs if one.phase.placed]
    usage = _usage(placed, rules)
    turn = _turn(_ahead(job, jobs, _usage(placed, rules), rules, now)) if ahead else ""
    short = _over_quota(job, usage.teams, rules) or _short(job, _free(placed, room), room)
    return "; ".join(filter(None, (short, turn)))


def why_each_waits(jobs: Sequence[Job], room: Room, rules: Rules, now: float, most: int) -> dict[str, str]:
    """By id, of all that could start if there were devices: for a record in which people do not see what others have. Of those
    behind the first `most` it is said only that they are, so that little changes with every start."""
    placed = [one for one in jobs if one.phase.placed]
    usage, free, line = _usage(placed, rules), _free(placed, room), _usage(placed, rules)
    reasons: dict[str, str] = {}
    waiting = [one for one in jobs if one.phase is Phase.QUEUED]
    for count, job in enumerate(_in_turn(waiting, line, rules, now)):
        line.add(job, least_gpus(job), job.spec.needs.cpus, now)  # as they would be given out
        if count >= most:
            reasons[job.id] = f"{most} or more jobs ahead"
            continue
        short = _over_quota(job, usage.teams, rules) or _short(job, free, room)
        reasons[job.id] = "; ".join(filter(None, (short, _turn(count)))) or NEXT
    return reasons


def _turn(count: int) -> str:
    return f"{count} job{'s' if count != 1 else ''} ahead" if count else ""


def _over_quota(job: Job, usage: Mapping[str, tuple[int, int]], rules: Rules) -> str:
    share, used, fewest = rules.share(job.spec.team), usage.get(job.spec.team, (0, 0)), least_gpus(job)
    team = f"team {job.spec.team}" if job.spec.team else "jobs without a team"
    for resource, limit, has, wanted in (
        ("GPU", share.gpus, used[0], fewest),
        ("CPU", share.cpus, used[1], job.spec.needs.cpus),
    ):
        if limit is None or has + wanted <= limit:
            continue
        needed = f"{wanted} {'is' if wanted == 1 else 'are'} needed"
        if wanted > limit:
            return f"{team} may use {plural(limit, resource)}, and {needed}: it cannot start until that is raised"
        return f"{team}: {has} of {plural(limit, resource)} in use, and {needed}"
    return ""


def _short(job: Job, free: FreeDevices, room: Room) -> str:
    if not least_gpus(job) and not job.spec.needs.cpus and free.without < 1:
        return f"{MOST_WITHOUT_DEVICES} jobs without devices run here at once, and no more"
    for resource, wanted, available, all_of in (
        ("GPU", least_gpus(job), len(free.gpus), len(room.gpus or ())),
        ("CPU", job.spec.needs.cpus, len(free.cpus), len(room.cpus or ())),
    ):
        needed = f"{plural(wanted, resource)} {'is' if wanted == 1 else 'are'} needed"
        if wanted > all_of:
            return f"{needed}, and there {'is' if all_of == 1 else 'are'} {all_of}: it cannot start here"
        if wanted > available:
            return f"{needed}, and {available} of {all_of} {'is' if available == 1 else 'are'} free"
    return ""


def _ahead(job: Job, jobs: Sequence[Job], usage: _Usage, rules: Rules, now: float) -> int:
    waiting = [one for one in jobs if one.phase is Phase.QUEUED]
    for place, candidate in enumerate(_in_turn(waiting, usage, rules, now)):
        if candidate.id == job.id:
            return place
        usage.add(candidate, least_gpus(candidate), candidate.spec.needs.cpus, now)
    return 0


def _free(placed: Sequence[Job], room: Room) -> FreeDevices:
    gpus: set[int] = set()
    cpus: set[int] = set()
    without = MOST_WITHOUT_DEVICES
    for job in placed:
        attempt = job.attempts[-1]
        gpus.update(attempt.devices)
        cpus.update(attempt.cpus)
        without -= not attempt.devices and not attempt.cpus
    return FreeDevices(
        [one for one in room.gpus or () if one not in gpus], [one for one in room.cpus or () if one not in cpus], without
    )


def _usage(placed: Sequence[Job], rules: Rules) -> _Usage:
    usage = _Usage(defaultdict(lambda: (0, 0)), defaultdict(lambda: (0, 0)), dict(rules.served))
    for job in placed:
        attempt = job.attempts[-1]
        usage.add(job, len(attempt.devices), len(attempt.cpus), attempt.placed)
    return usage


def _in_turn(waiting: Sequence[Job], usage: _Usage, rules: Rules, now: float) -> Iterable[Job]:
    """Those that may start, in the order of their turn; `usage` may grow while they are taken."""
    if rules.order is not None:
        ranks = [(rules.order(job, now), job.submitted, job.id, job) for job in waiting if job.ready_at(now) <= now]
        yield from (job for *_, job in sorted(ranks, key=lambda entry: entry[:3]))
        return
    lines: dict[str, dict[tuple[str, str], list[Job]]] = defaultdict(lambda: defaultdict(list))
    for job in waiting:
        if job.attempts:  # whatever became of it, its owner had devices then
            usage.serve(_owner(job), job.attempts[-1].placed)
        if job.ready_at(now) <= now:
            lines[job.spec.team][_owner(job)].append(job)
    owners: dict[str, list[tuple[float, float, float, tuple[str, str]]]] = {}
    for team, line_of in lines.items():
        for line in line_of.values():
            line.sort(key=lambda job: (-job.spec.priority, job.submitted, job.id), reverse=True)
        owners[team] = [_rank(owner, line, usage) for owner, line in line_of.items()]
        heapq.heapify(owners[team])

    def rank(team: str) -> tuple[float, float, float, str]:
        held = _weighed(usage.teams.get(team, (0, 0)), rules.share(team))
        _, served, came, _ = owners[team][0]
        return held, served, came, team

    teams = [rank(team) for team in lines]
    heapq.heapify(teams)
    while teams:
        team = heapq.heappop(teams)[-1]
        owner = heapq.heappop(owners[team])[-1]
        line = lines[team][owner]
        yield line.pop()
        if line:
            heapq.heappush(owners[team], _rank(owner, line, usage))
        if owners[team]:
            heapq.heappush(teams, rank(team))


def _rank(owner: tuple[str, str], line: Sequence[Job], usage: _Usage) -> tuple[float, float, float, tuple[str, str]]:
    held = _weighed(usage.owners.get(owner, (0, 0)), Share())
    return held, usage.served.get(owner, -inf), line[-1].submitted, owner


def _weighed(held: tuple[int, int], share: Share) -> float:
    """A GPU counts as much as the CPUs that usually come with one."""
    return (held[0] + held[1] / 16.0) / max(share.weight, 1e-9)
