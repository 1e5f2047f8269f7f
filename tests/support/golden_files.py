"""The golden files of the targets, by target and case: `tests/golden/test_render.py` keeps them true."""

from __future__ import annotations

from pathlib import Path

from chipwise.auditor.auditing import kind_of

FOLDER = Path(__file__).parents[1] / "golden" / "render"
REFUSED = "refused.txt"  # beside the cases of a target: what it refuses, and with which sentence


def written(target: str) -> dict[str, str]:
    """Text by path, which begins with the case."""
    folder = FOLDER / target
    paths = sorted(path for path in folder.glob("*/**/*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def refused(target: str) -> dict[str, str]:
    """The sentence by case."""
    path = FOLDER / target / REFUSED
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return dict(line.split(": ", 1) for line in lines)


def cases_of(target: str) -> list[str]:
    """Those that it writes files for."""
    cases = sorted(path.name for path in (FOLDER / target).glob("*") if path.is_dir())
    assert cases, f"{target} has no golden files: run pytest tests/golden --update-golden and read them"
    return cases


def is_audited(target: str) -> bool:
    """Whether it writes a file of a kind that our audit reads."""
    return any(kind_of(path.name) for path in (FOLDER / target).glob("*/**/*") if path.is_file())
