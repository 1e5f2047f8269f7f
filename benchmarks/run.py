"""Runs every benchmark in this directory (or those named) and prints one JSON line per figure.

    python benchmarks/run.py [NAME ...] [--long]

Those of faults/ kill real processes at random moments: a few seconds each, or with --long the hundreds of kills that each runs
by itself. Exit code 1 when a goal is missed; figures are never checked in a timed test, because machines are noisy.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main(wanted: list[str]) -> int:
    sys.path.insert(0, str(HERE))
    long = "--long" in wanted
    wanted = [name for name in wanted if name != "--long"]
    names = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in ("run", "figure"))
    names += sorted(
        f"faults/{path.stem}" for path in (HERE / "faults").glob("*") if path.suffix == ".py" or (path / "__init__.py").exists()
    )
    if unknown := sorted(set(wanted) - set(names)):
        print(f"There is no benchmark {', '.join(unknown)}. There are: {', '.join(names)}.", file=sys.stderr)
        return 2
    missed = 0
    for name in wanted or names:
        measured = import_module(name.replace("/", ".")).figures
        for figure in measured(long) if name.startswith("faults/") else measured():
            print(figure.line(), flush=True)
            missed += not figure.reached
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
