"""`chipwise ps`: jobs, the newest first."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from chipwise.cli.options import listed
from chipwise.cli.parameter_types import WholeNumber

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from chipwise.api.running.sightings import Sighting
    from chipwise.runner.record import Damaged, Row

DAY_S = 86_400.0


@click.command()
@click.option("--all", "-a", "everything", is_flag=True, help="Also list older jobs, without a limit.")
@listed("--phase", "only", metavar="PHASE,...", help="Filter: queued, running, done, failed, stopped.")
@click.option("--owner", default=None, help="Filter by owner.")
@click.option("--team", default=None, help="Filter by team.")
@click.option("--project", default=None, help="Filter by project.")
@click.option("--limit", type=WholeNumber(1, 10**6), default=50, show_default=True, help="List at most this many.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def ps(
    everything: bool, only: tuple[str, ...], owner: str | None, team: str | None, project: str | None, limit: int, as_json: bool
) -> None:
    """List jobs that wait or run, and jobs that ended within a day.

    The processes of jobs on this machine are checked: a job that is recorded as running and is gone is shown as lost or ended.
    A question mark after a phase means that its controller does not answer; the phase is the last one seen.

    \b
    Examples:
      chipwise ps
      chipwise ps --all --phase failed --team vision
    """
    from chipwise.api.running import controlling, place, sightings, waiting
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.errors import UnknownName
    from chipwise.runner.job import LIVE, Phase
    from chipwise.runner.record import Wanted
    from chipwise.spelling import nearest
    from chipwise.views.jobs import row_view

    for phase in [one for one in only if one not in list(Phase)]:
        raise UnknownName("phase", phase, nearest(phase, list(Phase)), remedy=f"There are: {', '.join(Phase)}.")
    session = open_session()
    record = place.open_record(session, only_reads=True)
    try:
        phases = frozenset(map(Phase, only))
        wanted = Wanted(
            phases=phases, owner=owner or "", team=team or "", project=project or "", newest=None if everything else limit
        )
        # Each is read to know, so of a list without a limit only those that are not over.
        query = replace(wanted, phases=(phases or LIVE) & LIVE) if everything else wanted

        def more(rows: Sequence[Row]) -> tuple[dict[str, Damaged], dict[str, float], dict[str, tuple[str, str]]]:
            unread = {one.id: one for one in record.damaged(query)} if query.phases or not everything else {}
            since = {} if as_json else waiting.phase_since(record, rows)
            return unread, since, waiting.asked_and_why(session, record, [row for row in rows if row.id not in unread])

        rows, (unread, since, waits), known = sightings.listed(session, record, wanted, more)
    finally:
        record.close()
    now = time.time()
    shown = rows if everything or only else [row for row in rows if row.ended is None or now - row.ended < DAY_S]
    if as_json:
        views = [row_view(waiting.with_reason(row, waits), known.get(row.id)) for row in shown]
        damaged = [str(unread[row.id]) if row.id in unread else None for row in shown]
        text.show_json([{**view, "damaged": trouble} for view, trouble in zip(views, damaged, strict=True)])
    else:
        _show(shown, everything, unread, since, waits, known, now)
    sightings.wake(session, rows, controlling.REPLACES_WITHIN_S)  # a queue that stands still is what people look for here


def _show(
    rows: Sequence[Row],
    everything: bool,
    unread: Mapping[str, Damaged],
    since: Mapping[str, float],
    waits: dict[str, tuple[str, str]],
    known: Mapping[str, Sighting],
    now: float,
) -> None:
    from chipwise.cli import text

    if not rows:
        text.show_lines("No job." if everything else "No jobs; --all lists older ones.")
        return
    columns = [
        text.Column("job"),
        text.Column("phase"),
        text.Column("since", right=True),
        text.Column("GPUs", right=True),
        text.Column("CPUs", right=True),
        text.Column("tries", right=True),
        text.Column("team"),
        text.Column("reason", flexible=True),
    ]
    waits |= {row.id: (str(row.gpus), "its database row is damaged") for row in rows if row.id in unread}
    cells = []
    for row in rows:
        gpus, reason = waits.get(row.id, (_per_machine(row, row.gpus), row.reason))
        sighting = known.get(row.id) if row.id not in unread else None
        seen = sighting.seen if sighting is not None and sighting.is_gone else None
        phase, note = (str(row.phase), "") if sighting is None else (sighting.label, sighting.note)
        cells.append(_cells(row, phase, now - (seen or _since(row, since)), gpus, note or reason))
    text.show_table(columns, cells)
    text.say(*(str(unread[row.id]) for row in rows if row.id in unread))
    notes = [known[row.id].note for row in rows if row.id in known and known[row.id].is_trouble]  # a table may cut them
    text.say(*(f"{note[:1].upper()}{note[1:]}." for note in dict.fromkeys(notes)))


def _per_machine(row: Row, number: int) -> str:
    """Of one machine, and of how many where they are several."""
    return str(number) if row.machines <= 1 else f"{row.machines} x {number}"


def _since(row: Row, since: Mapping[str, float]) -> float:
    """When it ended, began, was placed, went back to the queue, or was submitted."""
    return row.ended or (row.begun if row.phase.placed else None) or since.get(row.id, row.submitted)


def _cells(row: Row, phase: str, seconds: float, gpus: str, reason: str) -> list[str]:
    from chipwise.text import duration

    return [
        row.id,
        phase,
        duration(max(seconds, 0.0)),
        gpus,
        _per_machine(row, row.cpus),
        str(row.attempts),
        row.team,
        reason,
    ]
