"""What people are told of jobs on a cluster: where a service is, which stage is waited for, and output from now on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from chipwise.adapters.stores.memory_record import MemoryRecord
from chipwise.api.running import following, installed, jobs
from chipwise.errors import BadInput, TryLater
from chipwise.runner.abilities import Traits
from chipwise.runner.engine import Room
from chipwise.runner.events import Begun, Ended, Over, Placed
from chipwise.runner.job import Job, MachinePlace, Needs, Outcome, Phase, Spec
from chipwise.runner.queue import Rules
from run_jobs import added, queued, spec

PLACE = "kubernetes:10.0.0.1:6443/train"
SERVICE = {"kind": "Service", "metadata": {"name": "chat"}, "spec": {"ports": [{"port": 80}]}}


def _there(**asked: Any) -> Spec:
    return spec("chat", engine="kubernetes", place=PLACE, **asked)


class Played:
    """A stand-in for an engine that tells logs: what was written before, and what comes."""

    def __init__(self, before: bytes, later: bytes, broken: bool = False) -> None:
        self.before, self.later, self.broken = before, later, broken

    def logs(self, job: Job, number: int, *, follow: bool, rank: int | None) -> Iterator[bytes]:
        if self.broken and not follow:
            raise TryLater("away")
        yield self.before
        if follow:
            yield self.later


def _followed(engine: Played, lines: int) -> bytes:
    running = added(queued(wanted=_there()), Placed(1, MachinePlace()), Begun(1))
    done = added(running, Ended(1, Outcome.DONE, 0), Over(Phase.DONE, ""))
    looks = itertools.chain([running, running], itertools.repeat(done))
    held: Any = SimpleNamespace(engine_of=lambda job: engine, root=None)
    return b"".join(following.follow_from(held, lambda: next(looks), lines))


def test_who_attaches_gets_the_last_lines_and_on_from_there_and_nothing_twice() -> None:
    assert _followed(Played(b"1\n2\n3\n", b"4\n"), 2) == b"2\n3\n4\n"
    assert _followed(Played(b"1\n2\n3 and", b" on\n"), 2) == b"2\n3 and on\n"
    assert _followed(Played(b"1\n", b"2\n", broken=True), 2) == b"1\n2\n", "then from the beginning"


def test_the_last_lines_end_where_the_output_does() -> None:
    held: Any = SimpleNamespace(engine_of=lambda job: Played(b"1\n2\n", b""), root=None)
    job = added(queued(wanted=_there()), Placed(1, MachinePlace()))
    assert [following.tail_of(held, job, None, lines) for lines in (0, 1, 9)] == [b"", b"2\n", b"1\n2\n"]


def test_a_pod_that_is_not_there_is_no_empty_output() -> None:
    two = added(queued(wanted=_there(needs=Needs(machines=2))), Placed(1, MachinePlace(), machines=2))
    following.check_rank(two, None, 1)
    with pytest.raises(BadInput, match="has 2 pods, and none is 2"):
        following.check_rank(two, None, 2)
    following.check_rank(queued(wanted=_there(service=True)), None, 3)


def test_a_service_on_a_cluster_is_told_with_its_address_while_it_is_there() -> None:
    service = added(queued("chat-1", _there(service=True, objects=(SERVICE,))), Placed(1, MachinePlace()))
    told = "http://chat-1-a1.train.svc in the cluster; from here: kubectl -n train port-forward svc/chat-1-a1 8080:80"
    assert jobs.serves_at(service) == told
    assert jobs.serves_at(queued("chat-1", _there(service=True, objects=(SERVICE,)))) == ""
    assert jobs.serves_at(added(queued("chat-1", _there(objects=(SERVICE,))), Placed(1, MachinePlace()))) == "", (
        "pods meet by it"
    )


def test_a_stage_elsewhere_is_named_by_whoever_waits_for_it_here_and_there() -> None:
    record = MemoryRecord()
    record.submit(
        [("p-tune", _there()), ("p-here", spec("here", after=("p-tune",))), ("p-there", _there(after=("p-tune",)))], 1.0
    )
    for id in ("p-here", "p-there"):
        job = record.job(id)
        assert job is not None
        assert jobs.describe(record, job, Room((), (0,)), Rules()).waiting == "waits for chat"


def test_of_an_engine_that_is_not_installed_nothing_is_known_and_nothing_fails() -> None:
    """As in a team's record, to which somebody submits with a package of their own."""
    wanted = replace(_there(service=True, objects=(SERVICE,)), engine="nowhere")
    job = added(queued(wanted=wanted), Placed(1, MachinePlace()), Begun(1))
    assert jobs.serves_at(job) == ""
    following.check_rank(job, None, 7)
    assert (installed.traits("nowhere"), installed.runs_here("nowhere")) == (Traits(), False)
