"""Spot or not: the plain rule keeps the time that a move takes between the end of the work and the deadline."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from chipwise.catalog.offer import Purchase
from chipwise.runner.policy import Decision, NeverLate, Standing

AMPLE = Standing(0.0, 3600.0, 86400.0, None, spot=True, on_demand=True, restart_s=300.0)
times = st.floats(0, 1e6)


def decide(state: Standing) -> Decision:
    return NeverLate().decide(state)


def test_spot_is_used_while_there_is_ample_time() -> None:
    assert decide(AMPLE) is Decision.SPOT


def test_without_a_deadline_spot_is_used_and_else_what_there_is() -> None:
    open_ended = replace(AMPLE, deadline=None)
    assert decide(open_ended) is Decision.SPOT
    assert decide(replace(open_ended, spot=False)) is Decision.ON_DEMAND


def test_spot_is_waited_for_while_there_is_ample_time() -> None:
    assert decide(replace(AMPLE, spot=False)) is Decision.WAIT
    assert decide(replace(AMPLE, spot=False, deadline=4000.0)) is Decision.ON_DEMAND


def test_a_deadline_of_work_of_unknown_length_is_not_gambled_with() -> None:
    assert decide(replace(AMPLE, rest_s=None)) is Decision.ON_DEMAND


def test_where_nothing_can_be_had_it_waits() -> None:
    assert decide(replace(AMPLE, spot=False, on_demand=False)) is Decision.WAIT


def test_where_only_spot_can_be_had_spot_is_used_however_late() -> None:
    assert decide(replace(AMPLE, on_demand=False, deadline=1.0)) is Decision.SPOT


@given(now=times, rest=times, deadline=times, restart=st.floats(1, 1000), spot=st.booleans())
def test_spot_is_never_used_without_the_time_of_two_moves_to_spare(
    now: float, rest: float, deadline: float, restart: float, spot: bool
) -> None:
    state = Standing(now, rest, deadline, Purchase.SPOT, spot, True, restart)
    if decide(state) is not Decision.ON_DEMAND:
        assert deadline - now - rest > 2 * restart


@given(now=times, rest=times, deadline=times, later=times)
def test_who_once_needs_machines_that_stay_needs_them_ever_after(
    now: float, rest: float, deadline: float, later: float
) -> None:
    """Time that passes without work only makes it worse."""
    state = Standing(now, rest, deadline, None, True, True, 300.0)
    if decide(state) is Decision.ON_DEMAND:
        assert decide(replace(state, now=now + later)) is Decision.ON_DEMAND


@given(rest=times, deadline=times)
def test_going_back_to_spot_must_be_worth_two_moves(rest: float, deadline: float) -> None:
    state = Standing(0.0, rest, deadline, Purchase.ON_DEMAND, True, True, 300.0)
    if decide(state) is Decision.SPOT:
        assert min(deadline - rest, rest) > 1200.0
