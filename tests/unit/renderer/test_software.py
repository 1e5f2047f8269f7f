"""Which program runs a workload: an engine that has nothing to serve is refused, and not started."""

from __future__ import annotations

import pytest

from chipwise.api.render import RenderRequest, deployment_of, fitting
from chipwise.api.session.wiring import Session, open_session
from chipwise.files.source import read_text
from chipwise.renderer.file import CannotRender
from deployments import EXAMPLES
from small_catalog import few_offers


@pytest.fixture(scope="module")
def session() -> Session:
    with few_offers():
        opened = open_session()
        assert opened.catalog.offers
    return opened


def with_program(kind: str, program: str) -> tuple[str, RenderRequest]:
    path = str(EXAMPLES / kind / "workload.yaml")
    lines = [line for line in read_text(path).splitlines() if not line.startswith("program:")]
    return path, RenderRequest(text="\n".join([*lines, f"program: {program}"]))


@pytest.mark.parametrize("kind", ["hpc", "transcode", "interactive"])
@pytest.mark.parametrize("engine", ["sglang", "tgi"])
def test_an_engine_without_a_model_is_refused_with_what_to_do(session: Session, kind: str, engine: str) -> None:
    path, request = with_program(kind, f"{{engine: {engine}, image: 'team/own:1'}}")
    with pytest.raises(CannotRender) as refused:
        deployment_of(session, path, request)
    assert "program.engine" in str(refused.value.remedy)
    assert "program.command" in str(refused.value.remedy)
    assert all(isinstance(answer, str) for answer in fitting(session, path, request).values())


def test_an_engine_with_a_command_of_the_users_own_needs_no_model(session: Session) -> None:
    path, request = with_program("interactive", "{engine: sglang, image: 'team/own:1', command: [python, demo.py]}")
    assert deployment_of(session, path, request).software.command == ("python", "demo.py")
