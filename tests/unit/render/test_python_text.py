"""Python literals: what is written is what is read, and a formatter leaves it alone."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.render.python_text import Constant, constant_text, literal, script, string
from effort import cases

TEXTS = st.text(max_size=300) | st.text(alphabet="'\"\\\n {}$ab", max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(TEXTS.filter(bool), inner, max_size=5) | st.tuples(inner, inner)
    ),
    max_leaves=20,
)
HOSTILE = (
    "'",
    '"',
    "'\"",
    '"""',
    "\\",
    "\\'",
    "\n",
    "\r\n",
    "${x}",
    "$(x)",
    "{{x}}",
    "\u202e",
    "\u2028",
    "\x00",
    "é",
    "\U0001d4b3",
    "a" * 10_000,
)


def readable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


@given(TEXTS)
def test_a_string_is_read_back_as_it_was(text: str) -> None:
    assert ast.literal_eval(string(text)) == readable(text)


@given(VALUES)
def test_a_value_is_read_back_as_it_was(value: object) -> None:
    def clean(one: object) -> object:
        match one:
            case str():
                return readable(one)
            case dict():
                return {readable(str(key)): clean(inner) for key, inner in one.items()}
            case list():
                return [clean(inner) for inner in one]
            case tuple():
                return tuple(clean(inner) for inner in one)
        return one

    assert ast.literal_eval(literal(value)) == clean(value)


def test_hostile_text_stays_one_literal() -> None:
    for text in HOSTILE:
        (assigned,) = ast.parse(constant_text(Constant("X", text, f"why {text}"))).body
        assert isinstance(assigned, ast.Assign)
        assert ast.literal_eval(assigned.value) == text


@settings(max_examples=cases(15))
@given(st.lists(VALUES, min_size=1, max_size=4))
def test_a_formatter_leaves_a_script_alone(values: list[object]) -> None:
    constants = [Constant(f"VALUE_{at}", value) for at, value in enumerate(values)]
    text = script("a heading", "What it does.", "import sys", constants, "print(sys.argv)")
    ruff = Path(sys.executable).with_name("ruff")
    done = subprocess.run(
        [str(ruff), "format", "--isolated", "--line-length", "128", "--stdin-filename", "x.py", "-"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == text


PROGRAMS = st.lists(st.text(alphabet="'\"\\ {}$a#", max_size=8), min_size=10, max_size=14).map("\n".join)


@given(PROGRAMS)
def test_a_program_of_many_lines_is_read_as_it_was_written(text: str) -> None:
    assert ast.literal_eval(string(text)) == text


def test_a_program_of_many_lines_stands_line_by_line_and_a_formatter_leaves_it_alone(tmp_path: Path) -> None:
    program = "\n".join(["set -u", *(f"  echo 'it''s {at}' \"\\n\" # a \\ b" for at in range(12)), "' end"])
    text = constant_text(Constant("COMMAND", program)) + constant_text(Constant("WORDS", ["/bin/sh", "-c", program, "x"]))
    assert "\n  echo 'it''s 3' \"\\\\n\" # a \\\\ b\n" in text
    (tmp_path / "made.py").write_text(text)
    ruff = str(Path(sys.executable).with_name("ruff"))
    words = [ruff, "format", "--check", "--line-length=128", "--isolated", str(tmp_path / "made.py")]
    assert subprocess.run(words, capture_output=True, check=False).returncode == 0
