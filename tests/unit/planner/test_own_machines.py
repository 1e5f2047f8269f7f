"""Own machines: as many as there are, one power for money and carbon."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.api.verbs import plan, why
from chipwise.planner.explain.asking import SCALING
from chipwise.planner.explain.risks import risk_line
from chipwise.planner.explain.why import Outcome
from chipwise.planner.explain.words import headline
from chipwise.planner.reasons.goals import OwnsFewer
from chipwise.planner.values.plan import Plan

OWN = """
machines:
  - {{name: box, chip: H100-SXM, chips: 8, network: 400 Gbit/s, region: berlin, purchase_price: $280k, lifetime: 4y,
     power: 10.2 kW, usd_per_kwh: 0.2, paid: true{count}}}
regions:
  - {{name: berlin, country: DEU, grid_g_per_kwh: 300, pue: 1.4}}
"""
BUSY = """
kind: serve
name: busy
model: llama-3.1-70b
input_tokens: 1000
output_tokens: 300
arrival: {rate: 40}
goals: {ttft: {p95: 2s}, tpot: {p95: 60ms}}
limits: {where: [owned]}
"""


def planned(folder: Path, count: str, work: str = BUSY) -> Plan:
    catalog = folder / "catalog"
    catalog.mkdir(parents=True)
    (catalog / "own.yaml").write_text(OWN.format(count=count))
    return plan(Session(Config(folder, folder / "data"), date(2026, 11, 15), []), "case.yaml", None, text=work)


def test_no_more_machines_are_planned_than_there_are(tmp_path: Path) -> None:
    free = planned(tmp_path / "free", "").winner
    assert free is not None
    assert free.machines > 1
    enough, few = planned(tmp_path / "a", f", count: {free.machines}"), planned(tmp_path / "b", f", count: {free.machines - 1}")
    assert enough.winner is not None
    assert enough.winner.machines == free.machines
    assert few.winner is None


def test_own_machines_are_asked_about_by_what_they_are(tmp_path: Path) -> None:
    catalog = tmp_path / "catalog"
    catalog.mkdir()
    (catalog / "own.yaml").write_text(OWN.format(count=""))
    session = Session(Config(tmp_path, tmp_path / "data"), date(2026, 11, 15), [])
    answer = why(session, plan(session, "case.yaml", None, text=BUSY), "own")
    assert answer.subject == "your own machines"
    assert answer.outcome is Outcome.WINS


def test_an_unstated_number_is_a_risk(tmp_path: Path) -> None:
    assert "that you own" in risk_line(planned(tmp_path / "free", ""))
    assert "that you own" not in risk_line(planned(tmp_path / "a", ", count: 20"))


def test_electricity_and_carbon_are_of_one_power(tmp_path: Path) -> None:
    found = planned(tmp_path / "free", "")
    winner = found.winner
    assert winner is not None
    assert winner.machine_watts == 10_200
    assert found.rows is not None
    kwh = winner.usd / 0.2  # at the meter: electricity alone counts
    assert winner.kg - winner.making_kg == pytest.approx(kwh * 0.3, rel=1e-6)


def test_machines_that_are_too_few_carry_what_they_can_and_others_are_rented_above(tmp_path: Path) -> None:
    """Two do not do it alone with the headroom: they are the base, and the reason is their number, not their network."""
    work = BUSY.replace("limits: {where: [owned]}", "").replace("arrival: {rate: 40}", "arrival: {rate: 24}")
    found = planned(tmp_path, ", count: 2", work)
    assert found.winner is not None
    assert found.winner.purchase != "owned"
    assert found.load is not None
    assert [one.machines for one in found.load.layers if one.owned] == [2]
    assert found.load.usd < 0.8 * found.winner.usd
    assert headline(found).startswith("Use 2 x onprem box in berlin, your own, and rent ")
    assert found.rows is not None
    reasons = {
        found.rows.verdict(choice)
        for choice in map(found.rows.choice, found.rows.ranked[found.rows.kept :].tolist())
        if choice.machine == "box" and choice.precision == "bf16"
    }
    assert OwnsFewer(3, 2) in reasons


def test_what_stands_there_is_said_before_other_changes_where_its_electricity_costs_less(tmp_path: Path) -> None:
    catalog = tmp_path / "catalog"
    catalog.mkdir()
    (catalog / "own.yaml").write_text(OWN.format(count="").replace("paid: true", "paid: false").replace("$280k", "$900k"))
    work = BUSY.replace("llama-3.1-70b", "llama-3.1-8b").replace("limits: {where: [owned]}", "")
    found = plan(Session(Config(tmp_path, tmp_path), date(2026, 11, 16), []), "busy.yaml", text=work)
    assert found.winner is not None
    assert found.winner.purchase != "owned"
    assert found.turns[0].what == "own hardware"
    assert "Your own hardware: onprem box, owned would cost" in headline(found)
    assert "in electricity alone" in headline(found)


TRAIN = """
kind: train
name: own
model: llama-3.1-8b
tokens: 20B
sequence_length: 4096
precision: bf16
limits: {where: [owned]}
"""


def scaling(found: Plan) -> str:
    return next(one.told for one in found.answers if one.question == SCALING)


def test_the_scale_of_a_job_ends_with_the_machines_that_are_owned(tmp_path: Path) -> None:
    assert "2x the chips" not in scaling(planned(tmp_path / "a", ", count: 1", TRAIN))
    assert "You own 1 such machine" in scaling(planned(tmp_path / "b", ", count: 1", TRAIN))


def test_the_scale_of_a_service_says_how_many_are_owned(tmp_path: Path) -> None:
    free = planned(tmp_path / "free", "").winner
    assert free is not None
    assert f"and you own {free.machines}" in scaling(planned(tmp_path / "a", f", count: {free.machines}"))


def test_own_machines_that_carry_a_steady_load_alone_are_the_answer_over_time(tmp_path: Path) -> None:
    """Nothing is rented above them: the plan over time is of the same machines, and costs the same."""
    work = BUSY.replace("limits: {where: [owned]}", "").replace("arrival: {rate: 40}", "arrival: {rate: 4}")
    found = planned(tmp_path, ", count: 4", work)
    assert found.winner is not None
    assert found.winner.purchase == "owned"
    assert found.load is not None
    assert (found.load.machine, found.load.changed) == ("box", "")
    assert found.load.usd == pytest.approx(found.winner.usd, rel=0.03)
    assert "0 machines" not in found.load.recommendation
    assert found.load.steps[0][0] == found.winner.machines
