"""`chipwise doctor`: why a program is slow, what it costs, and what to try."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from chipwise.cli.parameter_types import Duration

if TYPE_CHECKING:
    from chipwise.views.doctor import Diagnosis

IN_FULL = 3  # findings that are shown with their evidence
MOST_NOTES = 3


@click.command()
@click.argument("target", metavar="[JOB|FILE]", required=False)
@click.option("--pid", type=click.IntRange(1, 2**31 - 1), help="Look at this process and its children.")
@click.option("--for", "seconds", type=Duration(), default=30.0, metavar="TIME", help="Sample for this long (default 30s).")
@click.option("--rules", "listed", is_flag=True, help="List the causes that it knows.")
@click.option("--json", "as_json", is_flag=True, help="JSON, everything.")
def doctor(target: str | None, pid: int | None, seconds: float, listed: bool, as_json: bool) -> None:
    """Say why a program is slow: the cause, what it costs, the evidence, the likely gain and what to try.

    JOB is sampled while it runs; FILE is a recording (chipwise watch --record FILE). Start-up and end are left out. The most
    expensive cause comes first; each has a page in docs/doctor.

    \b
    Examples:
      chipwise doctor run.jsonl
      chipwise doctor --pid 4711 --for 1min
    """
    from chipwise.api.observe import doctor as api
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.cli.progress import progress
    from chipwise.errors import BadInput
    from chipwise.views import doctor as views

    if listed:
        text.show_pairs([(name, rule.ABOUT) for name, rule in api.every_rule().items()])
        return
    if (target is None) == (pid is None):
        raise BadInput(
            "Give a job, a recording or --pid." if target is None else "A job or file and --pid cannot be combined.",
            remedy="chipwise doctor JOB, chipwise doctor FILE or chipwise doctor --pid N.",
        )
    if not 1 <= seconds <= 86400:
        raise BadInput("--for takes a second to a day.", remedy="Write it like 30s or 5min.")
    session = open_session()
    if target is not None and Path(target).is_file():
        diagnosis = api.from_file(session, Path(target))
    else:
        with progress("sampling") as report:

            def tick(passed_s: float) -> None:
                report(int(passed_s), int(seconds), "seconds")

            if pid is not None:
                diagnosis = api.from_process(session, pid, seconds, tick)
            else:
                diagnosis = api.of_target(session, str(target), seconds, tick)
    if as_json:
        text.show_json(views.view(diagnosis))
    else:
        _show(diagnosis)


def _show(diagnosis: Diagnosis) -> None:
    from chipwise.cli import text
    from chipwise.views import doctor as views

    text.show_title(views.headline(diagnosis))
    grave = [finding for finding in diagnosis.findings if finding.severity is not views.Severity.NOTE]
    for place, finding in enumerate(grave[:IN_FULL]):
        if place:
            text.show_title(f"{finding.rule}: {finding.cause} {views.cost(finding)}".rstrip())
        text.show_pairs(
            [
                ("seen", views.facts(finding)),
                ("", views.gain(finding)),
                ("try", finding.next_step),
                ("page", views.page(finding)),
            ]
        )
    notes = [finding for finding in diagnosis.findings if finding.severity is views.Severity.NOTE]
    rest = [(finding.rule, finding.cause) for finding in grave[IN_FULL:]]
    rest += [(f"note: {finding.rule}", f"{finding.cause} ({views.facts(finding)})") for finding in notes[:MOST_NOTES]]
    if rest:
        text.show_pairs(rest)
    text.say(*diagnosis.notes[:MOST_NOTES])
