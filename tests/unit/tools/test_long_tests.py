"""The list of tests that `make test` leaves to `make e2e`: each of its lines names a test that there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LINES = [line for line in (ROOT / "tests/long_tests.txt").read_text(encoding="utf-8").splitlines() if not line.startswith("#")]


@pytest.mark.parametrize("line", LINES)
def test_a_line_names_a_test_and_its_time(line: str) -> None:
    match = re.fullmatch(r"\d+\.\d (tests/\S+\.py)::(test_\w+)", line)
    assert match, "seconds, file::function"
    file, function = match.groups()
    assert f"def {function}(" in (ROOT / file).read_text(encoding="utf-8")


def test_no_test_is_listed_twice() -> None:
    names = [line.split()[-1] for line in LINES]
    assert len(names) == len(set(names))


def test_what_is_listed_runs_in_the_slow_proofs_and_only_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert '-m "not e2e and not long"' in makefile
    assert '-m "(chance or long) and not e2e"' in makefile
