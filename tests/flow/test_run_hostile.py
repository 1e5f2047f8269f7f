"""What is typed at `run`, and the files it reads: whatever they hold, the answer is a sentence, and no job is left."""

from __future__ import annotations

import sqlite3
from datetime import date
from pathlib import Path

import pytest

from chipwise.adapters.stores.record import connect
from chipwise.api.running import engines, place
from chipwise.api.running.place import rules
from chipwise.api.running.submitting import secrets_of
from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.errors import BadInput, NotFound
from chipwise.runner.job import Spec
from chipwise.runner.queue import Rules, Share
from command import Chipwise

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefghi", "bcdefghij", strict=True)
)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--", ""], 3, "The command '' was not found."),
        (["--secret", "a/../../b=x/y", "--", "true"], 2, "'a/../../b' is not a variable."),
        (["--secret", "=x", "--", "true"], 2, "'' is not a variable."),
        (["--secret", "KEY=/etc/hostname", "--", "true"], 2, "cannot be stored under '/etc/hostname'"),
        (["--secret", "KEY=../../hostname", "--", "true"], 2, "cannot be stored under '../../hostname'"),
        (["--secret", "KEY=kept/../../hostname", "--", "true"], 2, "cannot be stored under"),
        (["--name", "two\nlines", "--", "true"], 2, "--name is 'two\\nlines'."),
        (["--team", "red\x1b[31m", "--", "true"], 2, "--team is"),
        (["--project", "x" * 100_000, "--", "true"], 2, "at most 200 characters"),
        (["--label", "a\rb=c", "--", "true"], 2, "--label is"),
        (["--label", f"a={'b' * 100_000}", "--", "true"], 2, "--label a is"),
        (["--recover", "everything", "--", "true"], 2, "which is no move"),
        (["--budget", "nan", "--", "true"], 2, "--budget: nan is not possible."),
        (["--gpus", "99999999999", "--", "true"], 2, "--gpus is 99,999,999,999, and at most 1,024"),
        (["--env", "A=\udcff", "--", "true"], 2, "half a character"),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(chipwise: Chipwise, arguments: list[str], code: int, said: str) -> None:
    done = chipwise("run", "--detach", *arguments)
    assert done.code == code
    assert said in done.err
    assert "a bug in chipwise" not in done.err
    assert chipwise("ps", "--all", "--json").json == []


def test_a_health_page_that_nobody_could_ask_is_refused(chipwise: Chipwise, tmp_path: Path) -> None:
    path = tmp_path / "service.yaml"
    path.write_text("""kind: serve
name: echo
model: llama-3.2-1b
arrival: {rate: 1 req/s}
input_tokens: 10
output_tokens: 10
program: {command: [python, serve.py], health: /health}
""")
    done = chipwise("run", "--detach", str(path))
    assert (done.code, "echo has a health page and no port. Add the port" in done.err) == (2, True)
    assert chipwise("ps", "--all", "--json").json == []


def test_an_unknown_option_points_to_the_help_of_its_command(chipwise: Chipwise) -> None:
    assert "Try: chipwise ps --help" in chipwise("ps", "-z").err
    assert "Try: chipwise --help" in chipwise("--nonsense").err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BOMB + "patience: *j\n", "the aliases unfold to more than"),
        ("[" * 100_000, "nested more than"),
        ("patience: soon", "patience: 'soon' is not a duration"),
        ("patience: -1h", "patience: it is below zero"),
        ("teams: {a: {gpus: -1}}", "teams.a.gpus: -1 is not a number of devices"),
        ("teams: [", "not valid YAML"),
        ("- teams", "a mapping of fields"),
        ("\x00", "NUL bytes"),
    ],
)
def test_a_bad_file_of_shares_is_told_with_its_name(chipwise: Chipwise, text: str, said: str) -> None:
    chipwise.config_dir.mkdir(parents=True, exist_ok=True)
    (chipwise.config_dir / "queue.yaml").write_text(text)
    done = chipwise("run", "--detach", "--", "true")
    assert done.code == 2
    assert "queue.yaml" in done.err
    assert said in done.err
    assert chipwise("ps", "--all", "--json").json == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Rules()),
        ("# teams: {a: {gpus: 1}}\n\n", Rules()),
        ("patience: 90s\nteams: {a: {gpus: 1, weight: 2}}", Rules({"a": Share(1, None, 2.0)}, Share(), 90.0)),
    ],
)
def test_a_file_of_shares_may_be_empty_or_all_comments(chipwise: Chipwise, text: str, expected: Rules) -> None:
    session = session_of(chipwise)
    session.config.queue.write_text(text)
    assert rules(session) == expected


def session_of(chipwise: Chipwise) -> Session:
    for folder in (chipwise.config_dir, chipwise.data_dir):
        folder.mkdir(parents=True, exist_ok=True)
    return Session(Config(chipwise.config_dir, chipwise.data_dir), date(2026, 11, 15), [])


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"place": 3}', '{"place": "x", "kind": ["ec2"]}', "[" * 100_000])
def test_a_note_of_a_place_that_was_cut_off_is_passed_over(chipwise: Chipwise, text: str) -> None:
    session = session_of(chipwise)
    home = place.home_of(session, "ec2:1:eu-west-1")
    home.mkdir(parents=True)
    (home / "reach.json").write_text(text)
    assert engines.places(session) in ([], ["x"])
    with pytest.raises(NotFound, match="This machine has no settings for ec2:1:eu-west-1"):
        engines.of_place(session, "ec2:1:eu-west-1")


@pytest.mark.parametrize("text", [b"", b"\xff\xfe", b"../../x", b"a\nb"])
def test_the_name_of_a_record_is_one_word_whatever_its_file_holds(chipwise: Chipwise, text: bytes) -> None:
    session = session_of(chipwise)
    path = Path(f"{session.config.record}.id")
    path.write_bytes(text)
    assert engines.record_id(session) == engines.record_id(session)
    assert engines.record_id(session).isalnum()


def test_a_record_keeps_the_name_that_it_got_first(chipwise: Chipwise) -> None:
    session = session_of(chipwise)
    first = engines.record_id(session)
    assert Path(f"{session.config.record}.id").read_text() == first == engines.record_id(session)
    assert [one.name for one in chipwise.data_dir.glob("*.id*")] == ["record.db.id"]


def test_a_job_that_cannot_be_read_is_told_in_words_and_the_others_as_ever(chipwise: Chipwise) -> None:
    session = session_of(chipwise)
    record = connect(f"sqlite:///{session.config.record}")
    record.submit([(id, Spec(("true",), id, place="here")) for id in ("j1", "j2")], 0.0)
    with sqlite3.connect(session.config.record) as other:
        other.execute('UPDATE jobs SET body = \'{"id": 3, "spec": [\' WHERE id = "j1"')
    assert (job := record.job("j1")) is not None
    assert job.spec.name == "j1", "its events give it"
    with sqlite3.connect(session.config.record) as other:
        other.execute("DROP TRIGGER events_never_update")
        other.execute('UPDATE events SET body = "" WHERE job = "j1"')
    record.close()
    assert {row["id"]: bool(row["damaged"]) for row in chipwise("ps", "--json").json} == {"j1": True, "j2": False}
    told = chipwise("ps")
    assert "The database row of j1 is damaged" in told.err
    assert "The database row of j2" not in told.err
    for words in (["describe", "j1"], ["describe", "--json", "j1"]):
        assert "chipwise forget j1 --damaged" in " ".join(chipwise(*words).out.split())
    refused = chipwise("stop", "j1")
    assert (refused.code, "a bug in chipwise" in refused.err) == (3, False)
    assert "chipwise forget j1 --damaged" in refused.err
    assert chipwise("forget", "j1", "--damaged").code == 0
    assert {row["id"]: row["phase"] for row in chipwise("ps", "--json").json} == {"j1": "failed", "j2": "queued"}


def test_a_secret_of_a_cloud_keeps_the_name_that_it_has_there() -> None:
    kept = "arn:aws:secretsmanager:eu-west-1:1:secret:token-Ab12"
    assert secrets_of(["A=ssm:/team/token", f"B={kept}", "C"], is_local=False) == {"A": "ssm:/team/token", "B": kept, "C": ""}
    assert secrets_of(["A=hub/token", "C"], is_local=True) == {"A": "hub/token", "C": ""}
    with pytest.raises(BadInput, match="cannot be stored under"):
        secrets_of(["A=ssm:/team/token"], is_local=True)
