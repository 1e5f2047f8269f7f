"""Figures are what they say they are, and a row without an answer has a reason."""

from __future__ import annotations

import math

import pytest

from chipwise.calibration.crossvalidate import group_key
from chipwise.calibration.score import Scored, figures, figures_by, order_kept, predict, refused
from chipwise.perf.model import packaged
from chipwise.perf.part import Parts
from chipwise.perf.rows import Row


def row(measured: float | str, **cells: str) -> Row:
    base = {"model": "m", "task": "pretrain", "chip": "H200", "metric_name": "step_time_s", "metric_value": str(measured)}
    return Row({**base, **cells})


def answer(predicted: float, low: float = 0.0, high: float = math.inf) -> Scored:
    return Scored(predicted, low, high)


def test_figures_of_known_pairs() -> None:
    rows = [row(100)] * 10
    answers = [answer(100.0 + 10.0 * at, 90.0 + 10.0 * at, 130.0 + 10.0 * at) for at in range(10)]
    found = figures(rows, answers)
    assert found is not None
    assert found.rows == 10
    assert found.median_ape == pytest.approx(0.45)
    assert found.p90_ape == pytest.approx(0.81)
    assert found.within_25pct == pytest.approx(0.3)
    assert found.interval_coverage == pytest.approx(0.2)
    assert found.interval_width == pytest.approx(0.5 * (40 / 140 + 40 / 150))


def test_a_row_that_was_not_measured_or_not_answered_is_in_no_figure() -> None:
    rows = [row(100), row(""), row(0), row(100)]
    answers = [answer(150.0), answer(1.0), answer(1.0), Scored(reason="task: nobody knows")]
    found = figures(rows, answers)
    assert found is not None
    assert found.rows == 1
    assert found.median_ape == pytest.approx(0.5)
    assert figures([], []) is None
    assert figures(rows[1:], answers[1:]) is None


def test_figures_by_a_column_have_the_most_frequent_first_and_every_row_once() -> None:
    rows = [row(1, chip="A"), row(1, chip="B"), row(1, chip="B"), row(1, chip="")]
    found = figures_by(rows, [answer(1.0)] * 4, ("chip",))["chip"]
    assert {name: one.rows for name, one in found.items()} == {"B": 2, "(blank)": 1, "A": 1}
    assert next(iter(found)) == "B"


def test_order_counts_pairs_of_one_group_and_metric_that_differ() -> None:
    rows = [row(100), row(200), row(205), row(400, metric_name="mfu"), row(50, model="other")]
    assert order_kept(rows, [answer(1.0), answer(3.0), answer(2.0), answer(0.1), answer(9.0)], group_key) == (2, 2)
    assert order_kept(rows, [answer(3.0), answer(2.0), answer(4.0), answer(0.1), answer(9.0)], group_key) == (1, 2)
    assert order_kept([], [], group_key) == (0, 0)


def test_what_cannot_be_answered_has_a_reason_that_names_the_column(parts: Parts) -> None:
    rows = [
        row(1, task="paint"),
        row(1, chip="abacus"),
        row(1, metric_name="beauty"),
        row(1, chip="abacus"),
        row(1),
    ]
    found = predict(rows, parts, packaged())
    assert [one.reason.split(":")[0] for one in found] == ["task", "chip", "metric_name", "chip", ""]
    assert [one.predicted is None for one in found] == [True, True, True, True, False]
    assert sorted(refused(found).values()) == [1, 1, 2]


def test_an_answer_lies_in_its_interval_and_is_a_number(parts: Parts, mpt: list[Row], ours: list[Row]) -> None:
    for one in predict([*mpt, *ours], parts, packaged()):
        assert one.predicted is not None
        assert one.low is not None
        assert one.high is not None
        assert 0 < one.low <= one.predicted <= one.high < math.inf


def test_an_answer_does_not_hang_on_the_rows_beside_it(parts: Parts, mpt: list[Row], ours: list[Row]) -> None:
    together = predict([*mpt, *ours], parts, packaged())
    alone = [predict([one], parts, packaged())[0] for one in (mpt[3], ours[5])]
    for one, other in zip(alone, (together[3], together[len(mpt) + 5]), strict=True):
        assert one.predicted == pytest.approx(other.predicted)
        assert one.provenance == other.provenance


def test_only_what_was_run_reaches_a_prediction(parts: Parts, mpt: list[Row], ours: list[Row]) -> None:
    rows = [*mpt, *ours]
    blank = [Row({**one.cells, "metric_value": "", "other_reported": "", "quality": "", "trust": ""}) for one in rows]
    placeholder = [Row({**one.cells, "metric_value": "12345"}) for one in rows]
    assert predict(blank, parts, packaged()) == predict(rows, parts, packaged()) == predict(placeholder, parts, packaged())
