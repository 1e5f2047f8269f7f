"""Queues of Kueue, as they are chosen and as they limit a job, before anything is made."""

from __future__ import annotations

from typing import Any, cast

import pytest

from chipwise.adapters.engines.kubernetes.connection import Connection
from chipwise.adapters.engines.kubernetes.kinds import LOCAL_QUEUE, Object, ObjectKind
from chipwise.adapters.engines.kubernetes.objects import attempt_objects
from chipwise.adapters.engines.kubernetes.plain import command_objects
from chipwise.adapters.engines.kubernetes.trying import queue_for, try_out
from chipwise.errors import BadInput, ChipwiseError, NotAllowed, NotFound
from chipwise.runner.events import Placed, Submitted, after, first
from chipwise.runner.job import MachinePlace, Needs, Spec


class Queues:
    """A connection that lists queues, and takes whatever is tried."""

    namespace, server = "here", "there"

    def __init__(self, *names: str, quota: str = "8", error: ChipwiseError | None = None, **group: Any) -> None:
        self.names, self.error = names, error
        gpus = {"name": "nvidia.com/gpu", "nominalQuota": quota, **group}
        self.cluster = {
            "metadata": {"name": "all"},
            "spec": {
                "cohortName": "lends" if group else "",
                "resourceGroups": [{"flavors": [{"name": "a", "resources": [gpus]}]}],
            },
        }

    def list(self, kind: ObjectKind, labels: str = "") -> tuple[list[Object], str]:
        if self.error is not None:
            raise self.error
        if kind is LOCAL_QUEUE:
            return [{"metadata": {"name": name}, "spec": {"clusterQueue": "all"}} for name in self.names], ""
        return [self.cluster], ""

    def apply(self, kind: ObjectKind, made: Object, *, dry_run: bool = False) -> Object:
        assert dry_run
        return made


def _try(queues: Queues, gpus: int, machines: int = 1) -> None:
    spec = Spec(("x",), "train", "kubernetes", needs=Needs(gpus, machines=machines))
    spec = Spec(("x",), "train", "kubernetes", objects=command_objects(spec, "i:1", "team-a"))
    job = after(first("j", Submitted(spec), 0.0), Placed(1, MachinePlace()), 0.0)
    try_out(cast(Connection, queues), "train", attempt_objects(job, "here", ""))


def _queue(queues: Queues, team: str = "", asked: str = "") -> str:
    return queue_for(cast(Connection, queues), team, asked)


def test_a_job_goes_to_the_queue_asked_for_or_its_teams_or_the_only_one() -> None:
    assert _queue(Queues("b", "team-a"), "Team A") == "team-a"
    assert _queue(Queues("b", "team-a"), "Team A", "b") == "b"
    assert _queue(Queues("only"), "vision") == "only"
    assert _queue(Queues(), "vision") == ""
    for error in (NotFound("no Kueue"), NotAllowed("no right")):
        assert _queue(Queues(error=error), "vision") == ""
    assert _queue(Queues(error=NotAllowed("no right")), "vision", "b") == "b"
    with pytest.raises(BadInput, match="no Kueue at there, so no queue b"):  # it would wait for ever
        _queue(Queues(error=NotFound("no Kueue")), "vision", "b")


def test_a_queue_that_is_not_there_or_not_clear_is_asked_for_again() -> None:
    with pytest.raises(BadInput, match=r"no queue team-b in namespace here.*Did you mean team-a\?"):
        _queue(Queues("team-a"), asked="team-b")
    with pytest.raises(BadInput, match=r"several queues: a, b.*--queue"):
        _queue(Queues("a", "b"), "vision")


@pytest.mark.parametrize(("quota", "given"), [("8", "8"), ("0", "0")])
def test_what_a_queue_never_gives_is_refused_with_both_numbers(quota: str, given: str) -> None:
    with pytest.raises(BadInput, match=rf"train needs 16 GPUs, and queue team-a never gives more than {given}\."):
        _try(Queues("team-a", quota=quota), 8, 2)


def test_what_a_queue_may_give_or_borrow_or_nobody_counts_is_let_through() -> None:
    _try(Queues("team-a"), 8)
    _try(Queues("team-a", borrowingLimit="8"), 8, 2)
    _try(Queues("team-a", borrowingLimit=None), 64)
    _try(Queues("team-a", error=NotAllowed("no right")), 64)
