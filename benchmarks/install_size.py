"""Size of a base install: a fresh virtual environment with the package and its pinned dependencies, wheels only."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from figure import ROOT, Figure


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.executable, "-m", "venv", scratch], check=True)
        pip = [f"{scratch}/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--constraint", str(ROOT / "constraints.txt"), str(ROOT)], check=True)
        size = sum(path.lstat().st_size for path in Path(scratch).rglob("*") if path.is_file() and not path.is_symlink())
    yield Figure("base_install_size", size / 1e6, "MB", {"max": 150.0})
