"""A copy of the package in a folder of the test, to which somebody adds a file or a folder and edits nothing else.

Commands and test suites run on the copy as they run on the package: by the same interpreter, with the copy in front.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = shutil.ignore_patterns("data")  # bytecode goes along: compiling the package takes a second in every copy


@dataclass(frozen=True)
class PackageCopy:
    root: Path

    @classmethod
    def into(cls, root: Path) -> PackageCopy:
        """With the tests that hold for every plug-in. What is only read is not copied."""
        package = root / "src" / "chipwise"
        shutil.copytree(ROOT / "src" / "chipwise", package, ignore=LEFT_OUT)
        (package / "data").symlink_to(ROOT / "src" / "chipwise" / "data")
        shutil.copy(ROOT / "pyproject.toml", root)
        for name in ("docs", "tools"):
            (root / name).symlink_to(ROOT / name)
        shutil.copytree(ROOT / "tests" / "contract", root / "tests" / "contract", ignore=LEFT_OUT)
        shutil.copytree(ROOT / "tests" / "support", root / "tests" / "support", ignore=LEFT_OUT)
        for name in ("conftest.py", "allowed_skips.txt"):
            shutil.copy(ROOT / "tests" / name, root / "tests")
        (root / "tests" / "e2e").symlink_to(ROOT / "tests" / "e2e")
        (root / "home" / "config").mkdir(parents=True)
        return cls(root)

    @property
    def adapters(self) -> Path:
        return self.root / "src" / "chipwise" / "adapters"

    def engine(self, source: str, name: str) -> Path:
        return Path(shutil.copytree(self.adapters / "engines" / source, self.adapters / "engines" / name, ignore=LEFT_OUT))

    def harness(self, source: str, name: str) -> None:
        folder = self.root / "tests" / "support" / "engines"
        shutil.copy(folder / f"{source}.py", folder / f"{name}.py")

    def feed(self, source: str, name: str) -> None:
        shutil.copy(self.adapters / "feeds" / f"{source}.py", self.adapters / "feeds" / f"{name}.py")

    def chipwise(self, *arguments: str, ahead: Path | None = None) -> subprocess.CompletedProcess[str]:
        """`ahead`: a folder of other modules, as if they were installed."""
        return self._run("-m", "chipwise", *arguments, ahead=ahead)

    def suite(self, file: str, *options: str) -> subprocess.CompletedProcess[str]:
        return self._run("-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/contract/{file}", *options)

    def _run(self, *words: str, ahead: Path | None = None) -> subprocess.CompletedProcess[str]:
        home = self.root / "home"
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("CHIPWISE_", "PYTEST_"))},
            "PYTHONPATH": os.pathsep.join(str(one) for one in (ahead, self.root / "src") if one is not None),
            "CHIPWISE_CONFIG_DIR": str(home / "config"),
            "CHIPWISE_DATA_DIR": str(home / "data"),
            "COLUMNS": "200",
        }
        command = [sys.executable, *words]
        return subprocess.run(command, cwd=self.root, env=environment, capture_output=True, text=True, timeout=300, check=False)
