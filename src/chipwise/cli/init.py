"""`chipwise init`: a workload file to start from."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem


class Kind(click.ParamType[str]):
    """A kind of workload; an unknown one is refused by the API, with the nearest."""

    name = "kind"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from chipwise.api.templates import kinds

        return [CompletionItem(name, help=purpose) for name, purpose in kinds().items() if name.startswith(incomplete)]


@click.command()
@click.argument("kind", type=Kind(), default="serve", metavar="[KIND]")
@click.option("--out", "-o", default="workload.yaml", show_default=True, metavar="FILE", help="The file to write; - prints it.")
@click.option("--force", is_flag=True, help="Overwrite the file if it exists.")
@click.option("--list", "listed", is_flag=True, help="List the kinds.")
def init(kind: str, out: str, force: bool, listed: bool) -> None:
    """Write a commented workload file to edit and plan. KIND defaults to serve.

    \b
    Kinds:
      serve        answer requests with a model
      batch        run a model once over many inputs
      train        train a model
      finetune     adapt a trained model
      edge         run a model on small devices
      interactive  notebooks and development machines
      render       render frames of a 3D scene
      transcode    convert video
      stream       process messages within microseconds
      hpc          numerical simulation
      hybrid       quantum circuits with classical work
      pipeline     several of these, planned together

    \b
    Examples:
      chipwise init serve
      chipwise init finetune -o tune.yaml
      chipwise init batch -o -
    """
    from chipwise.api import templates
    from chipwise.cli import text

    if listed:
        text.show_pairs(list(templates.kinds().items()))
    elif out == templates.STDOUT:
        click.echo(templates.text(kind), nl=False)
    else:
        path = Path(out)
        templates.write(kind, path, force)
        text.say(f"Written: {path}", f"Edit it, then run: chipwise plan {path}")
