"""Pins every version, of the package's dependencies and of the tools, anew in constraints.txt.

Resolves in a fresh virtual environment, so that nothing installed by hand gets in, and all extras at once, so that they can be
installed together; those of gigabytes are left out.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

EXTRAS = "dev,checkpoint,pandas,fast,llama"
ROOT = Path(__file__).resolve().parent.parent
HEADER = "# Versions that were tested together; `make demo` and `make test` install these. Made by `make lock`.\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.executable, "-m", "venv", scratch], check=True)
        python = f"{scratch}/bin/python"
        # Older versions of pip give up on a library that takes a few versions of another only, as aiobotocore does of botocore.
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--upgrade", "pip"], check=True)
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--editable", f"{ROOT}[{EXTRAS}]", "hatchling", "editables"], check=True
        )
        frozen = subprocess.run(
            [python, "-m", "pip", "freeze", "--exclude-editable"], check=True, capture_output=True, text=True
        )
    (ROOT / "constraints.txt").write_text(HEADER + frozen.stdout)


if __name__ == "__main__":
    main()
