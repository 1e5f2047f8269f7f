"""A pipeline is asked by its name: all stages of its newest run of which that can be asked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from chipwise.api.running import asking, jobs, place, submitting, wanted
from chipwise.api.running.held import Runtime
from chipwise.api.session.wiring import Session
from chipwise.errors import BadInput, UnknownName
from chipwise.runner.events import Over
from chipwise.runner.job import Job, Phase, Spec, Wish
from chipwise.runner.record import Change, Record


def submitted(record: Record, session: Session, pipeline: str, at: float, *ended: Phase | None) -> list[str]:
    """One run: stages make, use, show, each after the one before it. Their ids."""
    here, names = place.this_place(session), ("make", "use", "show")[: len(ended)]
    ids = [submitting.new_id(f"{pipeline}-{name}") for name in names]
    specs = [
        (id, Spec(("true",), f"{pipeline}-{name}", place=here, after=tuple(ids[n - 1 : n]), workload="w", pipeline=pipeline))
        for n, (id, name) in enumerate(zip(ids, names, strict=True))
    ]
    for job, phase in zip(record.submit(specs, at), ended, strict=True):
        if phase is not None:
            record.write([Change(job, (Over(phase, "for some reason"),))], at + 1.0)
    return ids


def phases(record: Record, ids: list[str]) -> list[Phase]:
    return [job.phase for id in ids if (job := record.job(id))]


@pytest.mark.parametrize("name", ["flow", "Nightly Flow", "a-pipeline-whose-name-is-longer-than-any-id-would-hold"])
def test_stopping_a_pipeline_asks_its_stages_that_are_not_over_the_last_first(
    session: Session, record: Record, name: str
) -> None:
    before = submitted(record, session, name, 1.0, None, None)
    ids = submitted(record, session, name, 2.0, Phase.DONE, None, None)
    submitted(record, session, f"{name}-other", 3.0, None)
    assert asking.ask(session, [name], Wish.STOP) == [ids[2], ids[1]]
    assert [job.wish for id in before if (job := record.job(id))] == [Wish.RUN, Wish.RUN]


@pytest.mark.parametrize("again", [(), ("flow",)])
def test_trying_a_pipeline_again_asks_those_that_failed_in_their_order(
    session: Session, record: Record, again: tuple[str, ...]
) -> None:
    ids = submitted(record, session, "flow", 2.0, Phase.DONE, Phase.FAILED, Phase.FAILED)
    assert asking.ask(session, ["flow", *again], Wish.RUN) == ids[1:]
    assert phases(record, ids) == [Phase.DONE, Phase.QUEUED, Phase.QUEUED]


def test_a_stage_that_is_stopping_goes_on_with_the_others(session: Session, record: Record) -> None:
    ids = submitted(record, session, "flow", 2.0, None, Phase.STOPPED)
    asking.ask(session, [ids[0]], Wish.STOP)
    assert asking.ask(session, ["flow"], Wish.RUN) == ids


def test_a_job_of_that_name_or_id_is_meant_before_a_pipeline(session: Session, record: Record) -> None:
    submitted(record, session, "flow", 2.0, None, None)
    record.submit([("else-1", Spec(("true",), "flow", place="here")), ("two", Spec(("true",), "x", place="here"))], 1.0)
    submitted(record, session, "two", 2.0, None, None)
    assert asking.ask(session, ["flow", "two"], Wish.STOP) == ["else-1", "two"]


def test_the_beginning_of_an_id_still_means_its_job(session: Session, record: Record) -> None:
    [first, _] = submitted(record, session, "flow", 2.0, None, None)
    assert asking.ask(session, [first[:-1]], Wish.STOP) == [first]


def test_a_job_that_is_only_called_like_a_stage_is_none(session: Session, record: Record) -> None:
    record.submit([("flow-a-1", Spec(("true",), "flow-a", place="here")), ("flow-b-1", Spec(("true",), "flow-b"))], 2.0)
    with pytest.raises(BadInput, match="2 jobs begin with 'flow'"):
        asking.ask(session, ["flow"], Wish.STOP)
    with pytest.raises(UnknownName):
        asking.ask(session, [""], Wish.STOP)


@pytest.mark.parametrize(
    ("ended", "wish", "said"),
    [
        ((Phase.DONE, Phase.FAILED), Wish.STOP, "All stages of flow are over: .* is done, .* is failed. `chipwise retry flow`"),
        ((Phase.DONE, Phase.STOPPED), Wish.STOP, "`chipwise resume flow`"),
        ((Phase.DONE, Phase.DONE), Wish.STOP, "Submit it again"),
        ((Phase.DONE, Phase.DONE), Wish.RUN, "No stage of the newest run of flow failed or was stopped: .* Submit it again"),
        (
            (Phase.DONE, None),
            Wish.RUN,
            "No stage of the newest run of flow failed or was stopped: .* is queued. `chipwise describe`",
        ),
    ],
)
def test_where_no_stage_can_be_asked_each_is_told(
    session: Session, record: Record, ended: tuple[Phase | None, ...], wish: Wish, said: str
) -> None:
    submitted(record, session, "flow", 2.0, *ended)
    with pytest.raises(BadInput) as refused:
        asking.ask(session, ["flow"], wish)
    assert re.search(said, str(refused.value))


def test_a_stage_that_ends_meanwhile_is_passed_over(session: Session, record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = submitted(record, session, "flow", 2.0, None, None, None)

    def ends(held: Runtime, job: Job) -> None:
        if job.id == ids[2] and (first := record.job(ids[1])):
            record.write([Change(first, (Over(Phase.DONE, ""),))], 3.0)

    monkeypatch.setattr(Runtime, "awake", ends)
    assert asking.ask(session, ["flow"], Wish.STOP) == [ids[2], ids[0]]


def test_where_all_stages_end_meanwhile_that_is_told(session: Session, record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    [id] = submitted(record, session, "flow", 2.0, None)

    def ends(job: Job, wish: Wish) -> None:
        if not job.phase.over:
            record.write([Change(job, (Over(Phase.DONE, ""),))], 3.0)
        allowed(job, wish)

    allowed = jobs.allowed
    monkeypatch.setattr(jobs, "allowed", ends)
    with pytest.raises(BadInput, match=f"{id} is done already"):
        asking.ask(session, ["flow"], Wish.STOP)


def test_a_job_that_is_over_does_not_hide_a_pipeline_of_its_name(session: Session, record: Record) -> None:
    ids = submitted(record, session, "flow", 2.0, None, None)
    [one] = record.submit([("flow-0", Spec(("true",), "flow", place="here"))], 3.0)
    record.write([Change(one, (Over(Phase.STOPPED, ""),))], 4.0)
    assert asking.ask(session, ["flow"], Wish.STOP) == ids[::-1]
    with pytest.raises(BadInput, match="flow-0 is stopped already"):
        asking.ask(session, ["flow-0"], Wish.STOP)  # an id is always meant


def test_a_job_that_runs_does_not_hide_a_pipeline_that_failed(session: Session, record: Record) -> None:
    ids = submitted(record, session, "flow", 2.0, Phase.DONE, Phase.FAILED)
    record.submit([("else-1", Spec(("true",), "flow", place="here"))], 3.0)
    assert asking.ask(session, ["flow"], Wish.RUN) == ids[1:]


def test_where_neither_can_be_asked_the_job_is_told(session: Session, record: Record) -> None:
    submitted(record, session, "flow", 2.0, Phase.DONE)
    [one] = record.submit([("else-1", Spec(("true",), "flow", place="here"))], 3.0)
    record.write([Change(one, (Over(Phase.DONE, ""),))], 4.0)
    with pytest.raises(BadInput, match="else-1 is done already"):
        asking.ask(session, ["flow"], Wish.STOP)


def test_of_jobs_of_one_name_the_newest_that_is_not_over_is_stopped(session: Session, record: Record) -> None:
    record.submit([("x-1", Spec(("true",), "same", place="here"))], 1.0)
    [_, new] = record.submit([(id, Spec(("true",), "same", place="here")) for id in ("x-2", "x-3")], 2.0)
    record.write([Change(new, (Over(Phase.FAILED, ""),))], 3.0)
    assert asking.ask(session, ["same"], Wish.STOP) == ["x-2"]
    assert asking.ask(session, ["same"], Wish.RUN) == ["x-3"]


def test_an_older_run_that_is_not_over_is_stopped_when_the_newest_is_over(session: Session, record: Record) -> None:
    before = submitted(record, session, "flow", 1.0, Phase.DONE, None)
    submitted(record, session, "flow", 2.0, Phase.DONE, Phase.DONE)
    assert asking.ask(session, ["flow"], Wish.STOP) == before[1:]
    with pytest.raises(BadInput, match="No stage of the newest run of flow failed"):
        asking.ask(session, ["flow"], Wish.RUN)  # what came after it is not started again behind anybody's back


# Where one job is meant, a pipeline is none.


def test_the_name_of_a_pipeline_is_told_as_such_where_one_job_is_wanted(session: Session, record: Record) -> None:
    submitted(record, session, "mine", 1.0, None, None)
    ids = submitted(record, session, "mine", 2.0, None, None, None)
    with pytest.raises(BadInput) as told:
        jobs.find(record, "mine")
    assert str(told.value) == f"mine is a pipeline; the stages of its newest run are {', '.join(ids)}. Name one of them."


def test_of_many_jobs_that_begin_alike_the_rest_is_counted(record: Record) -> None:
    record.submit([(f"same-{n}", Spec(("true",), "x")) for n in range(7)], 1.0)
    with pytest.raises(
        BadInput, match=r"7 jobs begin with 'same': same-6, .*, same-2 and 2 more\. Give more characters of the id\."
    ):
        jobs.find(record, "same")


# How a workload is called.

STAGE = "kind: hpc, steps: 1, flop_per_step: 1e9, bytes_per_step: 1MB, program: {command: ['true']}"


def test_a_workload_is_called_as_the_command_line_says(session: Session, tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(f"{{name: small, {STAGE}}}\n")
    (tmp_path / "two.yaml").write_text(
        f"kind: pipeline\nname: two\nstages:\n  - {{name: a, {STAGE}}}\n  - {{name: b, {STAGE}}}\n"
    )
    assert [_called(one) for one in _named(session, tmp_path / "one.yaml", None)] == [("small", "small", "")]
    assert [_called(one) for one in _named(session, tmp_path / "one.yaml", "Mine")] == [("Mine", "mine", "")]
    assert [_called(one) for one in _named(session, tmp_path / "two.yaml", None)] == [
        ("two-a", "two-a", "two"),
        ("two-b", "two-b", "two"),
    ]
    assert [_called(one) for one in _named(session, tmp_path / "two.yaml", "nightly")] == [
        ("nightly-a", "nightly-a", "nightly"),
        ("nightly-b", "nightly-b", "nightly"),
    ]
    played = asking.simulate(session, wanted.RunRequest((str(tmp_path / "two.yaml"),), False, name="nightly"), 0)
    assert [one.job.spec.name for one in played.courses] == ["nightly-a", "nightly-b"]


def _named(session: Session, path: Path, name: str | None) -> list[Job]:
    with asking.opened(session) as held:
        found = wanted.named_specs(session, wanted.RunRequest((str(path),), False, name=name), held)
        return [Job(id, spec, 0.0) for id, spec in found]


def _called(job: Job) -> tuple[str, str, str]:
    return job.spec.name, job.id.rpartition("-")[0], job.spec.pipeline
