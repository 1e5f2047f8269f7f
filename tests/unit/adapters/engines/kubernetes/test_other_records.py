"""Two records with a job of the same id in one namespace: neither takes the other's objects for its own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from chipwise.adapters.engines.kubernetes.connection import Exists
from chipwise.adapters.engines.kubernetes.engine import Config, Kubernetes
from chipwise.adapters.engines.kubernetes.kinds import JOB, ObjectKind
from chipwise.errors import BadInput
from chipwise.runner.engine import End, Leave, Start
from chipwise.runner.events import Begun, Placed, Submitted, after, first
from chipwise.runner.job import Job, MachinePlace, Spec
from engines.kubernetes import job_object


@dataclass
class Server:
    """Objects by kind and name, without anything that acts on them."""

    namespace: str = "here"
    server: str = "https://example.com"
    objects: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def get(self, kind: ObjectKind, name: str) -> dict[str, Any] | None:
        return self.objects.get((kind.name, name))

    def create(self, kind: ObjectKind, body: dict[str, Any]) -> dict[str, Any]:
        if (kind.name, body["metadata"]["name"]) in self.objects:
            raise Exists("It is there.")
        return self.replace(kind, body)

    def replace(self, kind: ObjectKind, body: dict[str, Any]) -> dict[str, Any]:
        self.objects[kind.name, body["metadata"]["name"]] = body
        return body

    apply = replace

    def merge(self, kind: ObjectKind, name: str, change: dict[str, Any]) -> dict[str, Any]:
        self.objects[kind.name, name] |= change
        return self.objects[kind.name, name]

    def delete(self, kind: ObjectKind, name: str, **how: object) -> bool:
        return self.objects.pop((kind.name, name), None) is not None

    def list(self, kind: ObjectKind, selector: str) -> tuple[list[dict[str, Any]], str]:
        return [], ""


def _engine(server: Server, record: str) -> Kubernetes:
    return Kubernetes(Config(record=record), server)  # type: ignore[arg-type]


@pytest.fixture
def job() -> Job:
    spec = Spec(("x",), "train", "kubernetes", objects=(job_object({}),))
    return after(first("train-k3x9qab", Submitted(spec), 0.0), Placed(1, MachinePlace()), 0.0)


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "not listed yet"])
def test_a_job_of_another_record_is_neither_adopted_nor_ended(job: Job, listed: bool) -> None:
    server = Server()
    _engine(server, "aaaaaaaaaa").do(Start(job))
    before = {key: dict(body) for key, body in server.objects.items()}
    other = _engine(server, "bbbbbbbbbb")
    if listed:
        other.picture.put(JOB, server.objects["Job", "train-k3x9qab-a1"])
    assert other._sight(job, 1.0) is None
    with pytest.raises(BadInput, match="another database"):
        other.do(Start(job))
    other.do(Leave(job, 2.0, "stop"))
    other.do(End(job))
    assert server.objects == before


def test_a_job_that_ran_for_us_is_ours_when_the_record_has_another_address(job: Job) -> None:
    server = Server()
    _engine(server, "aaaaaaaaaa").do(Start(job))
    later = _engine(server, "bbbbbbbbbb")
    later.do(End(after(job, Begun(1, ""), 1.0)))
    assert ("Job", "train-k3x9qab-a1") not in server.objects


def test_an_id_that_gives_the_same_name_gets_nothing_of_the_other(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of an odd id ends in a part of its digest, which somebody could match with much patience."""
    server = Server()
    engine = _engine(server, "mine")
    engine.do(Start(job))
    before = dict(server.objects[JOB.name, f"{job.id}-a1"])
    alike = replace(job, id="Train.K3x9qab")
    for module in ("engine", "objects"):
        monkeypatch.setattr(f"chipwise.adapters.engines.kubernetes.{module}.slug", lambda id: job.id)
    with pytest.raises(BadInput, match="Another job has the name"):
        engine.do(Start(alike))
    for order in (Leave(alike, 10.0, "asked"), End(alike)):
        engine.do(order)
    assert server.objects[JOB.name, f"{job.id}-a1"] == before
    assert before["spec"]["template"]["metadata"]["annotations"]["chipwise.dev/job-id"] == job.id
