"""The help names every command once, in its section."""

from __future__ import annotations

from importlib import import_module

import click
import pytest

from chipwise.cli.main import COMMANDS, SECTIONS, app


def test_every_command_stands_in_one_section() -> None:
    named = [name for names in SECTIONS.values() for name in names]
    assert sorted(named) == sorted(COMMANDS)


GROUPS = [name for name in COMMANDS if isinstance(getattr(import_module(f"chipwise.cli.{name}"), name), click.Group)]


@pytest.mark.parametrize("name", GROUPS)
def test_the_summary_of_a_command_in_a_group_is_whole(name: str) -> None:
    group = getattr(import_module(f"chipwise.cli.{name}"), name)
    shown = group.get_help(
        click.Context(group, info_name=name, parent=click.Context(app, info_name="chipwise"), terminal_width=80)
    )
    assert [line for line in shown.partition("Commands:")[2].splitlines() if line.endswith("...")] == []
