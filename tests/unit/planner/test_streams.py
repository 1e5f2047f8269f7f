"""Plans of streams: where packets come in, what a processor can do, and what is said of goals that may be missed."""

from __future__ import annotations

from datetime import date

import pytest

from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.api.verbs import plan
from chipwise.catalog.machine import Machine
from chipwise.planner.explain.asking import LATENCY
from chipwise.planner.explain.reason_words import lost, missing_words
from chipwise.planner.explain.remedy_words import remedy_words
from chipwise.planner.explain.risks import risk_line
from chipwise.planner.explain.words import sentence
from chipwise.planner.kinds.network import lasting, outward
from chipwise.planner.values.plan import Obstacle, Plan
from chipwise.views.plan import plan_view

pytestmark = pytest.mark.real_catalog

TODAY = date(2026, 11, 15)
FEED = (
    "kind: stream\nname: feed\noperations: [udp-receive, decode-itch, filter-symbols, tcp-send]\nmessages: 4M messages/s\n"
    "message_size: 52B\ncircuit: {luts: 400k, dsps: 96, memory: 24MiB}\nlimits: {interruptible: false}\n"
)
TLS = (
    "kind: stream\nname: tls\noperations: [tcp-receive, aes-256-gcm, tcp-send]\nbandwidth: 10 Gbit/s\n"
    "limits: {interruptible: false}\n"
)
CARD = """
machines:
  - {name: feed-host, chip: vu47p, chips: 1, vcpus: 32, memory: 128GiB, network: 12.5 Gbit/s, region: rack,
     purchase_price: $15k, lifetime: 4y, power: 500 W, usd_per_kwh: 0.15}
regions:
  - {name: rack, country: USA, grid_g_per_kwh: 380}
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    home = tmp_path_factory.mktemp("nothing")
    return Session(Config(home / "config", home / "data"), TODAY, [])


@pytest.fixture(scope="module")
def owner(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """Who has a card in the network's rack."""
    home = tmp_path_factory.mktemp("card")
    (home / "catalog").mkdir()
    (home / "catalog" / "rack.yaml").write_text(CARD)
    return Session(Config(home, home / "data"), TODAY, [])


def asked(session: Session, text: str) -> Plan:
    return plan(session, "workload.yaml", None, text=text)


def why(found: Plan, family: str) -> str:
    return next(lost(loss) for loss in found.losses if loss.family == family)


def latency(found: Plan) -> str:
    return next(answer.told for answer in found.answers if answer.question == LATENCY)


# --- where packets come in


def test_two_microseconds_are_not_kept_by_a_rented_fpga_and_the_reason_is_its_missing_port(session: Session) -> None:
    found = asked(session, f"{FEED}goals: {{latency: {{p50: 2us, p99: 5us}}}}\n")
    assert found.winner is None
    miss = found.missing[0]
    assert miss.what is Obstacle.LATENCY
    assert "a rented FPGA has no network port" in missing_words(miss)
    assert "a card of your own with a network port" in remedy_words(miss)


def test_an_own_card_answers_in_microseconds_where_a_rented_one_takes_tens(session: Session, owner: Session) -> None:
    goal = "goals: {latency: {p50: 1ms}}\n"
    rented, own = asked(session, FEED + goal), asked(owner, f"{FEED}{goal}".replace("{inter", "{where: owned, inter"))
    assert rented.winner is not None
    assert own.winner is not None
    assert own.winner.purchase == "owned"
    assert own.winner.latency["latency p50"] < 5e-6
    assert 20e-6 < rented.winner.latency["latency p50"] < 100e-6
    assert any("A rented FPGA has no network port" in note for note in rented.notes)
    assert not any("no network port" in note for note in own.notes)


def test_a_goal_between_both_is_kept_by_the_own_card_alone(owner: Session) -> None:
    found = asked(owner, f"{FEED}goals: {{latency: {{p50: 6us, p99: 6us}}}}\n")
    assert {one.purchase for one in found.choices} == {"owned"}


def test_a_host_in_the_path_has_a_tail_and_a_port_has_none(session: Session, owner: Session) -> None:
    goal = "goals: {latency: {p50: 1ms, p99: 5ms}}\n"
    rented, own = asked(session, FEED + goal), asked(owner, f"{FEED}{goal}".replace("{inter", "{where: owned, inter"))
    assert rented.winner is not None
    assert own.winner is not None
    assert rented.winner.latency["latency p99"] > 2 * rented.winner.latency["latency p50"]
    assert own.winner.latency["latency p99"] == own.winner.latency["latency p50"]


def test_what_a_rented_fpga_takes_is_bounded_by_the_network_of_its_host(session: Session) -> None:
    found = asked(session, TLS.replace("aes-256-gcm", "parse") + "goals: {latency: {p50: 1ms}}\n")
    assert found.winner is not None
    assert (found.winner.rate or 0.0) * 1000 <= 1.6e9 * found.winner.machines * found.winner.chips
    assert "Standard_NP10s" not in {one.machine for one in found.choices if one.machines == 1}  # 7.5 Gbit/s


def test_cards_for_video_carry_no_design_of_ones_own(session: Session) -> None:
    found = asked(session, FEED.replace("circuit: {luts: 400k, dsps: 96, memory: 24MiB}\n", ""))
    assert "Alveo-U30" not in {one.chip for one in found.choices}


# --- goals that may be missed


def test_a_goal_that_the_estimate_misses_is_a_risk_and_no_kept_goal(owner: Session) -> None:
    found = asked(owner, f"{FEED}goals: {{latency: {{p50: 2us, p99: 5us}}, objective: time}}\n")
    assert found.winner is not None
    assert found.winner.purchase == "owned"
    assert found.winner.goals_chance is not None
    assert 0.05 < found.winner.goals_chance < 0.5
    assert "misses the latency goals" in sentence(found)
    assert f"{found.winner.goals_chance:.0%} chance of being met" in risk_line(found)
    assert latency(found).startswith("missed by the estimate")
    assert "No family on offer is too slow" not in latency(found)
    assert not any("Nothing that keeps the goals" in answer.told for answer in found.answers)
    assert not any("keep the goals all month" in note for note in found.notes)
    assert plan_view(found)["choices"][0]["latency_s"].keys() == {"latency p50", "latency p99"}


def test_a_goal_that_is_surely_kept_is_no_risk(session: Session) -> None:
    found = asked(session, f"{FEED}goals: {{latency: {{p50: 1ms, p99: 5ms}}}}\n")
    assert found.winner is not None
    assert (found.winner.goals_chance or 0.0) > 0.9
    assert "latency goals" not in risk_line(found) + sentence(found)
    assert latency(found).startswith("met")


# --- processors


def test_ten_gigabits_of_tls_go_to_a_small_machine_without_an_accelerator(session: Session) -> None:
    found = asked(session, f"{TLS}goals: {{latency: {{p99: 10ms}}}}\n")
    assert found.winner is not None
    assert found.winner.family == "CPU"
    assert found.winner.machines == 1  # nobody puts a balancer before one stream where one machine takes all of it
    assert found.winner.usd < 1200  # 30 Gbit/s inside EC2, of which half goes to the internet
    assert (found.winner.rate or 0.0) >= 1.25e6
    assert (found.winner.goals_chance or 0.0) > 0.9


def test_the_network_that_is_there_all_day_counts_and_not_its_bursts(session: Session) -> None:
    found = asked(session, f"{TLS}goals: {{latency: {{p99: 10ms}}}}\n")
    machines = {one.key: one for one in session.known.catalog.machines}
    for choice in found.choices:
        machine = machines[choice.provider, choice.machine]
        network = machine.network_baseline_bytes_per_s or machine.network_bytes_per_s
        assert network is not None
        assert network * choice.machines >= 1.25e9


def test_an_operation_without_a_figure_is_not_planned_on_a_processor(session: Session) -> None:
    found = asked(session, FEED)
    assert found.winner is not None
    assert found.winner.family == "FPGA"
    assert "decode-itch, filter-symbols" in why(found, "CPU")
    assert "measured on a processor" in why(found, "CPU")


def test_microseconds_are_too_few_for_software(session: Session) -> None:
    found = asked(session, f"{TLS}goals: {{latency: {{p50: 3us}}}}\n")
    assert found.winner is None
    assert "latency p50" in why(found, "CPU")


def test_more_to_do_never_costs_less(session: Session) -> None:
    costs = []
    for rate in (1, 10, 40, 100):
        found = asked(session, TLS.replace("10 Gbit", f"{rate} Gbit"))
        assert found.winner is not None
        costs.append(found.winner.usd)
    assert costs == sorted(costs)
    assert costs[-1] > costs[0]


def test_small_messages_need_more_cores_than_large_ones(session: Session) -> None:
    tls = TLS.replace("10 Gbit", "3 Gbit")  # of more the network decides the size
    few, many = (asked(session, f"{tls}message_size: {size}\n") for size in ("16kB", "100B"))
    assert few.winner is not None
    assert many.winner is not None
    assert many.winner.usd > few.winner.usd


@pytest.mark.parametrize(
    ("provider", "vcpus", "network", "gbits"),
    [
        ("aws", 4.0, 10e9, 5.0),
        ("aws", 64.0, 25e9, 12.5),
        ("aws", 32.0, 8e9, 5.0),
        ("gcp", 4.0, 10e9, 10.0),
        ("aws", 4.0, 2e9, 2.0),
    ],
)
def test_small_machines_of_ec2_send_at_most_so_much_to_the_internet(
    provider: str, vcpus: float, network: float, gbits: float
) -> None:
    machine = Machine(provider=provider, name="m", chip=None, chips=None, vcpus=vcpus, network_baseline_bytes_per_s=network / 8)
    assert outward(machine) == pytest.approx(gbits * 1e9 / 8)


def live(streams: int, bitrate: str) -> str:
    video = f"{{codec: h264, resolution: 1080p, fps: 30, bitrate: {bitrate}}}"
    return (
        f"kind: transcode\nname: live\nstreams: {streams}\nsource: {video}\noutputs: [{video}]\n"
        "limits: {clouds: [aws], interruptible: false}\n"
    )


def test_live_video_takes_machines_for_its_network(session: Session) -> None:
    narrow, wide = plan(session, "a.yaml", text=live(40, "5 Mbit/s")), plan(session, "a.yaml", text=live(40, "500 Mbit/s"))
    assert narrow.winner is not None
    assert wide.winner is not None
    catalog = session.catalog
    sent = sum(
        0.8 * outward(catalog.machines[catalog.machine_index[one.provider, one.machine]]) * one.machines
        for one in (wide.winner,)
    )
    assert sent >= 40 * 500e6 / 8
    assert wide.winner.usd > narrow.winner.usd
    assert any("network decides the number" in note for note in wide.notes)


def test_an_archive_takes_as_long_as_its_bytes_over_the_network(session: Session) -> None:
    text = (
        "kind: transcode\nname: a\nduration: 2000h\nsource: {codec: h264, resolution: 1080p, fps: 30, bitrate: 2 Gbit/s}\n"
        "outputs: [{codec: h264, resolution: 720p, fps: 30, bitrate: 3 Mbit/s}]\nlimits: {clouds: [aws]}\n"
    )
    winner, catalog = plan(session, "a.yaml", text=text).winner, session.catalog
    assert winner is not None
    network = lasting(catalog.machines[catalog.machine_index[winner.provider, winner.machine]])
    assert winner.work_s >= 0.999 * 2000 * 3600 * 2e9 / 8 / (0.8 * network * winner.machines)
