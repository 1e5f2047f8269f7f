"""`run` as a verb: what was asked for becomes jobs in the record, and somebody who carries them out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.api.running import place, submitting, wanted
from chipwise.api.running.held import Runtime as Runtime
from chipwise.api.running.held import opened as opened
from chipwise.api.running.installed import package, runs_here, traits
from chipwise.api.running.spot_rules import named_policies, undecided
from chipwise.errors import BadInput
from chipwise.runner.abilities import BringsFolders, LosesFiles
from chipwise.runner.job import Job, Lack, Phase, Spec, Wish
from chipwise.runner.record import Unread
from chipwise.runner.submission.request import RunRequest as RunRequest
from chipwise.text import decimal_size

if TYPE_CHECKING:
    from chipwise.adapters.engines.simulated.play import Played
    from chipwise.api.session.wiring import Session


def run(session: Session, request: RunRequest, say: Callable[[str], None] = lambda line: None) -> list[Job]:
    """Submitted, and a controller is there. `say`: for asides to whoever asks."""
    from chipwise.adapters import hand_offs
    from chipwise.api.running import engines

    request = wanted.with_text(session, request)
    if not request.words:
        raise BadInput("There is nothing to run.", remedy="chipwise run -- COMMAND, or chipwise run WORKLOAD.yaml.")
    with opened(session, makes=True) as runtime:
        specs = wanted.named_specs(session, request, runtime)
        for id, spec in specs:
            if runs_here(spec.engine):
                submitting.checked(spec, runtime.engine, runtime.rules)
            else:
                submitting.checked_elsewhere(id, spec, runtime.elsewhere[spec.place])
            for line in undecided(id, spec, time.time()):
                say(line)
            if spec.produces:
                hand_offs.check(spec, say=say, looks_at=traits(spec.engine).looks_at)
        specs = _with_folders(runtime, specs, say)
        jobs = submitting.submit(runtime.record, specs, place.passing_dir(session), wanted.values(request.secrets))
        for site, reach in runtime.reaches.items():
            engines.remember(session, site, reach)
        for job in jobs:
            runtime.awake(job)
            own_command = request.is_command and runs_here(job.spec.engine)
            if own_command and (unseen := place.unseen_gpus(session, job.spec.needs.gpus)):
                say(f"{job.id}: {unseen}")
            if passing := _passing(job.spec):
                say(f"{job.id}: {passing} is not on a persistent volume: it is checked, and then deleted with the pod.")
    return jobs


def _with_folders(runtime: Runtime, specs: Sequence[tuple[str, Spec]], say: Callable[[str], None]) -> list[tuple[str, Spec]]:
    """A folder of this machine goes along to a rented one, once for all jobs; a cluster has what its image has."""
    sent: dict[tuple[str, str], str] = {}
    for _, spec in specs:
        key = (spec.place, spec.folder)
        engine = runtime.elsewhere.get(spec.place)
        if isinstance(engine, BringsFolders) and spec.folder and not spec.folder.startswith("s3:/") and key not in sent:
            sent[key] = engine.bring(Path(spec.folder), lambda size, of=spec.folder: say(_sends(of, size)))
    return [(id, replace(spec, folder=sent.get((spec.place, spec.folder), spec.folder))) for id, spec in specs]


def _passing(spec: Spec) -> str:
    """Files that nobody will find when a stage on a cluster is done."""
    kind = package(spec.engine)
    return ", ".join(kind.passing(spec)) if isinstance(kind, LosesFiles) else ""


def _sends(folder: str, size: int) -> str:
    return f"uploads the folder {folder} ({decimal_size(max(size, 1e3))})"


def simulate(session: Session, request: RunRequest, seed: int) -> Played:
    """What would happen, by a virtual clock: a workload on the machines of its plan, the stages of a pipeline in their order,
    a command for its expected time."""
    from chipwise.adapters.engines.simulated import play as simulating
    from chipwise.api.running.planned import Planned, with_plans

    request = wanted.with_text(session, replace(request, played=True))
    engines = [
        option
        for option, is_set in (
            ("--engine", request.engine is not None and not runs_here(request.engine)),
            ("--stage-engine", request.stages),
        )
        if is_set
    ]
    if engines:
        raise BadInput(
            "A simulation uses no engine: it simulates the machines of the plan.", remedy=f"Leave {' and '.join(engines)} out."
        )
    with opened(session) as runtime:
        specs = wanted.named_specs(session, request, runtime)
        rules = runtime.rules
    now = time.time()
    plan = Planned(tuple(specs))
    if not request.is_command:
        plan = with_plans(session, request.words[0], request.environment, specs, now, request.text)
    world = simulating.world_of([spec for _, spec in plan.specs], begins=now)
    ends = (
        () if plan.served_s is None else [simulating.Wishes(now + plan.served_s, id) for id, one in plan.specs if one.service]
    )
    asides = (*plan.asides, *(line for _, spec in plan.specs for line in undecided(spec.name, spec, now)))
    return replace(
        simulating.simulate(plan.specs, world, seed, rules=rules, policy=named_policies(), wishes=ends), asides=asides
    )


def short(runtime: Runtime, job: Job) -> str:
    """Where it stands, for whoever watches; empty while it runs."""
    if job.phase is Phase.QUEUED and job.waiting and job.attempts and job.lack is not Lack.TURN:
        return f"{job.id} goes back to the queue: {job.waiting}"
    if job.phase is Phase.STARTING and len(job.attempts) > 1:
        return f"{job.id} restarts, attempt {len(job.attempts)}"
    if job.phase is Phase.RUNNING and job.waiting and not job.spec.service:  # it ended, and what it made is looked for
        return f"{job.id}: {job.waiting}"
    return ""


def ask(session: Session, names: Sequence[str], wish: Wish) -> list[str]:
    """All are found, can be read and may be asked, before the first is asked."""
    ids, damaged = ask_readable(session, names, wish)
    if damaged:
        raise damaged[0]
    return ids


def ask_readable(session: Session, names: Sequence[str], wish: Wish) -> tuple[list[str], list[Unread]]:
    """Who was asked, and of whom nothing can be read: those keep none of the others from being stopped. Where a pipeline was
    named, a stage of which it cannot be asked any more, since it went on meanwhile, is passed over."""
    from chipwise.api.running import jobs

    ids: list[str] = []
    refused: BadInput | None = None
    damaged: list[Unread] = []
    with opened(session) as runtime:
        pairs = []
        for name in names:
            try:
                pairs += [(name, job) for job in jobs.targets(runtime.record, name, wish)]
            except Unread as error:
                if not wish.stops:
                    raise
                damaged.append(error)
        targets = list({job.id: job for _, job in pairs}.values())
        of_pipelines = {job.id for name, job in pairs if job.spec.pipeline == name}
        if wish is Wish.RUN:
            targets = jobs.in_order(runtime.record, targets)
        for job in targets:
            jobs.allowed(job, wish)
        for job in targets:
            if wish is Wish.RUN:
                submitting.laid_again(job, place.passing_dir(session))
            try:
                jobs.ask(runtime.record, job, wish, runtime.record.login or submitting.submitter())
            except BadInput as error:
                if job.id not in of_pipelines:
                    raise
                refused = error
                continue
            ids.append(job.id)
            runtime.awake(job)
    if refused is not None and not ids:
        raise refused
    return ids, damaged


def silences(session: Session, ids: Sequence[str]) -> dict[str, str]:
    """By the id of each job whose controller does not answer: for how long, and what becomes of it."""
    from chipwise.api.running import controlling

    sentences: dict[str, str] = {}
    with opened(session) as runtime:
        for id in ids:
            job = runtime.record.job(id)
            silent = controlling.unanswered(session, job.spec.place) if job is not None and not job.phase.over else None
            if silent is not None:
                sentences[id] = silent.sentence
    return sentences


def exit_code(job: Job) -> int:
    """Of a command that followed it to its end: the job's own where it has one."""
    if job.phase is Phase.DONE:
        return 0
    last = job.attempt
    return last.code if last is not None and last.code else 1
