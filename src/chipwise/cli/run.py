"""`chipwise run`: a command or a workload becomes a job that is queued, supervised and started again when it must be."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chipwise.cli.options import CatalogName, Listing, constraining, engines
from chipwise.cli.parameter_types import AboveZero, Duration, WholeNumber

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chipwise.api import Constraints
    from chipwise.api.running.asking import Runtime
    from chipwise.api.session.wiring import Session
    from chipwise.runner.job import Job
    from chipwise.views.played import Played


class _WithCommand(click.Command):
    """Remembers whether `--` stood before the words, since a command may look like a file."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["command"] = "--" in args
        return super().parse_args(ctx, args)


@click.command(cls=_WithCommand)
@click.argument("words", nargs=-1, metavar="WORKLOAD.yaml | -- COMMAND...", type=click.UNPROCESSED)
@click.option("--name", default=None, help="What to call it; left out, after the command or as the workload says.")
@click.option(
    "--engine",
    cls=Listing,
    names=engines,
    type=CatalogName("engine"),
    default=None,
    help="What carries it out: {names}, or a name of engines.yaml.",
)
@click.option("--stage-engine", "stages", multiple=True, metavar="STAGE=ENGINE", help="Of one stage of a pipeline.")
@click.option("--context", default=None, help="Of the kubeconfig.")
@click.option("--namespace", default=None, help="Of the cluster.")
@click.option("--queue", default=None, help="Of Kueue, in that namespace.")
@click.option("--image", default=None, help="In which a command runs, where it does not run here.")
@click.option("--machine", default=None, help="On which it runs at a cloud, instead of planned: g5.xlarge.")
@constraining()
@click.option("--gpus", default=None, metavar="N|N-M", help="GPUs that it holds for itself; or the least and the most.")
@click.option("--machines", default=None, metavar="N|N-M|N-", help="Elsewhere; of a workload the least that will do.")
@click.option("--cpus", type=WholeNumber(1, 4096), default=None, help="CPUs that it holds for itself.")
@click.option("--processes", type=WholeNumber(1, 1024), default=1, help="Processes of the job; each gets its rank.")
@click.option("--team", default=None, help="The team whose share it uses.")
@click.option("--project", default=None)
@click.option("--label", "labels", multiple=True, metavar="NAME=VALUE")
@click.option("--priority", type=int, default=0, help="The higher, the sooner.")
@click.option("--env", "settings", multiple=True, metavar="NAME[=VALUE]", help="A setting for it.")
@click.option("--secret", "secrets", multiple=True, metavar="NAME[=KEPT/KEY]", help="A setting that is recorded nowhere.")
@click.option("--folder", type=click.Path(path_type=Path), default=None, help="Where it runs; here unless given.")
@click.option("--longest", type=Duration(), default=None, help="That one attempt may take, as 2h.")
@click.option("--expected", type=Duration(), default=None, help="That it will take: others may use a gap that it leaves.")
@click.option("--retries", type=WholeNumber(0, 1000), default=None, help="Starts after own failures: 0, and 2 for a workload.")
@click.option("--patience", type=Duration(), default=None, help="Without machines, until others or fewer are tried: 10m.")
@click.option("--recover", default=None, metavar="MOVE,...", help="After a loss: same, zone, region, purchase, fewer, more.")
@click.option("--grace", type=Duration(), default=None, help="To save and leave when asked.")
@click.option("--budget", type=AboveZero(), default=None, help="US dollars after which it is stopped.")
@click.option("--checkpoints", default=None, metavar="URL", help="Where its checkpoints are; a separate folder unless given.")
@click.option("--after", multiple=True, metavar="JOB", help="A job that must be done before.")
@click.option("--produces", multiple=True, metavar="FILE|URL", help="What must be there when it is done.")
@click.option("--environment", "-e", default=None, help="An environment of the workload file, such as prod.")
@click.option("--simulate", is_flag=True, help="Say what would happen, by a virtual clock; nothing is started.")
@click.option("--seed", type=WholeNumber(0, 10**9), default=0, help="Of the simulation's chance.")
@click.option("--detach", "-d", is_flag=True, help="Print its id alone and return.")
@click.option("--json", "as_json", is_flag=True, help="The job as JSON; implies --detach.")
@click.pass_context
def run(
    ctx: click.Context,
    /,
    words: tuple[str, ...],
    detach: bool,
    as_json: bool,
    simulate: bool,
    seed: int,
    within: Constraints,
    **options: Any,
) -> None:
    """Run a command or a workload as a job.

    The job outlives this command: a supervisor watches over it. It waits for devices where there are none, is started again
    when it is lost, and goes on from its newest checkpoint. Unless detached its output is shown, and its exit code is passed
    on; an interrupt (Ctrl-C) stops it.

    \b
    Examples:
      chipwise run -- python train.py --epochs 3
      chipwise run -d --gpus 2 --team vision -- torchrun --nproc-per-node=2 t.py
      chipwise run workload.yaml
      chipwise run workload.yaml --engine kubernetes --namespace train
    """
    from chipwise.api.running import asking
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.cli.progress import stages_planned

    request = asking.RunRequest(
        words=words,
        is_command=bool(ctx.meta.get("command")),
        spot=within.spot,
        constraints=replace(within, spot=False),
        **options,
    )
    session = replace(open_session(), report=stages_planned())
    if simulate:
        _simulated(asking.simulate(session, request, seed), as_json)
        return
    jobs = asking.run(session, request, text.say)
    if as_json:
        from chipwise.views.jobs import job_view

        text.show_json([job_view(job) for job in jobs])
        return
    if detach:
        for job in jobs:
            click.echo(job.id)  # alone, for whoever takes it up: JOB=$(chipwise run -d ...)
        text.say(f"chipwise logs -f {jobs[-1].id} shows its output; chipwise ps lists all.")
        return
    for job in jobs:
        text.say(f"{job.id} submitted")
    ctx.exit(_followed(session, jobs[-1].id, [job.id for job in jobs[:-1]]))


def _simulated(played: Played, as_json: bool) -> None:
    from chipwise.cli import text
    from chipwise.views import played as played_text

    if as_json:
        text.show_json(played_text.view(played))
    else:
        text.show_lines(*played_text.assumed(played))
        text.show_pairs(played_text.story(played), indent=0)
        text.show_lines("", *played_text.summed(played))


def _followed(session: Session, id: str, before: Sequence[str]) -> int:
    """Until it is over; its exit code. Stages before it are shown in their order, and it is told when they are over."""
    from chipwise.api.running import asking, stages, waiting
    from chipwise.cli import text
    from chipwise.runner.job import Phase

    with asking.opened(session) as runtime:
        seen: list[str] = []
        watched = waiting.Watched(runtime, before)

        def look() -> Job:
            job = runtime.job(id)
            text.say(*watched.news(job))
            state = asking.short(runtime, job)
            if state and seen[-1:] != [state]:
                seen.append(state)
                text.say(state)
            return job

        try:
            for chunk in stages.follow(runtime, look, tell=look):
                sys.stdout.buffer.write(chunk)
                sys.stdout.buffer.flush()
        except KeyboardInterrupt:
            subject, whom = (
                (f"{id} is", "it to itself") if not before else (f"{id} and the stages before it are", "them to themselves")
            )
            text.say(f"\n{subject} asked to save and stop; a second interrupt leaves {whom}.")
            return _stopped(runtime, [*before, id])
        job = runtime.job(id)
        text.say(*watched.news(job))
        text.say(f"{id} {job.phase}{f': {job.reason}' if job.reason else ''}")
        failed = [one for one in map(runtime.job, before) if one.phase is Phase.FAILED and one.attempts]
        return asking.exit_code(failed[0] if failed and not job.attempts else job)  # of a pipeline: whichever stage failed


def _stopped(runtime: Runtime, ids: Sequence[str]) -> int:
    from contextlib import suppress

    from chipwise.api.running import jobs
    from chipwise.cli import text
    from chipwise.errors import BadInput
    from chipwise.runner.job import Wish

    try:
        for id in reversed(ids):  # the last first, so that none starts when the one before it goes
            with suppress(BadInput):  # over already
                jobs.ask(runtime.record, jobs.find(runtime.record, id), Wish.STOP, reason="interrupted at the terminal")
        for id in ids:
            while not (job := runtime.job(id)).phase.over:
                time.sleep(0.1)
        text.say(f"{ids[-1]} {job.phase}")
    except KeyboardInterrupt:
        text.say(f"{ids[-1]} keeps running; chipwise ps shows it.")
    return 130
