"""The command line: registers one file per command and turns errors into a sentence and an exit code.

0 fine, 1 no result, 2 bad input, 3 an outside service or tool failed, 70 our own bug.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from chipwise import __version__
from chipwise.cli import catalog, check, chips, explain, machines, models, offers, regions
from chipwise.errors import ChipwiseError

app = typer.Typer(
    name="chipwise",
    help="Pick the right accelerator for a workload: speed, memory, price and carbon in one answer, with the reasons.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"chipwise {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    if debug:
        os.environ["CHIPWISE_DEBUG"] = "1"


app.command("chips")(chips.chips)
app.command("machines")(machines.machines)
app.command("offers")(offers.offers)
app.command("regions")(regions.regions)
app.command("models")(models.models)
app.command("explain")(explain.explain)
app.command("check")(check.check)
app.add_typer(catalog.app, name="catalog")


def run() -> None:
    """Entry point of the `chipwise` command."""
    sys.exit(_run())


def _run() -> int:
    from chipwise.cli.text import printable

    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except ChipwiseError as error:
        if os.environ.get("CHIPWISE_DEBUG"):
            raise
        print(printable(f"chipwise: {error}"), file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # The reader (head, less) has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("chipwise: interrupted", file=sys.stderr)
        return 130
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    except Exception as error:
        usage = getattr(error, "exit_code", None)
        if isinstance(usage, int) and hasattr(error, "show"):
            error.show()
            return 2 if usage else 0
        if os.environ.get("CHIPWISE_DEBUG"):
            raise
        print(printable(f"chipwise: our own mistake: {type(error).__name__}: {error}"), file=sys.stderr)
        print("Run it again with --debug and report the traceback, please.", file=sys.stderr)
        return 70
