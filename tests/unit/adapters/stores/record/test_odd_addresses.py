"""Odd URLs of a record: a password in them is neither shown nor made the name of a file, whatever is wrong with the rest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.adapters.stores.record import address
from chipwise.adapters.stores.record.address import File, Server, file_url, read_address
from chipwise.errors import BadInput

FORMS = (
    "//alice:{}@db.example/jobs",
    "://alice:{}@db.example/jobs",
    "alice:{}@db.example/jobs",
    "a:{}@db.example/jobs",
    "alice:{}@",
    ":{}@db.example",
    "/alice:{}@db.example/jobs",
    "./alice:{}@db.example/jobs",
    "postgresql//alice:{}@db.example/jobs",
    "postgresql/alice:{}@db.example/jobs",
    "postgresql:alice:{}@db.example/jobs",
    "postgresql:/alice:{}@db.example/jobs",
    "postgresql:///alice:{}@db.example/jobs",
    "postgresql://alice:{}@db.example:5433/jobs",
    "postgresql://alice:{}@db.example:70000/jobs",
    "postgresql://alice:{}@[db/jobs",
    "postgresql://alice:{}@@db.example/jobs",
    "postgresql://al@ice:{}@db.example/jobs",
    "postgresql://db.example/jobs?password={}",
    "postgresql://db.example/jobs?user=alice&password={}#x",
    "postgresql://db.example?password={}",
    "postgresql://db.example/jobs#{}",
    "POSTGRES://alice:{}@db.example/jobs",
    " postgresql://alice:{}@db.example/jobs",
    "mysql://alice:{}@db.example/jobs",
    "postgresq://alice:{}@db.example/jobs",
    "jdbc:postgresql://alice:{}@db.example/jobs",
    "postgresql+psycopg://alice:{}@db.example/jobs",
    "sqlite://alice:{}@db.example/jobs",
    "sqlite:///alice:{}@db.example/jobs",
    "sqlite:///jobs.db?password={}",
    "sqlite:///jobs.db?{}",
    "host=db.example password={} dbname=jobs",
    "password={}",
    "password = '{}' host=db.example",
    "dbname=jobs  PASSWORD={}",
)
SECRETS = st.one_of(
    st.text("ab12@/#?%:&= []'\"\\~.", min_size=6, max_size=16),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=6, max_size=20),
    st.from_regex(r"[0-9]{1,5}/[0-9]{6}", fullmatch=True),
    st.from_regex(r"[0-9]{1,5}[#?][a-z]=[0-9]{6}", fullmatch=True),
    st.from_regex(r"[a-z0-9]{6}[@/#][a-z0-9]{6}", fullmatch=True),
)


OWN = f"{' '.join(FORMS)} {Path(address.__file__).read_text(encoding='utf-8')}".lower()  # what is there without any secret


def pieces(secret: str) -> set[str]:
    """What gives a password away: any four characters of it in a row."""
    parts = {secret[i : i + 4] for i in range(len(secret) - 3)}
    return {part for part in parts if part.lower() not in OWN}


@given(SECRETS, st.sampled_from(FORMS))
def test_no_part_of_a_password_is_shown_or_names_a_file(secret: str, form: str) -> None:
    try:
        place = read_address(form.format(secret))
    except BadInput as error:
        shown = f"{error} {error.message} {error.remedy} {error!r}"
    else:
        assert isinstance(place, Server), "a file of that name"
        shown = f"{place} {place!r}"
    assert not {part for part in pieces(secret) if part in shown}


@pytest.mark.parametrize(
    "url",
    [
        "alice@db.example/jobs",
        "host=db.example password=hunter22",
        "postgresql://alice:12/34@db.example/jobs",
        "postgresql://alice:12#34@db.example/jobs",
        "postgresql://alice:p@ss@db.example/jobs",
        "postgresql://alice:50%off@db.example/jobs",
        "postgresql:alice@db.example/jobs",
    ],
)
def test_what_could_be_read_in_two_ways_is_refused_with_the_way_to_write_it(url: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_address(url)
    assert "postgresql://user@host/database" in (refused.value.remedy or "")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://alice:p%40ss%2F@db.example:5433/jobs?sslmode=require&options=-c%20x%3D1",
        "postgresql://one.example:5432,two.example/jobs?target_session_attrs=read-write",
        "postgresql://%2Fvar%2Frun/jobs",
        "postgresql:///?service=team",
        "postgresql://alice:a:b@[::1]:5432/jobs",
        "postgresql://",
        "postgresql:///jobs?host=/var/run/postgresql&user=alice",
    ],
)
def test_what_libpq_takes_without_doubt_is_taken(url: str) -> None:
    assert isinstance(read_address(url), Server)


def test_paths_with_odd_characters_stay_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_address("/srv/alice@corp/50%25 a=b #1?.db") == File(Path("/srv/alice@corp/50%25 a=b #1?.db"))
    assert read_address("./alice@corp.db") == File(tmp_path / "alice@corp.db")
    with pytest.raises(BadInput, match="home directory"):
        read_address("~nobody-of-that-name/jobs.db")


@given(st.binary(min_size=1, max_size=30).filter(lambda name: not {0, 47} & set(name) and name not in (b".", b"..")))
def test_the_url_of_a_file_gives_the_same_file(name: bytes) -> None:
    path = Path("/srv") / os.fsdecode(name)
    assert read_address(file_url(path)) == File(path)
