"""The command line: one file per command, imported when it is asked for, and errors as a sentence and an exit code.

0 fine, 1 no result, 2 bad input, 3 an outside service or tool failed, 70 our own bug.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click

from chipwise import __version__
from chipwise.errors import ChipwiseError

# The file name is the name the user types. Short help stands here so that `--help` imports nothing.
COMMANDS = {
    "chips": "List chips, or set some side by side.",
    "machines": "List machines by chip, memory and provider.",
    "offers": "List prices, the cheapest first.",
    "regions": "List regions with place, country and grid carbon.",
    "models": "List known models, or show one model's shape.",
    "explain": "Say what a name means: chip, machine, region, model.",
    "check": "Check a workload file and list all its problems.",
    "catalog": "Refresh, import and inspect the catalog's data.",
}


class Commands(click.Group):
    """Subcommands by file name in this package."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(f"chipwise.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            from chipwise.errors import UnknownName
            from chipwise.spelling import nearest

            raise UnknownName("command", args[0], nearest(args[0], COMMANDS), remedy="chipwise --help lists them.")
        return super().resolve_command(ctx, args)


@click.group(
    name="chipwise",
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog='Shell completion: eval "$(_CHIPWISE_COMPLETE=bash_source chipwise)"; zsh_source and fish_source likewise.',
)
@click.version_option(__version__, message="chipwise %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def app(debug: bool) -> None:
    """Pick the right accelerator for a workload: speed, memory, price and carbon in one answer, with the reasons.

    \b
    Examples:
      chipwise chips A100 H100 T4
      chipwise offers --chip h100 --sort price-per-chip
      chipwise explain p4de.24xlarge
      chipwise check examples/serve/workload.yaml
    """
    if debug:
        os.environ["CHIPWISE_DEBUG"] = "1"


def run() -> None:
    """Entry point of the `chipwise` command."""
    sys.exit(main())


def main(args: list[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    stdout = sys.stdout
    try:
        code = app.main(args, prog_name="chipwise", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except ChipwiseError as error:
        if os.environ.get("CHIPWISE_DEBUG"):
            raise
        return _tell(str(error), error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 0
    except click.ClickException as error:
        error.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        return _tell("interrupted", 130)
    except BrokenPipeError:
        # The reader (head, less) has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except SystemExit as stop:
        # click turns a broken pipe into exit 1 and wraps standard output; to us it is no failure.
        return 0 if sys.stdout is not stdout else _code(stop)
    except OSError as error:
        if os.environ.get("CHIPWISE_DEBUG"):
            raise
        return _tell(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}", 2)
    except Exception as error:
        if os.environ.get("CHIPWISE_DEBUG"):
            raise
        return _tell(
            f"our own mistake: {type(error).__name__}: {error}\n"
            "Run it again with `chipwise --debug ...` and report the traceback, please.",
            70,
        )


def _code(stop: SystemExit) -> int:
    return stop.code if isinstance(stop.code, int) else 0


def _tell(message: str, code: int) -> int:
    from chipwise.cli.text import printable

    print(printable(f"chipwise: {message}"), file=sys.stderr)
    return code
