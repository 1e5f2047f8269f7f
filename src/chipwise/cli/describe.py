"""`chipwise describe`: the story of a job, with what was predicted beside what was measured."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chipwise.run.comparing import Compared


@click.command()
@click.argument("job", metavar="JOB")
@click.option("--json", "as_json", is_flag=True)
def describe(job: str, as_json: bool) -> None:
    """Tell a job's story: what was asked, why it waits, where it ran, how each attempt ended, and what it cost.

    What was predicted stands beside what was measured, with the ratio.
    """
    from chipwise.api.running import asking, comparing, jobs
    from chipwise.api.running.views import job_view
    from chipwise.api.wiring import open_session
    from chipwise.cli import text
    from chipwise.run.engine import Room
    from chipwise.units import show_seconds, show_usd

    with asking.opened(open_session()) as held:
        config = held.engine.config
        found = jobs.describe(held.record, jobs.find(held.record, job), Room(config.gpus, config.cpus), held.rules)
        compared = comparing.compared(found.job, held.record.events(found.job.id))
        elsewhere = found.job.spec.engine != "local" or bool(held.record.login)
    one, now = found.job, time.time()
    if as_json:
        told = [{"at": at, "text": line} for at, line in found.story]
        text.show_json({**job_view(one), "waiting": found.waiting, "compared": comparing.view(compared), "story": told})
        return
    spec = one.spec
    text.show_title(f"{one.id}: {one.phase}{f', {one.reason}' if one.reason else ''}")
    several = f", {spec.needs.processes} processes" if spec.needs.processes > 1 else ""
    whose = (spec.owner, spec.team and f"team {spec.team}", spec.project and f"project {spec.project}")
    pairs = [
        ("command", " ".join(spec.command)),
        ("folder", spec.folder),
        ("place", spec.place if elsewhere else ""),
        ("waits", found.waiting),
        ("holds", f"{text.plural(spec.needs.gpus, 'GPU')}, {text.plural(spec.needs.cpus, 'CPU')}{several}"),
        ("for", ", ".join(filter(None, whose))),
        ("checkpoints", spec.checkpoints),
        ("ran", show_seconds(one.runtime_s(now)) if one.attempts else ""),
        ("cost", show_usd(one.usd(now)) if one.usd(now) else ""),
    ]
    text.show_pairs([(name, value) for name, value in pairs if value])
    _show_compared(compared, str(spec.predicted.get("why_not") or ""))
    text.show_lines("")
    text.show_pairs([(time.strftime("%m-%d %H:%M:%S", time.localtime(at)), line) for at, line in found.story])


def _show_compared(rows: Sequence[Compared], why_not: str) -> None:
    """Nothing for a plain command, of which nobody predicts anything and whose time is told already."""
    from chipwise.cli import text

    worth = [one for one in rows if one.predicted is not None or one.name in ("throughput", "steps_per_s")]
    if worth:
        columns = [text.Column("", flexible=True), *(text.Column(name, right=True) for name in _COLUMNS)]
        text.show_lines("")
        text.show_table(columns, [_cells(one) for one in worth])
    if why_not:
        text.show_lines("", f"Not predicted: {why_not}")


_COLUMNS = ("predicted", "from", "to", "measured", "ratio")
_NAMES = {"seconds": "time", "usd": "cost", "steps_per_s": "steps/s", "memory_bytes": "memory per chip"}


def _cells(one: Compared) -> list[str]:
    from chipwise.cli import text
    from chipwise.units import show_bytes, show_seconds, show_usd

    shown = {"seconds": show_seconds, "usd": show_usd, "memory_bytes": show_bytes}.get(one.name, text.number)
    name = f"{one.unit}/s" if one.name == "throughput" else _NAMES.get(one.name, one.name)
    figures = ["" if value is None else shown(value) for value in (one.predicted, one.low, one.high, one.measured)]
    return [name, *figures, "" if one.ratio is None else f"{one.ratio:.2f}"]
