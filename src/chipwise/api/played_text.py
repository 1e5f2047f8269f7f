"""What happened in a simulation, as lines and as values for --json."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.api.simulating import Course, Played
from chipwise.catalog.offer import Purchase
from chipwise.run.story import told

_STORY_LINES = 200  # after which a story is only summed up


def lines(played: Played) -> list[str]:
    """The story, how each job went, and what it came to."""
    return [*story_lines(played), "", *(_course(one, played) for one in played.courses), *_sum(played)]


def story_lines(played: Played, most: int = _STORY_LINES) -> list[str]:
    names = {one.job.id: one.job.spec.name for one in played.courses}
    several = len(names) > 1
    shown = [
        f"{span(one.at - played.begins):>9}  {f'{names[one.job]}: ' if several else ''}{text}"
        for one in played.story
        if (text := told(one.event))
    ]
    if len(shown) <= most:
        return shown
    return [*shown[: most // 2], f"{'...':>9}  {len(shown) - most:,} events are left out", *shown[-(most - most // 2) :]]


def view(played: Played) -> dict[str, object]:
    return {
        "over": played.over,
        "seconds": played.until - played.begins,
        "usd": round(played.usd, 4),
        "hours": {str(purchase): round(hours, 4) for purchase, hours in played.hours.items()},
        "interruptions": played.interruptions,
        "lost_work_s": round(played.lost_work_s, 3),
        "jobs": [_course_view(one, played) for one in played.courses],
        "story": [{"at": one.at, "job": one.job, "text": text} for one in played.story if (text := told(one.event))],
        "trouble": list(played.trouble),
    }


def _course_view(course: Course, played: Played) -> dict[str, object]:
    job = course.job
    return {
        "id": job.id,
        "name": job.spec.name,
        "phase": str(job.phase),
        "reason": job.reason or job.waiting,
        "seconds": None if job.ended is None else job.ended - job.submitted,
        "late_s": course.late_s,
        "attempts": len(job.attempts),
        "interruptions": course.interruptions,
        "lost_work_s": round(course.lost_work_s, 3),
        "hours": {str(purchase): round(hours, 4) for purchase, hours in course.hours.items()},
        "usd": round(course.usd, 4),
    }


def _course(course: Course, played: Played) -> str:
    job = course.job
    ended = f"{job.phase} after {span(job.ended - job.submitted)}" if job.ended is not None else f"still {job.phase}"
    why = f" ({job.reason or job.waiting})" if job.reason or job.waiting else ""
    parts = [f"{job.spec.name}: {ended}{why}", _counted(len(job.attempts), "attempt")]
    if course.interruptions:
        parts.append(f"{_counted(course.interruptions, 'interruption')}, {span(course.lost_work_s)} of work done again")
    if course.late_s is not None:
        parts.append(f"{span(abs(course.late_s))} {'after' if course.late_s > 0 else 'before'} its deadline")
    return "; ".join(parts)


def _sum(played: Played) -> Iterator[str]:
    if hours := {purchase: spent for purchase, spent in played.hours.items() if spent > 0}:
        machine = ", ".join(f"{spent:,.1f} {_bought(purchase)}" for purchase, spent in hours.items())
        yield f"Machine-hours: {machine}{f'; ${played.usd:,.2f}' if played.usd else ''}."
    if not played.over:
        open_ = sum(not one.job.phase.over for one in played.courses)
        yield f"{_counted(open_, 'job')} would not be over after {span(played.until - played.begins)}."


def _bought(purchase: Purchase) -> str:
    return {Purchase.SPOT: "spot", Purchase.ON_DEMAND: "on demand", Purchase.OWNED: "of our own"}.get(purchase, str(purchase))


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def span(seconds: float) -> str:
    """90 -> 1 min 30 s; two units are enough to see what happened."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    if whole < 172800:
        minutes = whole % 3600 // 60
        return f"{whole // 3600} h {minutes} min" if minutes else f"{whole // 3600} h"
    hours = whole % 86400 // 3600
    return f"{whole // 86400} d {hours} h" if hours else f"{whole // 86400} d"
