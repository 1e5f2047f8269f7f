"""What happened in a simulation, as lines and as values for --json."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.catalog.offer import Purchase
from chipwise.runner.events import Event, Measured
from chipwise.runner.played import Course
from chipwise.runner.played import Played as Played
from chipwise.runner.story import event_sentence
from chipwise.text import plural, span, spent

_STORY_LINES = 200  # after which a story is only summed up
_TIME = 11  # letters of the longest span


def lines(played: Played) -> list[str]:
    """What was assumed, the story, how each job went, and what it came to."""
    return [*assumed(played), *(f"{at}  {text}" for at, text in story(played)), "", *summed(played)]


def assumed(played: Played) -> list[str]:
    guessed = [
        f"The duration of {course.job.spec.name} is not known: {_an_hour(course.guessed_s)} is assumed; --expected changes it."
        for course in played.courses
        if course.guessed_s is not None
    ]
    return [*guessed, *played.asides]


def summed(played: Played) -> list[str]:
    return [*(_course(one, played) for one in played.courses), *_sum(played)]


def story(played: Played, limit: int = _STORY_LINES) -> list[tuple[str, str]]:
    """When since the beginning, in a column of one width, and what."""
    names = {one.job.id: one.job.spec.name for one in played.courses}
    has_names = len(names) > 1
    lines = [
        (f"{span(entry.moment - played.begins):>{_TIME}}", f"{f'{names[entry.job]}: ' if has_names else ''}{text}")
        for entry in played.story
        if (text := _event_text(entry.event))
    ]
    if len(lines) <= limit:
        return lines
    left_out = (f"{'...':>{_TIME}}", f"{len(lines) - limit:,} events are left out")
    return [*lines[: limit // 2], left_out, *lines[-(limit - limit // 2) :]]


def _event_text(event: Event) -> str:
    """Nobody measured anything."""
    text = event_sentence(event)
    return f"simulated{text.removeprefix('measured')}" if isinstance(event, Measured) else text


def _an_hour(seconds: float) -> str:
    return "an hour" if round(seconds) == 3600 else span(seconds)


def view(played: Played) -> dict[str, object]:
    return {
        "over": played.is_over,
        "seconds": played.until - played.begins,
        "usd": round(played.usd, 4),
        "hours": {str(purchase): round(hours, 4) for purchase, hours in played.hours.items()},
        "interruptions": played.interruptions,
        "lost_work_s": round(played.lost_work_s, 3),
        "jobs": [_course_view(one, played) for one in played.courses],
        "story": [{"at": one.moment, "job": one.job, "text": text} for one in played.story if (text := _event_text(one.event))],
        "trouble": list(played.trouble),
        "not_played": list(played.asides),
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
        "assumed_s": course.guessed_s,
        "interruptions": course.interruptions,
        "lost_work_s": round(course.lost_work_s, 3),
        "hours": {str(purchase): round(hours, 4) for purchase, hours in course.hours.items()},
        "usd": round(course.usd, 4),
    }


def _course(course: Course, played: Played) -> str:
    job = course.job
    ended = f"{job.phase} after {span(job.ended - job.submitted)}" if job.ended is not None else f"still {job.phase}"
    reason = f" ({job.reason or job.waiting})" if job.reason or job.waiting else ""
    parts = [f"{job.spec.name}: {ended}{reason}", plural(len(job.attempts), "attempt")]
    if course.interruptions:
        parts.append(f"{plural(course.interruptions, 'interruption')}, {span(course.lost_work_s)} of work repeated")
    if course.late_s is not None:
        parts.append(f"{span(abs(course.late_s))} {'after' if course.late_s > 0 else 'before'} its deadline")
    return "; ".join(parts)


def _sum(played: Played) -> Iterator[str]:
    if hours := {purchase: spent for purchase, spent in played.hours.items() if spent > 0}:
        machine = ", ".join(f"{spent:,.1f} {_bought(purchase)}" for purchase, spent in hours.items())
        yield f"Machine-hours: {machine}{f'; {spent(played.usd)}' if played.usd else ''}."
    ends = [one.job.ended for one in played.courses if one.job.ended is not None]
    if played.is_over and len(ends) > 1:
        yield f"All {len(ends)} jobs finished after {span(max(ends) - played.begins)}."
    if not played.is_over:
        open_ = sum(not one.job.phase.over for one in played.courses)
        yield f"{plural(open_, 'job')} would not have finished after {span(played.until - played.begins)}."


def _bought(purchase: Purchase) -> str:
    return {Purchase.SPOT: "spot", Purchase.ON_DEMAND: "on demand", Purchase.OWNED: "own"}.get(purchase, str(purchase))
