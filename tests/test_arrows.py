"""The arrows of ARCHITECTURE hold, and a broken one is noticed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LINTER = str(Path(sys.executable).parent / "lint-imports")


def lint(directory: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(directory / "src")}
    return subprocess.run([LINTER, "--no-cache", "--no-logo"], cwd=directory, env=environment, capture_output=True, text=True)


def test_the_arrows_hold() -> None:
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("file", "line", "contract"),
    [
        ("catalog/query.py", "import chipwise.workload.model.registry", "Imports point upstream"),
        ("units.py", "import chipwise.catalog.load", "Imports point upstream"),
        ("catalog/load.py", "import urllib.request", "The core is pure"),
        ("workload/model/registry.py", "import rich", "The core is pure"),
        ("cli/offers.py", "import chipwise.adapters.clock", "Only the api layer"),
        ("report/words.py", "import chipwise.adapters.clock", "Imports point upstream"),
        ("adapters/feeds/aws.py", "import chipwise.adapters.feeds.gcp", "A feed does not know"),
        ("adapters/engines/ec2/engine.py", "import chipwise.adapters.engines.kubernetes.kinds", "An engine does not know"),
        ("catalog/fact.py", "import chipwise.catalog.load", "No cycles between siblings"),
    ],
)
def test_a_broken_arrow_is_reported(tmp_path: Path, file: str, line: str, contract: str) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.csv"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    path = tmp_path / "src" / "chipwise" / file
    path.write_text(
        path.read_text().replace("from __future__ import annotations\n", f"from __future__ import annotations\n\n{line}\n", 1)
    )
    result = lint(tmp_path)
    assert result.returncode != 0
    assert re.search(rf"{re.escape(contract)}.*BROKEN", result.stdout), result.stdout


def test_every_layer_of_the_contract_is_drawn_in_architecture() -> None:
    drawn = (ROOT / "ARCHITECTURE.md").read_text()
    for layer in (
        "cli",
        "api",
        "adapters",
        "report",
        "planner",
        "predictor",
        "workload",
        "catalog",
        "text",
        "units",
        "countries",
        "errors",
        "spelling",
    ):
        assert re.search(rf"^  .*\b{layer}\b", drawn, re.MULTILINE), layer
