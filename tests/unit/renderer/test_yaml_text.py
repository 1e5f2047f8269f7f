"""The YAML of rendered files says exactly what was given, whatever text a user wrote."""

from __future__ import annotations

import json
import string
import subprocess
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.renderer.quoting import dns_name, hcl, label_value, one_line, shell
from chipwise.renderer.yaml_text import Noted, document, plain

HOSTILE = [
    "",
    " ",
    "no",
    "null",
    "1e3",
    "0x1f",
    "~",
    "'",
    '"',
    "a: b",
    "- x",
    "# c",
    "${X}",
    "$(id)",
    "{{ .Values }}",
    "a\nb",
    "a\n b\n",
    "\tx",
    "é",
    "\x00",
    "\x85",
    "\u2028",
    "😀",
    "%{if}",
    "!tag",
    "&a",
    "*a",
    "|",
    ">",
    "...",
    "---",
    "=",
    "2026-11-15",
    "12:30:45",
    "a\n\nb",
    "a \nb",
    "\ufeff",
    "\ud7ff",
    "line\r\nend",
]
TEXT = st.sampled_from(HOSTILE) | st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
KEY = TEXT  # YAML itself ends a key at 1,024 characters; names of settings are shorter
LONG = "x'y\"${z} " * 1_100
SCALAR = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT
VALUE: st.SearchStrategy[Any] = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEY, inner, max_size=4), max_leaves=12
)


@given(VALUE)
def test_what_is_written_is_what_is_read(value: Any) -> None:
    assert yaml.safe_load(document(value)) == value


@given(st.lists(st.dictionaries(KEY, VALUE, min_size=1, max_size=3), min_size=1, max_size=3))
def test_several_documents_stay_apart(values: list[Any]) -> None:
    assert list(yaml.safe_load_all(document(*values, title="several"))) == values


@given(st.dictionaries(KEY, VALUE, min_size=1, max_size=3), TEXT)
def test_comments_change_nothing(value: dict[str, Any], why: str) -> None:
    noted = {key: Noted([Noted(one, why)], why) for key, one in value.items()}
    assert yaml.safe_load(document(noted, title=why)) == plain(noted) == {key: [one] for key, one in value.items()}


def test_ten_thousand_characters_stay_one_value() -> None:
    assert yaml.safe_load(document({"name": LONG, "list": [LONG]})) == {"name": LONG, "list": [LONG]}


def test_a_script_stands_as_it_was_written() -> None:
    assert document({"run": "set -e\npython a.py\n", "count": 1}) == "run: |\n  set -e\n  python a.py\ncount: 1\n"


@given(TEXT)
def test_names_fit_dns(text: str) -> None:
    name = dns_name(text)
    assert 1 <= len(name) <= 40
    assert name[0] in string.ascii_lowercase
    assert not name.endswith("-")
    assert set(name) <= set(string.ascii_lowercase + string.digits + "-")


def test_long_names_that_differ_at_the_end_stay_apart() -> None:
    assert dns_name("a" * 60 + "b") != dns_name("a" * 60 + "c")


@given(TEXT)
def test_labels_fit(text: str) -> None:
    value = label_value(text)
    assert len(value) <= 63
    assert not value or (value[0].isalnum() and value[-1].isalnum())


@given(st.lists(TEXT.map(lambda text: text.replace("\x00", "")), min_size=1, max_size=5))
@settings(deadline=None)
def test_a_command_line_is_read_back_word_by_word(words: list[str]) -> None:
    """By a shell: what does not show is written by its bytes, which only a shell undoes."""
    told = subprocess.run(["sh", "-c", f"printf '%s\\0' {shell(words)}"], capture_output=True, check=True)
    assert told.stdout == "".join(f"{word}\0" for word in words).encode("utf-8", "replace")
    assert all(sign.isprintable() or sign in "\n\t" for sign in shell(words))


@given(TEXT)
def test_a_comment_is_one_line(text: str) -> None:
    assert one_line(text).isprintable()
    assert len(one_line(text)) <= 160


@pytest.mark.parametrize("text", HOSTILE)
def test_terraform_strings_hold_no_template(text: str) -> None:
    written = hcl(text)
    assert "${" not in written.replace("$${", "")
    assert "%{" not in written.replace("%%{", "")
    if "\\U" not in written:
        assert json.loads(written.replace("$${", "${").replace("%%{", "%{")) == text


@pytest.mark.parametrize("text", ["1e6", "12E4", "+3e-2", "0o17", "y", "N"])
def test_text_that_other_parsers_take_for_a_number_or_a_truth_value_is_quoted(text: str) -> None:
    assert document({"value": text}) == f"value: '{text}'\n"


@pytest.mark.parametrize("text", ["1e6a", "0.0.0.0", "1.2.3", "yn", "e6", "v1e6"])
def test_text_that_looks_like_no_number_stays_bare(text: str) -> None:
    assert document({"value": text}) == f"value: {text}\n"
