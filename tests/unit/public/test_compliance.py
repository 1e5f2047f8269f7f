"""Programmes of compliance: what no data says is told as missing, with a warning or a stop, never as nothing that fits."""

from __future__ import annotations

from typing import Any

import pytest

import chipwise as cw

SERVE: dict[str, Any] = {
    "kind": "serve",
    "name": "chat",
    "model": "llama-3.1-8b",
    "arrival": {"rate": 3},
    "input_tokens": 500,
    "output_tokens": 200,
}
BATCH: dict[str, Any] = {"kind": "batch", "name": "tags", "model": "resnet-50", "items": "1M"}
KNOWN = {"aws", "azure", "gcp", "ibm", "oci"}


def told(found: cw.Plan | cw.NoPlan) -> list[str]:
    return [note for note in found.notes if note.startswith("Not checked")]


@pytest.mark.parametrize("programme", ["soc2", "c5"])
@pytest.mark.parametrize("work", [SERVE, BATCH], ids=["llm", "vision"])
def test_a_programme_without_data_warns_unless_it_must_stop(session: cw.Session, work: dict[str, Any], programme: str) -> None:
    found = session.plan(work, cloud="aws", limits={"compliance": programme})
    assert found
    assert told(found) == [f"Not checked: the catalog has no data on {programme}, of any provider. Ask aws for its report."]


@pytest.mark.parametrize("work", [SERVE, BATCH], ids=["llm", "vision"])
def test_a_programme_without_data_can_stop_the_plan(session: cw.Session, work: dict[str, Any]) -> None:
    found = session.plan(work, cloud="aws", limits={"compliance": ["soc2", "hipaa"], "compliance_unknown": "refuse"})
    assert isinstance(found, cw.NoPlan)
    assert "Nothing fits" not in repr(found)
    (missing,) = found.missing
    assert missing.what == "compliance data"
    assert missing.how_much == "no data says whether aws takes part in soc2"
    assert "limits.compliance_unknown: warn" in missing.remedy
    with pytest.raises(cw.NoResult, match="data on compliance is missing"):
        _ = found.best


def test_providers_that_state_nothing_are_refused_where_others_state_it(session: cw.Session) -> None:
    found = session.plan(SERVE, top=40, limits={"compliance": "hipaa"})
    assert {choice.provider for choice in found.choices} <= KNOWN
    assert any("states hipaa for the whole provider: check" in note for note in found.notes)
    assert told(found) == []


def test_where_only_silent_providers_are_left_the_data_is_missing(session: cw.Session) -> None:
    found = session.plan(SERVE, cloud="lambda", limits={"compliance": "hipaa"})
    assert isinstance(found, cw.NoPlan)
    (missing,) = found.missing
    assert missing.how_much == "no data says whether lambda takes part in hipaa; known to: aws, azure, gcp, ibm, oci"
    warned = session.plan(SERVE, cloud="lambda", limits={"compliance": "hipaa", "compliance_unknown": "warn"})
    assert warned.best.provider == "lambda"
    assert told(warned) == [
        "Not checked: no data says whether lambda takes part in hipaa; known to: aws, azure, gcp, ibm, oci. Ask it first."
    ]


def test_other_limits_that_refuse_everything_still_say_nothing_fits(session: cw.Session) -> None:
    found = session.plan(SERVE, cloud="lambda", limits={"compliance": "hipaa", "countries": ["CN"]})
    assert repr(found).startswith("Nothing fits")


def test_gdpr_is_a_rule_on_countries(session: cw.Session) -> None:
    found = session.plan(SERVE, limits={"compliance": ["gdpr", "c5"]}, cloud="aws")
    assert len(told(found)) == 1
    assert found.best.country not in ("USA", None)


def test_a_word_for_it_that_there_is_not_is_refused(session: cw.Session) -> None:
    with pytest.raises(cw.InvalidSettings, match="compliance_unknown"):
        session.plan(SERVE, limits={"compliance": "c5", "compliance_unknown": "ignore"})
