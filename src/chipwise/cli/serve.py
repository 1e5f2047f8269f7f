"""`chipwise serve`: a model, a workload or a command becomes a service here: replicas as jobs, a gateway before them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from chipwise.cli.options import Listing
from chipwise.cli.parameter_types import Duration, WholeNumber

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from chipwise.api.serving.options import ServeOptions
    from chipwise.api.serving.resolving import ServeRequest
    from chipwise.api.session.wiring import Session

F = TypeVar("F", bound="Callable[..., Any]")


def _engines() -> Sequence[str]:
    from chipwise.api.serving.engines import with_clusters

    return with_clusters()


def _policies() -> Sequence[str]:
    from chipwise.api.serving.standing import policies

    return policies()


class _Serve(click.Group):
    """What is not the name of a subcommand is what to serve."""

    allow_interspersed_args = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["command"] = "--" in args
        is_subcommand = bool(args) and args[0] in self.commands
        click.Command.parse_args(self, ctx, [] if is_subcommand else args)
        ctx._protected_args, ctx.args = (args[:1], args[1:]) if is_subcommand else ([], [])
        return ctx.args


class _Words(click.Argument):
    """Of the group alone: subcommands do not repeat it in how they are used."""

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        return super().get_usage_pieces(ctx) if isinstance(ctx.command, _Serve) else []


class _Rollout(click.Command):
    """Remembers whether `--` stood before the words, since a command may look like a file."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["command"] = "--" in args
        return super().parse_args(ctx, args)


def _of_replica(function: F) -> F:
    """Options that say what a replica is, for the first version and for later ones."""
    options = (
        click.option(
            "--engine", cls=Listing, names=_engines, default=None, help="Serve with {names}; the last runs it in a cluster."
        ),
        click.option("--weights", default=None, metavar="FILE", help="Serve this file: model.gguf."),
        click.option("--environment", "-e", default=None, help="Use this environment of the file: prod."),
        click.option("--context", type=WholeNumber(), default=None, help="Tokens of prompt and answer together."),
        click.option("--at-once", type=WholeNumber(1, 65536), default=None, help="Requests that a replica handles at once."),
        click.option("--gpus", type=WholeNumber(0, 64), default=None, help="Reserve GPUs for each replica."),
        click.option("--cpus", type=WholeNumber(0, 4096), default=0, help="Reserve CPUs for each replica; default: shared."),
        click.option("--health", default=None, metavar="PATH", help="Of a command: what it answers when it is ready."),
        click.option("--with", "components", multiple=True, metavar="NAME[=VERSION]", help="Refuse unless this runs here too."),
        click.option("--flags", default="", metavar="WORDS", help="Add these words to the engine's command."),
        click.option("--env", "settings", multiple=True, metavar="NAME[=VALUE]", help="Set or pass on a variable."),
        click.option("--secret", "secrets", multiple=True, metavar="NAME[=STORED/KEY]", help="Pass a secret."),
        click.option("--ready-within", type=Duration(), default=None, help="Give up if it is not ready by then; default: 30m."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def _of_scaling(function: F) -> F:
    """Options for two numbers of replicas."""
    options = (
        click.option("--scaling", default=None, metavar="POLICY", help="Scale by hpa:60 or another policy, or a FILE.py."),
        click.option("--scale-every", type=Duration(), default=None, help="Ask the policy so often; default: 15s."),
        click.option(
            "--idle", type=Duration(), default=None, help="With 0-N: end the last after this time without requests; 5m."
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.group(cls=_Serve, invoke_without_command=True, subcommand_metavar="")
@click.argument("words", cls=_Words, nargs=-1, metavar="WORKLOAD.yaml|MODEL|FILE | -- COMMAND...", type=click.UNPROCESSED)
@click.option("--name", default=None, help="Name the service; default: from the file or model.")
@click.option(
    "--replicas", default=None, metavar="N|N-M", help="Start so many, or scale between two numbers; default: the plan's, or 1."
)
@_of_scaling
@_of_replica
@click.option("--namespace", default=None, help="Use this namespace of the cluster.")
@click.option("--port", type=WholeNumber(0, 65535), default=8080, show_default=True, help="Listen here; 0: any free port.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Listen on this address.")
@click.option("--key-file", default=None, metavar="FILE", help="Require a key from this file.")
@click.option("--certificate", default=None, metavar="FILE", help="Speak TLS with this certificate (PEM).")
@click.option("--private-key", default=None, metavar="FILE", help="The certificate's key (PEM).")
@click.option("--policy", cls=Listing, names=_policies, default="least-work", help="Choose replicas by {names}.")
@click.option("--queue", type=Duration(), default=30.0, help="Let a request wait for a replica at most so long: 30s.")
@click.option("--team", default=None, help="Charge the share of this team.")
@click.option("--project", default=None, help="Record this project.")
@click.option("--label", "labels", multiple=True, metavar="NAME=VALUE", help="Record a label; may be repeated.")
@click.option("--folder", type=click.Path(path_type=Path), default=None, help="Run in this folder; default: the current one.")
@click.option("--detach", "-d", is_flag=True, help="Return when it is ready; it keeps running.")
@click.option("--json", "as_json", is_flag=True, help="Print the service as JSON; implies --detach.")
@click.pass_context
def serve(ctx: click.Context, /, words: tuple[str, ...], detach: bool, as_json: bool, **options: Any) -> None:
    """Serve a model on this machine, or in a cluster.

    Replicas are jobs like any other: a lost one is started again, and its requests go to the others or wait. A gateway before
    them speaks the APIs of OpenAI and TGI. Ctrl-C lets requests end and stops all; with --detach it keeps running.
    With --engine kubernetes the objects that `render --to kubernetes` writes are applied, and it keeps running there.

    \b
    Examples:
      chipwise serve tiny.gguf --replicas 2
      chipwise serve workload.yaml --engine llama.cpp --weights model.gguf
      chipwise serve --replicas 2 -- python server.py --port {port}
      chipwise serve workload.yaml --engine kubernetes --namespace chat
      chipwise serve status
      chipwise serve scale tiny 3
      chipwise serve rollout tiny better.gguf --share 10%
      chipwise serve stop tiny
    """
    if ctx.invoked_subcommand is not None:
        return
    from chipwise.api.serving import standing, starting
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text

    request, serving = _request_of(words, bool(ctx.meta.get("command")), options)
    session = open_session()
    service = starting.serve(session, request, serving, text.say)
    if as_json:
        text.show_json(standing.standing(session, service.name)[0])
        return
    click.echo(f"{service.name} serves at {service.door.url}")
    if service.place:
        click.echo(f"From here: {standing.reached(service)}")
    for line in standing.scaling_lines(service):
        click.echo(line)
    click.echo(f"Try: {standing.example(service)}")  # on one line, to be copied
    if detach or service.place:
        text.say(f"chipwise serve status shows it; chipwise serve stop {service.name} ends it.")
        return
    ctx.exit(_followed(session, service.name))


def _request_of(words: tuple[str, ...], is_command: bool, options: dict[str, Any]) -> tuple[ServeRequest, ServeOptions]:
    from chipwise.api.serving.options import ServeOptions
    from chipwise.api.serving.resolving import ServeRequest

    of_request = ("name", "engine", "weights", "environment", "context", "at_once", "gpus", "health")
    components = dict(pair.partition("=")[::2] for pair in options.pop("components"))
    flags = tuple(shlex.split(options.pop("flags")))
    described = {name: options.pop(name) for name in of_request if name in options}
    request = ServeRequest(words=words, is_command=is_command, components=components, flags=flags, **described)
    return request, ServeOptions(**options)


def _followed(session: Session, name: str) -> int:
    from chipwise.api.serving import changing, standing
    from chipwise.cli import text

    try:
        for line in standing.news(session, name):
            text.say(line)
    except KeyboardInterrupt:
        text.say(f"\n{name} answers what it has, and stops; press Ctrl-C again to detach from it.")
        try:
            changing.stop(session, name, text.say)
        except KeyboardInterrupt:
            text.say(f"{name} is stopping; chipwise serve status shows it.")
        return 130
    text.say(f"{name} was stopped by another command.")
    return 0


@serve.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(name: str | None, as_json: bool) -> None:
    """Show services, their versions and replicas."""
    from chipwise.api.serving import standing
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text

    services = standing.standing(open_session(), name)
    if as_json:
        text.show_json(services)
        return
    if not services:
        text.show_lines("No service is running; chipwise serve MODEL starts one.")
    for service in services:
        _show(service)


def _show(service: dict[str, Any]) -> None:
    from chipwise.api.serving.standing import heading
    from chipwise.cli import text

    text.show_lines(*heading(service))
    columns = [
        text.Column("replica"),
        text.Column("version", right=True),
        text.Column("phase"),
        text.Column("ready"),
        text.Column("requests", right=True),
        text.Column("tries", right=True),
        text.Column("node" if service["place"] else "job", flexible=True),
    ]
    rows = []
    for replica in service["replicas"]:
        ready = "draining" if replica["draining"] else "yes" if replica["ready"] else "no"
        requests = "" if replica["requests"] is None else str(replica["requests"])
        version = "" if replica["version"] is None else str(replica["version"])
        cells = (replica["name"], version, replica["phase"], ready, requests, str(replica["attempts"]))
        rows.append([*cells, (replica["node"] if service["place"] else replica["job"]) or ""])
    text.show_table(columns, rows)


@serve.command(short_help="Change the number of replicas.")
@click.argument("name")
@click.argument("replicas", metavar="N|N-M")
@_of_scaling
def scale(name: str, replicas: str, scaling: str | None, scale_every: float | None, idle: float | None) -> None:
    """Change the number of replicas, or scale between two from now on; removed replicas finish their requests first."""
    from chipwise.api.serving import changing
    from chipwise.api.serving.options import ScalingOptions
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text

    rules = ScalingOptions(scaling, scale_every, idle)
    service = changing.scale(open_session(), name, replicas, text.say, scaling=rules)
    if not service.place:
        text.say(f"{name} has {text.plural(len(service.replicas), 'replica')}")


@serve.command(cls=_Rollout)
@click.argument("name")
@click.argument("words", nargs=-1, metavar="[WORKLOAD.yaml|MODEL|FILE | -- COMMAND...]", type=click.UNPROCESSED)
@_of_replica
@click.option("--share", default="10%", show_default=True, help="Try it on this share of the requests.")
@click.option("--judge-for", type=Duration(), default=300.0, help="Take it back if this is not enough to judge it: 5m.")
@click.option("--instant", is_flag=True, help="Move all requests when it is ready, without judging.")
@click.option("--back", is_flag=True, help="Take back a rollout that was left in the middle.")
@click.pass_context
def rollout(
    ctx: click.Context,
    /,
    name: str,
    words: tuple[str, ...],
    share: str,
    judge_for: float,
    instant: bool,
    back: bool,
    **options: Any,
) -> None:
    """Replace the version of a service.

    One replica of the new version gets a share of the requests. It is judged by failures, time to the first token, time per
    token and length of answers, against the old version's requests of the same time. If it is worse, or nothing can be said,
    the old version gets all requests back; otherwise the new one gets them, and old replicas end theirs.
    """
    from chipwise.api.serving import changing
    from chipwise.api.serving.options import RolloutOptions
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.units import parse_share

    session = open_session()
    if back:
        changing.back(session, name, text.say)
        text.say(f"{name} is as it was")
        return
    request, serving = _request_of(words, bool(ctx.meta.get("command")), options)
    rules = RolloutOptions(share=parse_share(share), judge_for=judge_for, instant=instant)
    service = changing.rollout(session, name, request, serving, rules, text.say)
    text.say(f"{name} serves version {service.stable}")


@serve.command()
@click.argument("name", required=False)
@click.option("--now", is_flag=True, help="Kill at once; requests are cut.")
def stop(name: str | None, now: bool) -> None:
    """Stop a service: requests end, then the gateway and replicas."""
    from chipwise.api.serving import changing
    from chipwise.api.serving.folders import only_name
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text

    session = open_session()
    changing.stop(session, only_name(session, name), text.say, now=now)


@serve.command()
@click.argument("name")
@click.option("--key-file", required=True, metavar="FILE", help="Add it to this file, which may be new.")
@click.option("--team", default="", help="Count what it uses for this team.")
def key(name: str, key_file: str, team: str) -> None:
    """Make an API key. It is shown once; the file holds its digest only."""
    from chipwise.api.serving.standing import new_key

    click.echo(new_key(key_file, name, team))
