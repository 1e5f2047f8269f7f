"""Plans under rules on countries, end to end."""

from __future__ import annotations

from typing import Any

import pytest

import chipwise as cw
from chipwise.countries import EU

SERVE: dict[str, Any] = {
    "kind": "serve",
    "name": "chat",
    "model": "llama-3.1-8b",
    "arrival": {"rate": 3},
    "input_tokens": 500,
    "output_tokens": 200,
}


def test_a_plan_that_avoids_china_has_no_choice_there_or_nobody_knows_where(session: cw.Session) -> None:
    found = session.plan(SERVE, top=40, limits={"avoid": {"countries": ["CN"]}})
    assert found.choices
    assert "CHN" not in {choice.country for choice in found.choices}
    assert None not in {choice.country for choice in found.choices}


@pytest.mark.parametrize(("limits", "inside"), [({"residency": ["DEU"]}, {"DEU"}), ({"residency": "EU"}, EU)])
def test_residency_is_kept_by_every_choice(session: cw.Session, limits: dict[str, Any], inside: set[str]) -> None:
    found = session.plan(SERVE, top=40, limits=limits)
    assert found.choices
    assert {choice.country for choice in found.choices} <= inside


def test_countries_of_a_provider_are_not_those_of_a_listing(session: cw.Session) -> None:
    """RunPod has machines in 14 countries; in which of them a card stands, nobody says."""
    for limits in ({"residency": ["EU"]}, {"countries": ["US"]}, {"avoid": {"countries": ["FR"]}}):
        assert not session.plan(SERVE, limits={"clouds": ["runpod"], **limits}), limits
    free = session.plan(SERVE, cloud="runpod")
    assert free.best.country is None


def test_hong_kong_is_told_where_china_is_avoided(session: cw.Session) -> None:
    found = session.plan(SERVE, market="any", limits={"countries": ["HK"], "avoid": {"countries": ["CN"]}})
    assert any("Hong Kong has a code of its own" in note for note in found.notes)
    assert not any("Hong Kong" in note for note in session.plan(SERVE, market="any", limits={"countries": ["HK"]}).notes)
