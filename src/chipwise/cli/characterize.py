"""`chipwise characterize`: run a program for a while and write down what it is, as a workload file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from chipwise.cli.options import CatalogName
from chipwise.cli.parameter_types import Duration, WholeNumber


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, metavar="-- COMMAND...", type=click.UNPROCESSED)
@click.option("--for", "steady", type=Duration(), default=None, help="Watch this long once it is steady; default: 2m.")
@click.option(
    "--out",
    "-o",
    type=click.Path(path_type=Path),
    default=Path("workload.yaml"),
    show_default=True,
    help="Write the file here.",
)
@click.option("--force", is_flag=True, help="Overwrite the file if it exists.")
@click.option("--explain", is_flag=True, help="Answer: is it parallel? Latency? Scaling? Budget?")
@click.option("--threads", default=None, metavar="N,...", help="Try these numbers of threads; default: 1,2,4.")
@click.option("--single-run", is_flag=True, help="Run it once only: fewer things are known then.")
@click.option("--on", type=CatalogName("chip"), default=None, help="Name the chip that it runs on, if it is not recognised.")
@click.option("--stdin", type=click.Path(path_type=Path), default=None, help="Give it this file as its standard input.")
@click.option("--steps", type=WholeNumber(1, 10**15), default=None, help="State how many steps the whole job has.")
@click.option("--name", default=None, help="Name the workload; default: from the program.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON; the program's output goes to stderr.")
def characterize(
    command: tuple[str, ...],
    steady: float | None,
    out: Path,
    force: bool,
    explain: bool,
    threads: str | None,
    single_run: bool,
    on: str | None,
    stdin: Path | None,
    steps: int | None,
    name: str | None,
    as_json: bool,
) -> None:
    """Run a program for a while, find out what kind of work it is, and write a workload file that `chipwise plan` reads.

    The program is run up to four times: at full speed until it is steady, with its operations counted (PyTorch, NumPy), and
    with fewer threads. Each time it is ended with its children. Use --single-run for a program that must not run twice.
    Ctrl-C ends it and writes nothing.

    \b
    Examples:
      chipwise characterize -- python train.py
      chipwise characterize --for 30s --explain -- ./solver input.nml
      chipwise plan workload.yaml
    """
    from chipwise.api.measure import characterise as characterising
    from chipwise.api.measure.profile import check_out, write
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.cli.interrupting import ended_like_ctrl_c
    from chipwise.views import characterise as views

    check_out(out, force)
    session = open_session()
    request = characterising.CharacteriseRequest(
        command=command,
        steady_s=steady or characterising.USUAL_S,
        threads=characterising.thread_numbers(threads),
        single_run=single_run,
        on=on,
        stdin=stdin,
        steps=steps,
        name=name,
    )
    output = sys.stderr if as_json else sys.stdout
    with ended_like_ctrl_c():
        result = characterising.characterise_program(session, request, output, text.say)
    write(out, result.text, force)
    plan = characterising.plan_of(session, result.text) if explain else None
    if as_json:
        answers = {"answers": views.answers_view(result.character, plan)} if explain else {}
        text.show_json({**views.view(result.character), **answers, "written": str(out)})
        return
    text.show_pairs(views.pairs(result.character))
    text.show_lines("", *(views.explained(result.character, plan) if explain else ()))
    text.say(*result.character.notes, f"Written: {out}. Next: chipwise plan {out}")
