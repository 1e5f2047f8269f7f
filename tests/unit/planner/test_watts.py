"""What a choice draws: the power that its carbon is reckoned from, of one machine and of all."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.api.verbs import plan
from chipwise.money.carbon import Grids
from chipwise.planner.explain.row_words import brief, running
from chipwise.planner.values.plan import Plan
from chipwise.views.plan import plan_view

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    home: Path = tmp_path_factory.mktemp("home")
    return Session(Config(home / "config", home / "data"), date(2026, 11, 15), [])


@pytest.mark.parametrize("kind", ["train", "serve", "batch", "hpc", "render", "hybrid", "interactive"])
def test_watts_are_what_the_carbon_is_reckoned_from(session: Session, kind: str) -> None:
    found = plan(session, str(ROOT / "examples" / kind / "workload.yaml"))
    one, rows = found.winner, found.rows
    assert one is not None
    assert rows is not None
    assert one.watts > 0
    catalog = rows.fleet.catalog
    region = catalog.region_index[one.provider, one.region]
    grids = Grids(catalog.regions, catalog.rows("energy"))
    over = one.over_time  # machines that follow the load emit while they are up
    kg = one.kg if over is None else over.always_kg
    if over is not None:
        assert one.kg / kg == pytest.approx(over.machine_hours / (one.machines * one.seconds / 3600), rel=1e-6)
    kg *= 1.0 - one.making_kg / one.kg
    hours = kg * 1e6 / (one.watts * grids.pue[region] * grids.g_per_kwh[region])  # kg -> Wh of machines
    assert 0.9 * min(one.seconds, one.work_s) / 3600 - 0.2 <= hours <= one.seconds / 3600 + 0.2


@pytest.fixture(scope="module")
def cameras(session: Session) -> Plan:
    return plan(session, str(ROOT / "tests" / "cases" / "camera-edge.yaml"))


def test_a_device_draws_no_more_than_it_may_and_its_board_counts(cameras: Plan) -> None:
    one = cameras.winner
    assert one is not None
    assert one.machines == 40
    assert cameras.rows is not None
    alone = cameras.rows.fleet.parts[one.chip].power_w
    assert alone < one.machine_watts <= 15  # more than the accelerator draws at most, no more than the file allows
    assert one.watts == pytest.approx(40 * one.machine_watts)


def test_text_of_an_edge_plan_has_the_watts_of_a_device(cameras: Plan) -> None:
    one = cameras.winner
    assert one is not None
    assert "W a device" in brief(one, "month")
    assert "7.19 W a machine, 288 W in all" in dict(running(one))["power"]


def test_json_has_both_and_whether_the_chip_states_its_power(cameras: Plan) -> None:
    watts = plan_view(cameras)["winner"]["watts"]
    assert set(watts) == {"machine", "all", "stated"}
    assert watts["all"] == pytest.approx(40 * watts["machine"])


def test_a_power_that_nobody_states_says_so(session: Session) -> None:
    found = plan(session, str(ROOT / "examples" / "serve" / "workload.yaml"), top=1000)
    assert found.winner is not None
    stated = {one.chip: one.watts_stated for one in found.choices}
    assert all(session.parts[chip.partition(" (")[0]].power_stated == known for chip, known in stated.items())
    for one in found.choices:
        assert ("not published" in dict(running(one))["power"]) != one.watts_stated
