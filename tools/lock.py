"""Pins every version, of the package's dependencies and of the tools, anew in constraints.txt.

Resolves in a fresh virtual environment, so that nothing installed by hand gets in.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = "# Versions that were tested together; `make demo` and `make test` install these. Made by `make lock`.\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.executable, "-m", "venv", scratch], check=True)
        python = f"{scratch}/bin/python"
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--editable", f"{ROOT}[dev]", "hatchling", "editables"], check=True
        )
        frozen = subprocess.run(
            [python, "-m", "pip", "freeze", "--exclude-editable"], check=True, capture_output=True, text=True
        )
    (ROOT / "constraints.txt").write_text(HEADER + frozen.stdout)


if __name__ == "__main__":
    main()
