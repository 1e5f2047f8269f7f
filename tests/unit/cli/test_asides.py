"""Asides fit the terminal that shows them, and stay one line each for a program."""

from __future__ import annotations

import io
import sys

import pytest

from chipwise.cli import text
from chipwise.cli.main import main


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


LONG = "chat-abc1234 waits: " + "4 GPUs are needed, and 2 of 8 are free; " * 4 + "done"


def _said(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, *lines: str) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    text.say(*lines)
    return stream.getvalue()


def test_a_long_aside_is_folded_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)  # a terminal that does not say has 80
    shown = _said(monkeypatch, Terminal(), LONG, "short")
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) > 2
    assert " ".join(lines) == f"{LONG} short"
    monkeypatch.setenv("COLUMNS", "50")
    assert max(map(len, _said(monkeypatch, Terminal(), LONG).splitlines())) <= 50


def test_a_program_reads_each_aside_on_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _said(monkeypatch, io.StringIO(), LONG, "short") == f"{LONG}\nshort\n"


def test_what_people_copy_is_not_broken_and_own_breaks_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    path = "/a/folder/" + "deep/" * 20
    assert _said(monkeypatch, Terminal(), f"\nsends the folder {path} along") == f"\nsends the folder\n{path}\nalong\n"


def test_an_error_is_folded_like_an_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    assert main(["load", "http://127.0.0.1:9", "--ratte", "3"]) == 2
    assert "No such option: --ratte. Did you mean --rate" in stream.getvalue().replace("\n", " ")
    assert max(map(len, stream.getvalue().splitlines())) <= 40
