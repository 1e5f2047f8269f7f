"""What a plan says: amounts that can be told apart, products that hold, and words that suit the kind of work."""

from __future__ import annotations

import re
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import plan
from chipwise.cli.plan import _kg, _row
from chipwise.errors import ChipwiseError
from chipwise.planner.explain.reason_words import rule_words, words
from chipwise.planner.explain.remedy_words import remedy_words
from chipwise.planner.explain.row_words import brief, emissions, running
from chipwise.planner.explain.words import no_service, sentence
from chipwise.planner.quotas import notes
from chipwise.planner.values.plan import Plan
from chipwise.renderer.named_targets import target
from chipwise.text import mass, number, price, usd, usd_cell
from chipwise.views.plan import plan_view

NOTEBOOKS = "kind: interactive\nname: a\npeople: 12\nmemory: 16GB\nlimits: {clouds: [aws]%s}\n"
VIDEO = (
    "kind: transcode\nname: a\nstreams: 40\nsource: {codec: h264, resolution: 1080p, fps: 30}\n"
    "outputs: [{codec: h264, resolution: 720p, fps: 30}]\nlimits: {clouds: [aws]%s}\n"
)
CIRCUITS = "kind: hybrid\nname: a\niterations: 300\nquantum: {qubits: %d, shots: 1000}\n"
SOLVER = (
    "kind: hpc\nname: a\nsteps: 200000\nflop_per_step: 4e13 FLOP\nbytes_per_step: 8TB\nprecision: fp64\nworking_set: 120GB\n"
    "limits: {clouds: [primeintellect], regions: [IS]}\n"
)
CHAT = (
    "kind: serve\nname: a\nmodel: llama-3.3-70b\narrival: {rate: 3 req/s}\ninput_tokens: 1500\noutput_tokens: 400\n"
    "goals: {ttft: {p95: 1.5s}, tpot: {p95: 60ms}}\nlimits: {clouds: [aws], regions: [eu-central-1, eu-west-1]}\n"
)


@cache
def session() -> Session:
    return open_session()


@cache
def asked(text: str, top: int = 10) -> Plan:
    return plan(session(), "workload.yaml", None, top, text=text)


def turns(found: Plan) -> dict[str, str]:
    return {one.what: one.told for one in found.turns}


@given(st.floats(1e-12, 1e14), st.integers(2, 5))
def test_a_number_is_written_without_powers_of_ten_and_keeps_its_digits(value: float, digits: int) -> None:
    text = number(value, digits)
    assert "e" not in text
    assert float(text.replace(",", "")) == pytest.approx(value, rel=0.51 * 10 ** (1 - digits))


@given(st.floats(1e-6, 1e5))
def test_an_amount_above_nothing_is_not_told_as_nothing(value: float) -> None:
    for text in (usd(value), mass(value), usd_cell(value), _kg(value)):
        assert float(re.sub(r"[^\d.]", "", text)) > 0


@given(st.floats(0.003, 900.0))
def test_a_price_that_is_multiplied_is_exact_enough(value: float) -> None:
    assert float(price(value).lstrip("$").replace(",", "")) == pytest.approx(value, rel=6e-4)


@pytest.mark.parametrize("text", [NOTEBOOKS % "", VIDEO % "", CIRCUITS % 20])
def test_the_shown_product_is_the_shown_cost(text: str) -> None:
    for one in asked(text).choices:
        line = one.cost.lines[0]
        hours, many, price = re.findall(r"([\d.,]+) h x (\d+) x \$([\d.,]+)/h", line.how)[0]
        product = float(hours.replace(",", "")) * int(many) * float(price.replace(",", ""))
        assert product == pytest.approx(line.usd, rel=0.005)


def test_notebooks_tell_how_many_people_they_hold() -> None:
    for one in asked(NOTEBOOKS % "").choices:
        assert one.seats is not None
        assert one.seats >= 12
        assert _row(1, one, "month")[3] == str(one.seats)


@pytest.mark.parametrize("text", [NOTEBOOKS, VIDEO])
def test_what_goes_on_is_put_on_spot_only_where_it_may_be_interrupted(text: str) -> None:
    steady, free = asked(text % ""), asked(text % ", interruptible: true")
    assert all(one.purchase != "spot" for one in (*steady.choices, *steady.front))
    assert "may be interrupted" in {rule_words(one.rule) for one in steady.refused}
    assert free.winner is not None
    assert free.winner.purchase == "spot"
    assert "checkpoint" not in dict(running(free.winner))


def test_an_archive_of_video_may_still_be_interrupted() -> None:
    text = (VIDEO % "").replace("streams: 40", "duration: 1000h")
    found = asked(text)
    assert found.winner is not None
    assert found.winner.purchase == "spot"


def test_notebooks_go_to_chips_that_run_python_line_by_line() -> None:
    why = {one.family: words(one.why) for one in asked(NOTEBOOKS % "").losses if one.choice is None}
    assert {"AWS Inferentia", "AWS Trainium", "FPGA", "CPU"} <= set(why)


@pytest.mark.parametrize("text", [NOTEBOOKS % "", VIDEO % "", CIRCUITS % 20, SOLVER])
def test_work_without_a_model_is_not_told_of_one(text: str) -> None:
    found = asked(text)
    assert found.winner is not None
    assert "model" not in turns(found)["certainty"]
    assert all(value for _, value in running(found.winner))


def test_slices_are_no_precision_and_turns_are_told_in_words() -> None:
    slices = asked("kind: interactive\nname: a\npeople: 12\nmemory: 16GB\nsharing: slices\n")
    assert "precision" not in turns(slices)
    shared = asked("kind: interactive\nname: a\npeople: 12\nmemory: 16GB\nsharing: time\nlimits: {chips: [h100]}\n")
    assert shared.winner is not None
    assert re.search(r"\d+% slower when all are busy", brief(shared.winner, "month"))


def test_scaling_of_a_hybrid_keeps_its_quantum_device() -> None:
    found = asked(CIRCUITS % 20 + "limits: {clouds: [gcp]}\n")
    assert found.winner is not None
    told = {one.question: one.told for one in found.answers}
    gains = [float(gain) for gain in re.findall(r"([\d.]+)x as fast", " ".join(told.values()))]
    assert gains
    assert all(gain >= 1 for gain in gains)


def test_tiny_jobs_and_rare_runs_are_told_in_plain_numbers() -> None:
    small, rare = asked(CIRCUITS % 20), asked(SOLVER)
    assert "$0.00 " not in sentence(small)
    assert " 0 kg" not in sentence(small)
    assert rare.winner is not None
    assert "1 run every " in brief(rare.winner, "job")
    for found in (small, rare):
        assert found.winner is not None
        assert found.emitted is not None
        every = [one.told for one in found.turns] + [value for _, value in emissions(found.emitted, found.winner.unit)]
        assert not re.search(r"\de[+-]\d", " ".join([*every, *(brief(one, "job") for one in found.choices)]))


def test_a_grid_that_nobody_states_is_told_with_what_stands_in_for_it() -> None:
    found = asked(SOLVER)
    assert found.emitted is not None
    how = found.emitted.lines[0].how
    assert "480 g/kWh assumed, world average of 2023: grid of IS unknown" in how
    watts, hours, pue, grams = re.findall(r"([\d.,]+) W x ([\d.,]+) h x PUE ([\d.]+).* x ([\d.]+) g/kWh", how)[0]
    product = float(watts.replace(",", "")) * float(hours.replace(",", "")) * float(pue) * float(grams) / 1e6
    assert product == pytest.approx(found.emitted.lines[0].kg, rel=0.005)


def test_a_region_without_a_town_is_told_by_its_country() -> None:
    found = asked(CIRCUITS % 20)
    places = [one.choice.where for one in found.losses if one.choice is not None]
    assert not any(" in ," in place for place in places)


def test_the_refused_service_that_is_told_is_of_a_cloud_asked_for() -> None:
    found = asked(CHAT)
    assert found.winner is not None
    assert found.services
    assert all(one.refused for one in found.services)
    text = no_service(found)
    assert found.services[0].provider == "aws"
    assert "is not in --cloud" not in text
    assert (
        f"{usd(found.services[0].usd)} a month against {usd(found.winner.usd)}: {words(found.services[0].refused[0])}" in text
    )


def test_a_goal_kept_by_a_hair_and_a_rate_in_its_interval_are_told_with_the_price_of_one_more() -> None:
    found = asked(CHAT + "headroom: 0\n")
    one = found.winner
    assert one is not None
    assert one.rate is not None
    tight = one.rate / one.rate_spread < 3 or any(
        0.95 * limit < one.latency[name] <= limit for name, limit in (("ttft p95", 1.5), ("tpot p95", 0.06))
    )
    assert ("headroom" in turns(found)) is tight
    loose = asked(CHAT.replace("rate: 3 ", "rate: 0.05 ").replace("1.5s", "20s").replace("60ms", "600ms"))
    assert "headroom" not in turns(loose)
    assert tight, "the case was chosen to be tight"
    assert f"would cost {usd(one.usd / one.machines)} a month" in turns(found)["headroom"]


def test_quotas_are_told_of_the_choices_that_are_shown() -> None:
    found = asked(VIDEO % "", 200)
    assert len(found.choices) > 20
    groups = [
        group
        for line in notes(found, 5)
        for group in re.findall(r"for choice (\d+(?: and \d+|(?:, \d+(?! [a-zA-Z]))+)?)", line)
    ]
    ranks = [int(rank) for group in groups for rank in re.findall(r"\d+", group)]
    assert ranks
    assert max(ranks) <= 5
    assert not any("default quota of" in line for line in found.notes)
    assert any("default quota of" in line for line in plan_view(found)["notes"])


def test_a_vendor_is_a_family_of_accelerators_in_limits_and_nowhere_else() -> None:
    found = asked("kind: interactive\nname: a\npeople: 2\nmemory: 16GB\nlimits: {chips: [nvidia]}\n")
    assert found.winner is not None
    assert all(one.family.startswith("NVIDIA") for one in found.choices)
    for kind in ("cpu", "CPUs", "gpu", "tpu", "fpga"):
        chips = session().names.chips_of(kind)
        assert chips
        assert {str(chip.kind) for chip in chips} == {kind.lower().removesuffix("s")}
    amd = session().names.chips_of("AMD")
    assert amd is not None
    assert {chip.vendor for chip in amd} == {"AMD"}
    assert not any(chip.name.startswith("EPYC") for chip in amd)
    with pytest.raises(ChipwiseError):
        session().names.one_chip("nvidia")


@pytest.mark.parametrize(
    "text",
    [
        "kind: interactive\nname: a\npeople: 2\nmemory: 16GB\nlimits: {where: [owned]}\n",
        CHAT.replace("limits: {clouds: [aws], regions: [eu-central-1, eu-west-1]}", "limits: {where: [owned]}"),
    ],
)
def test_own_machines_that_are_not_there_are_to_be_imported(text: str) -> None:
    found = asked(text)
    assert found.winner is None
    assert "chipwise catalog import servers.csv" in remedy_words(found.missing[0])


def test_names_that_people_type_for_a_target_and_a_model_are_understood() -> None:
    assert target("k8s") is target("kubernetes")
    with pytest.raises(ChipwiseError) as told:
        session().find_model("llama-70b")
    assert {"llama-3.1-70b", "llama-3.3-70b"} <= set(re.findall(r"llama-[\d.]+-\d+b", str(told.value)))
