"""Where the data directory is, whatever its name holds and wherever a process stands; the record is in it."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner

import chipwise
from chipwise.adapters.stores.record import connect
from chipwise.adapters.stores.record.address import File, read_address
from chipwise.api.running import controlling, place
from chipwise.api.session.config import Config, read_config
from chipwise.api.session.wiring import Session
from chipwise.cli.main import main
from chipwise.cli.ps import ps
from chipwise.errors import BadInput, NotAllowed

TODAY = date(2026, 11, 15)
ODD = [
    "plain",
    "50%25 off",
    "a?mode=ro",
    "a#b",
    "a b",
    "Zürich-東京",
    "a:b@c",
    "sqlite:x",
    "%2e%2e",
    "-x",
    "~",
    "a\nb",
    "\udcff",
]


def opened(tmp_path: Path, folder: str) -> Session:
    return Session(read_config({"HOME": str(tmp_path), "CHIPWISE_DATA_DIR": folder}), TODAY, [])


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("relative", [False, True])
def test_the_record_is_inside_whatever_the_name_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, relative: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CHIPWISE_RECORD", raising=False)
    folder = f"./{name}" if relative else str(tmp_path / name)
    session = opened(tmp_path, folder)
    connect(place.record_url(session)).close()
    assert session.config.data_dir == tmp_path / name
    assert (tmp_path / name / "record.db").is_file()
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("variable", ["CHIPWISE_DATA_DIR", "CHIPWISE_CONFIG_DIR"])
def test_a_relative_directory_is_the_same_for_a_controller_that_stands_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.chdir(tmp_path)
    name = f"of-{variable}"
    (tmp_path / name).mkdir()
    monkeypatch.setenv(variable, name)
    monkeypatch.setenv("CHIPWISE_RECORD", f"{name}.db")
    environment = controlling.environment(Session(read_config(), TODAY, []))
    assert environment[variable] == str(tmp_path / name)
    monkeypatch.chdir("/")
    assert read_address(environment["CHIPWISE_RECORD"]) == File(tmp_path / f"{name}.db")


def test_a_relative_directory_stays_where_it_was_when_the_program_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = opened(tmp_path, "moving")
    monkeypatch.chdir("/")
    assert opened(tmp_path, "moving").config == before.config


def test_what_is_not_set_is_not_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CHIPWISE_DATA_DIR", "CHIPWISE_CONFIG_DIR", "CHIPWISE_RECORD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    environment = controlling.environment(Session(read_config(), TODAY, []))
    assert not {"CHIPWISE_DATA_DIR", "CHIPWISE_CONFIG_DIR", "CHIPWISE_RECORD"} & environment.keys()


def test_an_empty_value_is_none_and_a_home_is_a_home(tmp_path: Path) -> None:
    usual = read_config({"HOME": str(tmp_path)})
    assert read_config({"HOME": str(tmp_path), "CHIPWISE_DATA_DIR": "", "XDG_DATA_HOME": ""}) == usual
    assert opened(tmp_path, "~/here").config.data_dir == Path("~/here").expanduser()
    assert read_config({"HOME": str(tmp_path), "XDG_DATA_HOME": "share"}) == usual  # the standard: a relative one is ignored


@pytest.mark.parametrize("kind", ["file", "dangling", "fifo", "below a file"])
def test_what_cannot_be_a_directory_is_refused(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "target"
    match kind:
        case "dangling":
            target.symlink_to(tmp_path / "gone")
        case "fifo":
            os.mkfifo(target)
        case _:
            target.write_text("")
    with pytest.raises(BadInput) as refused:
        opened(tmp_path, str(target / "data" if kind == "below a file" else target))
    assert "CHIPWISE_DATA_DIR" in f"{refused.value.message} {refused.value.remedy}"
    assert not (tmp_path / "gone").exists()


def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError

    session = Session(Config(tmp_path, tmp_path / "data"), TODAY, [])
    monkeypatch.delenv("CHIPWISE_RECORD", raising=False)
    monkeypatch.setattr(Path, "mkdir", refused)  # root may write everywhere
    with pytest.raises(NotAllowed, match="may not be made by you"):
        connect(place.record_url(session))


def test_listing_jobs_makes_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CHIPWISE_RECORD", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CHIPWISE_DATA_DIR", "there")
    result = CliRunner().invoke(ps, [])
    assert (result.exit_code, result.output.partition(";")[0]) == (0, "No jobs")
    assert not list(chipwise.ps())
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "words",
    [["ps"], ["describe", "x"], ["logs", "x"], ["stop", "x"], ["attach", "x"], ["retry", "x"], ["reap", "--dry-run"]],
    ids=lambda words: words[0],
)
def test_who_submits_nothing_makes_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    monkeypatch.delenv("CHIPWISE_RECORD", raising=False)
    monkeypatch.setenv("CHIPWISE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("CHIPWISE_CONFIG_DIR", str(tmp_path))
    main(words)
    assert not list(tmp_path.rglob("record.db*"))
