"""Laws of jobs and events as text: what is written is read back, by this version and by others."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import run_values
from chipwise.runner import writing
from chipwise.runner.events import Event, Measured, Placed, Submitted, first
from chipwise.runner.job import RECOVER, Job, MachinePlace, Move, Needs, Retry, Spec
from effort import cases

SPEC = Spec(("true",), "a")


@settings(max_examples=cases(40))
@given(run_values.jobs)
def test_a_job_is_read_as_it_was_written(job: Job) -> None:
    assert writing.job_of(writing.job_text(job)) == job


@given(run_values.events)
def test_an_event_is_read_as_it_was_written(event: Event) -> None:
    assert writing.event_of(*writing.event_text(event)) == event


def test_every_kind_of_event_has_a_name_of_its_own() -> None:
    assert len(writing.KINDS) == len(get_args(Event))


def test_what_has_its_default_is_not_written() -> None:
    job = first("j", Submitted(SPEC), 5.0)
    assert json.loads(writing.job_text(job)) == {
        "id": "j",
        "spec": {"command": ["true"], "name": "a"},
        "submitted": 5.0,
        "version": 1,
    }


@settings(max_examples=cases(30))
@given(run_values.jobs, st.text(min_size=1), run_values.JSON)
def test_a_field_of_a_newer_version_is_passed_over(job: Job, name: str, value: object) -> None:
    known = {one.name for one in fields(Job)}
    held = json.loads(writing.job_text(job))
    held["spec"][f"{name}?"] = value
    if name not in known:
        held[name] = value
    assert writing.job_of(json.dumps(held)) == job


def test_text_stays_readable_and_in_one_line() -> None:
    text = writing.job_text(first("j", Submitted(Spec(("echo", "naïve\n日本"), "a")), 1.0))
    assert "naïve\\n日本" in text
    assert "\n" not in text


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_json_has_not_is_refused(number: float) -> None:
    with pytest.raises(TypeError, match="is not a number up to 1e18"):
        writing.job_text(first("j", Submitted(Spec((), "a", deadline=number)), 1.0))
    assert '"tokens":null' in writing.event_text(Measured({"tokens": number}, {}))[1], "what was measured is told without it"


def test_a_default_of_another_type_is_written() -> None:
    """1 equals True, and 0 equals 0.0: what looks like a default by value alone would come back as another type."""
    assert '"machines":true' in writing.event_text(Placed(1, MachinePlace(), machines=True))[1]
    assert "gpus" not in writing.job_text(first("j", Submitted(Spec((), "a", needs=Needs(gpus=0))), 1.0))


@given(st.text() | run_values.JSON.map(json.dumps))
def test_what_we_did_not_write_is_unreadable_and_says_so(text: str) -> None:
    with pytest.raises(writing.Unreadable, match="is not a Job"):
        writing.job_of(text)


def test_an_event_of_an_unknown_kind_is_unreadable() -> None:
    with pytest.raises(writing.Unreadable, match="no event is called 'lost'"):
        writing.event_of("lost", "{}")


def test_ranges_of_workers_and_the_order_of_recovery_are_read_as_they_were_written() -> None:
    needs = Needs(4, 2, 8, 4, gpus_least=1, machines_least=0)
    spec = Spec(("true",), "a", needs=needs, recover=(Move.FEWER, Move.SAME), retry=Retry(grow_after_s=7.0))
    job = first("j", Submitted(spec), 1.0)
    assert writing.job_of(writing.job_text(job)) == job
    assert json.loads(writing.job_text(job))["spec"]["recover"] == ["fewer", "same"]
    nowhere = first("j", Submitted(replace(spec, recover=())), 1.0)
    assert writing.job_of(writing.job_text(nowhere)).spec.recover == ()


def test_a_record_from_before_there_were_ranges_is_read_and_means_what_it_meant() -> None:
    """As the first version wrote it: a number of workers was exact, and every move was open."""
    text = (
        '{"id":"j","spec":{"command":["true"],"name":"a","needs":{"gpus":4,"machines":2,"processes":4},"retry":{"failures":0}},'
        '"submitted":5.0,"version":3,"phase":"running",'
        '"attempts":[{"number":1,"where":{},"devices":[0,1,2,3],"machines":2,"placed":6.0,"begun":7.0}]}'
    )
    job = writing.job_of(text)
    assert not job.spec.needs.elastic
    assert (job.spec.needs.fewest_gpus, job.spec.needs.fewest_machines) == (4, 2)
    assert job.spec.needs.processes_on(4) == 4
    assert job.spec.recover == RECOVER
    assert job.machines == 2
    placed = writing.event_of("placed", '{"number":2,"where":{},"devices":[0,1],"machines":2}')
    assert placed == Placed(2, MachinePlace(), (0, 1), (), 2)
    assert json.loads(writing.job_text(job)) == json.loads(text)
