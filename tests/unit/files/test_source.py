"""Files that are no workloads: too large, binary, empty, cyclic, deep, exploding. All are refused clearly and at once."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.errors import BadInput, ChipwiseError, InvalidFile
from chipwise.files.source import MAX_NODES, read_yaml, show_where
from chipwise.workload.parse import load, parse
from patience import slowness

LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}, *a{n - 1}]\n" for n in range(1, 30))
MERGED_LAUGHS = "a0: &a0 {k0: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], k{n}: 1}}\n" for n in range(1, 400))


def refused(path: Path) -> ChipwiseError:
    began = time.process_time()
    with pytest.raises(BadInput) as caught:
        load(path)
    assert time.process_time() - began < slowness()
    assert "Traceback" not in str(caught.value)
    return caught.value


def test_a_file_of_100_megabytes_is_refused_by_its_size(tmp_path: Path) -> None:
    path = tmp_path / "huge.yaml"
    with path.open("wb") as stream:
        stream.write(b"kind: serve\n")
        os.truncate(stream.fileno(), 100_000_000)
    error = refused(path)
    assert "100 MB" in str(error)
    assert "the limit is 1 MB" in str(error)
    assert "by path" in str(error.remedy)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "empty"),
        (b"\n\n# only a remark\n", "empty"),
        (b"---\n...\n", "empty"),
        (b"null\n", "empty"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "not a text file"),
        (b"PK\x03\x04\x14\x00", "not a text file"),
        (b"\xff\xfek\x00i\x00n\x00d\x00", "not a text file"),
        (b"kind: serve\nname: caf\xe9\n", "UTF-8"),
        (b"a: &a [1, *a]\n", "cycle"),
        (b"a: *nobody\n", "no anchor"),
        (b"[" * 100_000, "levels deep"),
        (b"{a: " * 50_000, "levels deep"),
        (b"- " * 50_000, "levels deep"),
        (LAUGHS.encode(), "unfold"),
        (MERGED_LAUGHS.encode(), "too many|unfold"),
        (b"[" + b"1," * 400_000 + b"1]", "too many"),
        (b"a: 1\n" * 150_000, "too many"),
        (b"just words\n", "mapping"),
        (b"- a\n- b\n", "mapping"),
        (b"kind: serve\n---\nkind: train\n", "second document"),
        (b"kind: serve\n\tname: x\n", "tab"),
        (b"a: b: c\n", "quotes"),
        (b"a: 'unfinished\n", "not valid YAML"),
        (b"a: \x07\n", "not valid YAML|special"),
        (b"%TAG ! x\n", "not valid YAML"),
        (b"a: {<<: 5}\n", "<<"),
    ],
)
def test_what_is_no_workload_is_refused_with_reason_and_remedy(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "workload.yaml"
    path.write_bytes(content)
    error = refused(path)
    assert isinstance(error, InvalidFile)
    assert str(path) in str(error)
    assert re.search(complaint, str(error)), str(error)
    assert error.remedy


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system", "!custom", "!!binary", "!!timestamp"])
def test_a_tag_is_refused_and_nothing_behind_it_runs(tag: str) -> None:
    with pytest.raises(InvalidFile, match="tag"):
        parse(f"kind: serve\nname: {tag} [x]\n")


def test_a_missing_file_offers_the_nearest_one(tmp_path: Path) -> None:
    (tmp_path / "workload.yaml").write_text("kind: serve\n")
    assert "workload.yaml?" in str(refused(tmp_path / "worklod.yaml"))


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert "folder" in str(refused(tmp_path))


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no such device here")
def test_a_device_is_no_file() -> None:
    assert "is a device" in str(refused(Path("/dev/zero")))


def test_a_byte_order_mark_and_windows_lines_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "workload.yaml"
    path.write_bytes(b"\xef\xbb\xbfkind: batch\r\nname: x\r\nmodel: m\r\nitems: 5\r\n")
    assert load(path).name == "x"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("NO", "NO"),
        ("yes", "yes"),
        ("on", "on"),
        ("12:30", "12:30"),
        ("2027-01-01", "2027-01-01"),
        ("010", "010"),
        ("0x1F", "0x1F"),
        ("1_000", "1_000"),
        (".inf", ".inf"),
        ("1e6", 1e6),
        ("1.5", 1.5),
        (".5", 0.5),
        ("-3", -3),
        ("0", 0),
        ("'7'", "7"),
        ("!!str 7", "7"),
        ("true", True),
        ("~", None),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_scalars_are_read_as_yaml_1_2_has_them(text: str, value: object) -> None:
    assert read_yaml(f"a: {text}", "x").data == {"a": value}


def test_every_value_knows_its_line() -> None:
    lines = read_yaml("a:\n  b: 1\n  c:\n    - x\n    - y: 2\n", "x").lines
    assert {show_where(where): line for where, line in lines.items()} == {
        "": 1,
        "a": 1,
        "a.b": 2,
        "a.c": 3,
        "a.c[0]": 4,
        "a.c[1]": 5,
        "a.c[1].y": 5,
    }


def test_aliases_and_merges_are_written_out() -> None:
    text = "a: &a {x: 1, y: 2}\nb: *a\nc: {<<: *a, y: 3}\nd: {<<: [{x: 8}, *a]}\n"
    assert read_yaml(text, "x").data == {
        "a": {"x": 1, "y": 2},
        "b": {"x": 1, "y": 2},
        "c": {"x": 1, "y": 3},
        "d": {"x": 8, "y": 2},
    }


def test_a_field_given_twice_is_reported_with_both_lines() -> None:
    problem = read_yaml("name: a\nkind: hpc\nname: b\n", "x").problems[0]
    assert (problem.field, problem.line) == ("name", 3)
    assert "line 1" in problem.message


@pytest.mark.parametrize("key", ["1", "true", "null", "1.5", "[a, b]", "{a: b}"])
def test_a_field_name_is_text(key: str) -> None:
    assert "field name" in read_yaml(f"? {key}\n: x\nname: y\n", "x").problems[0].message


@settings(deadline=None)
@given(st.text(max_size=200))
def test_no_text_gets_past_the_reader_with_another_error(text: str) -> None:
    try:
        document = read_yaml(text, "x")
    except InvalidFile:
        return
    assert len(document.lines) <= MAX_NODES
