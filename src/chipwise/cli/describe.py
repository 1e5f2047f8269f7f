"""`chipwise describe`: the story of a job, with what was predicted beside what was measured."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chipwise.runner.job import Job
    from chipwise.runner.record import Damaged
    from chipwise.views.jobs import Compared


@click.command()
@click.argument("job", metavar="JOB")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def describe(job: str, as_json: bool) -> None:
    """Show a job in detail: its spec, why it waits, where it ran, its history and its cost.

    Measured figures are shown next to the predicted ones, with their ratio.
    """
    from chipwise.api.running import asking, jobs, place, sightings
    from chipwise.api.running.installed import runs_here
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.runner.engine import Room
    from chipwise.runner.job import Phase
    from chipwise.runner.record import Unread
    from chipwise.text import elapsed, spent
    from chipwise.views.jobs import compared_view, job_view

    session = open_session()
    with asking.opened(session) as runtime:
        config = runtime.engine.config
        try:
            wanted = jobs.find(runtime.record, job)
        except Unread as error:
            _show_damaged(error.damaged, jobs.story(runtime.record.events(error.damaged.id)), as_json)
            return
        sighting = sightings.of_job(session, runtime.record, wanted)
        room, here = Room(config.gpus, config.cpus), place.is_here(session, wanted.spec)
        description = jobs.describe(runtime.record, wanted, room, runtime.rules, sighting.note, here=here)
        away = not runs_here(description.job.spec.engine)
        elsewhere = away or bool(runtime.record.login)
    target, now = description.job, time.time()
    if as_json:
        events = [{"at": at, "text": line} for at, line in description.story]
        extra = {"waiting": description.waiting, "serves": jobs.serves_at(target) or None}
        text.show_json(
            {**job_view(target, sighting), **extra, "compared": compared_view(description.compared), "story": events}
        )
        return
    spec, counted = target.spec, sighting.seen if sighting.is_gone and sighting.seen is not None else now
    reason = target.reason or (sighting.note if sighting.is_gone or not sighting.is_certain else "")
    text.show_title(f"{target.id}: {sighting.label}{f', {reason}' if reason else ''}")
    owners = (spec.owner, spec.team and f"team {spec.team}", spec.project and f"project {spec.project}")
    pairs = [
        ("command", " ".join(spec.command)),
        ("folder", spec.folder),
        ("place", spec.place if elsewhere else ""),
        ("serves at" if target.phase is Phase.RUNNING else "will serve", jobs.serves_at(target)),
        ("problem" if target.phase is Phase.RUNNING and away else "waits", _waits(target, description.waiting, now)),
        ("exits", _leaves(target, now)),
        ("uses" if _has(target) and not sighting.is_gone else "requests", _holds(target)),
        ("owner", ", ".join(filter(None, owners))),
        ("checkpoints", spec.checkpoints),
        ("produces", ", ".join(target.spec.produces)),
        ("ran", elapsed(target.runtime_s(counted)) if any(each.begun is not None for each in target.attempts) else ""),
        ("cost", spent(target.usd(counted)) if target.usd(counted) else ""),
    ]
    text.show_pairs([(name, value) for name, value in pairs if value])
    _show_compared(description.compared, str(spec.predicted.get("why_not") or ""))
    _show_story(description.story)


def _show_story(story: Sequence[tuple[float, str]]) -> None:
    from chipwise.cli import text

    text.show_lines("")
    text.show_pairs([(time.strftime("%m-%d %H:%M:%S", time.localtime(at)), line) for at, line in story])


def _show_damaged(damaged: Damaged, story: Sequence[tuple[float, str]], as_json: bool) -> None:
    """What can still be read of it."""
    from chipwise.cli import text

    job = damaged.job
    if as_json:
        events = [{"at": at, "text": line} for at, line in story]
        text.show_json(
            {"id": job.id, "phase": str(job.phase), "place": job.spec.place, "damaged": str(damaged), "story": events}
        )
        return
    text.show_title(f"{job.id}: {job.phase}, and its database row is damaged")
    text.show_lines(str(damaged))
    _show_story(story)


def _waits(job: Job, reason: str, now: float) -> str:
    """Behind a label that says that it does; of a service that does not answer yet, for how long."""
    from chipwise.api.running.waiting import waits
    from chipwise.runner.job import Lack
    from chipwise.text import elapsed

    if not reason:
        return ""
    last = job.attempt
    for_long = f", for {elapsed(now - last.begun)}" if job.lack is Lack.CHECK and last and last.begun else ""
    return waits(reason).removeprefix("waits").lstrip(": ") + for_long


def _leaves(job: Job, now: float) -> str:
    """Until when one that was asked to save and go has time for it."""
    from chipwise.runner.job import LeaveReason, Phase
    from chipwise.text import elapsed

    if job.phase is not Phase.LEAVING or job.leave_by is None:
        return ""
    if job.leaving is LeaveReason.END:
        return "at once, without time to save"
    until = time.strftime("%m-%d %H:%M:%S", time.localtime(job.leave_by))
    left = job.leave_by - now
    return (
        f"by {until}, in {elapsed(left)}; then it is killed"
        if left > 0
        else f"by {until}, which has passed: it is being killed"
    )


def _has(job: Job) -> bool:
    """Elsewhere an attempt is asked for before it has anything."""
    return job.phase.placed and job.attempts[-1].since is not None


def _holds(job: Job) -> str:
    """What it has, and of how many where it could do with more; what it asks for while it has nothing."""
    from chipwise.cli import text
    from chipwise.views.jobs import held_view

    needs, allocation = job.spec.needs, held_view(job)
    machines = _count_text(allocation["machines"] if allocation else None, needs.fewest_machines, needs.machines, "machine")
    gpus = _count_text(allocation["gpus"] if allocation else None, needs.fewest_gpus, needs.gpus, "GPU")
    processes = allocation["processes"] if allocation else needs.processes
    suffix = f", {processes} processes" if processes > 1 else ""
    return f"{gpus}, {text.plural(needs.cpus, 'CPU')}{suffix}{f', on each of {machines}' if needs.machines > 1 else ''}"


def _count_text(current: int | None, minimum: int, maximum: int, noun: str) -> str:
    from chipwise.cli import text

    if current is None:
        return text.plural(maximum, noun) if minimum >= maximum else f"{minimum} to {maximum} {noun}s"
    return text.plural(current, noun) if current >= maximum else f"{current} of {maximum} {noun}s"


def _show_compared(rows: Sequence[Compared], why_not: str) -> None:
    """Nothing for a plain command, of which nobody predicts anything and whose time is told already."""
    from chipwise.cli import text

    worth = [one for one in rows if one.predicted is not None or one.name in ("throughput", "steps_per_s")]
    if worth:
        cells = [_cells(one) for one in worth]
        used = [at for at in range(len(_COLUMNS) + 1) if any(row[at] for row in cells)]  # of a plain command little is known
        columns = [text.Column("", flexible=True), *(text.Column(name, right=True) for name in _COLUMNS)]
        text.show_lines("")
        text.show_table([columns[at] for at in used], [[row[at] for at in used] for row in cells])
    if why_not:
        text.show_lines("", f"Not predicted: {why_not}")


_COLUMNS = ("predicted", "from", "to", "measured", "ratio")
_NAMES = {"seconds": "time", "usd": "cost", "steps_per_s": "steps/s", "memory_bytes": "memory per chip"}


def _cells(row: Compared) -> list[str]:
    from chipwise.cli import text
    from chipwise.text import elapsed, events, size, spent

    special = {"seconds": elapsed, "usd": spent, "memory_bytes": size, "interruptions": events}
    formatter = special.get(row.name, text.number)
    name = f"{row.unit or 'units'}/s" if row.name == "throughput" else _NAMES.get(row.name, row.name)
    figures = ["" if value is None else formatter(value) for value in (row.predicted, row.low, row.high, row.measured)]
    return [name, *figures, "" if row.ratio is None else _ratio(row.ratio)]


def _ratio(ratio: float) -> str:
    """0.97; of one that is far off, how far: 0.0031 rather than 0.00."""
    from chipwise.text import number

    return f"{ratio:.2f}" if ratio >= 0.1 else number(ratio, 2)
