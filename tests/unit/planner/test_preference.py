"""Which of the cheapest leads: nothing that needs porting for little; of what costs nearly the same the better, with reason."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import plan, plan_any
from chipwise.planner.defaults import NEARLY, OTHER_GPU, PORTING_SAVES, ported_kinds
from chipwise.planner.explain.pipeline_words import together_words
from chipwise.planner.explain.risks import risk_line
from chipwise.planner.explain.words import headline
from chipwise.planner.offer_prices import DOUBTED, UNKNOWN_CURRENCY
from chipwise.planner.preference import PORTED, Advantage, Lead, Traits, effort, lead
from chipwise.planner.values.pipeline import PipelinePlan
from chipwise.planner.values.plan import Plan
from chipwise.workload.parse import parse


def traits(
    *rows: tuple[float, float, float, float, int], ended: tuple[int, ...] = (), doubtful: tuple[int, ...] = (), **settings: Any
) -> Traits:
    """Rows of USD, seconds, days, machines and porting."""
    usd, seconds, days, machines, porting = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    return Traits(
        usd=usd,
        seconds=seconds,
        days=days,
        machines=machines,
        porting=porting,
        ended=np.isin(np.arange(len(rows)), ended),
        doubt=np.where(np.isin(np.arange(len(rows)), doubtful), DOUBTED, 0.0),
        **settings,
    )


def test_the_cheapest_leads_where_nothing_near_is_better() -> None:
    assert lead(traits((100e3, 10, 0, 1, 0), (101e3, 10, 0, 1, 0))) == Lead(0)


def test_of_what_costs_nearly_the_same_the_surer_of_its_load_leads() -> None:
    rows = [(100e3, 10.0, 0.0, 2.0, 0), (101e3, 10.0, 0.0, 1.0, 0)]
    assert lead(traits(*rows, carries=np.array([0.67, 0.9]), enough=2.0)) == Lead(1, 0, (Advantage.CARRIES,))
    assert lead(traits(*rows, carries=np.array([0.85, 0.9]), enough=2.0)) == Lead(0)
    assert lead(traits(rows[0], (104e3, 10.0, 0.0, 1.0, 0), carries=np.array([0.67, 0.9]), enough=2.0)) == Lead(0)


@pytest.mark.parametrize(("usd", "chance", "first"), [(109e3, 0.8, 1), (111e3, 0.8, 0), (109e3, 0.86, 0)])
def test_a_load_that_may_well_be_too_high_is_carried_for_a_tenth_more(usd: float, chance: float, first: int) -> None:
    rows = traits((100e3, 10.0, 0.0, 1.0, 0), (usd, 10.0, 0.0, 1.0, 0), carries=np.array([chance, 0.9]), sure_load=0.9)
    assert lead(rows) == (Lead(1, 0, (Advantage.CARRIES,)) if first else Lead(0))


def test_what_surely_carries_the_load_leads_before_what_may_not() -> None:
    """gpt-oss-120b at 0.8 requests a second: two newer cards of 48 GB would do it with a probability of 76%."""
    text = (Path(__file__).resolve().parents[2] / "cases" / "oss-120b.yaml").read_text().replace("2 req/s", "0.8 req/s")
    answer = plan(open_session(), "a.yaml", text=text)
    assert answer.winner is not None
    assert answer.near_tie is not None
    assert (answer.winner.load_chance or 0.0) > 0.9 > (answer.near_tie.choice.load_chance or 1.0)
    assert "surer to carry the load (98% probability, not 76%)" in headline(answer)


def test_a_speed_that_nobody_measured_does_not_lead_where_a_known_one_is_near() -> None:
    rows = [(100e3, 10.0, 0.0, 1.0, 0), (140e3, 10.0, 0.0, 1.0, 0)]
    unknown = np.array([True, False])
    assert lead(traits(*rows, unknown=unknown)) == Lead(1, 0, (Advantage.KNOWN,))
    assert lead(traits(*rows, unknown=np.array([True, True]))) == Lead(0)
    assert lead(traits(rows[0], (151e3, 10.0, 0.0, 1.0, 0), unknown=unknown)) == Lead(0)
    ported = traits((100e3, 10.0, 0.0, 1.0, PORTED), rows[1], unknown=unknown)
    assert lead(ported) == Lead(1, across=0)  # nor after porting, where it would save enough


def test_speech_is_written_down_on_chips_of_which_it_was_measured() -> None:
    """Of Whisper on AMD's GPUs nothing was published: what the formula says may be wrong by 26 times."""
    text = "kind: batch\nname: calls\nmodel: whisper-large-v3\nitems: 1M\n"
    answer = plan(open_session(), "a.yaml", text=text)
    assert answer.winner is not None
    assert answer.winner.family.startswith("NVIDIA")
    assert answer.near_tie is not None
    assert answer.near_tie.choice.chip == "MI300X"
    assert "a speed that was measured on similar chips (MI300X was not)" in headline(answer)
    assert "its speed is known to a factor of 2" in risk_line(answer)


def test_a_doubtful_price_does_not_lead_where_a_sound_one_is_near() -> None:
    rows = [(100e3, 10.0, 0.0, 1.0, 0), (120e3, 10.0, 0.0, 1.0, 0)]
    assert lead(traits(*rows, doubtful=(0,))) == Lead(1, 0, (Advantage.SURER,))
    assert lead(traits(*rows)) == Lead(0)
    assert lead(traits(*rows, doubtful=(0, 1))) == Lead(0)
    assert lead(traits(rows[0], (127e3, 10.0, 0.0, 1.0, 0), doubtful=(0,))) == Lead(0)


def test_a_price_in_an_unstated_currency_leads_only_where_it_is_half_of_any_other() -> None:
    usd = [(100e3, 10.0, 0.0, 1.0, 0), (110e3, 10.0, 0.0, 1.0, 0), (190e3, 10.0, 0.0, 1.0, 0)]
    rows = traits(*usd)
    unstated, single = np.array([UNKNOWN_CURRENCY, 0.0, 0.0]), np.array([UNKNOWN_CURRENCY, DOUBTED, 0.0])
    assert lead(replace(rows, doubt=unstated)).first == 1
    assert lead(replace(rows, doubt=single)).first == 1, "a sound one costs far more than what one source states"
    assert lead(replace(rows, usd=np.array([100e3, 210e3, 220e3]), doubt=unstated)).first == 0


def test_a_doubtful_price_is_not_preferred_for_being_better_otherwise() -> None:
    assert lead(traits((100e3, 10, 0, 1, 0), (101e3, 5, 0, 1, 0), doubtful=(1,))) == Lead(0)


def test_a_doubtful_price_is_no_reason_to_port() -> None:
    """Against the sound one that would lead, it must save as much as any."""
    near = [(70e3, 10.0, 0.0, 1.0, 2), (90e3, 10.0, 0.0, 1.0, 0)]
    assert lead(traits(*near, doubtful=(0,))).first == 0
    assert lead(traits((95e3, 10, 0, 1, 2), (100e3, 10, 0, 1, 0), (119e3, 10, 0, 1, 0), doubtful=(0, 1))).first == 2


def test_what_leads_among_ports_pays_for_the_port_itself() -> None:
    """Not only the cheapest of them, which something dearer and sooner is preferred to."""
    usd = 10e3
    ported = (1 - PORTING_SAVES) * usd * 0.99
    found = lead(traits((ported, 10, 0, 1, 3), (1.02 * ported, 5, 0, 1, 3), (usd, 10, 0, 1, 0)))
    assert found == Lead(0, across=2)


def test_a_hair_of_time_is_no_reason_to_pay_more() -> None:
    """Also across the end of a step of time."""
    for seconds in np.geomspace(10, 11, 30):
        assert lead(traits((100e3, seconds, 0, 1, 0), (101e3, seconds * 0.99, 0, 1, 0))) == Lead(0)


@pytest.mark.parametrize(
    ("rival", "advantage"),
    [
        ((102e3, 8, 0, 2, 1), Advantage.SOONER),
        ((102e3, 10, -95, 2, 1), Advantage.FRESHER),
        ((102e3, 10, 0, 1, 1), Advantage.FEWER),
        ((102e3, 10, 0, 2, 0), Advantage.LESS_PORTING),
    ],
)
def test_what_is_nearly_as_cheap_leads_by_what_it_is_better_in(rival: Any, advantage: Advantage) -> None:
    assert lead(traits((100e3, 10, 0, 2, 1), rival)) == Lead(1, cheaper=0, advantages=(advantage,))


def test_one_machine_of_a_service_is_no_better_than_two() -> None:
    rows = [(100e3, 10.0, 0.0, 2.0, 0), (101e3, 10.0, 0.0, 1.0, 0)]
    assert lead(traits(*rows)).first == 1
    assert lead(traits(*rows, enough=2.0)) == Lead(0)


def test_of_services_at_one_price_the_one_leads_that_outlives_a_machine() -> None:
    rows = [(100e3, 10.0, 0.0, 1.0, 0), (101e3, 10.0, 0.0, 2.0, 0)]
    assert lead(traits(*rows, enough=2.0)) == Lead(1, 0, (Advantage.REDUNDANT,))
    assert lead(traits(*rows)).first == 0


def test_a_host_of_another_architecture_counts_as_porting() -> None:
    parts = session().known.parts
    gpus = frozenset({"gpu", OTHER_GPU})
    assert effort(parts["GB200"], gpus) == effort(parts["MI300X"], gpus) == 1
    assert effort(parts["B200"], gpus) == 0


def test_a_gpu_that_the_present_rocm_does_not_support_needs_porting_but_to_draw() -> None:
    parts, kinds = session().known.parts, partial(ported_kinds, processors=lambda name: False)
    train = parse("{name: a, kind: train, model: resnet50, samples: 1e6}")
    source = "source: {codec: h264, resolution: 1080p, fps: 30}, outputs: [{codec: hevc, resolution: 1080p, fps: 30}]"
    video = parse(f"{{name: a, kind: transcode, streams: 4, {source}}}")
    assert effort(parts["Radeon-Pro-V520"], kinds(train)) == PORTED
    assert effort(parts["Radeon-Pro-V520"], kinds(video)) == 1


def test_weights_of_four_bits_need_porting_to_gpus_on_which_their_kernels_were_not_tried() -> None:
    parts, kinds = session().known.parts, partial(ported_kinds, processors=lambda name: False)
    tune = "name: a\nkind: finetune\nmodel: llama-3.1-8b\nsamples: 1000\nmethod: {}\n"
    assert effort(parts["MI300X"], kinds(parse(tune.format("qlora")))) == PORTED
    assert effort(parts["MI300X"], kinds(parse(tune.format("lora") + "optimizer: adamw-8bit\n"))) == PORTED
    assert effort(parts["MI300X"], kinds(parse(tune.format("lora")))) == 1
    assert effort(parts["B200"], kinds(parse(tune.format("qlora")))) == 0
    named = kinds(parse(tune.format("qlora") + "limits: {chips: [mi300x]}\n"))
    assert effort(parts["MI300X"], named) == 1


def test_a_program_that_was_measured_on_processors_alone_needs_porting_to_gpus() -> None:
    parts = session().known.parts
    lines = "name: a\nkind: hpc\nsteps: 100\nmeasured: {on: Xeon-Sapphire-Rapids, vcpus: 4, takes: 1s, per: step}"
    native = ported_kinds(parse(lines), lambda name: name.startswith("Xeon"))
    assert effort(parts["B200"], native) == effort(parts["MI300X"], native) == PORTED


def test_what_is_done_by_half_of_the_deadline_takes_no_more_machines_to_be_done_sooner() -> None:
    rows = (100e3, 80, 0, 1, 0), (101e3, 41, 0, 2, 0), (102e3, 15, 0, 6, 0)
    assert lead(traits(*rows)) == Lead(2, cheaper=0, advantages=(Advantage.SOONER,))
    assert lead(traits(*rows, deadline_s=120.0)) == Lead(1, cheaper=0, advantages=(Advantage.SOONER,))
    assert lead(traits(*rows, deadline_s=200.0)) == Lead(0)


def test_what_costs_more_than_nearly_the_same_does_not_lead() -> None:
    assert lead(traits((100e3, 10, 0, 2, 0), ((1 + 2 * NEARLY) * 100e3, 1, -900, 1, 0))) == Lead(0)


def test_what_needs_porting_leads_only_where_it_saves_enough() -> None:
    native = (100e3, 10, 0, 1, 0)
    little, much = (1 - PORTING_SAVES + 0.01) * 100e3, (1 - PORTING_SAVES - 0.01) * 100e3
    assert lead(traits((little, 1, 0, 1, 2), native)) == Lead(1, across=0)
    assert lead(traits((much, 10, 0, 1, 2), native)) == Lead(0, across=1)


def test_porting_does_not_pay_for_a_small_bill() -> None:
    assert lead(traits((10, 1, 0, 1, 2), (100, 10, 0, 1, 0))) == Lead(1, across=0)
    assert lead(traits((10, 1, 0, 1, 2), (100, 10, 0, 1, 0), times=12)).first == 0


def test_what_is_ported_already_needs_no_saving() -> None:
    assert lead(traits((99, 10, 0, 1, 0), (100, 10, 0, 1, 0))) == Lead(0)


def test_nobody_ports_to_what_its_software_no_longer_supports() -> None:
    assert lead(traits((10e3, 10, 0, 1, 2), (100e3, 10, 0, 1, 0), ended=(0,))) == Lead(1, across=0)
    assert lead(traits((10e3, 10, 0, 1, 2), (20e3, 10, 0, 1, 2), (100e3, 10, 0, 1, 0), ended=(0,))).first == 1


def test_what_needs_porting_leads_where_there_is_nothing_else() -> None:
    assert lead(traits((100, 10, 0, 1, 2), (100.1, 10, 0, 1, 2))) == Lead(0)


LORA: dict[str, Any] = {
    "kind": "finetune",
    "name": "lora",
    "model": "llama-3.1-8b",
    "method": "lora",
    "tokens": 2e8,
    "limits": {"clouds": ["aws", "gcp"]},
}


@cache
def session() -> Session:
    return open_session()


def planned(work: dict[str, Any]) -> Plan:
    return plan(session(), "case.yaml", None, text=yaml.safe_dump(work))


def test_a_small_job_is_not_ported_and_the_answer_says_what_that_would_save() -> None:
    found = planned(LORA)
    assert found.winner is not None
    assert not found.winner.needs_porting
    ported = next(one for one in found.choices if one.needs_porting and one.usd < found.winner.usd)
    assert found.porting is not None
    assert found.porting.usd == ported.usd
    assert f"{1 - ported.usd / found.winner.usd:.0%} less" in " ".join(headline(found).split())
    assert not any(one.choice.needs_porting for one in found.alternatives)


@pytest.mark.parametrize(
    "said", [{"program": {"framework": "jax"}}, {"limits": {"chips": ["tpu-v5e", "tpu-v6e", "l4", "h100"]}}]
)
def test_who_names_the_chips_or_their_software_has_ported(said: dict[str, Any]) -> None:
    found = planned({**LORA, **said})
    assert found.winner is not None
    assert found.winner.family == "Google TPU"
    assert not found.winner.needs_porting


def test_the_first_answer_of_the_readme_has_a_price_that_nobody_doubts() -> None:
    chat = {
        "kind": "serve",
        "name": "chat",
        "model": "llama-3.1-70b",
        "arrival": {"rate": 10},
        "input_tokens": 1000,
        "output_tokens": 300,
        "goals": {"ttft": {"p90": "800ms"}, "tpot": {"p90": "50ms"}},
        "limits": {"clouds": ["aws", "gcp", "azure"]},
    }
    found = planned(chat)
    assert found.winner is not None
    assert not found.winner.doubt
    assert found.load is None or found.load.title == found.winner.where


def test_a_pipeline_says_what_a_surer_price_costs_more_as_a_workload_alone_does() -> None:
    work = {**LORA, "limits": {"clouds": ["seeweb", "aws"], "interruptible": False}}
    alone = planned(work)
    assert alone.near_tie is not None
    assert Advantage.SURER in alone.near_tie.advantages
    whole = plan_any(session(), "whole.yaml", None, text=yaml.safe_dump({"kind": "pipeline", "name": "p", "stages": [work]}))
    assert isinstance(whole, PipelinePlan)
    (tie,) = [one for one in whole.near_ties if Advantage.SURER in one.advantages]
    extra = whole.stages[0].choice.usd / tie.choice.usd - 1.0
    assert extra > NEARLY
    assert f"({extra:.1%}) more: a price that is more certain" in together_words(whole)


CHAT: dict[str, Any] = {
    "kind": "serve",
    "name": "chat",
    "model": "llama-3.1-8b",
    "arrival": {"rate": 12},
    "input_tokens": 1000,
    "output_tokens": 300,
    "limits": {"clouds": ["aws", "lambda"]},
}


def test_a_service_of_a_pipeline_is_as_sure_as_alone() -> None:
    """Of near ties the one that carries its load more surely leads, and the confidence of the whole is that of its stages."""
    for sure in ({}, {"goals": {"confidence": 0.95}}):
        alone = planned({**CHAT, **sure}).winner
        text = yaml.safe_dump({"kind": "pipeline", "name": "p", "stages": [CHAT], **sure})
        whole = plan_any(session(), "whole.yaml", None, text=text)
        assert isinstance(whole, PipelinePlan)
        assert alone is not None
        assert alone.load_chance is not None
        chosen = whole.stages[0].choice
        assert chosen.load_chance == pytest.approx(alone.load_chance)
        assert chosen.usd == pytest.approx(alone.usd)
        assert not sure or (chosen.load_chance or 0.0) >= 0.95
