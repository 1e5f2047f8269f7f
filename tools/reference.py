"""Writes docs/reference/commands.md from the commands' own help. A test fails when it is stale: run `make docs`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from chipwise.cli.main import app

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "commands.md"


def pages(command: click.Command, path: str, parent: click.Context | None = None) -> Iterator[tuple[str, str]]:
    """(full name, help text) of a command and all below it."""
    context = click.Context(
        command,
        info_name=path.split()[-1],
        parent=parent,
        max_content_width=80,
        terminal_width=80,
        help_option_names=["-h", "--help"],
    )
    yield path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from pages(inner, f"{path} {name}", context)


def text() -> str:
    parts = ["# Commands\n\nWritten from the code by `make docs`.\n"]
    parts += [f"\n## {name}\n\n```text\n{help_text}\n```\n" for name, help_text in pages(app, "chipwise")]
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(text())
    sys.exit(0)
