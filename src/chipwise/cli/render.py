"""`chipwise render`: the plan of a workload as files that tools take."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chipwise.cli.options import constraining
from chipwise.cli.parameter_types import WholeNumber

if TYPE_CHECKING:
    from chipwise.api import Constraints
    from chipwise.api.render import RenderRequest
    from chipwise.api.session.wiring import Session
    from chipwise.renderer.file import File


@click.command()
@click.argument("workload", metavar="WORKLOAD.yaml", required=False)
@click.option("--to", "targets", multiple=True, metavar="TARGET", help="Write for this target; may be repeated.")
@click.option("--list", "listed", is_flag=True, help="List the targets; with a workload, which of them fit it.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Write to this directory; default: print the files."
)
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@click.option(
    "--choice", type=WholeNumber(1, 1000), default=None, help="Which of the plan's machines, by rank; the first unless given."
)
@click.option("--stage", default=None, metavar="NAME", help="One stage of a pipeline.")
@click.option("--objective", type=click.Choice(("cost", "time", "carbon", "balanced")), default=None, help="As for plan.")
@click.option("--environment", "-e", default=None, help="Use this environment of the file: prod.")
@click.option(
    "--layout",
    type=click.Choice(("kustomize", "helm")),
    default=None,
    help="Write all environments of the file as one tree: a base with overlays, or a chart with values.",
)
@constraining()
@click.option("--json", "as_json", is_flag=True, help="Files as JSON.")
def render(
    workload: str | None,
    targets: tuple[str, ...],
    listed: bool,
    out: Path | None,
    force: bool,
    as_json: bool,
    within: Constraints,
    **settings: Any,
) -> None:
    """Write the plan of a workload as deployment files: Kubernetes, Terraform, Dockerfile, boto3 and others.

    Nothing is contacted and nothing is started. Either all files are written or none; existing files are kept without --force.

    \b
    Examples:
      chipwise render --list
      chipwise render workload.yaml --to kubernetes
      chipwise render workload.yaml --to karpenter --cloud aws --out deploy
      chipwise render workload.yaml --to kubernetes --layout kustomize --out deploy
    """
    from chipwise.api import render as rendering
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.cli.progress import stages_planned
    from chipwise.errors import BadInput

    if listed and workload is None:
        _show_list({name: rendering.fits(name) for name in rendering.target_names()}, as_json)
        return
    if workload is None or not (targets or listed):
        raise BadInput(
            "A workload and a target are needed.", remedy="chipwise render WORKLOAD.yaml --to kubernetes; --list shows targets."
        )
    session = replace(open_session(), report=stages_planned())
    request = replace(_request(session, workload, within, settings), out=out, force=force)
    if out is not None:
        rendering.check_out(out, targets, force=force)
    if listed:
        results = rendering.fitting(session, workload, request)
        _show_list({name: _fit_text(made) for name, made in results.items()}, as_json)
        return
    rendered = rendering.render(session, workload, tuple(dict.fromkeys(targets)), request, tell=text.say)
    _give(rendered, out, force, as_json)


def _request(session: Session, workload: str, constraints: Constraints, settings: dict[str, Any]) -> RenderRequest:
    from chipwise.api import over_file
    from chipwise.api.render import RenderRequest

    text = over_file(session.names, workload, constraints)
    return RenderRequest(
        environment=settings["environment"],
        text=text,
        objective=settings["objective"],
        rank=settings["choice"],
        stage=settings["stage"],
        layout=settings["layout"],
    )


def _give(rendered: dict[str, list[File]], out: Path | None, force: bool, as_json: bool) -> None:
    from chipwise.api import render as rendering
    from chipwise.cli import text

    if out is not None:
        written = rendering.write(out, rendered, force)
        if as_json:
            text.show_json({"out": str(out), "files": written})
        else:
            text.say(*(f"Written: {out / path}" for path in written))
        return
    if as_json:
        text.show_json({name: {file.path: file.text for file in files} for name, files in rendered.items()})
        return
    has_headings = sum(map(len, rendered.values())) > 1
    for name, files in rendered.items():
        for file in files:
            if has_headings:
                click.echo(f"# ---- {name}: {file.path}")
            click.echo(file.text, nl=False)


def _fit_text(made: list[File] | str) -> str:
    return made if isinstance(made, str) else "fits: " + ", ".join(file.path for file in made)


def _show_list(targets: dict[str, str], as_json: bool) -> None:
    from chipwise.cli import text

    if as_json:
        text.show_json(targets)
    else:
        text.show_pairs(list(targets.items()))
