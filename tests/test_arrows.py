"""The arrows of ARCHITECTURE hold, and a broken one is noticed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import grimp
import pytest

ROOT = Path(__file__).resolve().parent.parent
LINTER = str(Path(sys.executable).parent / "lint-imports")


def lint(directory: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "200", "PYTHONPATH": str(directory / "src")}
    return subprocess.run([LINTER, "--no-cache", "--no-logo"], cwd=directory, env=environment, capture_output=True, text=True)


def test_the_arrows_hold() -> None:
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout


# file, a line that has no place there, the contract that says so, and the arrow as the linter writes it
WRONG = [
    (
        "catalog/query.py",
        "import chipwise.workload.model.registry",
        "Imports point upstream",
        "chipwise.catalog.query -> chipwise.",
    ),
    ("units.py", "import chipwise.catalog.load", "Imports point upstream", "chipwise.units -> chipwise.catalog.load"),
    (
        "report/words.py",
        "import chipwise.adapters.clock",
        "Imports point upstream",
        "chipwise.report.words -> chipwise.adapters",
    ),
    ("catalog/load.py", "import urllib.request", "The core is pure", "chipwise.catalog.load -> urllib"),
    ("workload/model/registry.py", "import rich", "The core is pure", "chipwise.workload.model.registry -> rich"),
    ("cli/offers.py", "import chipwise.adapters.clock", "Only the api layer", "chipwise.cli.offers -> chipwise.adapters.clock"),
    (
        "cli/plan.py",
        "import chipwise.planner.explain.words",
        "Commands ask the api",
        "chipwise.cli.plan -> chipwise.planner.explain.words",
    ),
    (
        "cli/machines.py",
        "from chipwise.catalog.query import find_machines",
        "Commands ask the api",
        "chipwise.cli.machines -> chipwise.catalog.query",
    ),
    (
        "adapters/feeds/aws.py",
        "import chipwise.adapters.feeds.gcp",
        "A feed does not know",
        "feeds.aws -> chipwise.adapters.feeds.gcp",
    ),
    (
        "adapters/engines/ec2/engine.py",
        "import chipwise.adapters.engines.kubernetes.kinds",
        "An engine does not know",
        "engines.ec2.engine -> chipwise.adapters.engines.kubernetes.kinds",
    ),
    ("planner/ranking.py", "import chipwise.api.verbs", "Imports point upstream", "chipwise.planner.ranking -> chipwise.api"),
    ("views/plan.py", "import chipwise.adapters.clock", "Imports point upstream", "chipwise.views.plan -> chipwise.adapters"),
    ("views/plan.py", "import time", "The core is pure", "chipwise.views.plan -> time"),
    ("files/source.py", "import chipwise.catalog.load", "Imports point upstream", "chipwise.files.source -> chipwise.catalog"),
    ("files/source.py", "import socket", "The core is pure", "chipwise.files.source -> socket"),
    ("predictor/pairs.py", "import subprocess", "The core is pure", "chipwise.predictor.pairs -> subprocess"),
    ("serving/limits.py", "import time", "The core is pure", "chipwise.serving.limits -> time"),
    ("serving/limits.py", "import chipwise.scale.policies", "Imports point upstream", "serving.limits -> chipwise.scale"),
    ("catalog/fact.py", "import chipwise.catalog.load", "No cycles between siblings", ".fact -> .load"),
    ("planner/pricing.py", "import random", "The core is pure", "chipwise.planner.pricing -> random"),
    ("perf/bands.py", "import time", "The core is pure", "chipwise.perf.bands -> time"),
    (
        "scale/questions/spot.py",
        "import chipwise.adapters.clock",
        "Imports point upstream",
        "questions.spot -> chipwise.adapters",
    ),
    (
        "adapters/serving_engines/vllm.py",
        "import chipwise.adapters.serving_engines.tgi",
        "A serving engine does not know",
        "serving_engines.vllm -> chipwise.adapters.serving_engines.tgi",
    ),
    (
        "renderer/targets/keda.py",
        "import chipwise.renderer.targets.ec2",
        "A target does not know",
        "targets.keda -> chipwise.renderer.targets.ec2",
    ),
    (
        "auditor/rules/quota.py",
        "import chipwise.auditor.rules.small_disk",
        "A rule does not know",
        "rules.quota -> chipwise.auditor.rules.small_disk",
    ),
    (
        "observe/rules/idle.py",
        "import chipwise.observe.rules.swap",
        "A cause of slowness",
        "rules.idle -> chipwise.observe.rules.swap",
    ),
    (
        "adapters/probes/amd.py",
        "import chipwise.adapters.probes.neuron",
        "A probe does not know",
        "probes.amd -> chipwise.adapters.probes.neuron",
    ),
]


def contracts() -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return read


def test_every_contract_is_broken_here_on_purpose() -> None:
    assert [one["name"] for one in contracts() if not any(one["name"].startswith(wrong) for _, _, wrong, _ in WRONG)] == []


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the linter says of a copy in which all of them are wrong at once."""
    folder = tmp_path_factory.mktemp("wrong")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__", "*.csv"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    first = "from __future__ import annotations\n"
    for file, line, _, _ in WRONG:
        path = folder / "src" / "chipwise" / file
        text = path.read_text()
        assert first in text
        path.write_text(text.replace(first, f"{first}\n{line}\n", 1))
    result = lint(folder)
    assert result.returncode != 0
    return result.stdout


@pytest.mark.parametrize(("file", "line", "contract", "arrow"), WRONG)
def test_a_broken_arrow_is_reported(broken: str, file: str, line: str, contract: str, arrow: str) -> None:
    summary, _, details = broken.partition("Broken contracts\n")
    assert re.search(rf"{re.escape(contract)}.*BROKEN", summary), broken
    sections = re.split(r"^(?=.*\n-{10,}$)", details, flags=re.MULTILINE)
    assert any(section.startswith(contract) and arrow in section for section in sections), details


def test_every_layer_of_the_contract_is_drawn_in_architecture() -> None:
    drawn = (ROOT / "ARCHITECTURE.md").read_text()
    for name in packages_below("__main__"):
        layer = name.removeprefix("chipwise.")
        assert re.search(rf"^  .*\b{layer}\b", drawn, re.MULTILINE), layer


def test_every_file_that_architecture_names_is_there() -> None:
    """Paths below the package, its data or the repository; a bare name stands for a file beside one that was named."""
    package = ROOT / "src" / "chipwise"
    names = {name for row in (ROOT / "ARCHITECTURE.md").read_text().splitlines() for name in re.findall(r"`([\w./*-]+)`", row)}
    paths = {name for name in names if "/" in name or name.endswith((".py", ".csv", ".sh"))}
    assert len(paths) > 100

    def is_there(name: str) -> bool:
        return any(
            next(place.glob(pattern), None) for place in (package, package / "data", ROOT) for pattern in (name, f"{name}.py")
        ) or ("/" not in name and next(package.rglob(name), None) is not None)

    assert sorted(name for name in paths if not is_there(name.rstrip("/"))) == []


def packages_below(layer: str) -> set[str]:
    [layers] = [contract["layers"] for contract in contracts() if contract["type"] == "layers"]
    return {f"chipwise.{name}" for below in layers[layers.index(layer) + 1 :] for name in below.split(" | ")}


def test_all_below_the_adapters_is_pure_but_what_lives_in_programs_of_others() -> None:
    [pure] = [contract["source_modules"] for contract in contracts() if contract["name"].startswith("The core is pure")]
    assert set(pure) == packages_below("adapters | views") - {"chipwise.job"} | {"chipwise.views"}


def test_commands_are_kept_from_every_layer_below_the_api() -> None:
    """A package that is added later is no open door."""
    [forbidden] = [contract["forbidden_modules"] for contract in contracts() if contract["name"].startswith("Commands ask")]
    below = packages_below("api")
    ground = {f"chipwise.{name}" for name in ("text", "units", "errors", "spelling", "plugins")}
    open_doors = {"chipwise.adapters", "chipwise.views"}  # of adapters another contract speaks; views are made for commands
    assert set(forbidden) == below - ground - open_doors


def test_the_api_stays_small_and_shallow() -> None:
    """Wiring and verbs: few entries at its top, and at most six modules in a chain of imports; types alone do not count. What
    computes or reads belongs below: 6,000 lines were its measure before there were services."""
    folder = ROOT / "src" / "chipwise" / "api"
    assert sum(len(path.read_text().splitlines()) for path in folder.rglob("*.py")) <= 7_000
    assert len([path for path in folder.iterdir() if path.name != "__pycache__"]) <= 15
    graph = grimp.build_graph("chipwise", exclude_type_checking_imports=True, cache_dir=None)
    modules = {"chipwise.api", *graph.find_descendants("chipwise.api")} - {"chipwise.api"}

    @cache
    def floor(module: str) -> int:
        below = graph.find_modules_directly_imported_by(module) & modules
        return 1 + max(map(floor, below), default=0)

    assert {module: floor(module) for module in modules if floor(module) > 6} == {}
