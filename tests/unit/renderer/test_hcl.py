"""Laws of the writer of Terraform's language: what is text stays text, and what is written reads back."""

from __future__ import annotations

import hcl2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.renderer.terraform.hcl import Block, Nested, Raw, document, resource, text_of, variable
from chipwise.renderer.yaml_text import Noted
from hcl_reading import blocks
from hcl_reading import text_of as read

HOSTILE = [
    'a"b',
    "C:\\bin",
    "a\nb",
    "${x}",
    "$${x}",
    "$$${x}",
    "%{ if true }",
    "$(id)",
    "\\",
    "\b\f\x00",
    "é😀\u2028",
    "x" * 10_000,
]
plain = st.text(st.characters(exclude_categories=["Cs"]))


def _value(text: str) -> str:
    return read(next(blocks(document([Block("locals", (), {"x": text})]))).body["x"])


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:12]))
def test_hostile_text_reads_back_as_it_was(text: str) -> None:
    assert _value(text) == text


@given(plain)
def test_any_text_reads_back_as_it_was(text: str) -> None:
    assert _value(text) == text


@given(plain, plain)
def test_text_beside_a_reference_stays_text(before: str, after: str) -> None:
    made = document([Block("locals", (), {"x": text_of(before, Raw("var.y"), after)})])
    assert "var.y" in made
    assert set(hcl2.loads(made)["locals"][0]) - {"__is_block__"} == {"x"}


@given(st.dictionaries(plain.filter(bool), plain, max_size=4))
def test_any_key_of_a_map_reads_back(values: dict[str, str]) -> None:
    body = next(blocks(document([Block("locals", (), {"x": values})]))).body
    found = {read(key): read(value) for key, value in body["x"].items() if not key.startswith("__comments")}
    assert found == values


def test_half_a_surrogate_pair_becomes_the_sign_for_it() -> None:
    assert _value("a\ud800b") == "a\ufffdb"


@given(plain)
def test_a_comment_ends_where_its_line_ends(text: str) -> None:
    made = document([Block("locals", (), {"x": Noted(1, text)}, comment=text)], title=text)
    assert [one.kind for one in blocks(made)] == ["locals"]


def test_columns_end_at_comments_blocks_and_long_values() -> None:
    body = {"x": 1, "long": True, "m": {"k": "v"}, "n": Noted(2, "why"), "z": Nested({"y": 1}), "end": 3}
    made = document([resource("a", "b", body)])
    assert made == (
        'resource "a" "b" {\n  x    = 1\n  long = true\n  m = {\n    k = "v"\n  }\n'
        "  # why\n  n = 2\n\n  z {\n    y = 1\n  }\n\n"
        "  end = 3\n}\n"
    )


def test_a_variable_without_a_default_must_be_given() -> None:
    assert "default" not in document([variable("x", "string", "x")])
    assert "default     = null" in document([variable("x", "string", "x", None)])


def test_what_has_no_form_is_refused() -> None:
    with pytest.raises(TypeError, match="no form"):
        document([Block("locals", (), {"x": object()})])
