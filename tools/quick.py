"""Runs the unit tests that what was changed since the last commit can reach; `make quick`.

A test reaches what it imports, and what that imports, over the tests' own support and the package. Modules that are loaded by
name are found by the texts that name them ("chipwise.renderer.targets."). Pages are reached by tests that speak of pages. What
else a test reads cannot be seen, so a change of data, settings or a conftest runs everything.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parent.parent
OWN = ("tests/support", "tools")  # where tests find modules beside the package; as `pythonpath` in pyproject.toml
PACKAGE = "chipwise"
PAGE = re.compile(r"\.md\b|\bdocs/")
WHOLE = re.compile(r"\"src\"|\bsrc/")  # tests that look at the package as files
SAYS = re.compile(r"[\"']chipwise\b")  # modules of the package that do not are seen by their imports alone
Needs = Mapping[str, frozenset[str]]  # files, as paths from the root, and the files that each takes in


@dataclass(frozen=True, slots=True)
class Picked:
    files: tuple[str, ...]
    why: str


def changed(root: Path) -> list[str]:
    """Paths that differ from the last commit, deleted ones too, and new ones that are not ignored."""
    asked = (["diff", "--name-only", "--no-renames", "HEAD"], ["ls-files", "--others", "--exclude-standard"])
    found = [subprocess.run(["git", *one], cwd=root, check=True, capture_output=True, text=True).stdout for one in asked]
    return sorted(set("".join(found).splitlines()))


def test_files(root: Path) -> list[str]:
    found = (str(path.relative_to(root)) for path in root.glob("tests/**/test_*.py"))
    return sorted(path for path in found if not path.startswith(("tests/e2e/", "tests/golden/render/")))


def graph() -> grimp.ImportGraph:
    """What the package imports when it runs, read afresh: a file may change twice within what its time can tell apart."""
    return grimp.build_graph(PACKAGE, exclude_type_checking_imports=True, cache_dir=None)


def needs(root: Path, graph: grimp.ImportGraph, tests: Iterable[str]) -> Needs:
    homes = {name: str(path.relative_to(root)) for name, path in _modules(root, graph)}
    files = {path: name for name, path in homes.items()} | dict.fromkeys(tests, "")
    imported, in_texts = {}, {}
    for file, name in files.items():
        text = (root / file).read_text(encoding="utf-8")
        seen = name in graph.modules and not SAYS.search(text)
        imported[file], in_texts[file] = _named(ast.parse("" if seen else text), homes)
        if name in graph.modules:
            imported[file] = graph.find_modules_directly_imported_by(name)
        if "import_module(" in text:  # of a package that it has: `import_module(f"{feeds.__name__}.{name}")`
            in_texts[file] |= {one for one in homes if one.rpartition(".")[0] in imported[file]}
        if "plugins.load(" in text:  # of a package that it names
            in_texts[file] |= {one for one in homes if one.rpartition(".")[0] in in_texts[file]}
    # A package may load its modules when it is asked for their names; who only passes through it asks for none.
    packages = {name: file for name, file in homes.items() if file.endswith("/__init__.py")}
    found = {}
    for file, direct in imported.items():
        named = direct | (set() if file in packages.values() else in_texts[file])
        named |= {one for package in direct & packages.keys() for one in in_texts[packages[package]]}
        with_packages = {".".join(one.split(".")[: at + 1]) for one in named for at in range(one.count(".") + 1)}
        found[file] = frozenset(homes[one] for one in with_packages if one in homes)
    return found


def _modules(root: Path, graph: grimp.ImportGraph) -> Iterator[tuple[str, Path]]:
    for name in graph.modules:
        path = root / "src" / name.replace(".", "/")
        yield name, path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    for folder in OWN:
        for path in (root / folder).rglob("*.py"):
            parts = path.relative_to(root / folder).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def _named(tree: ast.AST, known: Iterable[str]) -> tuple[set[str], set[str]]:
    """Modules that are imported, and those that are named in texts: by themselves, or by what all of them begin with. The
    command is named where it is started."""
    imported, in_texts = set(), set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                imported |= {one.name for one in names}
            case ast.ImportFrom(module=str(module), names=names):
                imported |= {inside if (inside := f"{module}.{one.name}") in known else module for one in names}
            case ast.Constant(value=str(text)) if text.startswith(f"{PACKAGE}."):
                begun = text.endswith(".") and text != f"{PACKAGE}."  # what labels begin with
                in_texts |= {one for one in known if one == text or (begun and one.startswith(text))}
            case ast.List(elts) | ast.Tuple(elts) if {"-m", PACKAGE} <= {getattr(one, "value", None) for one in elts}:
                in_texts.add(f"{PACKAGE}.__main__")
            case ast.BinOp(op=ast.Div(), left=ast.Attribute(attr="parent"), right=ast.Constant(value="chipwise")):
                in_texts.add(f"{PACKAGE}.__main__")  # beside the interpreter
            case _:
                pass
    return imported, in_texts


def reach(file: str, taken_in: Needs) -> set[str]:
    """The file, and all that it takes in."""
    found, left = {file}, [file]
    while left:
        fresh = taken_in.get(left.pop(), frozenset()) - found
        found |= fresh
        left += fresh
    return found


def pick(root: Path, differs: Iterable[str], tests: Iterable[str], taken_in: Needs) -> Picked:
    every, differs = tuple(tests), set(differs)
    gone = {file for file in differs if not (root / file).exists() and Path(file).name.startswith("test_")}
    pages = {file for file in differs if file.endswith(".md")}
    slow = {file for file in differs if file.startswith("tests/e2e/") and not file.endswith("conftest.py")}
    if beyond := sorted(differs - gone - pages - slow - taken_in.keys()):
        return Picked(
            every, f"{beyond[0]} changed{f', and {len(beyond) - 1} more like it' if beyond[1:] else ''}: all may read it"
        )
    source = any(file.startswith("src/") for file in differs)
    chosen = []
    for test in every:
        reached = reach(test, taken_in)
        text = "".join((root / file).read_text(encoding="utf-8") for file in reached if file.startswith("tests/"))
        if reached & differs or (pages and PAGE.search(text)) or (source and WHOLE.search(text)):
            chosen.append(test)
    return Picked(tuple(chosen), f"reached from {len(differs)} changed files" if differs else "nothing changed")


def main(options: list[str]) -> int:
    tests = test_files(ROOT)
    picked = pick(ROOT, changed(ROOT), tests, needs(ROOT, graph(), tests))
    print(f"{len(picked.files)} of {len(tests)} test files: {picked.why}", flush=True)
    if not picked.files:
        return 0
    workers = "auto" if len(picked.files) > 1 else "0"
    command = [sys.executable, "-m", "pytest", "-q", "-n", workers, "--dist", "worksteal", "-m", "not e2e", *options]
    return subprocess.run([*command, *picked.files], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
