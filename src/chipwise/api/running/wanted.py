"""What was asked for, as what a job is: the options of `run`, the file where one is named, and where it is to run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.adapters.engines.simulated import NAME as PLAYED
from chipwise.api.quick import Constraints, over_file
from chipwise.api.running import ranges, submitting
from chipwise.api.running.installed import DEFAULT, runs_here, traits
from chipwise.api.running.place import this_place
from chipwise.errors import BadInput
from chipwise.runner.abilities import BringsFolders, HasQueues
from chipwise.runner.job import RECOVER, Needs, Retry, Spec
from chipwise.text import elapsed

if TYPE_CHECKING:
    from chipwise.api.running.engines import Reach
    from chipwise.api.running.held import Held
    from chipwise.api.session.wiring import Session
    from chipwise.runner.engine import Engine


LONGEST = 200  # characters of a name, team, project or label


@dataclass(frozen=True, slots=True)
class Asked:
    """Options of `chipwise run`. None: not given."""

    words: tuple[str, ...]
    is_command: bool = True
    name: str | None = None
    engine: str | None = None  # a name; `local` unless given
    stages: tuple[str, ...] = ()  # STAGE=ENGINE, of stages that have another
    context: str | None = None  # of the kubeconfig
    namespace: str | None = None
    queue: str | None = None
    image: str | None = None
    machine: str | None = None  # that a plain command takes from a cloud
    spot: bool = False
    gpus: str | int | None = None  # 4, or the least and the most: 2-4
    machines: str | int | None = None
    cpus: int | None = None
    processes: int = 1
    team: str | None = None
    project: str | None = None
    labels: tuple[str, ...] = ()
    priority: int = 0
    settings: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    folder: Path | None = None
    longest: float | None = None
    expected: float | None = None
    retries: int | None = None
    patience: float | None = None  # seconds without its machines
    recover: str | None = None  # moves after a loss, in the order in which they are tried
    grace: float | None = None
    budget: float | None = None
    checkpoints: str | None = None
    after: tuple[str, ...] = ()
    produces: tuple[str, ...] = ()
    environment: str | None = None
    within: Constraints = field(default_factory=Constraints)  # of the plan of a workload, over what its file says
    text: str | None = None  # of the workload within them; None: the file as it is
    played: bool = False  # by a virtual clock: nothing is run, so nobody needs to say what


def with_text(session: Session, asked: Asked) -> Asked:
    """With the text that stands for the file where constraints are given. Without --machine, --spot of a workload is one."""
    if asked.is_command or not asked.words or asked.machine:
        if asked.within:
            raise BadInput(
                "--cloud, --region, --chip, --on-demand and --limit are for the plan of a workload file.",
                remedy="Name the machine of a command with --machine, such as g5.xlarge.",
            )
        return asked
    within = replace(asked.within, spot=asked.spot)
    if within and asked.engine in (None, "local") and not asked.stages and not asked.played:
        raise BadInput(
            "--cloud, --region, --chip, --on-demand, --spot and --limit say which machines to rent, and this runs here.",
            remedy="Name another engine with --engine, add --simulate, or leave them out.",
        )
    return replace(asked, spot=False, within=within, text=over_file(session, asked.words[0], within))


def named(session: Session, asked: Asked, held: Held) -> list[tuple[str, Spec]]:
    """Jobs by id."""
    if asked.is_command:
        if asked.stages:
            raise BadInput("A command has no stages.", remedy="Take --engine NAME.")
        spec = _of_command(asked, held, _aim(session, asked, held, asked.engine))
        _check_budget(asked, spec)
        return [(submitting.new_id(spec.name), spec)]
    if len(asked.words) > 1:
        raise BadInput(f"{' '.join(asked.words)[:80]!r} is more than one workload.", remedy="Write -- before a command.")
    from chipwise.api.running.workloads import specs_of

    engines = _stages(asked.stages)
    aims = {name: _aim(session, asked, held, name) for name in {asked.engine, *engines.values()}}
    path = asked.words[0]

    def rest(stage: str) -> Spec:
        return _of_command(replace(asked, words=("true",)), held, aims[engines.pop(stage, asked.engine)])

    wanted = dict(engines)
    try:
        found = specs_of(session, path, asked.environment, rest, asked.name or "", asked.text)
    except BadInput as error:
        if path == "-" or path.endswith((".yaml", ".yml")) or Path(path).exists():
            raise
        hint = f"Before a command write --: chipwise run -- {path[:60]}."
        raise BadInput(error.message, remedy=" ".join(filter(None, (error.remedy, hint)))) from None
    for _, _, spec in found:
        _check_deadline(path, spec, time.time())
    if engines:
        names = ", ".join(stage for _, stage, _ in found if stage) or "none"
        raise BadInput(f"{path} has no stage {', '.join(engines)}.", remedy=f"Its stages: {names}.")
    if asked.machines is not None and not asked.played:
        _check_elsewhere(aims[wanted.get(stage, asked.engine)][0] for _, stage, _ in found)
    named = []
    for id, stage, spec in found:
        reach = aims[wanted.get(stage, asked.engine)][0]
        spec = _with_code(held, asked, reach, spec, path)
        if not reach.here and asked.machine:  # named, instead of planned
            spec = _bare(held, asked, reach, spec)
        elif not reach.here:
            from chipwise.api.running import elsewhere

            queues = _queues(held, spec.place)
            spec = elsewhere.planned(
                session, path, asked.environment, stage or None, spec, reach, queues, asked.image or "", asked.text
            )
        _check_budget(asked, spec)
        named.append((id, _as_login(spec, held.record.login)))
    return named


def _with_code(held: Held, asked: Asked, reach: Reach, spec: Spec, path: str) -> Spec:
    """Where no image is named that may hold the code of a workload, its folder goes along to a rented machine."""
    from chipwise.api.running.workloads import IMAGE

    named = asked.image or spec.env.get(IMAGE) or reach.setting("container")
    brings = isinstance(held.elsewhere.get(spec.place), BringsFolders)
    if not brings or spec.folder or named or not spec.command or path == "-":
        return spec
    folder = Path(path).absolute().parent
    if folder in (Path.home(), Path(folder.anchor)):
        raise BadInput(
            f"{path} is in {folder}, and all of that folder would be uploaded as its code.",
            remedy="Put it and its code into a separate folder, or name one with --folder.",
        )
    return replace(spec, folder=str(folder))


def _check_elsewhere(reaches: Iterable[Reach]) -> None:
    if all(reach.here for reach in reaches):
        raise BadInput("This machine is one.", remedy="Leave --machines out, or take another engine.")


def _check_deadline(path: str, spec: Spec, now: float) -> None:
    """Only of one that is not submitted yet: one that runs goes on when its time has come, since late is better than never."""
    if spec.deadline is not None and spec.deadline <= now:
        moment, ago = datetime.fromtimestamp(spec.deadline, UTC), elapsed(now - spec.deadline)
        raise BadInput(
            f"{path}: {spec.name} is to be finished by {moment:%Y-%m-%d %H:%M} UTC, which is {ago} ago.",
            remedy="Give goals.finish_by a time that is still to come, or leave it out.",
        )


def _check_budget(asked: Asked, spec: Spec) -> None:
    if asked.budget is not None and not traits(spec.engine).holds_budget and not any(one.usd_per_hour for one in spec.places):
        raise BadInput(
            f"The price of an hour of {spec.place} is not known, so --budget cannot be enforced.",
            remedy="Add the price of your machine to the catalog (docs/adding/own-catalog.md), or use --longest.",
        )


def _as_login(spec: Spec, login: str) -> Spec:
    """In a team's record nobody submits as somebody else; whom the file names is kept as a label."""
    if not login or spec.owner == login:
        return spec
    return replace(spec, owner=login, labels={"owner": spec.owner, **spec.labels})


def _stages(given: Sequence[str]) -> dict[str, str]:
    pairs = [one.partition("=") for one in given]
    for stage, equals, engine in pairs:
        if not (stage and equals and engine):
            raise BadInput(f"{stage[:60]!r} names no engine.", remedy="Write --stage-engine STAGE=ENGINE.")
    return {stage: engine for stage, _, engine in pairs}


def _aim(session: Session, asked: Asked, held: Held, name: str | None) -> tuple[Reach, str]:
    """The engine that a name means, and its place."""
    from chipwise.api.running import engines

    over = {"context": asked.context, "namespace": asked.namespace, "queue": asked.queue}
    given = {key: value for key, value in over.items() if value}
    kind = DEFAULT if name is None else engines.kind_of(session, name)
    if runs_here(kind):
        elsewhere = [*given, *(one for one in ("image", "machine", "spot") if getattr(asked, one))]
        if elsewhere and not asked.stages:
            raise BadInput(
                f"--{', --'.join(elsewhere)} does not apply to this machine.",
                remedy="Name another with --engine, or leave it out.",
            )
        own, where = engines.Reach(kind), this_place(session, kind)
        if where != held.engine.place:
            held.reaches[where] = own
        return own, where
    found = engines.reach(session, name, given)
    engine = engines.connect(session, found)
    held.elsewhere[engine.place], held.reaches[engine.place] = engine, found
    return found, engine.place


def _of_command(asked: Asked, held: Held, aim: tuple[Reach, str]) -> Spec:
    reach, where = aim
    # What a person types at a terminal fails at once, so that they can mend it; a lost machine is made good all the same.
    retry = Retry(failures=asked.retries if asked.retries is not None else 0 if asked.is_command else Retry().failures)
    retry = replace(retry, no_machine_s=asked.patience if asked.patience is not None else retry.no_machine_s)
    folder = str((asked.folder or Path.cwd()).absolute()) if reach.here else _folder(asked, held.elsewhere[where])
    spec = Spec(
        command=asked.words,
        name=_told("--name", asked.name) or _called(asked.words),
        engine=PLAYED if asked.played else reach.kind,
        place=where,
        folder=folder,
        # What is set on this machine means nothing on another.
        env=submitting.environment(asked.settings, passed_on=reach.here),
        secrets=submitting.secrets_of(asked.secrets, here=reach.here),
        needs=_needs(asked, reach),
        owner=held.record.login or submitting.submitter(),
        team=_told("--team", asked.team),
        project=_told("--project", asked.project),
        labels=_labels(asked.labels),
        priority=asked.priority,
        retry=retry,
        recover=ranges.moves(asked.recover) if asked.recover else RECOVER,
        grace_s=asked.grace if asked.grace is not None else 30.0,
        longest_s=asked.longest,
        expected_s=asked.expected,
        budget_usd=asked.budget,
        checkpoints=asked.checkpoints or "",
        after=tuple(_known(held, one) for one in asked.after),
        produces=_produces(asked.produces),
    )
    return spec if reach.here or not asked.is_command else _bare(held, asked, reach, spec)


def _produces(given: tuple[str, ...]) -> tuple[str, ...]:
    """As a workload may say it."""
    if given:
        from chipwise.workload.program import wrong_files

        if wrong := wrong_files(given):
            raise BadInput(f"--produces: {wrong[0]}.", remedy=f"Give {wrong[1]}.")
    return given


def _folder(asked: Asked, engine: Engine) -> str:
    """Of an image: as it is there. For rented machines: of this one, and sent to them, or of S3."""
    given = str(asked.folder or "")
    if not given or not isinstance(engine, BringsFolders) or given.startswith("s3:/"):
        return given
    if not Path(given).is_dir():
        raise BadInput(f"The folder {given} is not there.", remedy="Give one that is with --folder.")
    return str(Path(given).absolute())


def _needs(asked: Asked, reach: Reach) -> Needs:
    gpus, gpus_least = ranges.workers(str(asked.gpus), "--gpus") if asked.gpus is not None else (0, None)
    machines: int = 1
    machines_least: int | None = None
    if asked.machines is not None:
        text = str(asked.machines)
        given = ranges.workers(text, "--machines") if asked.is_command else (1, ranges.least(text, "--machines"))
        machines, machines_least = given
    if machines < 1 or machines_least == 0:
        raise BadInput("A job needs a machine.", remedy="Write --machines 1 or more.")
    if reach.here and not asked.is_command and not asked.played:
        machines_least = None  # of a pipeline: this stage is on one machine, others may be on several
    if gpus_least is not None and not reach.here:
        raise BadInput(
            f"{reach.kind} gives each machine its GPUs whole.", remedy="Give a range of machines instead: --machines 2-4."
        )
    cpus = asked.cpus if asked.cpus is not None else 1
    return Needs(gpus, cpus, machines, asked.processes, gpus_least, machines_least)


def _bare(held: Held, asked: Asked, reach: Reach, spec: Spec) -> Spec:
    """A command without a workload: nobody planned it, so whoever asks says on what."""
    from chipwise.api.running import bare

    if traits(reach.kind).rents:
        from chipwise.api.running.elsewhere import market_of

        return bare.on_rented(held.session, spec, asked.machine, asked.spot, asked.image or "", market_of(reach))
    if asked.machine or asked.spot:
        raise BadInput("Which machines a cluster has, its nodes say.", remedy="Leave --machine and --spot out.")
    queue = _queues(held, spec.place)(spec.team, reach.setting("queue"))
    return bare.on_cluster(spec, asked.image or reach.setting("image"), queue, reach)


def _queues(held: Held, where: str) -> Callable[[str, str], str]:
    engine = held.elsewhere[where]
    return engine.queue_for if isinstance(engine, HasQueues) else lambda team, asked: asked


def _known(held: Held, text: str) -> str:
    from chipwise.api.running import jobs

    return jobs.find(held.record, text).id


def _said(words: Sequence[str]) -> str:
    """What a person would call it: the script rather than its interpreter."""
    for word in words[1:]:
        if word.endswith((".py", ".sh", ".jl", ".R")):
            return word
    return words[0]


def _labels(given: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name.strip():
            raise BadInput(f"{one[:60]!r} is no label.", remedy="Write --label NAME=VALUE.")
        found[_told("--label", name.strip())] = _told(f"--label {name.strip()}", value)
    return found


def _told(option: str, text: str | None) -> str:
    """What stands in lists and in the labels of machines: one line that people can read."""
    text = text or ""
    if len(text) > LONGEST or not text.isprintable():
        raise BadInput(
            f"{option} is {text[:40]!r}{'...' if len(text) > 40 else ''}.",
            remedy=f"Write at most {LONGEST} characters on one line, without control characters.",
        )
    return text


def _called(words: Sequence[str]) -> str:
    stem = Path(_said(words)).stem[:LONGEST]
    return stem if stem and stem.isprintable() else "job"


def values(secrets: Sequence[str]) -> dict[str, str]:
    """Secrets that are in the environment now and are kept nowhere else."""
    found: dict[str, str] = {}
    for one in secrets:
        name, kept, _ = one.partition("=")
        if kept:
            continue
        if name not in os.environ:
            raise BadInput(
                f"The secret {name} is not set here.", remedy=f"Set it, or write --secret {name}=NAME/KEY of a stored one."
            )
        found[name] = os.environ[name]
    return found
