"""Predictions as values."""

from __future__ import annotations

from dataclasses import replace

from chipwise.predictor.values import Goal, HpcPrediction, Interval, WholeJob
from chipwise.views.predict import prediction_view


def test_what_an_amount_takes_is_long_where_the_rate_is_low() -> None:
    assert Interval(10.0, 5.0, 20.0).of(100.0) == Interval(10.0, 5.0, 20.0)
    assert Interval(4.0, 2.0, 5.0).of(20.0) == Interval(5.0, 4.0, 10.0)


def test_a_goal_that_is_never_reached_is_missed() -> None:
    assert Goal("latency", 1.0, 1.0).is_met
    assert not Goal("latency", 1.0, 1.5).is_met
    assert not Goal("latency", 1.0, None).is_met


def test_the_view_has_what_a_file_adds_only_where_there_is_one() -> None:
    time = Interval(10.0, 8.0, 12.0)
    alone = HpcPrediction(
        chip="A100-80-SXM",
        chips=4.0,
        notes=(),
        time=time,
        time_of="the whole job",
        terms_s={"compute": 10.0},
        bottleneck="compute",
        precision="fp64",
        steps=100.0,
        runs=1.0,
        working_set_bytes=None,
        fits=True,
    )
    assert not {"name", "goals", "job_time_s", "steadiness", "needs"} & set(prediction_view(alone))
    view = prediction_view(replace(alone, name="flow", job=WholeJob(time), goals=(Goal("deadline", 11.0, 10.0),)))
    assert view["job_time_s"] == view["time_s"] == {"value": 10.0, "low": 8.0, "high": 12.0}
    assert "energy_kwh" not in view  # not predicted for such work
    assert view["goals"] == [{"goal": "deadline", "percentile": None, "limit_s": 11.0, "predicted_s": 10.0, "met": True}]
