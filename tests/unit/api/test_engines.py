"""Engines of serving as software that must run: each is known to the rules, and `limits.requires` holds chips against them."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.api.verbs import plan
from chipwise.catalog.compatibility import CompatibilityAnswer, check, components
from chipwise.planner.explain.reason_words import example_words, rule_words
from chipwise.planner.values.plan import Plan
from chipwise.workload.program import Engine

SERVE = "kind: serve\nname: s\nmodel: resnet-50\narrival: 200 req/s\n"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    home: Path = tmp_path_factory.mktemp("home")
    return Session(Config(home / "config", home / "data"), date(2026, 11, 15), [])


def asked(session: Session, more: str) -> Plan:
    return plan(session, "workload.yaml", text=SERVE + more)


@pytest.mark.parametrize("engine", [one for one in Engine if one is not Engine.OWN])
def test_every_engine_of_a_file_has_rules(session: Session, engine: Engine) -> None:
    assert str(engine) in components(session.catalog.data)


@pytest.mark.parametrize(
    ("chip", "version", "answer"),
    [
        ("L4", "", CompatibilityAnswer.FINE),
        ("T4", "2.60", CompatibilityAnswer.FINE),
        ("V100-16", "", CompatibilityAnswer.REFUSED),
        ("V100-16", "2.50", CompatibilityAnswer.FINE),
        ("TPU-v5e", "", CompatibilityAnswer.REFUSED),
        ("MI300X", "", CompatibilityAnswer.UNSTATED),
        ("Gaudi2", "", CompatibilityAnswer.REFUSED),
        ("M60", "2.50", CompatibilityAnswer.REFUSED),
    ],
)
def test_triton_runs_where_its_rules_say(session: Session, chip: str, version: str, answer: CompatibilityAnswer) -> None:
    found = check(session.catalog.chips[chip], {"triton": version}, session.catalog.data)
    assert found[0].answer is answer


def test_a_required_engine_refuses_what_it_does_not_run_on(session: Session) -> None:
    found = asked(session, "limits: {requires: [triton], chips: [tpu-v5e, l4]}\n")
    assert found.winner is not None
    assert {one.chip.partition(" (")[0] for one in found.choices} == {"L4"}
    assert any("triton" in rule_words(one.rule) for one in found.refused)
    alone = asked(session, "limits: {requires: ['triton>=2.60'], chips: [v100]}\n")
    assert alone.winner is None
    assert any(
        "triton>=2.60" in rule_words(one.rule) and "compute capability 7.5" in example_words(one) for one in alone.refused
    )


def test_a_program_that_names_an_engine_plans_and_changes_no_plan(session: Session) -> None:
    named = asked(session, "program: {engine: triton}\n")
    assert named.winner is not None
    assert named.winner == asked(session, "").winner
