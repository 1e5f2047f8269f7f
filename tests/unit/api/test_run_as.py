"""`run_as` in engines.yaml: as which system user jobs of this machine run."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from chipwise.api.running import engines, place
from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.errors import InvalidFile
from chipwise.runner.engines_file import run_as


def _session(tmp_path: Path, text: str) -> Session:
    (tmp_path / "engines.yaml").write_text(text)
    return Session(Config(tmp_path, tmp_path / "data"), date(2026, 11, 16), [])


@pytest.mark.parametrize(
    ("text", "users"),
    [
        ("cluster: {kind: kubernetes}", {}),
        ("local: {}", {}),
        ("local:", {}),
        ("local: {run_as: jobs}", {"": "jobs"}),
        ("local: {run_as: {mia: mia, ada: jobs}}\ncluster: {kind: kubernetes, namespace: a}", {"mia": "mia", "ada": "jobs"}),
    ],
)
def test_a_name_for_all_or_for_each_owner(tmp_path: Path, text: str, users: dict[str, str]) -> None:
    session = _session(tmp_path, text)
    assert run_as(session.config.engines, "local") == users
    assert place.engine_here(session).config.run_as == users
    assert engines.reach(session, "local").is_local


@pytest.mark.parametrize(
    "fields",
    [
        "{run_as: 3}",
        "{run_as: {}}",
        "{run_as: {mia: }}",
        "{run_as: {'': jobs}}",
        "{run_as: [a]}",
        "run_as",
        "{run_as: a, as: b}",
    ],
)
def test_what_will_not_do_is_refused_and_never_taken_for_no_setting(tmp_path: Path, fields: str) -> None:
    session = _session(tmp_path, f"local: {fields}\ncluster: {{kind: kubernetes}}")
    with pytest.raises(InvalidFile, match="local"):
        run_as(session.config.engines, "local")
    with pytest.raises(InvalidFile, match="local"):
        engines.reach(session, "cluster")


def test_without_the_file_jobs_run_as_the_controllers_user(tmp_path: Path) -> None:
    assert run_as(Config(tmp_path, tmp_path / "data").engines, "local") == {}
