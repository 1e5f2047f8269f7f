"""Plans over time from workload files: recorded arrivals, schedules, own machines as the base, traffic by country."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date, datetime, timedelta
from math import isclose
from pathlib import Path
from time import process_time

import pytest

from chipwise.api.catalog.check import check
from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.api.verbs import plan
from chipwise.errors import BadInput
from chipwise.planner.explain.words import leading_layers
from chipwise.planner.load.plan import load_plan
from chipwise.planner.values.plan import Plan
from chipwise.workload.demand import Trace, TraceFormat
from chipwise.workload.trace import LONGEST_LINE, read_trace
from patience import slowness
from small_catalog import real_session

CHAT = """kind: serve
name: chat
model: llama-3.1-8b
goals: {ttft: {p90: 800ms}}
limits: {clouds: [aws, gcp, azure]}
"""
LENGTHS = "input_tokens: 1000\noutput_tokens: 300\n"
Ask = Callable[..., Plan]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    home: Path = tmp_path_factory.mktemp("home")
    return Session(Config(home / "config", home / "data"), date(2026, 11, 15), [])


def asked(session: Session, more: str, path: Path | str = "chat.yaml", commit: str = "none") -> Plan:
    return plan(session, str(path), text=CHAT.replace("azure]}", f"azure], commit: {commit}}}") + more)


def written(folder: Path, rows: str) -> Path:
    (folder / "trace.csv").write_text(rows, encoding="utf-8")
    return folder / "chat.yaml"


def arrivals(seconds: float, rate: Callable[[float], float]) -> list[float]:
    chance, now = random.Random(5), 0.0
    found: list[float] = []
    while True:
        now += chance.expovariate(rate(now))
        if now >= seconds:
            return found
        found.append(now)


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A day of four busy hours, with lengths."""
    folder = tmp_path_factory.mktemp("day")
    moments = arrivals(86400.0, lambda now: 8.0 if 36000 <= now < 50400 else 0.5)
    rows = "\n".join(f"{moment:.3f},{800 + at % 400},{100 + at % 200}" for at, moment in enumerate(moments))
    return written(folder, f"arrival,input_tokens,output_tokens\n{rows}\n")


def test_a_trace_is_planned_for_its_peak_and_priced_by_its_mean(session: Session, day: Path) -> None:
    found = asked(session, "arrival: {trace: trace.csv}\n", day)
    load, winner = found.load, found.winner
    assert load is not None
    assert winner is not None
    assert winner.rate is not None
    assert winner.rate >= load.peak >= 8.0 > load.mean
    assert isclose(load.mean, 1.75, rel_tol=0.03)
    assert load.pattern == "bursty"
    assert load.machine_hours.autoscaled <= load.machine_hours.static
    assert load.usd <= min(one.usd for one in load.alone if one.usd is not None) * (1 + 1e-9)
    assert any("requests in" in note for note in found.notes)
    tokens = load.mean * 730 * 3600 * (1000 + 200) / 1e6
    assert isclose(winner.usd / winner.usd_per_unit, tokens, rel_tol=0.05)


def test_lengths_of_the_file_stand_before_those_of_the_trace(session: Session, day: Path) -> None:
    short = asked(session, "arrival: {trace: trace.csv}\ninput_tokens: 50\noutput_tokens: 10\n", day)
    long = asked(session, "arrival: {trace: trace.csv}\n", day)
    assert short.load is not None
    assert long.load is not None
    assert short.load.per_machine / short.load.usd > long.load.per_machine / long.load.usd


def test_iso_times_and_the_azure_format_read_the_same(tmp_path: Path) -> None:
    moments = arrivals(3600.0, lambda _: 2.0)
    start = datetime(2026, 3, 1)
    plain, azure = tmp_path / "plain.csv", tmp_path / "azure.csv"
    plain.write_text("arrival,input_tokens,output_tokens\n" + "\n".join(f"{one:.6f},5,7" for one in moments))
    rows = "\n".join(f"{start + timedelta(seconds=one)!s},5,7" for one in moments)
    azure.write_text(f"TIMESTAMP,ContextTokens,GeneratedTokens\n{rows}\n")
    one = read_trace(Trace(path="plain.csv"), str(tmp_path / "w.yaml"))
    other = read_trace(Trace(path="azure.csv", format=TraceFormat.AZURE_LLM), str(tmp_path / "w.yaml"))
    assert one.rates.tolist() == pytest.approx(other.rates.tolist(), rel=1e-3)
    assert one.input_tokens == other.input_tokens
    assert isclose(one.mean, 2.0, rel_tol=0.06)
    assert abs(one.burstiness - 1.0) < 0.25


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is empty"),
        (b"arrival,input_tokens,output_tokens\n", "has no arrivals"),
        (b"arrival\n5\n5\n", "has one moment only"),
        (b"time,tokens\n1,2\n", "line 1: there is no column arrival"),
        (b"arrival,input_tokens,output_tokens\n1,5,6\n2,5", "line 3 is cut off"),
        (b"arrival,input_tokens\n1,5\nsoon,5\n", "line 3: arrival is 'soon'"),
        (b"arrival,input_tokens\n1,5\n2,nan\n", "line 3: input_tokens is 'nan'"),
        (b"arrival,input_tokens\n1,5\n2,-4\n", "line 3: input_tokens is '-4'"),
        (b"arrival\n0\n1e10\n", "spans"),
        (b"arrival\n0\n1e300\n", "line 3: arrival is '1e300'"),
        (b"arrival\n0\ninf\n", "line 3: arrival is 'inf'"),
        (b"arrival\n0\n" + b"1" * (LONGEST_LINE + 10), "line 3 has more than"),
        (b"\x1f\x8b\x08\x00\xff\xfe\xfd", "is no text"),
        (b"arrival\n1\n\x00\x00\n", "line 3"),
    ],
)
def test_a_trace_that_cannot_be_used_is_refused_with_its_line(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "trace.csv").write_bytes(content)
    with pytest.raises(BadInput) as refused:
        read_trace(Trace(path="trace.csv"), str(tmp_path / "chat.yaml"))
    assert told in refused.value.message
    assert "trace.csv" in refused.value.message
    assert refused.value.remedy


def test_a_trace_that_is_not_there_is_refused(session: Session, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no file"):
        asked(session, "arrival: {trace: none.csv}\n" + LENGTHS, tmp_path / "chat.yaml")
    with pytest.raises(BadInput, match="cannot be read"):
        read_trace(Trace(path="none.csv"), str(tmp_path / "chat.yaml"))


def test_rows_in_any_order_count_the_same(tmp_path: Path) -> None:
    moments = arrivals(7200.0, lambda _: 1.0)
    for name, some in (("a.csv", moments), ("b.csv", [moments[0], *reversed(moments[1:])])):
        (tmp_path / name).write_text("arrival\n" + "\n".join(f"{one:.3f}" for one in some))
    one, other = (read_trace(Trace(path=name), str(tmp_path / "w.yaml")) for name in ("a.csv", "b.csv"))
    assert one.rates.tolist() == other.rates.tolist()


def test_bursts_take_a_reserved_base_and_hourly_machines_above_it(session: Session) -> None:
    bursts = "arrival: 60 req/s\nschedule: {kind: bursts, times: 4, lasts: 2h, every: 7d}\n"
    free = asked(session, bursts + LENGTHS).load
    assert free is not None
    assert not any(one.committed for one in free.layers), "nothing is promised unasked"
    found = asked(session, bursts + LENGTHS, commit="any").load
    assert found is not None
    assert len(found.layers) == 2
    assert found.usd < min(one.usd for one in found.alone if one.usd is not None)
    assert found.replicas_peak > 3 * found.replicas_mean
    assert "as the base" in found.recommendation


@pytest.mark.parametrize(("commit", "longest"), [("1y", 1.0), ("3y", 3.0)])
def test_no_layer_is_promised_for_longer_than_allowed(session: Session, commit: str, longest: float) -> None:
    found = asked(session, "arrival: 40 req/s\n" + LENGTHS, commit=commit).load
    assert found is not None
    terms = [one.term_years for one in found.layers]
    assert max(terms) <= longest
    assert max(terms) > 0, "a term is cheap enough to be taken"


def test_a_steady_load_costs_what_the_plan_says_and_takes_no_time(session: Session) -> None:
    text = CHAT + "arrival: 12 req/s\n" + LENGTHS
    found = plan(session, "chat.yaml", text=text)
    assert found.load is not None
    assert found.winner is not None
    assert found.load.usd <= found.winner.usd
    assert found.load.usd > 0.5 * found.winner.usd
    work = check(session, "chat.yaml", None, text=text).workload
    took = []
    for _ in range(9):
        start = process_time()
        load_plan(session.known, work, found, "chat.yaml")
        took.append(process_time() - start)
    assert min(took) < 0.010 * slowness()


@pytest.mark.parametrize("rate", [2.0, 2.7])
def test_a_steady_load_without_commitments_is_carried_by_the_plans_own_machines(rate: float) -> None:
    """One machine is no layering, and a machine whose region is open is ordered near the users, as the plan says."""
    goals = "goals: {ttft: {p90: 500ms}, tpot: {p90: 40ms}}\n"
    text = (
        f"kind: serve\nname: chat\nmodel: llama-3.1-8b\ninput_tokens: 1500\noutput_tokens: 300\narrival: {rate} req/s\n{goals}"
    )
    found = plan(real_session(), "chat.yaml", text=f"{text}traffic: {{DE: 100%}}\nlimits: {{clouds: [runpod]}}\n")
    assert found.load is not None
    assert found.winner is not None
    assert (found.load.title, found.load.changed) == (found.winner.where, "")
    assert leading_layers(found) is None


def test_callers_are_so_many_at_all_times(session: Session) -> None:
    bursts = "schedule: {kind: bursts, times: 3, lasts: 1h, every: 1d}\n"
    whole, same = (asked(session, f"arrival: {{concurrency: 200}}\n{more}{LENGTHS}").load for more in ("", bursts))
    assert whole is not None
    assert same is not None
    assert same.peak == whole.peak == 200
    assert same.usd == whole.usd


def test_off_hours_are_not_paid(session: Session) -> None:
    office = "schedule: {kind: business-hours, time_zone: Europe/Berlin}\n"
    whole, part = (asked(session, f"arrival: 12 req/s\n{more}{LENGTHS}").load for more in ("", office))
    assert whole is not None
    assert part is not None
    assert part.usd < whole.usd
    assert part.machine_hours.scheduled == pytest.approx(part.machine_hours.static * 50 / 168)
    started = part.machine_hours.scheduled + part.machine_hours.starting
    assert sum(one.hours_paid for one in part.layers) == pytest.approx(started)
    assert 0 < part.machine_hours.starting < 0.05 * started
    assert part.pattern == "business-hours"


def test_own_machines_are_the_base_of_a_varying_load(tmp_path: Path) -> None:
    (tmp_path / "config" / "catalog").mkdir(parents=True)
    (tmp_path / "config" / "catalog" / "own.yaml").write_text(
        "machines:\n  - {name: box, chip: h100-sxm, chips: 1, region: cellar, price_per_hour: 0.15}\n"
        "regions:\n  - {name: cellar, country: DEU}\n"
    )
    session = Session(Config(tmp_path / "config", tmp_path / "data"), date(2026, 11, 15), [])
    text = "\n".join(line for line in CHAT.splitlines() if not line.startswith("limits"))
    bursts = "schedule: {kind: bursts, times: 8, lasts: 2h, every: 7d}\n"
    found = plan(session, "chat.yaml", text=f"{text}\narrival: 30 req/s\n{bursts}{LENGTHS}").load
    assert found is not None
    assert found.layers[0].name == "owned: onprem box in cellar"
    assert len(found.layers) > 1
    assert "Own machines are the base" in found.recommendation


def test_traffic_gets_two_regions_that_outlive_one_and_leaves_time_for_the_way() -> None:
    session = real_session()
    where = "traffic: {DE: 60%, US: 40%}\n"
    plain, found = (asked(session, f"arrival: 12 req/s\n{more}{LENGTHS}") for more in ("", where))
    assert plain.placement is None
    placed = found.placement
    assert placed is not None
    assert len(placed.stands) >= 2
    assert found.winner is not None
    assert found.winner.network_s is not None
    assert found.winner.network_s <= placed.limit_s <= 0.15
    assert all(one.carried >= 1 for one in placed.losses)
    assert placed.single_usd is not None
    assert placed.usd > placed.single_usd
    assert plain.load is not None
    assert found.load is not None
    assert found.load.per_machine / found.load.usd <= plain.load.per_machine / plain.load.usd * (1 + 1e-9)


def test_interactive_work_stops_when_idle(session: Session) -> None:
    people = "kind: interactive\nname: n\npeople: 12\nmemory: 20GiB\nbusy: 20%\nlimits: {clouds: [aws, gcp]}\n"
    office = "schedule: {kind: business-hours, time_zone: Europe/Berlin}\n"
    forgetful, tidy = (plan(session, "n.yaml", text=people + office + more).load for more in ("", "idle_after: 20min\n"))
    assert forgetful is not None
    assert tidy is not None
    assert tidy.pattern == "development"
    assert tidy.usd < forgetful.usd
    assert "idle_after: 30min" in forgetful.recommendation
