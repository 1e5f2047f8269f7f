"""Who runs next on devices of our own: priorities, fair shares, quotas of teams, and backfill.

Jobs of higher priority go first. Among equals the team goes first that holds least for its weight, and then who came first. A
job that does not fit now is passed over, but it is not forgotten: the moment at which it will fit is reckoned from how long the
running ones take (EASY backfill), and a later one goes ahead only if it is over by then or leaves what is needed. Where nobody
knows how long the running ones take, later ones go ahead until the first has waited for `patience_s`; then the devices are kept
for it as they become free. One that needs more than there is keeps nothing from others.

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
from chipwise.text import plural


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
    short: str = ""  # why it gets fewer GPUs than it wants


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

    job: Job
    at: float
    gpus: int
    cpus: int

    def allowed(self, job: Job, gpus: int, now: float) -> int | None:
        """With how many GPUs of those the job does not stand in the way, None: with none that it can do with. If it stays
        beyond the moment, what it takes is gone."""
        lasts = limit_s(job, gpus)
        if lasts is not None and now + lasts <= self.at:
            return gpus
        given, cpus = min(gpus, self.gpus), job.spec.needs.cpus
        if given < least_gpus(job) or cpus > self.cpus:
            return None
        self.gpus -= given
        self.cpus -= cpus
        return given


def limit_s(job: Job, gpus: int | None = None) -> float | None:
    """How long it takes at most, or is thought to take: on fewer GPUs longer, in proportion at most."""
    if job.spec.longest_s is not None or job.spec.expected_s is None:
        return job.spec.longest_s
    needs = job.spec.needs
    if gpus is None or gpus >= needs.gpus or needs.fewest_gpus >= needs.gpus:
        return job.spec.expected_s
    return job.spec.expected_s * needs.gpus / gpus if gpus else None


def least_gpus(job: Job) -> int:
    """Without which it does not start: after a loss what it had before, where fewer may not be tried."""
    needs, last = job.spec.needs, job.attempt
    if last is None or Move.FEWER in job.spec.recover:
        return needs.fewest_gpus
    return max(needs.fewest_gpus, min(len(last.devices), needs.gpus))


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
        wanted = (least_gpus(job), needs.cpus)
        if wanted in too_large or not within(job, held, rules):
            continue
        if not free.fits(*wanted):
            too_large.add(wanted)
            if kept is None and ever_fits(job, room):
                kept = _keep(job, placed, seats, free, now, rules)
            continue
        quota = _quota_left(job, held, rules)
        most = min(needs.gpus, len(free.gpus), quota)
        given = most if kept is None else kept.allowed(job, most, now)
        if given is None:
            continue
        short = ""
        if given < needs.gpus:
            beside = _kept_from(kept) if given < most else _beyond(job) if quota < len(free.gpus) else _held_by(placed, seats)
            short = _fewer(job, given, beside)
        gpus, cpus = free.take(given, needs.cpus)
        seats.append(Seat(job, gpus, cpus, short))
        held[job.spec.team] = (held[job.spec.team][0] + len(gpus), held[job.spec.team][1] + len(cpus))
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
    free, held = len(_free(placed, room).gpus), _held(placed)
    for job in sorted(small, key=lambda job: (-job.spec.priority, job.submitted, job.id)):
        has = len(job.attempts[-1].devices)
        could = min(job.spec.needs.gpus, has + min(free, _quota_left(job, held, rules)))
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
    return ever_fits(job, room) and within(job, {}, rules)


def _quota_left(job: Job, held: Mapping[str, tuple[int, int]], rules: Rules) -> int:
    limit = rules.share(job.spec.team).gpus
    return job.spec.needs.gpus if limit is None else max(limit - held.get(job.spec.team, (0, 0))[0], 0)


def _fewer(job: Job, given: int, beside: str) -> str:
    wanted = job.spec.needs.gpus
    rest = "the other is" if wanted - given == 1 else f"the other {wanted - given} are"
    return f"{'continues' if job.attempts else 'starts'} with {given} of {plural(wanted, 'GPU')}: {rest} {beside}"


def _held_by(placed: Sequence[Job], seats: Sequence[Seat]) -> str:
    holding = [job.spec.name for job in placed if job.attempts[-1].devices] + [one.job.spec.name for one in seats if one.gpus]
    names = list(dict.fromkeys(holding))
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"held by {', '.join(names[:3])}{more}" if names else "not there"


def _kept_from(kept: _Kept | None) -> str:
    return f"kept for {kept.job.spec.name}" if kept is not None else ""


def _beyond(job: Job) -> str:
    return f"more than {f'team {job.spec.team}' if job.spec.team else 'who has no team'} may hold now"


def ever_fits(job: Job, room: Room) -> bool:
    """Whether there are as many devices at all, free or not."""
    return least_gpus(job) <= len(room.gpus or ()) and job.spec.needs.cpus <= len(room.cpus or ())


def within(job: Job, held: Mapping[str, tuple[int, int]], rules: Rules) -> bool:
    """Whether its team may hold it too."""
    share, (gpus, cpus) = rules.share(job.spec.team), held.get(job.spec.team, (0, 0))
    least, more = least_gpus(job), job.spec.needs.cpus
    return (share.gpus is None or gpus + least <= share.gpus) and (share.cpus is None or cpus + more <= share.cpus)


def why_waiting(job: Job, jobs: Sequence[Job], room: Room, rules: Rules, now: float) -> str:
    """In words, when somebody asks. It is not recorded: with every start it changes for all that wait."""
    return _why(job, jobs, room, rules, now, ahead=True) or "waits for its turn, which is next"


def why_short(job: Job, jobs: Sequence[Job], room: Room, rules: Rules, now: float) -> str:
    """The same, by those that run and those that come before it alone: how many wait ahead of it, they do not say."""
    return _why(job, jobs, room, rules, now, ahead=False)


def _why(job: Job, jobs: Sequence[Job], room: Room, rules: Rules, now: float, *, ahead: bool) -> str:
    if (ready := job.ready_at(now)) > now:
        again = f"tried again in {ready - now:.0f} s"
        return f"{again}: {job.waiting}" if job.waiting else again
    if before := [one.spec.name for one in jobs if one.id in job.spec.after and one.phase is not Phase.DONE]:
        return f"waits for {', '.join(before)}"
    if room.gpus is None and room.cpus is None:
        return job.waiting or "its engine looks for machines"
    placed = [one for one in jobs if one.phase.placed]
    held = _held(placed)
    many = _ahead(job, jobs, held, rules, now) if ahead else 0
    turn = f"{many} job{'s' if many != 1 else ''} ahead" if many else ""
    short = _over_quota(job, held, rules) or _short(job, _free(placed, room), room)
    return "; ".join(filter(None, (short, turn)))


def _over_quota(job: Job, held: Mapping[str, tuple[int, int]], rules: Rules) -> str:
    share, taken, least = rules.share(job.spec.team), held.get(job.spec.team, (0, 0)), least_gpus(job)
    team = f"team {job.spec.team}" if job.spec.team else "who has no team"
    for what, limit, has, wanted in (("GPU", share.gpus, taken[0], least), ("CPU", share.cpus, taken[1], job.spec.needs.cpus)):
        if limit is None or has + wanted <= limit:
            continue
        needed = f"{wanted} {'is' if wanted == 1 else 'are'} needed"
        if wanted > limit:
            return f"{team} may have {plural(limit, what)}, and {needed}: it cannot start until that is raised"
        return f"{team} has {has} of {plural(limit, what)}, and {needed}"
    return ""


def _short(job: Job, free: _Free, room: Room) -> str:
    for what, wanted, there, all_of in (
        ("GPU", least_gpus(job), len(free.gpus), len(room.gpus or ())),
        ("CPU", job.spec.needs.cpus, len(free.cpus), len(room.cpus or ())),
    ):
        needed = f"{plural(wanted, what)} {'is' if wanted == 1 else 'are'} needed"
        if wanted > all_of:
            return f"{needed}, and there {'is' if all_of == 1 else 'are'} {all_of}: it cannot start here"
        if wanted > there:
            return f"{needed}, and {there} of {all_of} {'is' if there == 1 else 'are'} free"
    return ""


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
        if job.ready_at(now) <= now:
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
    least, needed = least_gpus(job), job.spec.needs.cpus
    gpus, cpus = len(free.gpus), len(free.cpus)
    for end, (more_gpus, more_cpus) in sorted(_ends(placed, seats, now)):
        if end == inf:
            break
        gpus, cpus = gpus + more_gpus, cpus + more_cpus
        if least <= gpus and needed <= cpus:
            return _Kept(job, end, gpus - least, cpus - needed)
    if now - max(job.submitted, job.not_before) < rules.patience_s:
        return _Kept(job, inf, len(free.gpus), len(free.cpus))
    return _Kept(job, now, max(len(free.gpus) - least, 0), max(len(free.cpus) - needed, 0))


def _ends(placed: Sequence[Job], seats: Sequence[Seat], now: float) -> Iterable[tuple[float, tuple[int, int]]]:
    for job in placed:
        attempt = job.attempts[-1]
        lasts = limit_s(job, len(attempt.devices))
        begun = attempt.begun if attempt.begun is not None else attempt.placed
        yield (inf if lasts is None else max(begun + lasts, now)), (len(attempt.devices), len(attempt.cpus))
    for seat in seats:
        lasts = limit_s(seat.job, len(seat.gpus))
        yield (inf if lasts is None else now + lasts), (len(seat.gpus), len(seat.cpus))
