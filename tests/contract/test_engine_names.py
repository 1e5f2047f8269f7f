"""Nobody outside an engine's own folder asks which engine it is: what differs is an ability or a trait that the engine states.

The source is read, not run: a comparison (`==`, `in`, `match`) or a lookup in a table by the name of an engine is found
wherever it stands, also where the name is a constant of the module or of another one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from chipwise.api.running import installed

SOURCE = Path(__file__).parents[2] / "src" / "chipwise"
# Words that are no engine there, by file.
OTHER_MEANINGS = {
    "renderer/layouts/variants.py": ('self.target == "kubernetes"', 'target == "kubernetes"'),  # of rendering
    "renderer/targets/eksctl.py": ('"kubernetes" in eks',),  # a field of a release
    "adapters/hand_offs.py": ('parts.scheme in ("file", "local")',),  # of a URL
    "catalog/names.py": ("fold(text) in _OWN",),  # what people call their own machines
    "adapters/notices/here.py": ("name not in CLOUDS",),  # clouds that tell their machines when these go
}


def own_name(path: Path) -> str:
    """The engine in whose folder a file lies; empty elsewhere."""
    parts = path.relative_to(SOURCE).parts
    return parts[2].replace("_", "-") if parts[:2] == ("adapters", "engines") and len(parts) > 3 else ""


def constants(trees: Mapping[Path, ast.Module], names: frozenset[str]) -> dict[str, frozenset[str]]:
    """Names that a module gives to the name of an engine, or to several of them, such as DEFAULT."""
    found: dict[str, frozenset[str]] = {}
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.Assign) and not own_name(path) and (told := literals(node.value, {}) & names):
                found |= {target.id: told for target in node.targets if isinstance(target, ast.Name)}
    return found


def literals(node: ast.expr, known: dict[str, frozenset[str]]) -> frozenset[str]:
    """Texts that an expression is, or that a tuple, list, set or table in it is made of."""
    match node:
        case ast.Constant(value=str(text)):
            return frozenset({text})
        case ast.Tuple(elts=inner) | ast.List(elts=inner) | ast.Set(elts=inner):
            return frozenset().union(*(literals(one, known) for one in inner))
        case ast.Dict(keys=keys):
            return frozenset().union(*(literals(one, known) for one in keys if one is not None))
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return known.get(name, frozenset())
        case _:
            return frozenset()


def asked(tree: ast.Module, known: dict[str, frozenset[str]]) -> Iterator[tuple[ast.expr | ast.pattern, frozenset[str]]]:
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                yield node, frozenset().union(*(literals(one, known) for one in (left, *others)))
            case ast.MatchValue(value=value):
                yield node, literals(value, known)
            case ast.Subscript(value=ast.Dict() as table) | ast.Call(func=ast.Attribute(value=ast.Dict() as table, attr="get")):
                yield node, literals(table, known)
            case ast.Subscript(value=ast.Name(id=name)) | ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="get")):
                yield node, known.get(name, frozenset())


def findings(trees: Mapping[Path, ast.Module], known: dict[str, frozenset[str]]) -> list[str]:
    names, found = frozenset(installed.names()), []
    for path, tree in trees.items():
        file = path.relative_to(SOURCE).as_posix()
        for node, words in asked(tree, known):
            if words & (names - {own_name(path)}):
                text = ast.unparse(node).replace("'", '"')
                found += [f"{file}:{node.lineno}: {text}"] if text not in OTHER_MEANINGS.get(file, ()) else []
    return found


@pytest.fixture(scope="module")
def source() -> dict[Path, ast.Module]:
    """Files in which an engine is named, or a constant for one; to parse and walk the others would take seconds."""
    names = frozenset(installed.names())
    texts = {path: path.read_text() for path in sorted(SOURCE.rglob("*.py"))}
    quoted = re.compile("|".join(f"['\"]{name}['\"]" for name in names))
    trees = {path: ast.parse(text) for path, text in texts.items() if quoted.search(text)}
    known = re.compile(rf"\b(?:{'|'.join(constants(trees, names))})\b")
    return trees | {path: ast.parse(text) for path, text in texts.items() if path not in trees and known.search(text)}


def with_line(source: Mapping[Path, ast.Module], file: str, line: str) -> list[str]:
    tree = ast.parse((SOURCE / file).read_text() + line)
    known = constants({**source, SOURCE / file: tree}, frozenset(installed.names()))
    return findings({SOURCE / file: tree}, known)


def test_no_engine_is_told_by_its_name_outside_its_own_folder(source: dict[Path, ast.Module]) -> None:
    assert findings(source, constants(source, frozenset(installed.names()))) == []


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("api/running/jobs.py", 'job.spec.engine == "local"'),
        ("api/running/wanted.py", 'reach.kind != "ec2"'),
        ("api/running/held.py", 'job.spec.engine in ("ec2", "kubernetes")'),
        ("api/running/held.py", "job.spec.engine == DEFAULT"),
        ("cli/top.py", 'one.engine not in {"simulated"}'),
        ("runner/step.py", '{"ec2": 5.0, "kubernetes": 0.5}.get(engine.name, 0.2)'),
        ("runner/step.py", "match name:\n    case 'local': pass"),
        ("adapters/engines/ec2/engine.py", 'job.spec.engine == "kubernetes"'),
        ("api/running/controlling.py", 'TURN_S = {"ec2": 5.0}\nTURN_S[engine.name]'),
    ],
)
def test_one_that_is_told_by_its_name_is_found(source: dict[Path, ast.Module], file: str, line: str) -> None:
    [found] = with_line(source, file, line)
    assert found.startswith(f"{file}:")


def test_an_engine_may_know_its_own_name(source: dict[Path, ast.Module]) -> None:
    assert with_line(source, "adapters/engines/ec2/engine.py", 'NAME == "ec2"') == []
