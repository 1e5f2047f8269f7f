"""Machines of one's own have two costs, and a plan says both."""

from __future__ import annotations

from dataclasses import replace

import plans
from chipwise.catalog.machine import Machine
from chipwise.planner.choice_parts import own_costs
from chipwise.planner.explain.row_words import brief, running
from chipwise.planner.explain.words import headline, own_words
from chipwise.planner.values.choice import Choice, OwnCosts

BOX = Machine("onprem", "box", "H100-SXM", 8.0, full_usd_per_hour=12.0, energy_usd_per_hour=3.0)


def owned(hourly: float) -> Choice:
    """90 of the 100 dollars are machine-hours."""
    return plans.choice(purchase="owned", hourly_usd=hourly)


def test_only_the_machine_hours_change() -> None:
    assert own_costs(BOX, owned(12.0), 90.0) == OwnCosts(sunk_usd=10 + 90 * 3 / 12, full_usd=100.0, paid=False)
    paid = replace(BOX, paid=True)
    assert own_costs(paid, owned(3.0), 90.0) == OwnCosts(sunk_usd=100.0, full_usd=10 + 90 * 12 / 3, paid=True)


def test_what_is_not_known_stays_unknown() -> None:
    assert own_costs(replace(BOX, energy_usd_per_hour=None), owned(12.0), 90.0) == OwnCosts(None, 100.0, False)
    assert own_costs(replace(BOX, full_usd_per_hour=None, paid=True), owned(3.0), 90.0) == OwnCosts(100.0, None, True)
    assert own_costs(replace(BOX, full_usd_per_hour=None), owned(12.0), 90.0) is None


def test_figures_of_another_site_or_of_rented_machines_are_not_told() -> None:
    assert own_costs(BOX, owned(11.0), 90.0) is None
    assert own_costs(BOX, plans.choice(purchase="on-demand", hourly_usd=12.0), 90.0) is None


def test_both_costs_stand_in_every_text_about_the_choice() -> None:
    choice = replace(owned(12.0), own=OwnCosts(32.5, 100.0, False))
    assert own_words(choice) == "$32.50 electricity alone, $100 in full (counted)"
    assert (
        own_words(replace(choice, own=OwnCosts(32.5, 100.0, True))) == "$32.50 electricity alone (counted: paid), $100 in full"
    )
    assert own_words(plans.choice()) == ""
    for told in (brief(choice, "job"), dict(running(choice))["own hardware"], headline(plans.plan(choices=(choice,)))):
        assert "$32.50 electricity alone" in told
