"""Predictions beside measurements: what may be compared, and what a ratio says."""

from __future__ import annotations

from chipwise.runner import writing
from chipwise.runner.comparing import Compared, compare
from chipwise.runner.events import Measured, Submitted, first
from chipwise.runner.job import Spec, Work

PREDICTED = {"seconds": 100.0, "throughput": 50.0, "throughput_low": 40.0, "throughput_high": 60.0, "usd": 0.0, "chip": "H200"}
SPEC = Spec(("true",), "a", predicted=PREDICTED, work=Work("tokens", 5000.0, 10.0))


def by_name(found: tuple[Compared, ...]) -> dict[str, Compared]:
    return {one.name: one for one in found}


def test_a_ratio_is_measured_over_predicted() -> None:
    rows = by_name(compare(SPEC, Measured(PREDICTED, {"seconds": 125.0, "throughput": 45.0, "interruptions": 2})))
    assert (rows["seconds"].ratio, rows["throughput"].ratio) == (1.25, 0.9)
    assert (rows["throughput"].unit, rows["throughput"].inside, rows["seconds"].inside) == ("tokens", True, None)
    assert rows["interruptions"].ratio is None  # nobody predicted any


def test_outside_of_the_interval_is_told() -> None:
    rows = by_name(compare(SPEC, Measured(PREDICTED, {"throughput": 61.0})))
    assert rows["throughput"].inside is False


def test_of_a_part_only_the_speed_is_compared() -> None:
    rows = by_name(compare(SPEC, Measured(PREDICTED, {"seconds": 20.0, "throughput": 45.0}, whole=False)))
    assert rows["seconds"].ratio is None
    assert rows["seconds"].measured == 20.0
    assert rows["throughput"].ratio == 0.9


def test_before_it_is_over_there_is_only_the_prediction() -> None:
    rows = by_name(compare(SPEC, None))
    assert rows["throughput"].predicted == 50.0
    assert rows["throughput"].measured is None
    assert "usd" not in rows  # it costs nothing, and nothing is measured of it


def test_text_and_truth_are_no_figures() -> None:
    assert compare(Spec(("true",), "a", predicted={"seconds": True, "usd": "much"}), None) == ()


def test_what_the_record_keeps_of_it_survives_a_round_trip() -> None:
    job = first("j", Submitted(SPEC), 1.0)
    assert writing.job_of(writing.job_text(job)).spec == SPEC
    part = Measured(dict(PREDICTED), {"throughput": 45.0, "unit": "tokens"}, whole=False)
    assert writing.event_of(*writing.event_text(part)) == part
    assert writing.event_of("measured", '{"predicted": {}, "measured": {}}') == Measured({}, {})  # as older versions wrote it


def test_what_a_service_answers_is_counted_as_predicted() -> None:
    spec = Spec(("true",), "chat", service=True, predicted={"throughput": 5.0, "unit": "requests"})
    assert by_name(compare(spec, None))["throughput"].unit == "requests"
