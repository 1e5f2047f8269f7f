"""Results as values: they pickle, compare, print little, and keep their intervals."""

from __future__ import annotations

import builtins
import pickle
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import chipwise as cw


@pytest.fixture(scope="module")
def plan(session: cw.Session) -> cw.Plan:
    found = session.plan("llama-3.1-8b", serve=True, rps=5, input=1000, output=300, cloud="aws")
    assert isinstance(found, cw.Plan)
    return found


@pytest.fixture(scope="module")
def nothing(session: cw.Session) -> cw.NoPlan:
    found = session.plan(
        "llama-3.1-70b", serve=True, rps=5, input=1000, output=300, chip="t4", limits={"chip_count": {"max": 1}}
    )
    assert isinstance(found, cw.NoPlan)
    return found


def test_the_best_choice_has_its_numbers_with_their_intervals(plan: cw.Plan) -> None:
    best = plan.best
    assert best == plan.choices[0]
    assert best.cost.usd == pytest.approx(sum(line.usd for line in best.cost.lines)) == plan.cost.usd
    assert best.speed is not None
    assert best.speed.low < best.speed.value < best.speed.high
    assert best.speed.unit == "req/s"
    assert float(best.speed) >= 5


def test_a_job_has_a_time_and_a_speed_in_its_own_unit(session: cw.Session) -> None:
    found = session.plan("llama-3.1-8b", finetune="lora", tokens="20M", cloud="aws", top=2)
    assert len(found.choices) == 2
    assert found.speed is not None
    assert found.speed.unit == "tokens/s"
    assert found.speed.value * found.speed.terms["work"] == pytest.approx(20e6)
    assert sum(found.best.time.terms.values()) == pytest.approx(found.best.time.value)
    assert found.best.cost.low < found.best.cost.usd < found.best.cost.high
    assert found.best.usd_interval.low == found.best.cost.low


def test_the_speed_of_a_service_has_the_seconds_of_an_answer_as_its_terms(session: cw.Session, plan: cw.Plan) -> None:
    assert plan.best.speed is not None
    terms, latency = plan.best.speed.terms, plan.best.latency_s
    assert {"prefill matrix", "weights", "cache"} <= set(terms)
    assert sum(terms.values()) == pytest.approx(latency["ttft p50"] + 299 * latency["tpot p50"], rel=0.15)


def test_the_speed_of_a_classifier_has_the_seconds_of_a_pass_as_its_terms(session: cw.Session) -> None:
    work = {"kind": "serve", "model": "resnet50", "arrival": "200 req/s", "limits": {"clouds": "aws", "chips": "T4"}}
    speed = session.plan(work).best.speed
    assert speed is not None
    alone = session.predict("resnet50", serve=True, on="t4", batch=1, precision=session.plan(work).best.precision)
    assert sum(speed.terms.values()) >= 0.9 * sum(alone.terms.values()) > 0


def test_a_speed_compares_and_is_written_by_its_middle(session: cw.Session) -> None:
    slow, fast = cw.Interval(5.0, 1.0, 30.0, "req/s"), cw.Interval(7.25, 6.0, 8.0, "req/s")
    assert slow < 10 <= cw.Interval(10.0, 1.0, 30.0, "req/s")
    assert slow < fast > 7
    assert fast >= slow <= 5.0
    assert (f"{fast:.2f}", f"{fast}") == ("7.25", "7.25 req/s (6 to 8)")
    assert str(cw.Interval(1 / 3600, 1 / 7200, 1 / 1800, "runs/s")) == "1 run every 1 h (30 min to 2 h)"
    with pytest.raises(TypeError):
        _ = slow < "fast"


def test_the_speed_of_a_job_is_that_of_the_command_line(session: cw.Session) -> None:
    from chipwise.text import count
    from chipwise.views.words import brief

    plan = session.plan("llama-3.1-8b", finetune="lora", tokens="20M", cloud="aws", top=1)
    full: Any = session.remembered(plan.request)[1]
    speed = plan.best.speed
    assert speed is not None
    assert f"{count(speed.value)} tokens/s ({count(speed.low)}-{count(speed.high)})" in brief(full.winner, "job")


def test_a_pipeline_begins_as_on_the_command_line(session: cw.Session) -> None:
    from chipwise.views.words import pipeline_headline

    plan = session.plan("examples/pipeline/workload.yaml")
    full: Any = session.remembered(plan.request)[1]
    assert plan.headline == pipeline_headline(full)
    assert plan.headline in repr(plan)
    assert "per pipeline" not in repr(plan)
    assert plan.stages[2].choice.speed is not None
    with pytest.raises(cw.BadInput, match="and the workload is a pipeline"):
        session.plan(Path("examples/pipeline/workload.yaml").read_text()).why("h100")


def test_a_plan_lacks_nothing_and_its_own_machines_are_counted_in_english(plan: cw.Plan, session: cw.Session) -> None:
    assert plan.missing == ()
    assert repr(session.tco("h100")).startswith("1 machine of 8x H100-SXM, owned for 4 years")


def test_why_everything_else_lost_is_told(plan: cw.Plan) -> None:
    assert plan.losers
    assert all(loser.why for loser in plan.losers)
    assert any(loser.choice is None for loser in plan.losers)


def test_nothing_fits_is_a_result_that_is_false_and_says_what_is_missing(nothing: cw.NoPlan) -> None:
    assert not nothing
    assert nothing.missing
    assert all(one.remedy for one in nothing.missing)
    assert nothing.choices == ()
    with pytest.raises(cw.NoResult, match="Would help"):
        _ = nothing.best
    with pytest.raises(cw.NoResult):
        nothing.render("kubernetes")


def results(session: cw.Session, plan: cw.Plan, nothing: cw.NoPlan) -> list[Any]:
    return [
        plan,
        plan.best,
        nothing,
        session.predict("llama-3.1-8b", serve=True, on="h100", concurrency=8),
        session.predict("llama-3.1-8b", train=True, on="h100"),
        session.fits("llama-3.1-70b", on="l40s"),
        session.offers(chip="h100", limit=100),
        session.chips(),
        session.regions("eu-north-1")[0],
        session.models("llama-3.1-8b"),
        session.tco("h100"),
        session.catalog_status(),
        session.check(plan),
        plan.render("kubernetes"),
        plan.services,
        session.catalog_status().providers,
    ]


def test_results_pickle_compare_and_print_in_twenty_lines(session: cw.Session, plan: cw.Plan, nothing: cw.NoPlan) -> None:
    for result in results(session, plan, nothing):
        copy = pickle.loads(pickle.dumps(result))
        assert copy == result
        assert 1 <= len(repr(result).splitlines()) <= 20
        assert repr(copy) == repr(result)


def test_a_plan_that_was_pickled_still_renders(plan: cw.Plan) -> None:
    copy = pickle.loads(pickle.dumps(plan))
    assert copy.render("kubernetes") == plan.render("kubernetes")


def test_results_cannot_be_changed(plan: cw.Plan, session: cw.Session) -> None:
    offer = session.offers(chip="h100", limit=1)[0]
    with pytest.raises(AttributeError):
        offer.usd_per_hour = 0
    with pytest.raises(AttributeError):
        plan.best.machine = "x"  # type: ignore[misc]
    plan.to_dict()["choices"].clear()
    assert plan.choices


def test_a_wrong_attribute_names_the_nearest(session: cw.Session) -> None:
    with pytest.raises(AttributeError, match="usd_per_hour"):
        _ = session.offers(chip="h100", limit=1)[0].usd_per_hours


def test_nothing_is_printed(plan: cw.Plan, session: cw.Session, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    session.compare(plan, by="region")
    session.predict(plan, on="l40s")
    plan.render("dockerfile", "kubernetes").write(tmp_path)
    assert capfd.readouterr() == ("", "")
    assert {path.name for path in tmp_path.iterdir()} == {"dockerfile", "kubernetes"}


def test_html_is_escaped() -> None:
    table = cw.Table([{"name": "<script>alert(1)</script>"}], notes=["a < b"])
    assert "<script>" not in table._repr_html_()
    assert "&lt;script&gt;" in table._repr_html_()
    assert "a &lt; b" in table._repr_html_()


def test_a_plan_in_a_notebook_is_a_table(plan: cw.Plan, nothing: cw.NoPlan) -> None:
    shown = plan._repr_html_()
    assert shown.count("<tr>") == 1 + len(plan.choices)
    assert plan.best.machine in shown
    assert nothing.missing[0].what in nothing._repr_html_()


def test_without_pandas_the_pip_line_is_told(plan: cw.Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(cw.MissingExtra, match=r"pip install 'chipwise\[pandas\]'"):
        plan.to_pandas()


def test_with_pandas_a_result_is_a_data_frame(plan: cw.Plan, session: cw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = ModuleType("pandas")
    stand_in.DataFrame = builtins.list  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pandas", stand_in)
    rows = plan.to_pandas()
    assert [row["rank"] for row in rows] == [1, 2, 3, 4, 5]
    assert rows[0]["usd"] == plan.best.usd
    assert rows[0]["speed_low"] == plan.best.speed.low  # type: ignore[union-attr]
    assert (rows[0]["usd_low"], rows[0]["usd_high"]) == (plan.best.cost.low, plan.best.cost.high)
    assert all(not isinstance(value, dict | list) for row in rows for value in row.values())
    assert session.offers(chip="h100", limit=3).to_pandas() == session.offers(chip="h100", limit=3).to_dicts()


def test_frames_of_the_real_pandas_hold_the_numbers(plan: cw.Plan) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas: not installed")
    frame = plan.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["usd"]) == [choice.usd for choice in plan.choices]


def test_an_estimate_keeps_its_terms(session: cw.Session) -> None:
    estimate = session.predict("llama-3.1-8b", train=True, on="h100", chips=8, seq=4096)
    assert estimate.unit == "tokens/s"
    assert estimate.low is not None
    assert estimate.value is not None
    assert estimate.high is not None
    assert estimate.low < estimate.value < estimate.high
    assert sum(estimate.terms.values()) == pytest.approx(estimate.figures["step_time"].value, rel=1e-3)
    assert estimate.fits
    assert estimate.memory is not None
    assert estimate.memory.total_bytes > 0
    assert estimate.power is not None
    assert estimate.power.chip_w > 0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "serve, train, finetune or batch"),
        ({"serve": True, "rps": 5}, "input, output are needed"),
        ({"serve": True, "train": True}, "cannot be combined"),
    ],
)
def test_options_that_are_missing_are_named_as_in_python(session: cw.Session, options: dict[str, Any], told: str) -> None:
    with pytest.raises(cw.BadInput, match=told) as caught:
        session.plan("llama-3.1-8b", **options)
    assert "--" not in str(caught.value)


def test_a_workload_that_is_wrong_names_every_field() -> None:
    with pytest.raises(cw.InvalidSettings) as caught:
        cw.Serve(model="llama-3.1-8b", arival="1 req/s", input_tokens=-1)  # type: ignore[call-arg]
    assert {problem.field for problem in caught.value.problems} == {"arrival", "arival", "input_tokens"}


def test_options_beside_a_whole_workload_are_refused(session: cw.Session) -> None:
    with pytest.raises(cw.BadInput, match="rps is for a service"):
        session.plan(cw.Train(model="llama-3.1-8b", tokens="1B"), rps=5)
    with pytest.raises(cw.BadInput, match="seq goes with the name of a model"):
        session.plan(cw.Train(model="llama-3.1-8b", tokens="1B"), seq=4096)


def test_what_is_no_workload_is_refused(session: cw.Session) -> None:
    with pytest.raises(cw.BadInput, match="float is not a workload"):
        session.plan(3.5)  # type: ignore[arg-type]
    with pytest.raises(cw.BadInput, match=r"no file 'nowhere\.yaml'"):
        session.plan("nowhere.yaml")


def test_an_option_that_there_is_not_is_refused_with_the_nearest(session: cw.Session) -> None:
    for ask in (session.plan, session.compare):
        with pytest.raises(cw.UnknownName, match="Did you mean rps"):
            ask("llama-3.1-8b", serve=True, rpss=5, input=1, output=1)  # type: ignore[call-arg]
    with pytest.raises(cw.UnknownName, match="micro_batch"):
        session.predict("llama-3.1-8b", train=True, on="h100", microbatch=2)  # type: ignore[call-arg]
    with pytest.raises(cw.UnknownName, match="chips"):
        session.fits("llama-3.1-8b", on="h100", chip=2)  # type: ignore[call-arg]
    with pytest.raises(cw.UnknownName, match="years"):
        session.tco("h100", year=2)  # type: ignore[call-arg]
