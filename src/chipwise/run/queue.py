"""Who runs next on devices of our own: priorities, fair shares, quotas of teams, and backfill.

Jobs of higher priority go first. Among equals the team goes first that holds least for its weight, and then who came first. A
job that does not fit now is passed over, but it is not forgotten: the moment at which it will fit is reckoned from how long the
running ones take (EASY backfill), and a later one goes ahead only if it is over by then or leaves what is needed. Where nobody
knows how long the running ones take, later ones go ahead until the first has waited for `patience_s`; then the devices are kept
for it as they become free. One that needs more than there is keeps nothing from others.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from chipwise.run.engine import Room
from chipwise.run.job import Job, Phase


@dataclass(frozen=True, slots=True)
class Share:
    """What a team may hold at once (None: no limit), and how much it counts beside others."""

    gpus: int | None = None
    cpus: int | None = None
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Rules:
    teams: Mapping[str, Share] = field(default_factory=dict)
    other: Share = Share()  # of teams that are not named
    patience_s: float = 3600.0

    def share(self, team: str) -> Share:
        return self.teams.get(team, self.other)


@dataclass(frozen=True, slots=True)
class Seat:
    job: Job
    gpus: tuple[int, ...]
    cpus: tuple[int, ...]


@dataclass(slots=True)
class _Free:
    gpus: list[int]
    cpus: list[int]

    def fits(self, gpus: int, cpus: int) -> bool:
        return gpus <= len(self.gpus) and cpus <= len(self.cpus)

    def take(self, gpus: int, cpus: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        taken = tuple(self.gpus[:gpus]), tuple(self.cpus[:cpus])
        del self.gpus[:gpus], self.cpus[:cpus]
        return taken


@dataclass(slots=True)
class _Kept:
    """What is kept for the first job that does not fit: from when, and what is left beside it then."""

    at: float
    gpus: int
    cpus: int

    def allows(self, job: Job, now: float) -> bool:
        """Whether the job does not stand in the way; if it stays beyond the moment, what it takes is gone."""
        lasts = limit_s(job)
        if lasts is not None and now + lasts <= self.at:
            return True
        needs = job.spec.needs
        if needs.gpus > self.gpus or needs.cpus > self.cpus:
            return False
        self.gpus -= needs.gpus
        self.cpus -= needs.cpus
        return True


def limit_s(job: Job) -> float | None:
    """How long it takes at most, or is thought to take."""
    return job.spec.longest_s if job.spec.longest_s is not None else job.spec.expected_s


def admit(jobs: Iterable[Job], room: Room, rules: Rules, now: float) -> list[Seat]:
    """Seats for those that start now. `jobs` are all that are not over: the placed ones hold devices."""
    placed: list[Job] = []
    waiting: list[Job] = []
    for job in jobs:
        (placed if job.phase.placed else waiting).append(job)
    free = _free(placed, room)
    if not waiting or not (free.gpus or free.cpus):
        return []
    held = _held(placed)
    seats: list[Seat] = []
    kept: _Kept | None = None
    too_large: set[tuple[int, int]] = set()
    for job in _in_turn(waiting, held, rules, now):
        needs = job.spec.needs
        wanted = (needs.gpus, needs.cpus)
        if wanted in too_large or not within(job, held, rules):
            continue
        if not free.fits(*wanted):
            too_large.add(wanted)
            if kept is None and ever_fits(job, room):
                kept = _keep(job, placed, seats, free, now, rules)
            continue
        if kept is not None and not kept.allows(job, now):
            continue
        gpus, cpus = free.take(*wanted)
        seats.append(Seat(job, gpus, cpus))
        held[job.spec.team] = (held[job.spec.team][0] + len(gpus), held[job.spec.team][1] + len(cpus))
        if not free.cpus and not free.gpus:
            break
    return seats


def ever_fits(job: Job, room: Room) -> bool:
    """Whether there are as many devices at all, free or not."""
    return job.spec.needs.gpus <= len(room.gpus or ()) and job.spec.needs.cpus <= len(room.cpus or ())


def within(job: Job, held: Mapping[str, tuple[int, int]], rules: Rules) -> bool:
    """Whether its team may hold it too."""
    share, (gpus, cpus) = rules.share(job.spec.team), held.get(job.spec.team, (0, 0))
    needs = job.spec.needs
    return (share.gpus is None or gpus + needs.gpus <= share.gpus) and (share.cpus is None or cpus + needs.cpus <= share.cpus)


def why_waiting(job: Job, jobs: Sequence[Job], room: Room, rules: Rules, now: float) -> str:
    """In words, when somebody asks. It is not recorded: with every start it changes for all that wait."""
    if job.not_before > now:
        again = f"tried again in {job.not_before - now:.0f} s"
        return f"{again}: {job.waiting}" if job.waiting else again
    if before := [one.spec.name for one in jobs if one.id in job.spec.after and one.phase is not Phase.DONE]:
        return f"waits for {', '.join(before)}"
    if room.gpus is None and room.cpus is None:
        return job.waiting or "its engine looks for machines"
    placed = [one for one in jobs if one.phase.placed]
    held = _held(placed)
    ahead = _ahead(job, jobs, held, rules, now)
    turn = f"{ahead} job{'s' if ahead != 1 else ''} ahead" if ahead else ""
    short = _over_quota(job, held, rules) or _short(job, _free(placed, room), room)
    return "; ".join(filter(None, (short, turn))) or "starts next"


def _over_quota(job: Job, held: Mapping[str, tuple[int, int]], rules: Rules) -> str:
    share, taken, needs = rules.share(job.spec.team), held.get(job.spec.team, (0, 0)), job.spec.needs
    team = f"team {job.spec.team}" if job.spec.team else "who has no team"
    for what, limit, has, wanted in (("GPU", share.gpus, taken[0], needs.gpus), ("CPU", share.cpus, taken[1], needs.cpus)):
        if limit is None or has + wanted <= limit:
            continue
        needed = f"{wanted} {'is' if wanted == 1 else 'are'} needed"
        if wanted > limit:
            return f"{team} may have {_counted(limit, what)}, and {needed}: it cannot start until that is raised"
        return f"{team} has {has} of {_counted(limit, what)}, and {needed}"
    return ""


def _short(job: Job, free: _Free, room: Room) -> str:
    needs = job.spec.needs
    for what, wanted, there, all_of in (
        ("GPU", needs.gpus, len(free.gpus), len(room.gpus or ())),
        ("CPU", needs.cpus, len(free.cpus), len(room.cpus or ())),
    ):
        needed = f"{_counted(wanted, what)} {'is' if wanted == 1 else 'are'} needed"
        if wanted > all_of:
            return f"{needed}, and there {'is' if all_of == 1 else 'are'} {all_of}: it cannot start here"
        if wanted > there:
            return f"{needed}, and {there} of {all_of} {'is' if there == 1 else 'are'} free"
    return ""


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _ahead(job: Job, jobs: Sequence[Job], held: Mapping[str, tuple[int, int]], rules: Rules, now: float) -> int:
    waiting = [one for one in jobs if one.phase is Phase.QUEUED]
    for place, one in enumerate(_in_turn(waiting, dict(held), rules, now)):
        if one.id == job.id:
            return place
    return 0


def _free(placed: Sequence[Job], room: Room) -> _Free:
    gpus: set[int] = set()
    cpus: set[int] = set()
    for job in placed:
        attempt = job.attempts[-1]
        gpus.update(attempt.devices)
        cpus.update(attempt.cpus)
    return _Free([one for one in room.gpus or () if one not in gpus], [one for one in room.cpus or () if one not in cpus])


def _held(placed: Sequence[Job]) -> dict[str, tuple[int, int]]:
    held: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for job in placed:
        gpus, cpus = held[job.spec.team]
        held[job.spec.team] = (gpus + len(job.attempts[-1].devices), cpus + len(job.attempts[-1].cpus))
    return held


def _in_turn(waiting: Sequence[Job], held: dict[str, tuple[int, int]], rules: Rules, now: float) -> Iterable[Job]:
    """Those that may start, in the order of their turn; `held` may grow while they are taken."""
    levels: dict[int, dict[str, list[Job]]] = defaultdict(lambda: defaultdict(list))
    for job in waiting:
        if job.not_before <= now:
            levels[job.spec.priority][job.spec.team].append(job)
    for level in sorted(levels, reverse=True):
        teams = levels[level]
        lines = {team: sorted(line, key=lambda job: (job.submitted, job.id), reverse=True) for team, line in teams.items()}
        order = [
            (_weighed(held.get(team, (0, 0)), rules.share(team)), line[-1].submitted, team) for team, line in lines.items()
        ]
        heapq.heapify(order)
        while order:
            _, _, team = heapq.heappop(order)
            line = lines[team]
            yield line.pop()
            if line:
                heapq.heappush(order, (_weighed(held.get(team, (0, 0)), rules.share(team)), line[-1].submitted, team))


def _weighed(held: tuple[int, int], share: Share) -> float:
    """A GPU counts as much as the CPUs that usually come with one."""
    return (held[0] + held[1] / 16.0) / max(share.weight, 1e-9)


def _keep(job: Job, placed: Sequence[Job], seats: Sequence[Seat], free: _Free, now: float, rules: Rules) -> _Kept:
    """The moment at which the job will fit, and what is left beside it then."""
    needs = job.spec.needs
    gpus, cpus = len(free.gpus), len(free.cpus)
    for end, (more_gpus, more_cpus) in sorted(_ends(placed, seats, now)):
        if end == inf:
            break
        gpus, cpus = gpus + more_gpus, cpus + more_cpus
        if needs.gpus <= gpus and needs.cpus <= cpus:
            return _Kept(end, gpus - needs.gpus, cpus - needs.cpus)
    if now - max(job.submitted, job.not_before) < rules.patience_s:
        return _Kept(inf, len(free.gpus), len(free.cpus))
    return _Kept(now, max(len(free.gpus) - needs.gpus, 0), max(len(free.cpus) - needs.cpus, 0))


def _ends(placed: Sequence[Job], seats: Sequence[Seat], now: float) -> Iterable[tuple[float, tuple[int, int]]]:
    for job in placed:
        attempt, lasts = job.attempts[-1], limit_s(job)
        begun = attempt.begun if attempt.begun is not None else attempt.placed
        yield (inf if lasts is None else max(begun + lasts, now)), (len(attempt.devices), len(attempt.cpus))
    for seat in seats:
        lasts = limit_s(seat.job)
        yield (inf if lasts is None else now + lasts), (len(seat.gpus), len(seat.cpus))
