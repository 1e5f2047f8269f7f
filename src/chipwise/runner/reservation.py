"""What is kept for the first job in the line that does not fit: from when on, and from whom.

The moment at which it will fit is reckoned from how long the running ones take. Where nobody knows that, devices are kept after
`patience_s`, as they become free; never for one that waits for a service, and for one that waits for other jobs of its own
owner only from this owner: else a member could keep all devices from the others with one job that holds a few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf

from chipwise.runner.job import Job, Move


@dataclass(frozen=True, slots=True)
class Seat:
    job: Job
    gpus: tuple[int, ...]
    cpus: tuple[int, ...]
    short: str = ""  # why it gets fewer GPUs than it wants


@dataclass(slots=True)
class FreeDevices:
    gpus: list[int]
    cpus: list[int]
    without: int  # more jobs that hold no device

    def fits(self, gpus: int, cpus: int) -> bool:
        return gpus <= len(self.gpus) and cpus <= len(self.cpus) and (gpus > 0 or cpus > 0 or self.without > 0)

    def take(self, gpus: int, cpus: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        devices = tuple(self.gpus[:gpus]), tuple(self.cpus[:cpus])
        self.without -= not gpus and not cpus
        del self.gpus[:gpus], self.cpus[:cpus]
        return devices


@dataclass(slots=True)
class DeviceReservation:
    """What is kept for the first job that does not fit: from when, and what is left beside it then."""

    job: Job
    start: float
    gpus: int
    cpus: int

    def allowed(self, job: Job, gpus: int, now: float) -> int | None:
        """With how many GPUs of those the job does not stand in the way, None: with none that it can do with. If it stays
        beyond the moment, what it takes is gone."""
        lasts = limit_s(job, gpus)
        if lasts is not None and now + lasts <= self.start:
            return gpus
        granted, cpus = min(gpus, self.gpus), job.spec.needs.cpus
        if granted < least_gpus(job) or cpus > self.cpus:
            return None
        self.gpus -= granted
        self.cpus -= cpus
        return granted


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


def person(job: Job) -> tuple[str, str]:
    """The same in all teams, where its name is known."""
    return ("", job.spec.owner) if job.spec.owner else (job.spec.team, "")


def keep(
    job: Job, placed: Sequence[Job], seats: Sequence[Seat], free: FreeDevices, now: float, patience_s: float
) -> DeviceReservation:
    """The moment at which the job will fit, and what is left beside it then."""
    fewest, needed = least_gpus(job), job.spec.needs.cpus
    gpus, cpus = len(free.gpus), len(free.cpus)
    for end, (more_gpus, more_cpus) in sorted(_ends(placed, seats, now)):
        if end == inf:
            break
        gpus, cpus = gpus + more_gpus, cpus + more_cpus
        if fewest <= gpus and needed <= cpus:
            return DeviceReservation(job, end, gpus - fewest, cpus - needed)
    is_patient = now - max(job.submitted, job.not_before) < patience_s
    if is_patient or not _would_fit(job, placed, seats, free, lambda one: not one.spec.service):
        return DeviceReservation(job, inf, len(free.gpus), len(free.cpus))
    return DeviceReservation(job, now, max(len(free.gpus) - fewest, 0), max(len(free.cpus) - needed, 0))


def is_for_own(job: Job, placed: Sequence[Job], seats: Sequence[Seat], free: FreeDevices, now: float) -> bool:
    """Whether what others give back would not do, since its own owner holds the rest and nobody knows for how long: else a
    member could keep all devices from the others with one job that holds a few, and one for all."""
    return not _would_fit(job, placed, seats, free, lambda one: person(one) != person(job) or _ends_later(one, now))


def _ends_later(job: Job, now: float) -> bool:
    """Whether it says when it will be over, and that has not passed."""
    if not job.phase.placed:
        return limit_s(job) is not None
    return now < _end(job, now) < inf


def _would_fit(job: Job, placed: Sequence[Job], seats: Sequence[Seat], free: FreeDevices, ends: Callable[[Job], bool]) -> bool:
    """When all those have given back their devices."""
    holding = [(one, one.attempts[-1].devices, one.attempts[-1].cpus) for one in placed]
    holding += [(seat.job, seat.gpus, seat.cpus) for seat in seats]
    gpus = len(free.gpus) + sum(len(gpus) for one, gpus, _ in holding if ends(one))
    cpus = len(free.cpus) + sum(len(cpus) for one, _, cpus in holding if ends(one))
    return least_gpus(job) <= gpus and job.spec.needs.cpus <= cpus


def _ends(placed: Sequence[Job], seats: Sequence[Seat], now: float) -> Iterable[tuple[float, tuple[int, int]]]:
    for job in placed:
        attempt = job.attempts[-1]
        yield _end(job, now), (len(attempt.devices), len(attempt.cpus))
    for seat in seats:
        lasts = limit_s(seat.job, len(seat.gpus))
        yield (inf if lasts is None else now + lasts), (len(seat.gpus), len(seat.cpus))


def _end(job: Job, now: float) -> float:
    attempt = job.attempts[-1]
    lasts = limit_s(job, len(attempt.devices))
    begun = attempt.begun if attempt.begun is not None else attempt.placed
    return inf if lasts is None else max(begun + lasts, now)
