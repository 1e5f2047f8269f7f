"""A base install as a stranger has it: a fresh virtual environment, wheels only, no extras, far from the sources."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.e2e
COMMANDS = [
    "chips A100 H100 T4",
    "machines p5",
    "offers --chip h100",
    "regions --provider aws",
    "models llama-3.1-8b",
    "explain p4de.24xlarge",
    "check {root}/examples/serve/workload.yaml",
    "catalog status",
    "catalog show tokens bedrock",
    "predict llama-3.1-8b --train --on h100 --chips 8",
    "predict {root}/examples/serve/workload.yaml --on l40s",
    "fits llama-3.1-70b --on l40s",
    "plan {root}/examples/train/workload.yaml",
    "tco h100 --machines 2",
    "compare {root}/examples/finetune/workload.yaml",
    "rate {root}/examples/finetune/workload.yaml",
    "score {root}/src/chipwise/data/measurements/check.jsonl",
    "profile --show",
    "--help",
    "--version",
]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("base")
    pip = ["-m", "pip", "--disable-pip-version-check"]
    subprocess.run([sys.executable, *pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(home), str(ROOT)], check=True)
    wheel = next(home.glob("chipwise-*.whl"))
    subprocess.run([sys.executable, "-m", "venv", str(home / "venv")], check=True)
    python = str(home / "venv" / "bin" / "python")
    constraints = ["--constraint", str(ROOT / "constraints.txt"), "--only-binary", ":all:"]
    subprocess.run([python, *pip, "install", "--quiet", *constraints, str(wheel)], check=True)
    yield home
    shutil.rmtree(home)


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
    command = [str(home / "venv" / "bin" / "chipwise"), *arguments]
    return subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, timeout=300)


def test_it_stays_under_150_megabytes(installed: Path) -> None:
    size = sum(path.lstat().st_size for path in (installed / "venv").rglob("*") if path.is_file() and not path.is_symlink())
    assert size < 150e6


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_answers(installed: Path, command: str) -> None:
    done = run(installed, *command.format(root=ROOT).split())
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_measuring_without_pytorch_names_the_line_that_installs_it(installed: Path) -> None:
    done = run(installed, "profile", "--quick")
    assert done.returncode == 3
    assert "pip install 'chipwise[torch]'" in done.stderr


def test_a_report_needs_nothing_else_and_is_small(installed: Path) -> None:
    done = run(installed, "plan", f"{ROOT}/examples/train/workload.yaml", "--html", "report.html")
    assert done.returncode == 0, done.stderr
    assert (installed / "report.html").stat().st_size < 300_000


def test_the_whole_catalog_is_in_the_wheel(installed: Path) -> None:
    totals = json.loads(run(installed, "catalog", "status", "--json").stdout)["totals"]
    assert totals["offers"] == 14_707
    assert totals["models"] >= 60


@pytest.mark.parametrize("provider", ["aws", "azure", "gcp"])
def test_a_feed_without_its_extra_names_the_line_that_installs_it(installed: Path, provider: str) -> None:
    done = run(installed, "catalog", "refresh", provider, *(["-o", "api_key=x"] if provider == "gcp" else []))
    assert done.returncode == 3
    assert f"pip install 'chipwise[{provider}]'" in done.stderr


def test_make_demo_works_in_a_fresh_copy_of_the_repository(tmp_path: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout, to know which files belong to the repository")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        target = tmp_path / "clone" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    done = subprocess.run(
        ["make", "demo"], cwd=tmp_path / "clone", env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert "H100-SXM" in done.stdout


def test_extras_that_pin_the_same_library_can_be_installed_together() -> None:
    """Nothing is installed. Those of `dev` are together in the environment that runs this; those of gigabytes are left out."""
    extras = "aws,checkpoint,pandas"
    asked = ["install", "--dry-run", "--quiet", "--ignore-installed", "--constraint", str(ROOT / "constraints.txt")]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *asked, f"{ROOT}[{extras}]"], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-2000:]
