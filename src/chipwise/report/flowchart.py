"""The questions that decided, drawn: boxes down the page, whom each sent away to the side, the answer at the end."""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.planner.explain.words import objective_words
from chipwise.planner.values.plan import Plan
from chipwise.report.markup import tag, text
from chipwise.report.questions import Question
from chipwise.report.words import full
from chipwise.text import usd


def flowchart(plan: Plan, questions: Sequence[Question]) -> str:
    steps = [tag("li", _box("start", text(plan.workload), f"{text(plan.kind)}, {text(objective_words(plan.objective))}"))]
    steps += [_step(one) for one in questions]
    if plan.winner is not None:
        first, *rest = full(plan.winner, plan)
        cheaper = tag("p", "cheaper still", class_="left") if plan.service is not None else ""
        steps.append(tag("li", _box("end", text(first), "<br>".join(map(text, rest))), cheaper))
    if plan.service is not None:
        service = plan.service
        terms = f"paid {service.kind}: {usd(service.usd)} a {plan.per}"
        steps.append(tag("li", _box("end", text(service.title), f"{text(terms)}<br>{text(service.break_even)}")))
    return tag("ol", *steps, class_="flow")


def _box(kind: str, title: str, under: str = "") -> str:
    return tag("div", tag("strong", title), tag("span", under) if under else "", class_=f"box {kind}")


def _step(question: Question) -> str:
    away = tag("ul", *(tag("li", text(told)) for told in question.away))
    heading = tag("b", "nothing is left" if question.stopped else "left out")
    side = tag("div", heading, away, class_="away stopped" if question.stopped else "away")
    left = tag("p", text(question.left), class_="left") if question.left and not question.stopped else ""
    return tag("li", tag("div", _box("question", text(question.text)), side, class_="step"), left)
