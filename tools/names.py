"""Counts the names in the code that say nothing of what they stand for, and the constructor calls that lack keywords.

`python tools/names.py` prints the shares, `--list [PATH...]` each place as well, `--check` fails above the limits below. A name
may be vague where its scope is three lines at most, as in a short comprehension; beyond that it is a noun of the field.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

VAGUE_PERCENT_LIMIT = 0.5
POSITIONAL_PERCENT_LIMIT = 2.0
SHARED_CLASS_NAMES_LIMIT = 10

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "chipwise"
SHORT_SCOPE_LINES = 3
KEYWORDS_FROM_ARGUMENTS = 5
MODULES_PER_CLASS_NAME = 2

_PRONOUNS = (
    "one ones it that this those these thing things stuff mine ours theirs each every some any both other others another such "
    "same whole"
)
_QUESTIONS = "what which who whose where why how when"
_POSITIONS = "at on of by to into in over under from with around along across within beside here there"
_QUANTITIES = "many more most least few several"
_PARTICIPLES = (
    "found told made asked held kept said given taken gone done got brought met had heard meant thought named called shown "
    "passed laid tried looked came took went"
)
VAGUE_WORDS = frozenset(" ".join((_PRONOUNS, _QUESTIONS, _POSITIONS, _QUANTITIES, _PARTICIPLES)).split())
_FIXED_NAMES = frozenset({"self", "cls", "_"})
_FACTORY = "of"  # a method that is read with its class or object: Cost.of(lines)
_PHRASES = frozenset({"at least", "at most"})

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def is_vague(name: str) -> bool:
    """Whether no word of the name tells anything: `found`, `_told`, `ONE`, `found_at`, but not `found_offer`."""
    words = [word for word in name.lower().split("_") if word]
    return bool(words) and " ".join(words) not in _PHRASES and all(word in VAGUE_WORDS for word in words)


@dataclass(frozen=True, slots=True)
class Scope:
    """The code in which a name is known; modules and classes have no number of lines, for they are never short."""

    title: str = ""
    line_count: int | None = None
    is_class: bool = False
    around: Scope | None = None
    """For a comprehension, the scope in which its `:=` binds."""

    @property
    def is_short(self) -> bool:
        return self.line_count is not None and self.line_count <= SHORT_SCOPE_LINES

    def function(self, name: str, node: ast.stmt | ast.expr) -> Scope:
        return Scope(self._title(name), _line_count(node))

    def comprehension(self, node: Comprehension) -> Scope:
        return Scope(self._title("<comprehension>"), _line_count(node), around=self.around or self)

    def class_body(self, name: str) -> Scope:
        return Scope(self._title(name), is_class=True)

    def _title(self, name: str) -> str:
        return f"{self.title}.{name}" if self.title else name


@dataclass(frozen=True, slots=True)
class Binding:
    """A place where a name gets its value."""

    name: str
    line: int
    column: int
    scope: Scope

    @property
    def breaks_rule(self) -> bool:
        return not self.scope.is_short and is_vague(self.name)


def bindings(tree: ast.Module) -> list[Binding]:
    """Every binding of a module, except of dunder names, `self`, `cls` and `_`."""
    collector = _Collector()
    collector.read_all(tree.body, Scope())
    return collector.bindings


class _Collector:
    """Walks code with the scope in hand. Its results gather in a list, for generators as deep as the code are slow."""

    def __init__(self) -> None:
        self.bindings: list[Binding] = []

    def bind(
        self, name: str, node: ast.stmt | ast.expr | ast.arg | ast.alias | ast.excepthandler | ast.pattern, scope: Scope
    ) -> None:
        if name not in _FIXED_NAMES and not (name.startswith("__") and name.endswith("__")):
            self.bindings.append(Binding(name, node.lineno, node.col_offset, scope))

    def read_all(self, nodes: Iterable[ast.AST], scope: Scope) -> None:
        for node in nodes:
            self.read(node, scope)

    def read(self, node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.expr_context() | ast.Constant():
                pass
            case ast.Name():
                if isinstance(node.ctx, ast.Store):
                    self.bind(node.id, node, scope)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if not (scope.is_class and node.name == _FACTORY):
                    self.bind(node.name, node, scope)
                self.read_all((*node.decorator_list, *_defaults(node.args)), scope)
                inner = scope.function(node.name, node)
                self.read_parameters(node.args, inner, is_operator=scope.is_class and node.name.startswith("__"))
                self.read_all(node.body, inner)
            case ast.Lambda():
                self.read_all(_defaults(node.args), scope)
                inner = scope.function("<lambda>", node)
                self.read_parameters(node.args, inner)
                self.read(node.body, inner)
            case ast.ClassDef():
                self.bind(node.name, node, scope)
                self.read_all((*node.decorator_list, *node.bases, *node.keywords), scope)
                self.read_all(node.body, scope.class_body(node.name))
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                # The first iterable is evaluated outside.
                first, *further = node.generators
                elements = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
                self.read(first.iter, scope)
                self.read_all((first.target, *first.ifs, *further, *elements), scope.comprehension(node))
            case ast.NamedExpr(target=target, value=value):
                self.read(target, scope.around or scope)
                self.read(value, scope)
            case (
                ast.alias(asname=str(name))
                | ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
                | ast.MatchMapping(rest=str(name))
            ):
                self.bind(name, node, scope)
                self.read_all(ast.iter_child_nodes(node), scope)
            case _:
                self.read_all(ast.iter_child_nodes(node), scope)

    def read_parameters(self, arguments: ast.arguments, scope: Scope, is_operator: bool = False) -> None:
        """The parameters of a function; the operand of an operator is called `other` by convention."""
        starred = (parameter for parameter in (arguments.vararg, arguments.kwarg) if parameter is not None)
        for parameter in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *starred):
            if not (is_operator and parameter.arg == "other"):
                self.bind(parameter.arg, parameter, scope)


def _defaults(arguments: ast.arguments) -> tuple[ast.expr, ...]:
    return (*arguments.defaults, *(default for default in arguments.kw_defaults if default is not None))


def _line_count(node: ast.stmt | ast.expr) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


@dataclass(frozen=True, slots=True)
class ConstructorCall:
    """A call of a project class with five or more arguments."""

    class_name: str
    line: int
    column: int
    is_positional: bool


@dataclass(frozen=True, slots=True)
class ClassIndex:
    """The classes that modules define, and the names under which modules import what others define."""

    defined: Mapping[str, frozenset[str]]
    imported: Mapping[str, Mapping[str, str]]

    def is_class(self, module: str, dotted: str) -> bool:
        """Whether a name, as written in a module, means a class of the project."""
        seen = set()
        while (module, dotted) not in seen:
            seen.add((module, dotted))
            head, _, tail = dotted.partition(".")
            if not tail and head in self.defined.get(module, frozenset()):
                return True
            full = self.imported.get(module, {}).get(head, "")
            full = f"{full}.{tail}" if tail else full
            module, _, dotted = full.rpartition(".")
        return False

    def shared_names(self) -> dict[str, list[str]]:
        """Class names that stand in more modules than a reader can keep apart, with these modules."""
        modules: dict[str, list[str]] = {}
        for module, names in sorted(self.defined.items()):
            for name in names:
                modules.setdefault(name, []).append(module)
        return {name: homes for name, homes in sorted(modules.items()) if len(homes) > MODULES_PER_CLASS_NAME}


@dataclass(frozen=True, slots=True)
class Module:
    """A file as code, with the nodes that tell of classes."""

    name: str
    tree: ast.Module
    nodes: tuple[ast.AST, ...]

    @classmethod
    def parse(cls, name: str, text: str) -> Module:
        tree = ast.parse(text)
        wanted = ast.ClassDef | ast.ImportFrom | ast.Import | ast.Call
        return cls(name, tree, tuple(node for node in ast.walk(tree) if isinstance(node, wanted)))

    def classes(self) -> frozenset[str]:
        return frozenset(node.name for node in self.nodes if isinstance(node, ast.ClassDef))

    def imports(self) -> Iterator[tuple[str, str]]:
        """The names that imports bind, and what they mean."""
        for node in self.nodes:
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from ((alias.asname, alias.name) for alias in node.names if alias.asname)

    def constructor_calls(self, index: ClassIndex) -> Iterator[ConstructorCall]:
        for node in self.nodes:
            if not isinstance(node, ast.Call) or len(node.args) + len(node.keywords) < KEYWORDS_FROM_ARGUMENTS:
                continue
            name = ast.unparse(node.func) if isinstance(node.func, ast.Name | ast.Attribute) else ""
            if name and index.is_class(self.name, name):
                yield ConstructorCall(name, node.lineno, node.col_offset, len(node.args) >= KEYWORDS_FROM_ARGUMENTS)


@dataclass(frozen=True, slots=True)
class Report:
    """The figures of some files, and the places that break the rule."""

    binding_count: int
    vague: tuple[tuple[str, Binding], ...]
    short_vague_count: int
    call_count: int
    positional: tuple[tuple[str, ConstructorCall], ...]
    shared_class_names: Mapping[str, Sequence[str]]

    @property
    def vague_percent(self) -> float:
        return 100.0 * len(self.vague) / max(self.binding_count, 1)

    @property
    def positional_percent(self) -> float:
        return 100.0 * len(self.positional) / max(self.call_count, 1)

    def summary(self) -> Iterator[str]:
        yield f"vague names: {len(self.vague):,} of {self.binding_count:,} bindings ({self.vague_percent:.2f}%)"
        yield f"vague names in scopes of {SHORT_SCOPE_LINES} lines at most, not counted: {self.short_vague_count:,}"
        yield (
            f"positional constructor calls: {len(self.positional):,} of {self.call_count:,} with {KEYWORDS_FROM_ARGUMENTS} "
            f"or more arguments ({self.positional_percent:.2f}%)"
        )
        yield f"class names in more than {MODULES_PER_CLASS_NAME} modules: {len(self.shared_class_names)}"

    def places(self) -> Iterator[str]:
        for path, binding in self.vague:
            yield f"{path}:{binding.line}:{binding.column + 1}: {binding.name} ({binding.scope.title or 'module'})"
        for path, call in self.positional:
            yield f"{path}:{call.line}:{call.column + 1}: {call.class_name}(...) without keywords"
        for name, modules in self.shared_class_names.items():
            yield f"class {name} in {', '.join(modules)}"

    def excesses(self) -> Iterator[str]:
        """What is above its limit."""
        if self.vague_percent > VAGUE_PERCENT_LIMIT:
            yield f"{self.vague_percent:.2f}% of the names are vague; limit {VAGUE_PERCENT_LIMIT}%"
        if self.positional_percent > POSITIONAL_PERCENT_LIMIT:
            yield f"{self.positional_percent:.2f}% of long constructor calls lack keywords; limit {POSITIONAL_PERCENT_LIMIT}%"
        if len(self.shared_class_names) > SHARED_CLASS_NAMES_LIMIT:
            yield f"{len(self.shared_class_names)} class names are shared; limit {SHARED_CLASS_NAMES_LIMIT}"


def report(paths: Iterable[Path], source: Path = SOURCE, base: Path = ROOT) -> Report:
    """The figures of these files and folders. Classes are those of the whole package."""
    package = {path: _parse(path, source) for path in _files(source)}
    chosen = {path: package.get(path) or _parse(path, source) for path in _chosen(paths)}
    index = ClassIndex(
        {module.name: module.classes() for module in package.values()},
        {module.name: dict(module.imports()) for module in (package | chosen).values()},
    )
    titles = {path: path.relative_to(base).as_posix() if base in path.parents else str(path) for path in chosen}
    bound = [(titles[path], binding) for path, module in chosen.items() for binding in bindings(module.tree)]
    calls = [(titles[path], call) for path, module in chosen.items() for call in module.constructor_calls(index)]
    vague = [place for place in bound if place[1].breaks_rule]
    return Report(
        binding_count=len(bound),
        vague=tuple(sorted(vague, key=lambda place: (place[0], place[1].line, place[1].column))),
        short_vague_count=sum(binding.scope.is_short and is_vague(binding.name) for _, binding in bound),
        call_count=len(calls),
        positional=tuple(place for place in calls if place[1].is_positional),
        shared_class_names=index.shared_names(),
    )


def _parse(path: Path, source: Path) -> Module:
    return Module.parse(_module_name(path, source), path.read_text(encoding="utf-8"))


def _files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def _chosen(paths: Iterable[Path]) -> list[Path]:
    return sorted({file for path in paths for file in (_files(path) if path.is_dir() else [path])})


def _module_name(path: Path, source: Path) -> str:
    """The dotted name of a file of the package; of any other file its path, which no import can mean."""
    if source not in path.parents:
        return str(path)
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, help="files and folders; the package when none is named")
    parser.add_argument("--list", action="store_true", help="print each place that breaks the rule")
    parser.add_argument("--check", action="store_true", help="fail where a figure is above its limit")
    options = parser.parse_args(arguments)
    figures = report([path.resolve() for path in options.paths] or [PACKAGE])
    if options.list:
        print(*figures.places(), sep="\n")
    print(*figures.summary(), sep="\n")
    excesses = list(figures.excesses()) if options.check else []
    print(*excesses, sep="\n", end="\n" if excesses else "", file=sys.stderr)
    return 1 if excesses else 0


if __name__ == "__main__":
    sys.exit(main())
