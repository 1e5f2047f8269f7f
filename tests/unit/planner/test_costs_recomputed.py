"""Costs, energy and carbon of plans of every kind, worked out a second time from what JSON says (hours, machines, place, way to
buy) and the tables as they lie on disk (`raw_tables`). Nothing of the product computes here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from math import ceil, nan
from pathlib import Path
from typing import Any

import pytest

import raw_tables as raw
from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.api.verbs import plan
from chipwise.views.plan import plan_view

ROOT = Path(__file__).resolve().parents[3]
NOWHERE = ROOT / "tests" / "cases" / "no-such-folder"
TODAY = date(2026, 11, 15)
EXACT = 1e-6
View = Mapping[str, Any]


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(Config(NOWHERE, NOWHERE), TODAY, [])


@pytest.fixture(scope="module")
def own_session() -> Session:
    return Session(Config(ROOT / "tests" / "cases" / "own", NOWHERE), TODAY, [])


@dataclass(frozen=True)
class Case:
    text: str  # a workload, or the name of an example
    apart: bool = False  # machines work each for itself: one that is lost stops no other
    data: tuple[float, str, str] | None = None  # bytes, cloud and region, where it must come from elsewhere
    hours: float | None = None  # of a month, of what goes on

    @property
    def source(self) -> str:
        return self.text if "\n" in self.text else (ROOT / "examples" / self.text / "workload.yaml").read_text(encoding="utf-8")


SERVE = """
kind: serve
name: chat
model: llama-3.1-8b
arrival: {rate: 4 req/s}
input_tokens: 800
output_tokens: 200
goals: {ttft: {p90: 2s}, tpot: {p90: 80ms}}
"""
TRAIN = """
kind: train
name: pretraining
model: llama-3.1-8b
tokens: 3B tokens
sequence_length: 4096
goals: {deadline: 6d}
"""
EMBED = """
kind: batch
name: archive
model: bert-base
items: 100M
input_tokens: 200
data: {size: 20TB, place: "aws:eu-west-1", access: once}
goals: {deadline: 20d}
"""
WEEKS_PER_MONTH = raw.HOURS_PER_MONTH / 168.0
KINDS = {
    "train": Case("train", data=(80e9, "aws", "eu-central-1")),
    "train on demand": Case(f"{TRAIN}limits: {{purchase: on-demand}}\n"),
    "train on spot": Case(f"{TRAIN}limits: {{purchase: spot}}\n"),
    "train reserved": Case(f"{TRAIN}limits: {{purchase: reserved, clouds: [aws, gcp]}}\n"),
    "finetune": Case("finetune", data=(1.4e9, "aws", "")),
    "serve by a schedule": Case("serve", hours=6 * 15 * WEEKS_PER_MONTH),
    "serve": Case(SERVE, hours=raw.HOURS_PER_MONTH),
    "serve committed": Case(f"{SERVE}limits: {{commit: 3y, purchase: reserved}}\n", hours=raw.HOURS_PER_MONTH),
    "batch": Case("batch", apart=True, data=(310e9, "gcp", "us-central1")),
    "batch from afar": Case(f"{EMBED}limits: {{clouds: [gcp]}}\n", apart=True, data=(20e12, "aws", "eu-west-1")),
    "batch from another region": Case(
        f'{EMBED}limits: {{regions: ["aws:eu-central-1"]}}\n', apart=True, data=(20e12, "aws", "eu-west-1")
    ),
    "hpc": Case("hpc"),
    "render": Case("render", apart=True, data=(140e9, "", "")),
    "transcode": Case("transcode", hours=2 * 5 * WEEKS_PER_MONTH),
    "stream": Case("stream", hours=(6.5 + 0.75) * 5 * WEEKS_PER_MONTH),
    "hybrid": Case("hybrid"),
    "interactive": Case("interactive", hours=11 * 5 * WEEKS_PER_MONTH),
}


@pytest.fixture(scope="module")
def views(session: Session) -> dict[str, View]:
    """Plans are made when a test asks for them, each once."""

    class Planned(dict[str, View]):
        def __missing__(self, name: str) -> View:
            self[name] = plan_view(plan(session, "workload.yaml", text=KINDS[name].source))
            return self[name]

    return Planned()


def usual_price(choice: View) -> float:
    """USD an hour: on spot the middle of the zones. What a doubtful price counts as is the business of other tests."""
    place = (choice["provider"], choice["machine"], choice["region"], choice["purchase"])
    lowest, highest = raw.listed_usd(*place)
    assert choice["listed_usd_per_machine_hour"] == pytest.approx(lowest, rel=0.005)
    counted = float(choice["usd_per_machine_hour"])
    if raw.is_doubtful(*place):
        assert counted >= (lowest + highest) / 2 * (1 - EXACT)
        return counted
    return (lowest + highest) / 2


def moving(case: Case, view: View, choice: View) -> tuple[float, float]:
    """(USD, hours) of bringing the data and of sending back what is written."""
    if case.data is None:
        return 0.0, 0.0
    size, cloud, region = case.data
    if (cloud, region) == (choice["provider"], choice["region"]):
        return 0.0, 0.0
    results = view["data"]["written"]["bytes"]
    if cloud == choice["provider"]:  # 2 cents between regions of a continent
        return (size + results) / 1e9 * 0.02, (120.0 + (size + results) / 1.25e9) / 3600
    back = raw.egress_usd(choice["provider"], results) if choice["provider"] in raw.EGRESS else nan
    if not cloud:  # an own site: a line of 1 Gbit/s
        return back, (20.0 + (size + results) / 125e6) / 3600
    return raw.egress_usd(cloud, size) + back, (600.0 + (size + results) / 0.625e9) / 3600


def waiting_h(case: Case, choice: View) -> float:
    """Hours without machines, for which nobody pays: before the first spot machine and after each loss of one."""
    if choice["purchase"] != "spot":
        return 0.0
    losses = choice["interruptions"] / (choice["machines"] if case.apart else 1)
    place = (choice["provider"], choice["region"], choice["chip"])
    first = raw.fleet_wait(*place, choice["chips_per_machine"], 1 if case.apart else choice["machines"])[1]
    assert choice["first_wait_s"] == pytest.approx(3600 * first, rel=1e-5)
    first = choice["first_wait_s"] / 3600
    later_h = choice["later_wait_s"] / 3600
    if case.apart or choice["machines"] == 1:
        assert later_h == pytest.approx(losses * raw.wait_h(*place), rel=1e-5)
    else:  # others are lost before the lost one is back
        assert later_h > losses * raw.wait_h(*place)
    return float(first + later_h)


def held_h(case: Case, view: View, choice: View) -> float:
    """Hours for which the machines are there, on average over them."""
    if choice["over_time"] is not None:
        hours = choice["over_time"]["machine_hours"]
        assert choice["over_time"]["fewest_machines"] <= hours / (case.hours or 1.0) <= 1.1 * choice["machines"]
        return float(hours / choice["machines"])
    if case.hours is not None:
        return case.hours
    return float(choice["seconds"]["value"] / 3600 - moving(case, view, choice)[1] - waiting_h(case, choice))


def lines_of(choice: View) -> dict[str, float]:
    lines: dict[str, float] = {}
    for line in choice["lines"]:
        lines[line["name"]] = lines.get(line["name"], 0.0) + line["usd"]
    return lines


@pytest.mark.parametrize("name", KINDS)
def test_machines_cost_their_hours_times_their_price(views: dict[str, View], name: str) -> None:
    case = KINDS[name]
    assert views[name]["choices"], views[name]["missing"]
    for choice in views[name]["choices"]:
        lines, price, term = lines_of(choice), usual_price(choice), raw.TERM_YEARS.get(choice["purchase"])
        if term is None:
            hours = held_h(case, views[name], choice)
        elif case.hours is not None:
            hours = raw.HOURS_PER_MONTH  # a promise is paid for every hour of the month
        else:
            hours = ceil(choice["seconds"]["value"] / 3600 / (term * raw.HOURS_PER_YEAR)) * term * raw.HOURS_PER_YEAR
        paid = lines["compute"] + lines.get("restarts", 0.0)
        assert paid == pytest.approx(hours * choice["machines"] * price, rel=EXACT), choice
        assert choice["usd"] == pytest.approx(sum(lines.values()), rel=EXACT)
        assert choice["usd_range"][0] <= choice["usd"] * (1 + EXACT)
        assert choice["usd"] <= choice["usd_range"][1] * (1 + EXACT)


@pytest.mark.parametrize("name", [name for name, case in KINDS.items() if case.data is not None])
def test_moving_data_costs_its_bytes_times_the_bands(views: dict[str, View], name: str) -> None:
    known = [one for one in views[name]["choices"] if one["provider"] in raw.EGRESS]
    assert known
    for choice in known:
        usd, _ = moving(KINDS[name], views[name], choice)
        assert lines_of(choice).get("transfer", 0.0) == pytest.approx(usd, rel=EXACT), choice


@pytest.mark.parametrize("name", KINDS)
def test_electricity_emits_watts_times_hours_times_pue_times_grid(views: dict[str, View], name: str) -> None:
    for choice in views[name]["choices"]:
        grams, pue = raw.grid_of(choice["provider"], choice["region"], choice["country"])
        kwh = choice["watts"]["all"] / 1e3 * held_h(KINDS[name], views[name], choice) * pue
        assert choice["co2e_kg"] - choice["making_co2e_kg"] == pytest.approx(kwh * grams / 1e3, rel=1e-6), choice
        assert choice["watts"]["all"] == pytest.approx(choice["machines"] * choice["watts"]["machine"], rel=EXACT)


@pytest.mark.parametrize("name", KINDS)
def test_making_is_shared_by_the_hours_for_which_machines_are_there(views: dict[str, View], name: str) -> None:
    winner, emitted = views[name]["winner"], views[name]["emitted"]
    embodied = [line["kg"] for line in emitted["lines"] if line["name"].startswith("embodied")]
    chips = winner["machines"] * winner["chips_per_machine"]
    host = raw.host_gib(winner["provider"], winner["machine"])
    part, hours = raw.host_part(winner["provider"], winner["machine"]), held_h(KINDS[name], views[name], winner)
    expected = raw.making_kg(winner["chip"], chips, winner["machines"], host, part, hours)
    if expected is not None:  # else the usual figure is assumed
        assert sum(embodied) == pytest.approx(expected, rel=EXACT)
    assert winner["making_co2e_kg"] == pytest.approx(sum(embodied), rel=1e-6)
    assert emitted["kg"] == pytest.approx(winner["co2e_kg"], rel=1e-6)


def test_a_quantum_part_costs_its_tasks_and_shots(views: dict[str, View]) -> None:
    for choice in views["hybrid"]["choices"]:
        part = choice["quantum"]
        row = next(row for row in raw.rows("tables/quantum") if f"{row['provider']} {row['device']}" == part["device"])
        assert part["tasks"] == 150 * 9
        usd = part["tasks"] * (float(row["usd_per_task"]) + 1000 * float(row["usd_per_shot"]))
        assert sum(usd for name, usd in lines_of(choice).items() if "braket" in name) == pytest.approx(usd, rel=EXACT)


def test_a_price_per_token_is_paid_for_every_token_of_a_month(session: Session) -> None:
    view = plan_view(plan(session, "workload.yaml", text=SERVE.replace("4 req/s", "0.1 req/s")))
    requests = 0.1 * raw.HOURS_PER_MONTH * 3600
    table = [row for row in raw.rows("tables/tokens") if "8b" in row["model"].lower() and row["open_weights"] == "yes"]
    prices = {
        round(requests * (800 * float(row["input_usd_per_mtok"]) + 200 * float(row["output_usd_per_mtok"])) / 1e6, 6)
        for row in table
        if row["input_usd_per_mtok"] and row["output_usd_per_mtok"]
    }
    services = [one for one in view["services"] if one["kind"] == "per token"]
    assert len(services) > 3
    assert {round(one["usd"], 6) for one in services} <= prices


def test_a_serverless_machine_is_paid_for_the_hours_in_which_it_is_up(session: Session) -> None:
    """Of services that take one price for all of that: work, starts and idle time before it is given up."""
    found = plan(session, "workload.yaml", text=SERVE.replace("4 req/s", "0.02 req/s"))
    rows = {(row["provider"], row["service"], row["hardware"]): row for row in raw.rows("tables/serverless")}
    simple, requests = ("runpod", "koyeb", "runware"), 0.02 * raw.HOURS_PER_MONTH * 3600
    services = [one for one in found.services if one.kind == "serverless" and one.provider in simple and not one.refused]
    assert len(services) >= 3
    for service in services:
        assert service.instances is not None
        row = rows[service.provider, service.name, service.hardware]
        price = float(row["usd"]) * (3600 if row["unit"].endswith("second") else 1)
        usd = service.instances * raw.HOURS_PER_MONTH * price
        rounding = (service.cold_share or 0.0) * requests / 3600 * price  # up to a second for each time that one is up
        assert usd * (1 - EXACT) <= service.usd <= (usd + rounding) * (1 + EXACT), service


def test_an_own_machine_costs_its_purchase_and_its_electricity(own_session: Session) -> None:
    view = plan_view(plan(own_session, "workload.yaml", text=f"{SERVE}limits: {{where: owned}}\n"))
    winner = view["winner"]
    hourly = 280_000 / (4 * raw.HOURS_PER_YEAR) + 10.2 * 1.4 * 0.19
    assert winner["purchase"] == "owned"
    assert winner["usd"] == pytest.approx(winner["machines"] * raw.HOURS_PER_MONTH * hourly, rel=EXACT)
    kwh = winner["watts"]["all"] / 1e3 * raw.HOURS_PER_MONTH * 1.4
    assert winner["co2e_kg"] - winner["making_co2e_kg"] == pytest.approx(kwh * 344 / 1e3, rel=1e-6)


def test_a_device_at_the_edge_costs_its_purchase_over_three_years_and_its_electricity(session: Session) -> None:
    view = plan_view(
        plan(session, "camera.yaml", text=(ROOT / "tests" / "cases" / "camera-edge.yaml").read_text(encoding="utf-8"))
    )
    kwh_prices = sorted(
        float(r["value"])
        for r in raw.rows("tables/energy")
        if r["measure"] == "industrial_electricity_price" and float(r["value"] or 0)
    )
    half = len(kwh_prices) // 2
    usd_per_kwh = kwh_prices[half] if len(kwh_prices) % 2 else (kwh_prices[half - 1] + kwh_prices[half]) / 2
    board = raw.only("tables/edge_devices", device="Raspberry Pi 5")
    for choice in view["choices"]:
        device = raw.only("tables/edge_devices", device=choice["machine"])
        parts = [device] if device["memory_gb"] else [device, board]
        bought = sum((float(one["usd_low"]) + float(one["usd_high"] or one["usd_low"])) / 2 for one in parts)
        watts = min(sum(float(one["power_max_w"]) for one in parts), 15.0)
        hourly = bought / (3 * raw.HOURS_PER_YEAR) + watts / 1e3 * usd_per_kwh
        assert choice["usd"] == pytest.approx(40 * raw.HOURS_PER_MONTH * hourly, rel=EXACT), choice["machine"]
