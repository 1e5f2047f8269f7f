"""Which tests a change picks, in a small tree of its own and in ours."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import quick

FILES = {
    "src/chipwise/units.py": "",
    "src/chipwise/api.py": "import chipwise.units\n",
    "src/chipwise/targets/__init__.py": "",
    "src/chipwise/targets/one.py": "",
    "tests/support/made.py": "from chipwise import api\n",
    "tests/unit/test_alone.py": "",
    "tests/unit/test_units.py": "from chipwise import units\n",
    "tests/unit/test_api.py": "from made import api\n",
    "tests/docs/test_pages.py": "PAGE = 'docs/index.md'\n",
    "tests/test_arrows.py": 'SOURCE = "src"\n',
}
NEEDS = {
    "src/chipwise/api.py": frozenset({"src/chipwise/units.py"}),
    "tests/support/made.py": frozenset({"src/chipwise/api.py"}),
    "tests/unit/test_units.py": frozenset({"src/chipwise/units.py"}),
    "tests/unit/test_api.py": frozenset({"tests/support/made.py"}),
}
UNITS, API, ALONE = "tests/unit/test_units.py", "tests/unit/test_api.py", "tests/unit/test_alone.py"
PAGES, ARROWS = "tests/docs/test_pages.py", "tests/test_arrows.py"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("differs", "picked"),
    [
        ([], set()),
        (["src/chipwise/units.py"], {UNITS, API, ARROWS}),
        (["src/chipwise/api.py"], {API, ARROWS}),
        (["tests/support/made.py"], {API}),
        ([ALONE], {ALONE}),
        (["docs/index.md"], {PAGES}),
        (["tests/unit/test_deleted.py", "tests/e2e/test_slow.py"], set()),
        *(
            ([file], {UNITS, API, ALONE, PAGES, ARROWS})
            for file in ("pyproject.toml", "tests/conftest.py", "src/chipwise/data/chips.csv", "src/chipwise/deleted.py")
        ),
    ],
)
def test_a_change_picks_what_can_reach_it(tree: Path, differs: list[str], picked: set[str]) -> None:
    tests = quick.test_files(tree)
    needs = dict.fromkeys(FILES, frozenset[str]()) | NEEDS
    assert set(quick.pick(tree, differs, tests, needs).files) == picked


def test_what_differs_is_what_git_would_commit(tree: Path) -> None:
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tree))
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        subprocess.run([*git, *words], check=True)
    assert quick.changed(tree) == []
    (tree / ".gitignore").write_text("*.log\n")
    (tree / "a.log").write_text("")
    (tree / "src/chipwise/units.py").write_text("x = 1\n")
    (tree / "src/chipwise/api.py").rename(tree / "src/chipwise/new.py")
    assert quick.changed(tree) == [".gitignore", "src/chipwise/api.py", "src/chipwise/new.py", "src/chipwise/units.py"]


USES = [
    ("tests/contract/test_targets.py", "renderer/targets/kueue.py"),  # loaded by its name
    ("tests/contract/test_feeds.py", "adapters/feeds/gcp.py"),  # by its package
    ("tests/flow/test_cli.py", "cli/offers.py"),  # by the word typed
    ("tests/docs/test_commands.py", "planner/ranking.py"),
    ("tests/unit/money/test_spot.py", "errors.py"),
    ("tests/unit/planner/test_joint.py", "planner/pipeline/beside.py"),
]
LOADED = ["tests/unit/job/test_tree.py", "tests/unit/perf/test_memory.py"]


@cache
def ours() -> quick.Needs:
    return quick.needs(quick.ROOT, quick.graph(), [*(test for test, _ in USES), *LOADED])


@pytest.mark.parametrize(("test", "module"), USES)
def test_ours_reach_what_they_use(test: str, module: str) -> None:
    assert f"src/chipwise/{module}" in quick.reach(test, ours())


def test_a_formula_of_money_is_no_matter_of_checkpoints() -> None:
    assert "src/chipwise/money/spot.py" not in quick.reach("tests/unit/job/test_tree.py", ours())


@pytest.mark.parametrize("test", LOADED)
def test_nothing_is_imported_that_is_not_seen(test: str) -> None:
    """What the interpreter has loaded after the imports of a test file."""
    said = "import runpy, sys; runpy.run_path(sys.argv[1])"
    said += "; print(*(getattr(one, '__file__', '') for one in list(sys.modules.values())))"
    paths = {"PYTHONPATH": ":".join(str(quick.ROOT / folder) for folder in quick.OWN)}
    done = subprocess.run(
        [sys.executable, "-c", said, test], cwd=quick.ROOT, env=paths, capture_output=True, text=True, check=True
    )
    loaded = {word.removeprefix(f"{quick.ROOT}/") for word in done.stdout.split() if word.startswith(f"{quick.ROOT}/src/")}
    assert loaded
    assert loaded <= quick.reach(test, ours())
