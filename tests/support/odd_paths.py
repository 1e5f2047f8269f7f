"""Every place of the command line where a path can be typed, and what a path can name that is no ordinary file.

PATH stands for it. A command that writes is asked to write there, one that reads is asked to read it.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from importlib import import_module
from pathlib import Path

import click

from chipwise.cli.main import COMMANDS
from command import ROOT

PATH = "PATH"
TRAIN, SERVE = str(ROOT / "examples/train/workload.yaml"), str(ROOT / "examples/serve/workload.yaml")
LOAD = ("--synthetic", "hours=1,rate=1")
# The command and the parameter, then the words; with them the ending that the name has.
READING: Mapping[tuple[str, str], tuple[tuple[str, ...], str]] = {
    ("check", "paths"): (("check", PATH), ".yaml"),
    ("plan", "workload"): (("plan", PATH), ".yaml"),
    ("compare", "workload"): (("compare", PATH), ".yaml"),
    ("rate", "workloads"): (("rate", PATH), ".yaml"),
    ("predict", "model"): (("predict", PATH, "--on", "h100", "--serve"), ".json"),
    ("fits", "model"): (("fits", PATH, "--on", "h100"), ".json"),
    ("models", "name"): (("models", PATH), ".onnx"),
    ("pack", "workloads"): (("pack", PATH), ".yaml"),
    ("render", "workload"): (("render", PATH, "--to", "kubernetes"), ".yaml"),
    ("run", "words"): (("run", PATH), ".yaml"),
    ("run", "policy"): (("run", "--policy", PATH, "--", "true"), ".py"),
    ("run", "folder"): (("run", "--folder", PATH + "/below", "--", "true"), ""),
    ("run", "checkpoints"): (("run", "--checkpoints", "file://" + PATH, "--", "true"), ""),
    ("serve", "words"): (("serve", PATH), ".yaml"),
    ("serve", "weights"): (("serve", "tiny", "--engine", "llama.cpp", "--weights", PATH), ".gguf"),
    ("serve", "key_file"): (("serve", "--key-file", PATH, "--", "true"), ""),
    ("serve", "certificate"): (("serve", "--certificate", PATH, "--private-key", TRAIN, "--", "true"), ".pem"),
    ("serve", "private_key"): (("serve", "--certificate", TRAIN, "--private-key", PATH, "--", "true"), ".pem"),
    ("serve", "folder"): (("serve", "--folder", PATH + "/below", "--", "true"), ""),
    ("serve key", "key_file"): (("serve", "key", "mia", "--key-file", PATH), ""),
    ("bench", "workload"): (("bench", PATH, "--on", "local"), ".yaml"),
    ("audit", "path"): (("audit", PATH), ".tf"),
    ("calibrate", "path"): (("calibrate", PATH), ".csv"),
    ("score", "path"): (("score", PATH), ".csv"),
    ("catalog import", "path"): (("catalog", "import", PATH), ".csv"),
    ("profile", "show"): (("profile", "--show", PATH), ".json"),
    ("load", "target"): (("load", PATH), ".yaml"),
    ("load", "trace"): (("load", "http://127.0.0.1:1", "--trace", PATH), ".csv"),
    ("doctor", "target"): (("doctor", PATH), ".jsonl"),
    ("health", "source"): (("health", "--from", PATH), ""),
    ("watch", "replay"): (("watch", "--replay", PATH), ""),
    ("simulate spot", "trace"): (("simulate", "spot", "--trace", PATH), ".json"),
    ("simulate spot", "policies"): (("simulate", "spot", "--synthetic", "series=2", "--policy", PATH), ".py"),
    ("simulate queue", "trace"): (("simulate", "queue", "--trace", PATH), ".csv"),
    ("simulate queue", "policies"): (("simulate", "queue", "--synthetic", "jobs=20", "--policy", PATH), ".py"),
    ("simulate serve", "trace"): (("simulate", "serve", "--trace", PATH), ".csv"),
    ("simulate serve", "policies"): (("simulate", "serve", *LOAD, "--policy", PATH), ".py"),
    ("characterize", "stdin"): (("characterize", "--stdin", PATH, "--for", "1s", "--", "true"), ""),
}
WRITING: Mapping[tuple[str, str], tuple[tuple[str, ...], str]] = {
    ("init", "out"): (("init", "train", "--out", PATH), ".yaml"),
    ("plan", "html"): (("plan", SERVE, "--html", PATH), ".html"),
    ("compare", "html"): (("compare", SERVE, "--html", PATH), ".html"),
    ("tco", "html"): (("tco", "h100", "--html", PATH), ".html"),
    ("simulate serve", "html"): (("simulate", "serve", *LOAD, "--html", PATH), ".html"),
    ("simulate spot", "html"): (("simulate", "spot", "--synthetic", "series=2", "--html", PATH), ".html"),
    ("simulate queue", "html"): (("simulate", "queue", "--synthetic", "jobs=20", "--html", PATH), ".html"),
    ("load", "html"): (("load", "http://127.0.0.1:1", "--rate", "1", "--for", "1s", "--html", PATH), ".html"),
    ("plan", "out"): (("plan", SERVE, "--render", "kubernetes", "--out", PATH + "/below"), ""),
    ("render", "out"): (("render", SERVE, "--to", "kubernetes", "--out", PATH + "/below"), ""),
    ("score", "out"): (("score", "measured.csv", "--out", PATH), ".csv"),
    ("bench", "out"): (("bench", TRAIN, "--on", "local", "--out", PATH), ".csv"),
    ("characterize", "out"): (("characterize", "--out", PATH, "--for", "1s", "--", "true"), ".yaml"),
    ("profile", "out"): (("profile", "--out", PATH), ".json"),
    ("profile", "picture"): (("profile", "--picture", PATH), ".svg"),
    ("watch", "record"): (("watch", "--record", PATH, "--for", "1s"), ""),
}
KINDS = ("a named pipe", "a device", "a socket", "a folder")
# Folders are what these take, or a folder is only a name to these; and names of jobs and services are never opened.
FOLDERS_TOO = {("run", "folder"), ("run", "checkpoints"), ("serve", "folder"), ("plan", "out"), ("render", "out")}


def path_parameters() -> Iterator[tuple[str, str]]:
    """Command and parameter, as the command line itself says: those of the type path, or shown as a file or a folder."""
    for name in COMMANDS:
        yield from _of(name, getattr(import_module(f"chipwise.cli.{name}"), name))


def _of(name: str, command: click.Command) -> Iterator[tuple[str, str]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for word in command.list_commands(context):
            if (below := command.get_command(context, word)) is not None:
                yield from _of(f"{name} {word}", below)
    for parameter in command.params:
        shown = parameter.metavar or ""
        if isinstance(parameter.type, click.Path) or any(word in shown for word in ("FILE", "DIR", ".yaml", ".csv")):
            yield name, parameter.name or ""


def make(kind: str, folder: Path, ending: str, stack: ExitStack) -> Path:
    path = folder / f"odd{ending}"
    if kind == "a named pipe":
        os.mkfifo(path)
    elif kind == "a device":
        path.symlink_to("/dev/zero")
    elif kind == "a socket":
        stack.enter_context(closing(server := socket.socket(socket.AF_UNIX)))
        with _inside(folder):  # the name of a socket is short
            server.bind(path.name)
    else:
        path.mkdir()
    return path


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


class WaitsTooLong(BaseException):
    """No error of ours or of the system, so that nobody takes it for one that a file had."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raises WaitsTooLong in what waits longer, also inside of `open`."""

    def too_long(*_: object) -> None:
        raise WaitsTooLong(f"no answer within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
