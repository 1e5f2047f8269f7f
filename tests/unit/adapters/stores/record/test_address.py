"""Where a record is: what may be typed. `test_odd_addresses.py` shows that a password is never repeated."""

from __future__ import annotations

from pathlib import Path

import pytest

from chipwise.adapters.stores.record.address import File, read_address
from chipwise.errors import BadInput


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///var/lib/jobs.db", "/var/lib/jobs.db"),
        ("sqlite:////var/lib/jobs.db", "/var/lib/jobs.db"),
        ("/var/lib/jobs.db", "/var/lib/jobs.db"),
        ("sqlite:///a%20b/jobs.db", "/a b/jobs.db"),
        ("/a:b/jobs.db", "/a:b/jobs.db"),
        ("SQLITE:///x.db", "/x.db"),
    ],
)
def test_a_file_is_named_by_url_or_path(url: str, path: str) -> None:
    assert read_address(url) == File(Path(path))


def test_a_relative_path_and_a_home_are_made_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/alice")
    assert read_address("jobs.db") == File(tmp_path / "jobs.db")
    assert read_address("~/jobs.db") == File(Path("/home/alice/jobs.db"))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "is empty"),
        ("sqlite://host/x.db", "three slashes"),
        ("sqlite:x.db", "three slashes"),
        ("/tmp/", "is a folder"),
        ("mysql://h/d", "begins with 'mysql'"),
        ("postgresq://h/d", "Did you mean postgresql"),
        ("a\0b", "NUL"),
        ("sqlite:///x.db?mode=ro", "not known: mode"),
        ("sqlite:///x.db?synchronous=off", "not known: synchronous=off"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(url: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        read_address(url)


def test_host_database_and_login_are_shown() -> None:
    assert (
        str(read_address("postgres://alice:s3cret@db.example:5433/jobs?sslmode=require"))
        == "postgresql://alice@db.example:5433/jobs"
    )
    assert str(read_address("postgresql:///?service=team")) == "postgresql:///"
