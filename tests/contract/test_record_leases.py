"""Who may act for a place: at any moment at most one controller can write, whatever the clocks say."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chipwise.errors import BadInput
from chipwise.runner.events import Told
from chipwise.runner.job import Job, Spec
from chipwise.runner.record import Change, Deposed, Lease, Record, Stale
from effort import cases

_ids = itertools.count()


def _job(record: Record, place: str) -> Job:
    return record.submit([(f"{place}-job", Spec((), "a", place=place))], 0.0)[0]


def _may_write(record: Record, job: Job, lease: Lease) -> bool:
    latest = record.job(job.id)
    assert latest is not None
    try:
        [answer] = record.write([Change(latest, (Told(0, "x"),))], 1.0, lease)
    except Deposed:
        return False
    assert not isinstance(answer, Stale)
    return True


def test_a_place_has_one_leader_until_its_time_is_up(record: Record) -> None:
    assert record.leader("p") is None
    first = record.lead("p", "one", 100.0, 15.0)
    assert first == Lease("p", "one", 1, 115.0) == record.leader("p")
    assert record.lead("p", "two", 114.9, 15.0) is None
    assert record.lead("q", "two", 114.9, 15.0) == Lease("q", "two", 1, 129.9)  # another place is another matter
    assert record.lead("p", "one", 110.0, 15.0) == Lease("p", "one", 1, 125.0)  # renewed: nothing changed hands
    second = record.lead("p", "two", 125.0, 15.0)
    assert second == Lease("p", "two", 2, 140.0) == record.leader("p")
    assert record.lead("p", "one", 126.0, 15.0) is None


def test_a_deposed_controller_writes_nothing_however_late_it_comes(record: Record) -> None:
    job = _job(record, "p")
    old = record.lead("p", "one", 0.0, 10.0)
    assert old is not None
    assert _may_write(record, job, old)
    new = record.lead("p", "two", 10.0, 10.0)
    assert new is not None
    before = record.job(job.id)
    with pytest.raises(Deposed, match=r"one \(epoch 1\) does not lead p any more: two does \(epoch 2\)"):
        record.write([Change(job, (Told(0, "late"),))], 11.0, old)
    assert record.job(job.id) == before
    assert _may_write(record, job, new)


def test_whoever_resigns_lets_the_next_in_at_once_and_writes_no_more(record: Record) -> None:
    job = _job(record, "p")
    old = record.lead("p", "one", 0.0, 1e6)
    assert old is not None
    record.resign(old)
    assert not _may_write(record, job, old)
    assert record.leader("p") is None
    new = record.lead("p", "two", 0.0, 10.0)
    assert new == Lease("p", "two", 2, 10.0)
    record.resign(old)  # once more, too late: it is not theirs
    assert _may_write(record, job, new)
    back = record.lead("p", "one", 99.0, 10.0)
    assert back == Lease("p", "one", 3, 109.0)


def test_a_lease_that_nobody_gave_is_worth_nothing(record: Record) -> None:
    job = _job(record, "p")
    assert not _may_write(record, job, Lease("p", "one", 1, 9.0))
    with pytest.raises(BadInput, match="name of the leader is missing"):
        record.lead("p", "", 0.0, 1.0)


def test_a_time_that_is_none_is_refused(stored: Record) -> None:
    with pytest.raises(BadInput, match="is not a time"):
        stored.lead("p", "one", float("nan"), 1.0)


STEPS = st.lists(
    st.tuples(st.sampled_from(["one", "two", "three"]), st.floats(0, 100), st.floats(0, 30), st.booleans()), max_size=10
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=cases(15))
@given(STEPS)
def test_with_any_clocks_at_most_one_lease_can_write_and_epochs_only_grow(
    record: Record, steps: list[tuple[str, float, float, bool]]
) -> None:
    place = f"p{next(_ids)}"
    job, given_out = _job(record, place), list[Lease]()
    for holder, now, seconds, resigns in steps:
        lease = record.lead(place, holder, now, seconds)
        if lease is not None:
            changed_hands = not given_out or given_out[-1].holder != holder
            assert not given_out or lease.epoch >= given_out[-1].epoch + changed_hands
            given_out.append(lease)
            if resigns:
                record.resign(lease)
        writers = {(one.holder, one.epoch) for one in given_out if _may_write(record, job, one)}
        assert len(writers) <= 1
