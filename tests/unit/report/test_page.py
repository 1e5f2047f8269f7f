"""The page holds everything it needs, runs nothing but its own scripts, and shows names as they are."""

from __future__ import annotations

import json
import re
import sys
from base64 import b64encode
from datetime import date
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

import plans
from chipwise.errors import MissingExtra
from chipwise.planner.reasons.abilities import Unpredicted
from chipwise.planner.remedies import Advice
from chipwise.planner.values.plan import Missing, Obstacle, Plan
from chipwise.report import page as pages
from chipwise.report.markup import data, label, tag, text
from page_reading import Read

TODAY = date(2026, 11, 15)


def read(plan: Plan) -> Read:
    """With a stand-in for plotly's script: five megabytes need not be parsed in every test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "plotly_script", lambda: "var Plotly = {};")
        return Read(pages.page(plan, TODAY))


def test_a_plan_gets_all_its_sections() -> None:
    found = read(plans.plan())
    sections = {"how", "money", "decision", "choices", "pareto", "costs", "memory", "providers", "losses", "turns", "refused"}
    assert sections <= found.ids()
    for told in ("a job", "2026-11-15", "A note.", "A100-40 wins when", "7,396"):
        assert told in found.shown


def test_what_a_plan_does_not_hold_gets_no_section() -> None:
    found = read(plans.service(notes=(), turns=()))
    assert not {"memory", "losses", "turns", "notes"} & found.ids()
    assert "memory" not in found.shown


def test_where_nothing_fits_the_page_says_what_was_missing() -> None:
    found = read(plans.nothing())
    assert "Nothing fits." in found.shown
    assert "deadline 24 h later" in found.shown
    assert not {"choices", "pareto", "costs", "providers"} & found.ids()


def test_the_page_asks_nobody_for_anything() -> None:
    for plan in (plans.plan(), plans.service(), plans.nothing(), plans.hostile()):
        for name, attributes in read(plan).elements:
            assert "src" not in attributes, name
            assert attributes.get("href", "data:,") == "data:,"
            assert not [key for key in attributes if key.startswith("on")]


@pytest.mark.parametrize("plan", [plans.plan(), plans.service(), plans.nothing(), plans.hostile()])
def test_only_scripts_that_the_policy_names_may_run(plan: Plan) -> None:
    found = read(plan)
    policy = next(one["content"] for _, one in found.elements if one.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))
    run = {b64encode(sha256(code.encode()).digest()).decode() for attributes, code in found.scripts if "type" not in attributes}
    assert run == allowed
    assert "default-src 'none'" in policy


def test_hostile_names_are_shown_and_not_run() -> None:
    found = read(plans.hostile())
    elements = {name for name, _ in found.elements}
    assert "img" not in elements
    assert sum(name == "title" for name, _ in found.elements) == 1
    assert "<script>window.hurt=1</script>" in found.shown
    assert "\u202e" not in found.shown
    figures = [json.loads(code) for attributes, code in found.scripts if attributes.get("type") == "application/json"]
    assert figures
    for shown in _strings(figures):
        assert "<script" not in shown
        assert "<img" not in shown


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [one for part in inside for one in _strings(part)]


@given(st.text())
def test_any_text_survives_as_text(told: str) -> None:
    found = Read(tag("p", text(told), title=told))
    shown = "".join(found.texts)
    printable = "".join(c if c.isprintable() else " " for c in told)
    assert shown == printable
    assert found.elements == [("p", {"title": printable})]
    assert "<" not in label(told)


@given(st.recursive(st.text() | st.floats() | st.none() | st.booleans(), st.lists))
def test_data_ends_no_script_and_is_json(value: object) -> None:
    written = data(value)
    assert not set(written) & set("<>&\u2028\u2029")
    json.loads(written)


def test_plotly_comes_from_the_installed_package_and_ends_no_script() -> None:
    pytest.importorskip("plotly")
    script = pages.plotly_script()
    assert len(script) > 1_000_000
    assert "</script" not in script.lower()


def test_without_plotly_the_pip_line_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(MissingExtra) as told:
        pages.page(plans.plan(), TODAY)
    assert "pip install 'chipwise[report]'" in str(told.value)


def test_a_plan_makes_the_same_page_twice() -> None:
    pytest.importorskip("plotly")
    assert pages.page(plans.plan(), TODAY) == pages.page(plans.plan(), TODAY)


def test_missing_things_are_escaped() -> None:
    found = read(plans.nothing(Missing(Obstacle.MEMORY, Unpredicted(plans.HOSTILE), (Advice(plans.HOSTILE),), plans.HOSTILE)))
    assert "img" not in {name for name, _ in found.elements}


def test_a_service_that_is_cheaper_still_ends_the_flowchart() -> None:
    found = read(plans.service(services=(plans.per_use(usd=5.0),)))
    assert "services" in found.ids()
    assert "cheaper still nebius llama-3.1-8b paid per token: $5.00 a month" in found.shown
    assert "services" not in read(plans.service()).ids()
