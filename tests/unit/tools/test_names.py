"""What counts as a vague name and as a positional constructor call."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import names

LONG = "\n    pass\n    pass\n    pass\n"


def _vague(code: str) -> list[str]:
    return [binding.name for binding in names.bindings(ast.parse(code)) if binding.breaks_rule]


@pytest.mark.parametrize("name", ["one", "found", "_told", "at", "ONE", "Asked", "found_at", "others"])
def test_a_name_without_a_telling_word_is_vague(name: str) -> None:
    assert names.is_vague(name)


@pytest.mark.parametrize(
    "name",
    ["path", "text", "line", "row", "key", "name", "index", "value", "found_offer", "as_of", "_at_least", "offers_by_chip"],
)
def test_a_name_with_a_telling_word_is_not_vague(name: str) -> None:
    assert not names.is_vague(name)


@pytest.mark.parametrize(
    "code",
    [
        "one = 1",
        "one: int = 1",
        "(row, (one, line)) = rows",
        "for one in rows: pass",
        "with open(path) as one: pass",
        "try: pass\nexcept OSError as one: pass",
        "import json as one",
        "from json import loads as one",
        "print(one := 1)",
        "print([(one := row) for row in rows])",
        "def one(): pass",
        "class One: pass",
        "class Offer:\n    one: int",
        f"def price(one):{LONG}",
        f"def price(*one):{LONG}",
        f"def price(*, one=1):{LONG}",
        "match row:\n    case [*one]: pass",
        "match row:\n    case {**one}: pass",
        "match row:\n    case int() as one: pass",
        "[\n    one\n    for\n    one in rows\n]",
        "read = lambda one: (\n    one\n    + 1\n    )",
    ],
)
def test_every_kind_of_binding_counts_once(code: str) -> None:
    assert [name.lower() for name in _vague(code)] == ["one"]


@pytest.mark.parametrize(
    "code",
    [
        "[one for one in rows]",
        "sorted(rows, key=lambda one: one.price)",
        "def price(one):\n    return one",
        f"class Offer:\n    def __eq__(self, other):{LONG}".replace("\n    pass", "\n        pass"),
        "class Cost:\n    def of(self): pass",
        "print(one)",
        "offer.one = 1",
    ],
)
def test_a_short_scope_an_operand_a_factory_and_a_use_do_not_count(code: str) -> None:
    assert _vague(code) == []


def test_the_first_iterable_of_a_comprehension_lies_outside_of_it() -> None:
    tree = ast.parse("rows = [row for row in [one := 1]]")
    (binding,) = (binding for binding in names.bindings(tree) if binding.name == "one")
    assert binding.scope.title == ""


FILES = {
    "src/chipwise/__init__.py": "",
    "src/chipwise/offer.py": "class Offer: pass\nclass Part: pass\nOffer(1, 2, 3, 4, 5)\n",
    "src/chipwise/chip.py": "from chipwise.offer import Offer\nclass Part: pass\nOffer(1, 2, 3, 4, e=5)\nOffer(1, 2, 3)\n",
    "src/chipwise/face.py": "from chipwise.chip import Offer as Sale\nfrom chipwise import offer\nclass Part: pass\n"
    "Sale(1, 2, 3, 4, 5)\noffer.Offer(1, 2, 3, 4, 5)\nopen(1, 2, 3, 4, 5)\nfound = 1\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_constructors_are_known_by_their_imports(tree: Path) -> None:
    figures = names.report([tree / "src"], source=tree / "src", base=tree)
    assert figures.call_count == 4
    assert [(path, call.line) for path, call in figures.positional] == [
        ("src/chipwise/face.py", 4),
        ("src/chipwise/face.py", 5),
        ("src/chipwise/offer.py", 3),
    ]
    assert figures.positional_percent == 75.0


def test_a_class_name_in_three_modules_is_reported_and_places_are_sorted(tree: Path) -> None:
    figures = names.report([tree / "src"], source=tree / "src", base=tree)
    assert list(figures.shared_class_names) == ["Part"]
    places = list(figures.places())
    assert places[0] == "src/chipwise/face.py:7:1: found (module)"
    assert places[-1] == "class Part in chipwise.chip, chipwise.face, chipwise.offer"


def test_files_outside_the_package_are_read_with_its_classes(tree: Path) -> None:
    test = tree / "tests" / "test_offer.py"
    test.parent.mkdir()
    test.write_text("from chipwise.offer import Offer\nOffer(1, 2, 3, 4, 5)\n", encoding="utf-8")
    figures = names.report([test], source=tree / "src", base=tree)
    assert [path for path, _ in figures.positional] == ["tests/test_offer.py"]


def test_figures_above_their_limits_fail(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = names.report([tree / "src"], source=tree / "src", base=tree)
    monkeypatch.setattr(names, "report", lambda paths: figures)
    for limit, code, complaints in ((100, 0, 0), (0, 1, 3)):
        for title in ("VAGUE_PERCENT_LIMIT", "POSITIONAL_PERCENT_LIMIT", "SHARED_CLASS_NAMES_LIMIT"):
            monkeypatch.setattr(names, title, limit)
        assert names.main(["--check"]) == code
        assert len(capsys.readouterr().err.splitlines()) == complaints
