"""Terms add up, hidden times stay hidden, and bad input is told by field and allowed values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import BadInput
from chipwise.perf.arrays import column, soft_max
from chipwise.perf.kernels.work import Terms, allowed_name, at_least, names_of, overlapped, positive, share

TIMES = st.floats(1e-9, 1e6)


def taken(*times: float) -> float:
    return float(np.sum(overlapped(*(column(t) for t in times))))


@given(st.lists(TIMES, min_size=1, max_size=5))
def test_times_that_overlap_take_at_least_the_longest_and_at_most_their_sum(times: list[float]) -> None:
    total = taken(*times)
    assert max(times) * (1 - 1e-12) <= total <= sum(times) * (1 + 1e-9)


@given(TIMES, TIMES)
def test_two_overlapping_times_are_the_soft_maximum(a: float, b: float) -> None:
    assert sum(overlapped(column(a), column(b))) == pytest.approx(soft_max(column(a), column(b)))


@given(st.lists(TIMES, min_size=2, max_size=4), st.floats(1, 100))
def test_a_longer_part_never_shortens_the_whole(times: list[float], factor: float) -> None:
    before = taken(*times)
    after = taken(times[0] * factor, *times[1:])
    assert after >= before * (1 - 1e-12)


def test_the_longest_time_keeps_all_of_itself() -> None:
    compute, memory = overlapped(column([1.0, 5.0]), column([3.0, 2.0]))
    assert memory[0] == 3.0
    assert compute[1] == 5.0
    assert compute[0] < 0.02
    assert memory[1] < 0.04


def test_what_can_never_be_done_takes_for_ever_and_nothing_takes_nothing() -> None:
    a, b = overlapped(column([np.inf, np.inf, 0.0]), column([1.0, np.inf, 0.0]))
    assert (a + b).tolist() == [np.inf, np.inf, 0.0]


@given(st.lists(st.tuples(TIMES, st.floats(0, 2, allow_subnormal=False)), min_size=1, max_size=5), st.floats(0, 1))
def test_terms_sum_to_the_total_and_the_interval_holds_it(parts: list[tuple[float, float]], beside: float) -> None:
    terms = Terms.of({str(i): (column(t), s) for i, (t, s) in enumerate(parts)}, beside)
    assert terms.total[0] == pytest.approx(sum(t for t, _ in parts))
    assert terms.low[0] <= terms.total[0] <= terms.high[0]
    spreads = [s for _, s in parts]
    assert (
        np.hypot(min(spreads), beside) * (1 - 1e-9) <= terms.relative[0] <= np.hypot(max(spreads), beside) * (1 + 1e-9) + 1e-12
    )


def test_the_bottleneck_is_the_largest_term_of_each_row() -> None:
    terms = Terms.of({"compute": (column([1.0, 4.0]), 0.1), "memory": (column([2.0, 3.0]), 0.1)})
    assert terms.bottleneck().texts() == ["memory", "compute"]
    assert terms["memory"].tolist() == [2.0, 3.0]


def test_twice_the_work_takes_twice_the_time() -> None:
    terms = Terms.of({"a": (column(1.5), 0.2), "b": (column(np.inf), 0.2)})
    assert terms.times([2.0, 0.0]).total.tolist() == [np.inf, 0.0]
    assert terms.times(2.0)["a"].tolist() == [3.0]


def test_a_typo_is_answered_with_the_field_the_allowed_names_and_the_nearest() -> None:
    with pytest.raises(BadInput, match=r"codec: 'h246' is not known\. Allowed: h264, av1\. Did you mean h264\?"):
        allowed_name("codec", "h246", ("h264", "av1"))
    assert allowed_name("codec", "H.264", ("h264", "av1")) == "h264"
    assert names_of("codec", ["avc", "AV1"], ("h264", "av1"), {"avc": "h264"}).texts() == ["h264", "av1"]


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_a_number_that_makes_no_sense_is_told_by_field_and_row(bad: float) -> None:
    with pytest.raises(BadInput, match=r"steps: \S+ is not allowed\. Allowed: finite numbers above 0"):
        positive("steps", bad)
    with pytest.raises(BadInput, match=r"steps: \S+ \(row 1 of 2\)"):
        positive("steps", [1.0, bad])
    with pytest.raises(BadInput, match="chips: "):
        at_least("chips", bad, 1.0)


def test_a_share_lies_between_nothing_and_all() -> None:
    with pytest.raises(BadInput, match=r"parallel: 1\.2 is not allowed\. Allowed: finite numbers from 0 to 1\."):
        share("parallel", 1.2)
