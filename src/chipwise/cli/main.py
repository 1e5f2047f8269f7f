"""The command line: one file per command, imported when it is asked for, and errors as a sentence and an exit code.

0 fine, 1 no result, 2 bad input, 3 an outside service or tool failed, 70 our own bug.
"""

from __future__ import annotations

import atexit
import errno
import gc
import os
import sys
from contextlib import suppress
from importlib import import_module
from itertools import takewhile

import click

from chipwise import __version__
from chipwise.errors import ChipwiseError

# The file name is the name the user types. Short help is here so that `--help` imports nothing.
COMMANDS = {
    "init": "Write a commented workload file to start from.",
    "check": "Check a workload file and list all its problems.",
    "plan": "Choose hardware for a workload, with price and reasons.",
    "compare": "Compare providers, regions or chip generations.",
    "rate": "Rate hardware families for a workload, with stars.",
    "predict": "Predict time, memory and power of one configuration.",
    "fits": "Say whether a model fits a chip, and what would help.",
    "tco": "Compare the cost of buying machines and renting them.",
    "pack": "Put several small models onto shared GPUs.",
    "chips": "List chips, or compare some of them.",
    "machines": "List machines by chip, memory and provider.",
    "offers": "List prices, the cheapest first.",
    "regions": "List regions with country and carbon of the grid.",
    "models": "List known models, or show one in detail.",
    "explain": "Explain a name: a chip, machine, region or model.",
    "catalog": "Update, import and inspect prices and other data.",
    "render": "Write a plan as files for Kubernetes, Terraform, ...",
    "audit": "Check manifests and Terraform files for mistakes.",
    "run": "Run a command or a workload as a job.",
    "serve": "Serve a model on this machine, with a gateway.",
    "ps": "List jobs.",
    "logs": "Show the output of a job.",
    "describe": "Show a job in detail: why it waits, where it ran.",
    "stop": "Stop jobs, and let them save first.",
    "resume": "Continue jobs that were stopped.",
    "retry": "Restart failed jobs.",
    "attach": "Follow a job's output; Ctrl-C does not stop it.",
    "top": "Watch jobs and the devices that they use.",
    "watch": "Watch what accelerators, host and program do.",
    "forget": "Delete logs and folders of finished jobs.",
    "prepare": "Set up an AWS account for jobs on EC2.",
    "reap": "Delete what jobs left behind in clusters and clouds.",
    "members": "Manage who may see and stop jobs of a team.",
    "places": "Manage who may run jobs at a place of a team.",
    "policies": "List rules for spot, scaling and queues.",
    "simulate": "Compare policies on traces before using them.",
    "bench": "Measure the same work on several machines.",
    "characterize": "Run a program and describe it as a workload file.",
    "profile": "Measure this machine's GPU, or show a profile.",
    "calibrate": "Fit predictions to runs that you measured.",
    "score": "Compare predictions with runs that you measured.",
    "load": "Send requests to a service and measure its answers.",
    "accuracy": "Compare predictions with your finished jobs.",
    "doctor": "Say why a program is slow, and what to try.",
    "health": "Check whether devices are healthy or should be drained.",
}


HIDDEN = ("control",)  # what we start ourselves
# In the order in which people need them. A command that is not listed here would not be found, and a test checks that.
SECTIONS = {
    "Plan a workload": ("init", "check", "plan", "compare", "rate", "predict", "fits", "tco", "pack"),
    "Look things up": ("chips", "machines", "offers", "regions", "models", "explain", "catalog"),
    "Deploy": ("render", "audit"),
    "Run jobs": (
        "run",
        "serve",
        "ps",
        "logs",
        "describe",
        "stop",
        "resume",
        "retry",
        "attach",
        "top",
        "forget",
        "prepare",
        "reap",
        "members",
        "places",
    ),
    "Compare policies": ("policies", "simulate"),
    "Watch": ("watch", "doctor", "health"),
    "Measure": ("characterize", "bench", "load", "profile", "calibrate", "score", "accuracy"),
}


class Commands(click.Group):
    """Subcommands by file name in this package."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS and cmd_name not in HIDDEN:
            return None
        command = getattr(import_module(f"chipwise.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, COMMANDS))
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), COMMANDS[name]) for name in names])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in (*COMMANDS, *HIDDEN):
            from chipwise.errors import UnknownName
            from chipwise.spelling import nearest

            raise UnknownName("command", args[0], nearest(args[0], COMMANDS), remedy="chipwise --help lists them.")
        name, command, rest = super().resolve_command(ctx, args)
        return name, command, rest if command is None else _by_known_names(command, rest)


def _by_known_names(command: click.Command, words: list[str]) -> list[str]:
    """--provider where a command says --cloud, and the other way round; up to --, behind which a program's own words begin."""
    from chipwise.spelling import OTHER_NAMES

    known = {option for parameter in command.params for option in parameter.opts}
    renamed: list[str] = []
    for place, word in enumerate(words):
        if word == "--":
            return [*renamed, *words[place:]]
        option, equals, value = word.partition("=")
        other = f"--{OTHER_NAMES.get(option[2:], '')}"
        is_other = option.startswith("--") and option not in known and other in known
        renamed.append(f"{other}{equals}{value}" if is_other else word)
    return renamed


@click.group(
    name="chipwise",
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog='Shell completion: eval "$(_CHIPWISE_COMPLETE=bash_source chipwise)"; also zsh_source and fish_source.',
)
@click.version_option(__version__, message="chipwise %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def app(debug: bool) -> None:
    """Choose hardware for AI and other accelerated work: describe a workload, and chipwise picks machines, predicts speed,
    memory and cost, explains why, writes deployment files and runs the job.

    \b
    Start with one of these:
      chipwise plan llama-3.1-8b --serve --rps 5 --input 500 --output 200
      chipwise init serve              (writes workload.yaml)
      chipwise plan workload.yaml

    \b
    Other examples:
      chipwise chips A100 H100 T4
      chipwise offers --chip h100 --sort price-per-chip
      chipwise fits llama-3.1-70b --on l40s --precision fp8
      chipwise run -- python train.py

    Every command explains itself: chipwise COMMAND --help.
    """
    if debug:
        os.environ["CHIPWISE_DEBUG"] = "1"


def run() -> None:
    """Entry point of the `chipwise` command.

    A command lives for about a second: looking for cycles all the time and taking every object apart at the end would be a
    sixth of it, and a request that is still out after a failure is nobody's to wait for.
    """
    gc.set_threshold(200_000, 20, 20)
    _open_streams()
    code = main()
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):  # `main` has said what could not be written
        sys.stdout.flush()
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code)


def _open_streams() -> None:
    """Standard streams that are there and take any text: a caller may have closed them, or speak ASCII only."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - lives as long as the process
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def main(args: list[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    stdout = sys.stdout
    try:
        code = app.main(args, prog_name="chipwise", standalone_mode=False)
        sys.stdout.flush()
        _say_problems()
        return code if isinstance(code, int) else 0
    except ChipwiseError as error:
        if os.environ.get("CHIPWISE_DEBUG"):
            raise
        return _tell(str(error), error.exit_code)
    except click.NoSuchOption as error:
        return _tell(_no_such_option(error), 2)
    except click.BadOptionUsage as error:
        return _tell(_wrong_use(error, sys.argv[1:] if args is None else args), 2)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 0
    except click.ClickException as error:
        command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "chipwise"
        split = _split_list(error, sys.argv[1:] if args is None else args)
        return _tell(f"{error.format_message()}{split}\nTry: {command} --help", 2)
    except (click.Abort, KeyboardInterrupt):
        return _tell("interrupted", 130)
    except BrokenPipeError:
        # The reader (head, less) has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except SystemExit as stop:
        # click turns a broken pipe into exit 1 and wraps standard output; to us it is no failure.
        return 0 if sys.stdout is not stdout else stop.code if isinstance(stop.code, int) else 0
    except OSError as error:
        if os.environ.get("CHIPWISE_DEBUG"):
            raise
        return _os_error(error)
    except Exception as error:
        if os.environ.get("CHIPWISE_DEBUG"):
            raise
        return _tell(
            f"a bug in chipwise: {type(error).__name__}: {str(error)[:300]}\n"
            "Run it again with `chipwise --debug ...` and please report the traceback.",
            70,
        )


def _no_such_option(error: click.NoSuchOption) -> str:
    """With the options that answer to the word, or are spelled like it."""
    from chipwise.spelling import suggested_options

    command = error.ctx.command if error.ctx else app
    known = [option[2:] for parameter in command.params for option in parameter.opts if option.startswith("--")]
    near = [f"--{option}{f' {value}' if value else ''}" for option, value in suggested_options(error.option_name, known)]
    path = error.ctx.command_path if error.ctx else "chipwise"
    hint = f" Did you mean {' or '.join(near)}?" if near else _without_option(error.option_name, command, path)
    return f"No such option: {error.option_name}.{hint}\nTry: {path} --help"


def _without_option(name: str, command: click.Command, path: str) -> str:
    """What an option asks for that goes without one: the command's argument, or a field of a workload file."""
    from chipwise.api.templates import field_called
    from chipwise.spelling import fold

    arguments = [parameter for parameter in command.params if isinstance(parameter, click.Argument)]
    words = " ".join(argument.make_metavar(click.Context(command)) for argument in arguments)
    if len(fold(name)) > 2 and fold(name) in fold(words):
        return f" It goes without a flag: {path} {words}"
    if "workload" not in fold(words):
        return ""
    field = field_called(name.lstrip("-").replace("-", "_"))
    return f" A workload file has the field {field}; `chipwise init` writes one." if field else ""


def _split_list(error: click.ClickException, words: list[str]) -> str:
    """How a list is written whose names were separated by blanks: " Lists take commas, ..."; empty where none was."""
    if not isinstance(error, click.UsageError) or type(error) not in (click.UsageError, click.BadParameter) or not error.ctx:
        return ""
    only = error.param if isinstance(error, click.BadParameter) else None  # else a word too many, behind any list
    for option in error.ctx.command.params:
        if not isinstance(option, click.Option) or not (option.metavar or "").endswith(",...") or only not in (None, option):
            continue
        start = next((place + 1 for place, word in enumerate(words) if word in option.opts), len(words))
        names = list(takewhile(lambda word: not word.startswith("-") and "." not in word, words[start:]))
        if len(names) > 1:
            return f" Lists take commas, without blanks: {words[start - 1]} {','.join(name.strip(',') for name in names)}"
    return ""


def _wrong_use(error: click.BadOptionUsage, words: list[str]) -> str:
    """An option without its value, with what the value is. The error does not say which command it is of."""
    command: click.Command = app
    path = ["chipwise"]
    for word in words:
        if isinstance(command, click.Group) and (inner := command.get_command(click.Context(command), word)) is not None:
            command, path = inner, [*path, word]
    option = next((one for one in command.params if error.option_name in one.opts), None)
    if not isinstance(option, click.Option) or option.is_flag:
        return f"{error.format_message()}\nTry: {' '.join(path)} --help"
    metavar = option.make_metavar(click.Context(command))
    return f"{error.option_name} needs a value. {option.help or ''}\nTry: {' '.join(path)} ... {error.option_name} {metavar}"


def _say_problems() -> None:
    """What of the user's stored data could not be used, whichever command came upon it."""
    wiring = sys.modules.get("chipwise.api.session.wiring")
    if wiring is not None:
        from chipwise.cli.text import say

        for session in wiring.OPENED:
            say(*session.problems)


def _os_error(error: OSError) -> int:
    """A disk that is full is an outside failure; a path that cannot be used is bad input."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO)
    location = f": {str(error.filename)[:200]}" if error.filename else ""
    remedy = "Free some space, or write elsewhere." if full else "Check the path and its permissions."
    if full:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is buffered would fail again at the end
    return _tell(f"{error.strerror or error}{location}. {remedy}", 3 if full else 2)


def _tell(message: str, code: int) -> int:
    from chipwise.cli.text import say

    say(f"chipwise: {message}")
    return code
