"""Plans that tests share: only where the question, the facts and the program are the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import plan
from chipwise.planner.values.plan import Plan

TUNE = "kind: finetune\nname: tune\nmodel: llama-3.2-1b\nsamples: 1000\nmethod: lora\nlimits: {chips: [L4]}\n"


def asked(text: str = TUNE, objective: str | None = None, session: Session | None = None) -> Plan:
    return plan(session or open_session(), "tune.yaml", objective, text=text)


def shared(one: Plan, other: Plan) -> bool:
    """Notes are added to what is shared, so the plan itself is another."""
    return one.choices is other.choices


def test_the_same_question_is_planned_once() -> None:
    assert shared(asked(), asked())


def test_another_question_has_a_plan_of_its_own() -> None:
    assert not shared(asked(), asked(TUNE.replace("1000", "1001")))
    assert not shared(asked(), asked(objective="time"))


def test_other_facts_have_a_plan_of_their_own() -> None:
    opened = open_session()
    opened.__dict__["catalog"] = replace(opened.catalog)
    assert not shared(asked(), asked(session=opened))


def test_what_may_hang_on_a_file_is_planned_anew(tmp_path: Path) -> None:
    text = TUNE.replace("name: tune", f"name: tune\nlabels: {{team: {tmp_path}}}")
    assert not shared(asked(text), asked(text))


def test_who_replaces_a_part_of_the_program_gets_plans_made_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not shared(asked(), asked())
