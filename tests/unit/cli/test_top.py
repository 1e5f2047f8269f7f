"""What is watched fits a terminal of 80 columns."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from chipwise.api.running.watching import Standing
from chipwise.cli.top import _table


def shown(standings: list[Standing]) -> list[str]:
    out = io.StringIO()
    Console(width=80, file=out).print(_table(standings))
    return out.getvalue().splitlines()


STANDING = Standing(
    id="a-name-of-thirty-letters-in-it-abcdefg",
    phase="starting",
    seconds=5400.0,
    gpus=(0, 1),
    cpu_percent=399.0,
    memory_bytes=123 * 2**20,
    step=123_456,
)


def test_numbers_are_whole_and_names_give_way() -> None:
    lines = shown([STANDING])
    assert max(map(len, lines)) <= 80
    assert "123,456" in lines[-1]
    assert "starting" in lines[-1]
    assert "step" in lines[1]


def test_what_nobody_has_takes_no_room() -> None:
    head = shown([STANDING])[1]
    assert "GPU use" not in head
    assert "GPU memory" not in head


def test_the_finding_of_a_job_stands_beside_it() -> None:
    found, well = replace(STANDING, finding="cpu-saturated"), replace(STANDING, finding="")
    lines = shown([found, well, STANDING])
    assert max(map(len, lines)) <= 80
    assert lines[2].split()[-1] == "cpu-saturated"
    assert lines[3].split()[-1] == "none"
    assert "finding" not in shown([STANDING])[1]
