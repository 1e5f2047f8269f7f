"""The page holds everything it needs, runs nothing but its own scripts, and shows names as they are."""

from __future__ import annotations

import re
from base64 import b64encode
from datetime import date
from hashlib import sha256
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import plans
from chipwise.planner.reasons.abilities import Unpredicted
from chipwise.planner.remedies import Advice
from chipwise.planner.values.plan import Missing, Obstacle, Plan
from chipwise.report import page as pages
from chipwise.report.markup import label, tag, text
from page_reading import Read

TODAY = date(2026, 11, 15)


def read(plan: Plan) -> Read:
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
    assert len(found.scripts) == 1
    assert "<script>window.hurt=1</script>" in found.shown
    assert "\u202e" not in found.shown
    drawn = [attributes for name, attributes in found.elements if name in ("text", "rect", "circle", "polygon", "svg")]
    assert drawn
    assert not [one for attributes in drawn for one in attributes if one.startswith("on")]


@given(st.text())
def test_any_text_survives_as_text(told: str) -> None:
    found = Read(tag("p", text(told), title=told))
    shown = "".join(found.texts)
    printable = "".join(c if c.isprintable() else " " for c in told)
    assert shown == printable
    assert found.elements == [("p", {"title": printable})]
    assert "<" not in label(told)


@pytest.mark.parametrize("plan", [plans.plan(), plans.service(), plans.hostile()])
def test_a_page_is_small_and_every_chart_is_drawn_broad_and_slim(plan: Plan) -> None:
    written = pages.page(plan, TODAY)
    assert len(written) < 150_000
    charts = written.count('class="plot"')
    assert charts == written.count("main-svg broad") == written.count("main-svg slim") >= 2
    for drawing in re.findall(r"<svg.*?</svg>", written, flags=re.DOTALL):
        assert "nan" not in drawing
        ElementTree.fromstring(drawing)  # well-formed


def test_a_plan_makes_the_same_page_twice() -> None:
    assert pages.page(plans.plan(), TODAY) == pages.page(plans.plan(), TODAY)


def test_missing_things_are_escaped() -> None:
    found = read(plans.nothing(Missing(Obstacle.MEMORY, Unpredicted(plans.HOSTILE), (Advice(plans.HOSTILE),), plans.HOSTILE)))
    assert "img" not in {name for name, _ in found.elements}


def test_a_service_that_is_cheaper_still_ends_the_flowchart() -> None:
    found = read(plans.service(services=(plans.per_use(usd=5.0),)))
    assert "services" in found.ids()
    assert "cheaper still nebius llama-3.1-8b paid per token: $5.00 a month" in found.shown
    assert "services" not in read(plans.service()).ids()
