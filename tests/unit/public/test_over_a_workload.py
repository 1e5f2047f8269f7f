"""What options say over a whole workload: the same set on the command line and in Python, and what contradicts is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import chipwise as cw
from chipwise.cli.main import main
from chipwise.planner.overriding import OVER_FILE

SERVE = """kind: serve
name: chat
model: llama-3.1-8b
arrival: 5 req/s
input_tokens: 1000
output_tokens: 300
limits: {clouds: [aws], chips: [l40s, h100]}
environments:
  prod: {precision: bf16}
"""
TRAIN = "kind: finetune\nname: tune\nmethod: lora\nmodel: llama-3.1-8b\ntokens: 20M\nlimits: {clouds: [aws]}\n"
STATED: Mapping[str, Any] = {
    "rps": 2,
    "input": 500,
    "output": 100,
    "precision": "fp8",
    "ttft": "2s",
    "tpot": "90ms",
    "latency": "30s",
    "confidence": 0.8,
    "budget": "9k/month",
}


def test_every_option_over_a_file_is_one_of_both_sides(session: cw.Session) -> None:
    assert set(STATED) | {"deadline"} == set(OVER_FILE)
    work = session.plan(SERVE, environment="prod", **STATED).work
    assert (work.arrival.rate, work.input_tokens.mean, work.output_tokens.mean, work.precision) == (2, 500, 100, "fp8")
    goals = work.goals
    assert (goals.ttft.p90, goals.tpot.p90, goals.latency.p90, goals.confidence) == (2, 0.09, 30, 0.8)
    assert (goals.budget.usd, goals.budget.per) == (9000, "month")
    assert session.plan(TRAIN, deadline="3d").work.goals.deadline == 3 * 86400
    loose = session.check(session.plan(TRAIN, precision="any")).workload
    assert len(loose.limits.precision) > 1


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (SERVE, {"deadline": "3d"}, "deadline is for a job, and the workload is a service."),
        (TRAIN, {"ttft": "1s"}, "ttft is for a service, and the workload is none."),
        (TRAIN, {"rps": 5}, "rps is for a service, and the workload is none."),
        (SERVE, {"chip": "h100", "limits": {"chips": ["l4"]}}, 'chip and limits={"chips": "l4"} cannot be combined.'),
        (SERVE, {"cloud": "aws", "limits": {"clouds": "gcp"}}, 'cloud and limits={"clouds": "gcp"} cannot be combined.'),
        (SERVE, {"measured": "h100=9000"}, "'9000' has no unit."),
        (SERVE, {"seq": 4096}, "seq goes with the name of a model"),
    ],
)
def test_what_does_not_go_with_a_workload_is_refused(
    session: cw.Session, text: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(cw.BadInput) as caught:
        session.plan(text, **options)
    assert message in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--deadline", "3d"), "--deadline is for a job, and chat.yaml is a service. Leave it out"),
        (("--why",), "--why needs a value."),
        (("--why",), "Try: chipwise plan ... --why NAME"),
        (("--chip", "h100", "--limit", "chips=l4"), "--chip and --limit chips=l4 cannot be combined. Give one of them."),
        (("--cloud", "aws", "--limit", "clouds=gcp,azure"), "--cloud and --limit clouds=gcp,azure cannot be combined."),
        (("--spot", "--limit", "purchase=on-demand"), "--spot and --limit purchase=on-demand cannot be combined."),
        (("--measured", "h100=9000"), "'9000' has no unit. Write CHIP=6h"),
        (("--users-in", "DE"), "--users-in goes with a model"),
        (("--rps", "many"), "--rps: many is not possible."),
    ],
)
def test_flags_that_contradict_are_refused_with_a_remedy(
    words: tuple[str, ...], message: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chat.yaml").write_text(SERVE)
    assert main(["plan", "chat.yaml", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_rate_is_read_with_its_unit() -> None:
    from chipwise.cli.parameter_types import RequestRate

    assert [RequestRate().convert(text, None, None) for text in ("5", "5/s", "5 req/s", "300/min", "5 rps")] == [5.0] * 5


def test_samples_of_a_batch_are_its_items(session: cw.Session) -> None:
    with pytest.raises(cw.InvalidSettings) as caught:
        cw.Batch(model="llama-3.1-8b", samples=1000, input_tokens=10, output_tokens=10)  # type: ignore[call-arg]
    assert {problem.field: problem.nearest for problem in caught.value.problems}["samples"] == ("items",)


def test_on_demand_is_short_for_its_purchase(session: cw.Session) -> None:
    shown = session.offers(chip="h100", on_demand=True, limit=5)
    assert shown == session.offers(chip="h100", purchase="on-demand", limit=5)
    assert {offer.purchase for offer in session.offers(chip="h100", on_demand=True, spot=True)} == {"on-demand", "spot"}
