"""Calls that Python itself would refuse: errors of our own, each with a remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import chipwise as cw

API: Any = cw  # calls that a type checker would not let pass
SERVE: dict[str, Any] = {"serve": True, "rps": 5, "input": 1000, "output": 300, "cloud": "aws", "chip": "l40s"}
MODEL = "llama-3.1-8b"


@pytest.fixture(scope="module")
def plan() -> cw.Plan:
    planned = cw.plan(MODEL, **SERVE)
    assert isinstance(planned, cw.Plan)
    return planned


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: API.plan(), "plan needs workload. For example: plan = cw.plan("),
        (lambda: API.predict(MODEL), "predict needs on. For example:"),
        (lambda: API.fits(MODEL), "fits needs on. For example:"),
        (lambda: API.tco(), "tco needs chip. For example:"),
        (lambda: API.plan(MODEL, MODEL), "plan takes 1 argument without a name, and 2 were given."),
        (lambda: API.plan(MODEL, workload=MODEL), "plan was given workload twice: by place and by name."),
        (lambda: API.plan(MODEL, **{**SERVE, "cloud": 5}), "cloud=5 is not a string or a list of strings. Write it like"),
        (lambda: API.plan(MODEL, **{**SERVE, "cloud": ["aws", 5]}), "is not a string or a list of strings."),
        (lambda: API.plan(MODEL, **{**SERVE, "chip": 5}), "chip=5 is not a string"),
        (lambda: API.plan(MODEL, **SERVE, region=3.5), "region=3.5 is not a string"),
        (lambda: API.plan(MODEL, **SERVE, top="five"), "top='five' is not a whole number. Write it like top=5."),
        (lambda: API.plan(MODEL, **SERVE, limits=5), "limits=5 is not a dictionary."),
        (lambda: API.plan(MODEL, **{**SERVE, "rps": 0}), "rps must be above zero."),
        (
            lambda: API.plan(MODEL, serve=True),
            "rps, input, output are needed. Add them, for example: rps=10, input=1000, output=300",
        ),
        (lambda: API.plan(MODEL, **SERVE, as_of="2026-01-01"), "cw.open(as_of=...).plan(...)"),
        (lambda: API.plan(MODEL, **{**SERVE, "rps": float("nan")}), "rps=nan is not a number."),
        (lambda: API.plan(MODEL, **{**SERVE, "rps": -5}), "rps: -5 is not above zero."),
        (lambda: API.plan(MODEL, **SERVE, ttft="fast"), "ttft: 'fast' is not a duration."),
        (lambda: API.plan(MODEL, **SERVE, budget="two grand"), "budget: 'two grand' is not an amount in USD."),
        (lambda: API.plan(MODEL, **SERVE, objective="speed"), "There is no objective 'speed'. Did you mean time?"),
        (lambda: API.plan(MODEL, **SERVE, spot="no"), "spot='no' is not True or False. Write it like spot=True."),
        (lambda: API.plan(MODEL, **SERVE, large=2), "large=2 is not True or False."),
        (lambda: API.plan(MODEL, **{**SERVE, "serve": "no"}), "serve='no' is not True or False."),
        (lambda: API.tco("h100", years="x"), "years='x' is not a number."),
        (lambda: API.tco("h100", machines="two"), "machines='two' is not a whole number."),
        (lambda: API.tco("h100", country=5), "country=5 is not a string."),
        (lambda: API.offers(limit="x"), "limit='x' is not a whole number."),
        (lambda: API.fits(MODEL, on=5), "on=5 is not a string."),
        (lambda: API.chips(5), 'names=5 is not a string. Write it like chips("...").'),
        (lambda: API.run("echo hi"), 'Give a command as a list of words: cw.run(["echo", "hi"])'),
        (lambda: API.run(5), "int is not a workload."),
        (lambda: API.pack("a.yaml"), "pack takes a list of workloads."),
        (lambda: API.rate(), "rate needs a workload."),
        (lambda: API.open(as_of=5), "as_of=5 is not a string or a date."),
        (lambda: API.plan("name: x\nkind: serve\n  model: a\n"), "Allowed: the indentation of the line above."),
        (lambda: API.plan("name: x\ntitle: it is: so\n"), "Allowed: quotes around a text"),
    ],
)
def test_a_wrong_call_is_answered_with_a_remedy(call: Callable[[], object], message: str) -> None:
    with pytest.raises(cw.BadInput) as caught:
        call()
    assert message in str(caught.value)


def test_what_a_plan_offers_is_checked_as_well(plan: cw.Plan) -> None:
    files = plan.render("dockerfile")
    calls: tuple[Callable[[Any], object], ...] = (plan.render, plan.why, plan.report, files.write)
    for call in calls:
        with pytest.raises(cw.BadInput, match="=5 is not a string"):
            call(5)


def test_numbers_as_text_are_numbers() -> None:
    assert API.offers(limit="2") == cw.offers(limit=2)
    assert API.tco("h100", years="3") == cw.tco("h100", years=3.0)


def test_results_are_hashable(plan: cw.Plan) -> None:
    again = cw.plan(MODEL, **SERVE)
    assert len({plan, again}) == 1
    assert len({plan.best, plan.best, *plan.choices}) == len(plan.choices)
    assert hash(cw.chips("h100")) == hash(cw.chips("h100"))


def test_a_plan_prints_the_same_first_lines_as_the_command(plan: cw.Plan) -> None:
    text = " ".join(repr(plan).split())
    assert plan.headline
    assert " ".join(plan.headline.split()) in text
    assert " ".join(plan.risks.split()) in text
    assert plan.headline.split(":")[0] in plan._repr_html_()


def test_sentences_are_printed_whole(plan: cw.Plan) -> None:
    why = plan.why("h100")
    assert " ".join(repr(why).split()) == " ".join(" ".join(why.text).split())
    assert plan.answers[0].text in " ".join(repr(plan.answers).split())
    assert " ".join(repr(cw.tco("h100")).split()).find(cw.tco("h100").answer) > 0
    assert "rps: is not a field" in repr(cw.check("kind: serve\nrps: 5\n"))
    assert "tokens each" in repr(cw.fits(MODEL, on="h100"))
    assert len(repr(cw.targets()).splitlines()) <= 20 < len(cw.targets())
