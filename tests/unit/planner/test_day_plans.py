"""Plans of a day that is stated by its peak, its low and its shape: the answer is the plan over time."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from math import isclose
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.api.verbs import plan
from chipwise.cli.plan_load import hour_words
from chipwise.money.layering import Option
from chipwise.planner.explain.words import headline, sentence
from chipwise.planner.load.curve import WEEKS, Answering, MachineKind, by_the_hour, carry, steady
from chipwise.planner.load.starting import start_s
from chipwise.planner.values.plan import Plan
from chipwise.workload.day import open_hours, week_rates
from chipwise.workload.demand import Arrival, DayShape
from chipwise.workload.schedule import Always, BusinessHours
from effort import cases

CHAT = """kind: serve
name: chat
model: llama-3.1-8b
input_tokens: 1000
output_tokens: 300
goals: {ttft: {p90: 800ms}}
limits: {clouds: [aws, gcp, azure]}
"""
DAY = "arrival: {peak: 60 req/s, low: 2 req/s, shape: office-hours}\n"
EVERY_HOUR = Option("on-demand", 2.0)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    home: Path = tmp_path_factory.mktemp("home")
    return Session(Config(home / "config", home / "data"), date(2026, 11, 15), [])


PLANNED: dict[str, Plan] = {}


def asked(session: Session, more: str, text: str = CHAT) -> Plan:
    if text + more not in PLANNED:
        PLANNED[text + more] = plan(session, "chat.yaml", text=text + more)
    return PLANNED[text + more]


def test_the_answer_is_of_the_whole_day_and_its_lines_add_up(session: Session) -> None:
    found = asked(session, DAY)
    winner, load = found.winner, found.load
    assert winner is not None
    assert load is not None
    assert winner.over_time is not None
    assert winner.rate is not None
    assert 0 < winner.over_time.fewest < winner.machines
    assert winner.usd < 0.8 * winner.over_time.always_cost.usd
    assert isclose(winner.usd, sum(line.usd for line in winner.cost.lines))
    assert winner.low_usd <= winner.usd <= winner.high_usd
    assert load.title == winner.where
    assert load.usd == pytest.approx(winner.usd), "nothing is promised, so that layers save nothing"
    told = sentence(found)
    assert f"Rent {winner.over_time.fewest} to {winner.machines} x {winner.provider}" in told
    assert f"${winner.usd:,.0f} a month" in told
    assert f"{winner.machines} at all times ${winner.over_time.always_cost.usd:,.0f}" in told


def test_machines_are_told_by_the_hour(session: Session) -> None:
    load = asked(session, DAY).load
    assert load is not None
    assert len(load.by_hour) == 168
    hours = load.machine_hours
    assert sum(machines for _, machines in load.by_hour) * WEEKS == pytest.approx(hours.autoscaled - hours.starting)
    assert max(machines for _, machines in load.by_hour) == load.machines_peak
    told = hour_words(load)
    assert told.startswith("Monday to Friday 1 from 0:00, ")
    assert told.endswith("; Saturday to Sunday 1")
    evening = replace(load, by_hour=tuple((1.0, 2 if hour % 24 == 20 else 1) for hour in range(168)))
    assert hour_words(evening) == "every day 1 from 0:00, 2 from 20:00, 1 from 21:00"


def test_its_cost_is_that_of_a_few_lines_by_hand(session: Session) -> None:
    winner = asked(session, DAY).winner
    assert winner is not None
    assert winner.replicas is not None
    per_replica = (winner.planned or 0.0) / winner.replicas
    inside = winner.replicas // winner.machines
    rates = week_rates(Arrival.model_validate({"peak": 60, "low": 2, "shape": "office-hours"})).tolist()
    needed = [-(-max(-(-rate // per_replica), 1) // inside) for rate in rates]
    starting = start_s(8.03e9, winner.precision, True) / 3600
    hours = sum(now + max(later - now, 0) * starting for now, later in zip(needed, needed[1:] + needed[:1], strict=True))
    assert starting < 1
    assert winner.usd == pytest.approx(hours * WEEKS * winner.hourly_usd, rel=0.01)


def test_a_service_wins_where_it_costs_less_than_the_day(session: Session) -> None:
    found = asked(session, "arrival: {peak: 3 req/s, low: 0.05 req/s, shape: evening}\n")
    assert found.winner is not None
    service = next(one for one in found.services if not one.refused)
    assert service.unchecked, "goals are given"
    assert service.usd < found.winner.usd
    assert found.service is None
    assert found.unsure_service == service
    assert headline(found).startswith("Rent")
    assert f"{service.title} costs" in headline(found)
    busy = asked(session, DAY)
    assert busy.winner is not None
    assert busy.service is None
    tokens = week_rates(Arrival.model_validate({"peak": 60, "low": 2, "shape": "office-hours"})).mean() * 730 * 3600
    assert busy.winner.usd / busy.winner.usd_per_unit == pytest.approx(tokens * 1300 / 1e6, rel=1e-3)


def test_a_day_that_never_changes_costs_what_its_rate_costs(session: Session) -> None:
    flat, rate = asked(session, "arrival: {peak: 12, low: 12, shape: evening}\n"), asked(session, "arrival: 12 req/s\n")
    assert flat.winner is not None
    assert rate.winner is not None
    assert (flat.winner.where, flat.winner.machines) == (rate.winner.where, rate.winner.machines)
    assert flat.winner.usd == pytest.approx(rate.winner.usd)
    assert flat.winner.over_time is None


def test_a_recording_is_told_over_time_too(session: Session, tmp_path: Path) -> None:
    rows = [86400 * day + 60 * at for day in range(7) for at in range(1440) for _ in range(40 if 600 <= at < 900 else 1)]
    (tmp_path / "t.csv").write_text("arrival\n" + "\n".join(map(str, rows)))
    found = plan(session, str(tmp_path / "chat.yaml"), text=f"{CHAT.replace('8b', '70b')}arrival: {{trace: t.csv}}\n")
    assert found.winner is not None
    assert found.load is not None
    assert found.winner.usd == pytest.approx(found.load.usd, rel=0.03)


def test_the_plan_says_whose_hours_they_are(session: Session) -> None:
    def told(more: str) -> str:
        load = asked(session, DAY + more).load
        assert load is not None
        return " ".join(load.assumed)

    assert "the hours are UTC" in told("")
    assert "at weekends" in told("")
    assert "the hours are those of Germany" in told("traffic: {DE: 100%}\n")
    office = 'schedule: {kind: business-hours, time_zone: Europe/Berlin, start: "06:00", end: "20:00"}\n'
    assert "the hours are those of the schedule, Europe/Berlin" in told(office)


@pytest.mark.parametrize("text", [CHAT, "kind: serve\nname: r\nmodel: resnet-50\nlimits: {clouds: aws}\n"])
def test_machines_are_counted_for_the_peak(session: Session, text: str) -> None:
    arrival = "arrival: {peak: 4000 req/s, low: 40 req/s, shape: evening}\n" if "resnet" in text else DAY
    found = asked(session, arrival, text)
    assert found.winner is not None
    assert found.load is not None
    assert (found.winner.rate or 0.0) >= found.load.peak == (4000 if "resnet" in text else 60)


def test_a_budget_for_the_day_is_kept_by_machines_that_follow_it(session: Session) -> None:
    free = asked(session, DAY).winner
    assert free is not None
    assert free.over_time is not None
    budget = (free.usd + free.over_time.always_cost.usd) / 2
    found = asked(session, DAY, CHAT.replace("p90: 800ms}", f"p90: 800ms}}, budget: ${budget:.0f}/month"))
    assert found.winner is not None
    assert found.winner.usd <= budget
    tight = asked(session, DAY, CHAT.replace("p90: 800ms}", "p90: 800ms}, budget: $100/month"))
    assert tight.winner is None


days = st.sampled_from([*DayShape]) | st.lists(st.integers(0, 9), min_size=24, max_size=24).filter(
    lambda one: len(set(one)) > 1
)
answers = st.builds(Answering, st.floats(0.5, 20.0), st.sampled_from([1, 4, 8]), st.sampled_from([1, 2, 8]), st.integers(1, 3))


def usd(peak: float, low: float, shape: object, answering: Answering) -> float:
    rates = week_rates(Arrival.model_validate({"peak": peak, "low": low, "shape": shape}))
    on = open_hours(BusinessHours(time_zone="UTC")) if answering.least_replicas > 2 else rates * 0 + 1
    return carry(by_the_hour(rates, on, 1.0), MachineKind("p", "m", "r", "c", answering, (EVERY_HOUR,), 900.0)).usd


@settings(max_examples=cases(200))
@given(days, answers, st.floats(1.0, 50.0), st.floats(1.0, 3.0), st.floats(0.01, 1.0))
def test_a_higher_peak_or_low_never_costs_less(
    shape: object, answering: Answering, peak: float, factor: float, part: float
) -> None:
    low = peak * part
    assert usd(peak, low, shape, answering) <= usd(peak * factor, low, shape, answering) * (1 + 1e-9)
    assert usd(peak, low * 0.5, shape, answering) <= usd(peak, low, shape, answering) * (1 + 1e-9)


@settings(max_examples=cases(200))
@given(st.sampled_from([*DayShape]), answers, st.floats(0.1, 50.0))
def test_a_flat_day_costs_what_a_constant_rate_costs(shape: DayShape, answering: Answering, rate: float) -> None:
    rates = week_rates(Arrival.model_validate({"peak": rate, "low": rate, "shape": shape}))
    kind = MachineKind("p", "m", "r", "c", answering, (EVERY_HOUR,), 900.0)
    assert isclose(carry(by_the_hour(rates, rates * 0 + 1, 1.0), kind).usd, carry(steady(rate, Always()), kind).usd)
