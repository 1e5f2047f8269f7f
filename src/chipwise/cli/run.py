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
@click.option("--name", default=None, help="Name the job; default: from the command or file.")
@click.option(
    "--engine",
    cls=Listing,
    names=engines,
    type=CatalogName("engine"),
    default=None,
    help="Run on {names}, or on a name of engines.yaml.",
)
@click.option(
    "--stage-engine", "stages", multiple=True, metavar="STAGE=ENGINE", help="Run one stage of a pipeline on this engine."
)
@click.option("--context", default=None, help="Use this context of the kubeconfig.")
@click.option("--namespace", default=None, help="Use this namespace of the cluster.")
@click.option("--queue", default=None, help="Use this Kueue queue of the namespace.")
@click.option("--image", default=None, help="Run the command in this container image.")
@click.option("--machine", default=None, help="Rent this type, without a plan: g5.xlarge.")
@constraining()
@click.option("--gpus", default=None, metavar="N|N-M", help="Reserve GPUs: a number, or a minimum-maximum.")
@click.option("--machines", default=None, metavar="N|N-M|N-", help="Use machines; N-: a minimum, for a workload.")
@click.option("--cpus", type=WholeNumber(1, 4096), default=None, help="Reserve CPUs.")
@click.option("--processes", type=WholeNumber(1, 1024), default=1, help="Start this many processes, each with a rank.")
@click.option("--team", default=None, help="Charge the share of this team.")
@click.option("--project", default=None, help="Record this project.")
@click.option("--label", "labels", multiple=True, metavar="NAME=VALUE", help="Record a label; may be repeated.")
@click.option("--priority", type=int, default=0, help="Set the priority among your jobs, -100 to 100.")
@click.option("--env", "settings", multiple=True, metavar="NAME[=VALUE]", help="Set or pass on an environment variable.")
@click.option(
    "--secret", "secrets", multiple=True, metavar="NAME[=STORED/KEY]", help="Pass a secret: never stored, redacted in logs."
)
@click.option("--folder", type=click.Path(path_type=Path), default=None, help="Run in this folder; default: the current one.")
@click.option("--longest", type=Duration(), default=None, help="Stop an attempt after this time: 2h.")
@click.option("--expected", type=Duration(), default=None, help="State how long it takes, for backfill: 2h.")
@click.option("--retries", type=WholeNumber(0, 1000), default=None, help="Retry failures; default: 0, for a workload 2.")
@click.option("--patience", type=Duration(), default=None, help="Wait for machines before other moves: 10m.")
@click.option(
    "--recover", default=None, metavar="MOVE,...", help="Try after a loss: same, zone, region, purchase, fewer, more."
)
@click.option("--grace", type=Duration(), default=None, help="Allow this time to save and exit: 30s.")
@click.option("--budget", type=AboveZero(), default=None, help="Stop after spending this many US dollars.")
@click.option("--policy", default=None, metavar="NAME", help="Decide on spot machines by this policy (chipwise policies).")
@click.option("--checkpoints", default=None, metavar="URL", help="Keep checkpoints here; default: its own folder.")
@click.option("--after", multiple=True, metavar="JOB", help="Start after this job is done.")
@click.option("--produces", multiple=True, metavar="FILE|URL", help="Fail unless this exists at the end.")
@click.option("--environment", "-e", default=None, help="Use this environment of the file: prod.")
@click.option("--simulate", is_flag=True, help="Simulate the job; start nothing.")
@click.option("--seed", type=WholeNumber(0, 10**9), default=0, help="Seed the random losses of the simulation.")
@click.option("--detach", "-d", is_flag=True, help="Print only the job's id and return.")
@click.option("--json", "as_json", is_flag=True, help="Print the job as JSON; implies --detach.")
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

    A supervisor keeps the job running after this command returns. The job waits in a queue until its devices are free. If it is
    lost, it restarts from its newest checkpoint. Without --detach this command shows the output and exits with the job's exit
    code; Ctrl-C stops the job.

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
            subject, whom = (f"{id} is", "it") if not before else (f"{id} and the stages before it are", "them")
            text.say(f"\n{subject} asked to save and stop; press Ctrl-C again to detach from {whom}.")
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
