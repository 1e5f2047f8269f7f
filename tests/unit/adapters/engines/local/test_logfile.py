"""What a job prints: no secret in it, and nothing of it anywhere but in its file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.adapters.engines.local.logfile import (
    LONGEST_LINE,
    SHORTEST_SECRET,
    Lines,
    LogFile,
    _blotted,
    _pieces,
    refuse_short,
)
from chipwise.errors import BadInput

KEY = "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA\nab\n-----END KEY-----"


def printed(at: Path, *chunks: bytes, secrets: tuple[str, ...] = ()) -> bytes:
    log = LogFile(at / "log", 64 << 20, 3, secrets)
    lines = Lines(log, b"")
    for chunk in chunks:
        lines.take(chunk)
    lines.finish()
    log.close()
    return (at / "log").read_bytes()


def test_each_line_of_a_key_is_blotted_out_however_it_comes(tmp_path: Path) -> None:
    found = printed(tmp_path, *(line.encode() + b"\n" for line in KEY.split("\n")), secrets=(KEY,))
    assert found == b"[secret]\n[secret]\nab\n[secret]\n"  # `ab` is too short to be told from other words


def test_a_secret_that_begins_like_another_is_blotted_out_whole(tmp_path: Path) -> None:
    assert printed(tmp_path, b"password-and-more\n", secrets=("password", "password-and-more")) == b"[secret]\n"


def test_a_short_secret_is_blotted_out_where_it_stands_alone(tmp_path: Path) -> None:
    text = b"pin=4711, (4711) 4711\n14711 47110 a_4711\nkey a+b/ and xa+b/ =a+b/y\n"
    assert printed(tmp_path, text, secrets=("4711", "a+b/")) == (
        b"pin=[secret], ([secret]) [secret]\n14711 47110 a_4711\nkey [secret] and xa+b/ =[secret]y\n"
    )


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\n\r"), min_size=SHORTEST_SECRET, max_size=9))
def test_no_secret_that_is_taken_is_printed_as_a_word(value: str) -> None:
    refuse_short("TOKEN", value)
    assert _blotted(_pieces((value,)), f"= {value} .".encode()) == b"= [secret] ."


@pytest.mark.parametrize("value", ["a", "12", "abc", "äöü"])
def test_what_is_too_short_to_be_hidden_is_not_taken_as_a_secret(value: str) -> None:
    with pytest.raises(BadInput, match="too short to redact") as refused:
        refuse_short("PIN", value)
    assert repr(value) not in f"{refused.value}"
    refuse_short("PIN", "")  # an option that is not set


@pytest.mark.parametrize("before", range(LONGEST_LINE - 12, LONGEST_LINE + 4))
def test_no_secret_is_cut_in_two_by_a_line_without_end(tmp_path: Path, before: int) -> None:
    text = b"." * before + b"canary-4711" + b"." * 100
    found = printed(tmp_path, *(text[at : at + 4096] for at in range(0, len(text), 4096)), secrets=("canary-4711",))
    assert found.replace(b"\n", b"") == b"." * before + b"[secret]" + b"." * 100


def test_after_a_rotation_that_fails_nothing_goes_to_another_file(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "log", 1024, 2)
    log.write(b"a" * 1000 + b"\n")
    (tmp_path / "log.1").mkdir()  # so that the file cannot take its place
    (tmp_path / "log.1" / "x").touch()
    (tmp_path / "log.2").mkdir()
    (tmp_path / "log.2" / "x").touch()
    log.write(b"b" * 1000 + b"\n")
    other = (tmp_path / "other").open("wb")  # would get the number of a file that was closed too soon
    log.write(b"c" * 1000 + b"\n")
    other.close()
    assert (tmp_path / "other").read_bytes() == b""
    assert log.lost == 2002
    for name in ("log.1", "log.2"):
        (tmp_path / name / "x").unlink()
        (tmp_path / name).rmdir()
    log.write(b"d" * 1000 + b"\n")
    log.close()
    assert (tmp_path / "log").read_bytes() == b"d" * 1000 + b"\n[2,002 bytes of output could not be written]\n"
    assert (tmp_path / "log.1").read_bytes() == b"a" * 1000 + b"\n"
