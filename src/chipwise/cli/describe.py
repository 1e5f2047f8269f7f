"""`chipwise describe`: the story of a job."""

from __future__ import annotations

import time

import click


@click.command()
@click.argument("job", metavar="JOB")
@click.option("--json", "as_json", is_flag=True)
def describe(job: str, as_json: bool) -> None:
    """Tell a job's story: what was asked, why it waits, where it ran, how each attempt ended, and what it cost."""
    from chipwise.api.running import asking, jobs
    from chipwise.api.running.views import job_view
    from chipwise.api.wiring import open_session
    from chipwise.cli import text
    from chipwise.run.engine import Room
    from chipwise.units import show_seconds, show_usd

    with asking.opened(open_session()) as held:
        config = held.engine.config
        found = jobs.describe(held.record, jobs.find(held.record, job), Room(config.gpus, config.cpus), held.rules)
    one, now = found.job, time.time()
    if as_json:
        told = [{"at": at, "text": line} for at, line in found.story]
        text.show_json({**job_view(one), "waiting": found.waiting, "story": told})
        return
    spec = one.spec
    text.show_title(f"{one.id}: {one.phase}{f', {one.reason}' if one.reason else ''}")
    several = f", {spec.needs.processes} processes" if spec.needs.processes > 1 else ""
    whose = (spec.owner, spec.team and f"team {spec.team}", spec.project and f"project {spec.project}")
    pairs = [
        ("command", " ".join(spec.command)),
        ("folder", spec.folder),
        ("waits", found.waiting),
        ("holds", f"{text.plural(spec.needs.gpus, 'GPU')}, {text.plural(spec.needs.cpus, 'CPU')}{several}"),
        ("for", ", ".join(filter(None, whose))),
        ("checkpoints", spec.checkpoints),
        ("ran", show_seconds(one.runtime_s(now)) if one.attempts else ""),
        ("cost", show_usd(one.usd(now)) if one.usd(now) else ""),
    ]
    text.show_pairs([(name, value) for name, value in pairs if value])
    text.show_lines("")
    text.show_pairs([(time.strftime("%m-%d %H:%M:%S", time.localtime(at)), line) for at, line in found.story])
