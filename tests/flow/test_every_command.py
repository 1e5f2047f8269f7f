"""No command crashes on a file that is here: each command, file, engine and purchase option once; all of them with each other
in `tests/e2e/test_every_command.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from command import Chipwise
from every_command import COMMANDS, ENGINES, PURCHASES, Cell, diagonal, fault, workload_files

CELLS = tuple(diagonal())


def test_the_diagonal_has_everything_once() -> None:
    assert {cell.command for cell in CELLS} == set(COMMANDS)
    assert [cell.file for cell in CELLS] == list(workload_files())
    assert {cell.engine for cell in CELLS} == set(ENGINES)
    assert {cell.purchase for cell in CELLS} == set(PURCHASES)


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_a_command_answers_with_a_documented_exit_code(cell: Cell, chipwise: Chipwise, tmp_path: Path) -> None:
    assert not fault(cell, cell.run(chipwise, tmp_path))
