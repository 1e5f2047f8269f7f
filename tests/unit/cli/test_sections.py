"""The help names every command once, in its section."""

from __future__ import annotations

from chipwise.cli.main import COMMANDS, SECTIONS


def test_every_command_stands_in_one_section() -> None:
    named = [name for names in SECTIONS.values() for name in names]
    assert sorted(named) == sorted(COMMANDS)
