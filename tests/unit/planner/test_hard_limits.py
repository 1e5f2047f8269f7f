"""Hard limits, each with its number: what must run, quotas, budgets per period, throughput, moments, replicas."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from functools import cache
from typing import Any

import numpy as np
import pytest
import yaml

from chipwise.api.catalog.check import check
from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import plan
from chipwise.catalog import compatibility
from chipwise.catalog.offer import PURCHASES, Purchase
from chipwise.errors import BadInput, UnknownName
from chipwise.planner import quotas, row_storage
from chipwise.planner.case import Goals
from chipwise.planner.explain.reason_words import example_words, missing_words, rule_words, words
from chipwise.planner.explain.remedy_words import remedy_words
from chipwise.planner.explain.words import headline
from chipwise.planner.ground import budget_usd, goals_of
from chipwise.planner.limits import Rules
from chipwise.planner.pricing import Priced
from chipwise.planner.reasons.limits import RuleKind
from chipwise.planner.remedies import LiftLimit
from chipwise.planner.rules import FEATURES, required, rules_of
from chipwise.planner.values.plan import Plan
from chipwise.text import duration
from chipwise.text import usd as shown_usd
from chipwise.units import DAY, HOUR, MONTH

TRAIN: dict[str, Any] = {
    "kind": "train",
    "name": "small",
    "model": "llama-3.2-1b",
    "tokens": 2e9,
    "sequence_length": 2048,
    "batch_tokens": 262144,
}
SERVE: dict[str, Any] = {
    "kind": "serve",
    "name": "chat",
    "model": "llama-3.1-8b",
    "arrival": {"rate": 10},
    "input_tokens": 500,
    "output_tokens": 200,
}


@cache
def session() -> Session:
    return open_session()


def planned(base: dict[str, Any], top: int = 50, **changes: Any) -> Plan:
    limits = {"chips": ["L4", "L40S", "H100"], "chip_count": {"max": 32}, **changes.pop("limits", {})}
    text = yaml.safe_dump({**base, **changes, "limits": limits})
    return plan(session(), "test.yaml", None, top, None, text)


# -- what must run or be there


@pytest.mark.parametrize(
    ("need", "runs", "does_not"),
    [
        ("flash-attention", "A10G", "T4"),
        ("flash-attention=2", "H100-SXM", "V100-16"),
        ("flash-attention 3", "H100-SXM", "A100-80"),
        ("neuron", "Trainium1", "L4"),
        ("flash-attention>=2", "B200", "T4"),
        ("cuda>=12.4", "V100-16", "K80"),
        ("cuda>=12.4", "B200", "MI300X"),
        ("cuda<12", "T4", "B200"),
        ("cuda==13.0", "T4", "V100-16"),
        ("rocm", "MI300X", "H100-SXM"),
        ("jax", "TPU-v5e", "Trainium1"),
        ("tensorflow", "TPU-v5e", "Inferentia2"),
        ("tensorrt-llm", "L4", "T4"),
        ("vllm", "TPU-v6e", "VU9P"),
        ("bf16", "A10G", "T4"),
        ("fp8", "L40S", "A100-80"),
        ("fp64", "H100-SXM", "TPU-v5e"),
        ("nvenc", "T4", "H100-SXM"),
        ("nvdec", "A100-80", "MI300X"),
        ("av1", "L4", "T4"),
        ("mig", "A100-80", "L4"),
        ("ray tracing", "L4", "A100-80"),
        ("flash-attention-2", "A10G", "T4"),
    ],
)
def test_a_chip_runs_what_is_required_or_is_refused_with_the_reason(need: str, runs: str, does_not: str) -> None:
    (found,) = required(session().known, [need])
    assert runs not in found.chips
    assert len(found.chips[does_not]) > 10


def test_versions_that_are_fixed_are_judged_together() -> None:
    torch, cuda = required(session().known, ["pytorch==2.9", "cuda==11.8"])  # not offered together
    assert "H100-SXM" in torch.chips
    assert "H100-SXM" not in cuda.chips
    (alone,) = required(session().known, ["pytorch==2.9"])
    assert "H100-SXM" not in alone.chips


def test_what_comes_with_the_default_build_refuses_nobody_whom_another_build_serves() -> None:
    (found,) = required(session().known, ["jax"])  # its default wheel is for CUDA 13, which Volta does not run
    assert "V100-16" not in found.chips
    assert "Another build" in found.doubts["V100-16"]


def test_links_and_fabrics_are_those_of_machines() -> None:
    nvlink, rdma = required(session().known, ["nvlink", "rdma"])
    assert ("aws", "p5.48xlarge") not in nvlink.machines
    assert "no NVLink" in nvlink.machines["aws", "g5.48xlarge"]
    assert "one chip" in nvlink.machines["gcp", "a3-highgpu-1g"]
    assert ("aws", "p5.48xlarge") not in rdma.machines
    assert ("aws", "g5.xlarge") in rdma.machines


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (["flsh-attention"], "flash-attention"),
        (["cudaa>=12"], "cuda"),
        (["quantum-sdk"], "Known: "),
        (["fp8>=2"], "no versions"),
        (["cuda>=12", "cuda<11"], "no version of cuda"),
        (["cuda=="], "does not name"),
        (["x" * 70], "Known: "),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(texts: list[str], told: str) -> None:
    with pytest.raises(BadInput, match=r"limits\.requires") as raised:
        required(session().known, texts)
    assert told in str(raised.value)
    assert len(str(raised.value)) < 600


def test_every_feature_and_component_can_be_required() -> None:
    for name in (*FEATURES, *compatibility.components(session().catalog.data)):
        (found,) = required(session().known, [name])
        assert len(found.chips) < len(session().catalog.chips), name
        assert found.chips or found.machines or name == "driver", name


def test_a_required_feature_leaves_a_refusal_with_count_and_example() -> None:
    found = planned(TRAIN, limits={"chips": ["T4", "L4"], "requires": ["flash-attention>=2"]})
    gone = next(one for one in found.refused if rule_words(one.rule) == "flash-attention>=2 does not run there")
    assert gone.offers > 30
    assert "T4 (Turing) has 7.5" in example_words(gone)
    assert {one.chip for one in found.choices} == {"L4"}


def test_what_nobody_states_passes_with_a_doubt() -> None:
    found = planned(TRAIN, limits={"chips": ["RTX-5090"], "requires": ["flash-attention 2"]})
    assert found.winner is not None
    assert any("Not sure: flash-attention 2 on RTX-5090" in one for one in found.notes)


# -- quotas


def chips(found: Plan) -> list[int]:
    return [one.chips * one.machines for one in found.choices]


def test_no_choice_is_above_a_quota_and_a_plan_without_it_is() -> None:
    limits = {"chips": ["H100"], "clouds": ["gcp", "aws"], "interruptible": False}
    free = planned(TRAIN, limits=limits, goals={"objective": "time"})
    held = planned(TRAIN, limits={**limits, "quotas": {"h100": 4}}, goals={"objective": "time"})
    assert max(chips(free)) > 4
    assert chips(held)
    assert max(chips(held)) <= 4
    (whole, part) = (one for one in held.refused if rule_words(one.rule).startswith("above your quota"))
    assert rule_words(whole.rule) == "above your quota of 4 h100"
    assert example_words(whole).endswith("needs 8 h100, your quota is 4")
    assert rule_words(part.rule).endswith("with more machines")


def test_a_quota_of_a_region_holds_there_alone() -> None:
    limits = {"chips": ["H100"], "clouds": ["aws"], "interruptible": False, "chip_count": {"min": 8}}
    found = planned(TRAIN, limits={**limits, "quotas": {"aws:us-east-1:h100": 7}})
    places = {one.region for one in found.choices}
    assert places
    rows = found.rows
    assert rows is not None
    kept = rows.priced.region[rows.ranked[: rows.kept]]
    regions = [one.key for one in rows.fleet.catalog.regions]
    assert ("aws", "us-east-1") not in {regions[at] for at in kept.tolist()}
    assert ("aws", "us-east-1") in {regions[at] for at in rows.priced.region.tolist()}


def test_a_quota_in_the_way_is_told_with_how_many_more() -> None:
    limits = {"chips": ["H100"], "clouds": ["aws"], "chip_count": {"min": 8, "max": 32}}
    found = planned(TRAIN, limits={**limits, "quotas": {"aws:h100": 3}})
    assert found.winner is None
    (missing,) = found.missing
    assert missing.what == "quota"
    assert "needs 8 h100 at aws, your quota is 3" in missing_words(missing)
    assert remedy_words(missing) == "your quota 5 higher: 8 h100 at aws"
    assert planned(TRAIN, limits={**limits, "quotas": {"aws:h100": 8}}).winner is not None


def test_a_loser_that_breaks_a_quota_says_so() -> None:
    found = planned(TRAIN, limits={"chips": ["H100", "L4"], "quotas": {"h100": 0}})
    hopper = next(one for one in found.losses if one.family == "NVIDIA Hopper")
    assert "your quota is 0" in words(hopper.why)


def test_slices_count_by_their_share() -> None:
    rows = planned(SERVE, model="llama-3.2-1b", limits={"chips": ["RTX-PRO-6000-SE"], "clouds": ["gcp"]}).rows
    assert rows is not None
    each = quotas.chips_of(rows.fleet)
    index = rows.fleet.catalog.machine_index
    assert each[index["gcp", "g4-standard-12"]] == pytest.approx(0.25)
    assert each[index["gcp", "g4-standard-96"]] == 2


def test_refusals_are_counted_by_offer_as_plain_loops_count_them() -> None:
    rules = rules_of(
        session().known,
        check(session(), "x", text=yaml.safe_dump({**TRAIN, "limits": {"quotas": {"h100": 8, "gcp:l4": 2}}})).workload.limits,
    )
    rows = planned(TRAIN, limits={"chips": ["H100", "L4"]}).rows
    assert rows is not None
    fleet, priced = rows.fleet, rows.priced
    catalog = fleet.catalog
    fine = np.logical_and.reduce([one.fine for one in quotas.quota_checks(fleet, priced, rules)])
    for at in np.random.default_rng(7).choice(len(priced), 300, replace=False).tolist():
        machine = catalog.machines[priced.machine[at]]
        many = (machine.chips or 0) * priced.machines[at]
        above = (machine.chip or "").startswith("H100") and many > 8
        above |= machine.chip == "L4" and machine.provider == "gcp" and many > 2
        assert fine[at] == (not above)
    gone = {int(one) for one in priced.offer[~fine]} - {int(one) for one in priced.offer[fine]}
    told = quotas.refused(fleet, priced, quotas.quota_checks(fleet, priced, rules))
    assert sum(one.offers for one in told if "with more" not in rule_words(one.rule)) == len(gone)


# -- what providers grant unasked


@pytest.mark.parametrize(
    ("machine", "families", "named"),
    [
        ("p5en.48xlarge", "p5 p6", True),
        ("p6-b200.48xlarge", "p5 p6", True),
        ("gr6f.4xlarge", "gr6 g6", True),
        ("g7.2xlarge", "g6 g7e", False),
        ("c7i.large", "a c d", True),
        ("p3dn.24xlarge", "p2 p3", True),
        ("trn2u.48xlarge", "trn1 trn2", True),
        ("inf2.xlarge", "i m", False),
        ("u-6tb1.metal", "p5", False),
    ],
)
def test_a_family_names_machines_with_more_attributes(machine: str, families: str, named: bool) -> None:
    assert quotas._of_ec2(families.split(), machine) is named


def test_defaults_are_told_and_refuse_only_when_asked() -> None:
    limits = {"chips": ["H100"], "clouds": ["aws"], "interruptible": False}
    found = planned(TRAIN, limits=limits)
    (turn,) = (one for one in found.turns if one.what == "quota")
    one = found.winner
    assert one is not None
    assert one.machine.startswith("p5.")
    vcpus = session().catalog.machines[session().catalog.machine_index["aws", one.machine]].vcpus or 0.0
    assert turn.told == (
        f"aws: Running On-Demand P instances: {vcpus * one.machines:,g} vCPUs needed, default 0; "
        "request an increase (L-417A185B) first"
    )
    refused = planned(TRAIN, limits={**limits, "default_quotas": True})
    assert refused.winner is None
    assert any("Running On-Demand P instances" in rule_words(one.rule) for one in refused.refused)
    assert "an increase to" in remedy_words(refused.missing[0])


def test_spot_has_a_quota_of_its_own_and_owned_machines_have_none() -> None:
    for default in quotas.defaults(session().catalog):
        assert not default.purchases[PURCHASES.index(Purchase.OWNED)]
        if default.row.provider == "aws":
            assert default.purchases[PURCHASES.index(Purchase.SPOT)] == ("Spot" in default.row.name)


def test_every_accelerated_machine_of_aws_has_a_quota_on_demand() -> None:
    catalog, on_demand = session().catalog, PURCHASES.index(Purchase.ON_DEMAND)
    rows = [one for one in quotas.defaults(catalog) if one.purchases[on_demand]]
    chips = {name for name, chip in catalog.chips.items() if chip.kind.value != "cpu"}
    machines = [one for one in catalog.machines if one.provider == "aws" and one.chip in chips]
    assert len(machines) > 50
    assert [one.name for one in machines if not any(row.speaks_of(catalog, one) for row in rows)] == []


def test_a_default_that_nobody_states_is_told_as_such_and_never_refuses() -> None:
    limits = {"chips": ["L4"], "clouds": ["gcp"], "interruptible": False}
    found = planned(TRAIN, limits={**limits, "default_quotas": True})
    assert found.winner is not None
    assert any("NVIDIA_L4_GPUS" in one.told and "not known here" in one.told for one in found.turns)


# -- money and time


def goals(changes: dict[str, Any], monthly: bool = False) -> Goals:
    work = check(session(), "x", text=yaml.safe_dump({**(SERVE if monthly else TRAIN), "goals": changes})).workload
    return goals_of(session().known, work, Rules(), "cost", None, monthly)


@pytest.mark.parametrize(
    ("budget", "usd", "seconds", "spent"),
    [
        ("$12/hour", 240.0, 10 * HOUR, 24.0),
        ("$12/hour", 6.0, 0.5 * HOUR, 6.0),
        ("$100/day", 240.0, 2 * DAY, 120.0),
        ("$2k/month", 9000.0, 3 * MONTH, 3000.0),
        ("$2k/month", 900.0, DAY, 900.0),
        ("$500", 900.0, 100 * DAY, 900.0),
    ],
)
def test_a_job_spends_in_a_period_its_cost_spread_over_its_time(budget: str, usd: float, seconds: float, spent: float) -> None:
    assert goals({"budget": budget}).spent(np.array([usd]), np.array([seconds]))[0] == pytest.approx(spent)


def test_a_budget_per_period_is_of_a_month_where_a_month_is_planned() -> None:
    work = check(session(), "x", text=yaml.safe_dump({**SERVE, "goals": {"budget": "$12/hour"}})).workload
    assert budget_usd(work, True) == pytest.approx(12 * 730)
    assert budget_usd(work, False) is None
    assert goals({"budget": "$12/hour"}, monthly=True).budget_usd == pytest.approx(12 * 730)


def test_no_choice_spends_faster_than_the_budget_allows() -> None:
    found = planned(TRAIN, goals={"budget": "$4/hour", "objective": "time"})
    assert found.choices
    assert all(one.usd / (one.seconds / HOUR) <= 4.0 * (1 + 1e-9) for one in found.choices if one.seconds > HOUR)
    free = planned(TRAIN, goals={"objective": "time"})
    assert any(one.usd / (one.seconds / HOUR) > 4.0 for one in free.choices)
    lost = [words(one.why) for one in planned(TRAIN, goals={"budget": "$1/hour"}).losses]
    assert any("exceeds the budget of $1.00 an hour" in why for why in lost)


def test_a_budget_that_is_too_small_says_by_how_much() -> None:
    found = planned(TRAIN, goals={"budget": "$0.01/hour"})
    assert found.winner is None
    (missing,) = found.missing
    assert missing.what == "budget"
    assert "an hour" in missing_words(missing)
    assert remedy_words(missing).startswith("budget $")
    assert remedy_words(missing).endswith("an hour higher")


def test_the_changes_that_are_told_help_each_alone() -> None:
    rows = planned(TRAIN).rows
    assert rows is not None
    usd, seconds = (
        rows.priced.usd,
        np.maximum(rows.priced.tails.quantiles(np.arange(len(rows.priced)), 0.9)[0], rows.priced.seconds),
    )
    budget, deadline = round(float(usd.min()) * 1.01, 2), round(float(seconds.min()) * 1.01)
    assert not np.any((usd <= budget) & (seconds <= deadline))
    found = planned(TRAIN, goals={"budget": f"${budget}", "deadline": f"{deadline}s"})
    assert found.winner is None
    told = {str(one.what): remedy_words(one) for one in found.missing}
    assert set(told) == {"deadline", "budget"}
    more = float(usd[seconds <= deadline].min()) - budget
    assert told["budget"] == f"budget {shown_usd(more)} higher"
    later = float(seconds[usd <= budget].min())
    assert told["deadline"] == f"deadline {duration(later - deadline)} later"
    assert planned(TRAIN, goals={"budget": f"${budget + more + 0.01:.2f}", "deadline": f"{deadline}s"}).winner is not None
    assert planned(TRAIN, goals={"budget": f"${budget}", "deadline": f"{later + 1:.0f}s"}).winner is not None


def test_a_throughput_is_kept_on_average() -> None:
    slow = planned(TRAIN)
    assert slow.winner is not None
    reached = 2e9 / slow.winner.seconds
    found = planned(TRAIN, goals={"throughput": f"{reached * 3:.0f} tokens/s"})
    assert all(2e9 / one.seconds >= reached * 2.99 for one in found.choices)
    never = planned(TRAIN, goals={"throughput": "1e12 tokens/s"})
    assert never.missing[0].what == "throughput"
    assert "tokens/s" in remedy_words(never.missing[0])


def test_a_batch_and_samples_count_their_own_items() -> None:
    batch = {"kind": "batch", "name": "b", "model": "llama-3.2-1b", "items": 1e6, "input_tokens": 500, "output_tokens": 50}
    found = planned(batch, goals={"throughput": "300 items/s"})
    assert found.choices
    assert all(1e6 / one.seconds >= 300 for one in found.choices)
    pictures = {"kind": "train", "name": "p", "model": "resnet-50", "samples": 1e8}
    found = planned(pictures, goals={"throughput": "20000 samples/s"})
    assert found.choices
    assert all(1e8 / one.seconds >= 20000 for one in found.choices)


def test_a_service_must_be_able_to_do_its_throughput() -> None:
    found = planned(SERVE, goals={"throughput": "40 req/s"})
    assert found.choices
    assert all((one.rate or 0.0) >= 40 * (1 - 1e-9) for one in found.choices)


def test_a_moment_counts_from_the_start_of_today_and_a_past_one_is_a_mistake() -> None:
    start = datetime.combine(session().today, time(), UTC)
    fine = planned(TRAIN, goals={"finish_by": (start + timedelta(days=3)).isoformat()})
    same = planned(TRAIN, goals={"deadline": "72h"})
    assert fine.winner is not None
    assert same.winner is not None
    assert fine.winner.usd == same.winner.usd
    with pytest.raises(BadInput, match=r"goals\.finish_by: .* is past"):
        planned(TRAIN, goals={"finish_by": (start - timedelta(hours=1)).isoformat()})
    frames = {"kind": "render", "name": "r", "frames": 10, "resolution": "1080p", "samples_per_pixel": 64}
    with pytest.raises(BadInput, match=r"goals\.finish_by: .* is past"):
        planned(frames, goals={"finish_by": (start - timedelta(hours=1)).isoformat()})


# -- replicas, memory, latency


def test_no_choice_has_more_replicas_than_allowed() -> None:
    free = planned(SERVE, arrival={"rate": 60})
    held = planned(SERVE, arrival={"rate": 60}, replicas={"max": 2})
    assert any((one.replicas or 0) > 2 for one in free.choices)
    assert held.choices
    assert all((one.replicas or 0) <= 2 for one in held.choices)
    (gone,) = (one for one in held.refused if "replicas" in rule_words(one.rule))
    assert rule_words(gone.rule) == "needs more than 2 replicas"
    assert "replicas, 2 are allowed" in example_words(gone)


def test_too_many_replicas_are_told_with_the_number_that_would_do() -> None:
    found = planned(SERVE, arrival={"rate": 200}, replicas={"max": 1}, limits={"chips": ["L4"], "chip_count": {"max": 512}})
    assert found.winner is None
    (missing,) = found.missing
    assert missing.what == "replicas"
    needed = int(remedy_words(missing).removeprefix("replicas.max of ").partition(" ")[0])
    assert needed > 1
    fits = planned(SERVE, arrival={"rate": 200}, replicas={"max": needed}, limits={"chips": ["L4"], "chip_count": {"max": 512}})
    assert fits.winner is not None


def test_memory_that_is_short_is_told_with_the_fewest_chips_that_hold_it() -> None:
    large = {**SERVE, "model": "llama-3.1-70b", "arrival": {"rate": 0.1}, "precision": "fp8"}
    found = planned(large, limits={"chips": ["L40S"], "chip_count": 1})
    (missing,) = found.missing
    assert missing.what == "memory"
    short = float(missing_words(missing).partition("lacks ")[2].partition(" GiB")[0])
    assert 20 < short < 50  # 68 GiB of 8-bit weights and what an engine needs, of 45
    assert "2 x L40S instead of 1" in remedy_words(missing)
    assert "int4 weights (1 x L40S)" in remedy_words(missing)
    assert planned(large, limits={"chips": ["L40S"], "chip_count": 2}).winner is not None


def test_memory_for_training_is_told_with_more_chips_and_lighter_methods_that_fit() -> None:
    found = planned(TRAIN, model="llama-3.1-8b", limits={"chips": ["L4"], "chip_count": {"max": 2}})
    (missing,) = found.missing
    assert missing.what == "memory"
    more = int(remedy_words(missing).partition(" x L4 instead of 2")[0])
    assert planned(TRAIN, model="llama-3.1-8b", limits={"chips": ["L4"], "chip_count": {"max": more}}).winner is not None
    assert "finetune with method: lora" in remedy_words(missing)


def test_a_latency_that_nobody_keeps_is_told_with_the_nearest() -> None:
    found = planned(SERVE, goals={"tpot": {"p90": "1ms"}})
    (missing,) = found.missing
    assert missing.what == "latency"
    above = float(remedy_words(missing).removeprefix("goals.tpot p90 above ").removesuffix(" ms"))
    assert above > 1
    assert planned(SERVE, goals={"tpot": {"p90": f"{above * 1.3:.2f}ms"}}).winner is not None


def test_a_limit_that_leaves_no_offer_is_told_with_what_lifting_it_leaves() -> None:
    found = planned(TRAIN, limits={"chips": ["H100"], "clouds": ["gcp"], "countries": ["BRA"]})
    (missing,) = found.missing
    assert missing.what == "offers"
    assert "without limits.countries, residency or gdpr (" in remedy_words(missing)


def test_unknown_names_are_of_the_same_kind_as_elsewhere() -> None:
    with pytest.raises(UnknownName):
        required(session().known, ["tensorrtllmm"])


def test_nothing_is_held_where_there_are_no_quotas() -> None:
    rows = planned(TRAIN).rows
    assert rows is not None
    assert isinstance(rows.priced, Priced)
    assert quotas.quota_checks(rows.fleet, rows.priced, Rules()) == []


def test_geforce_cards_are_refused_where_the_driver_must_be_licensed_for_data_centres() -> None:
    (rule,) = required(session().known, ["data-center-licence"])
    assert {"RTX-4090", "RTX-3090", "RTX-5090"} <= set(rule.chips)
    assert not {"RTX-A6000", "RTX-6000-Ada", "RTX-PRO-6000-SE", "L4", "H100-SXM", "MI300X"} & set(rule.chips)


def test_every_choice_is_within_the_budget_with_its_storage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_storage, "REFINED", 1)  # the others are cheap without their storage, which takes some above it
    work = {**TRAIN, "data": {"size": "20TB", "place": "aws:eu-central-1", "access": "once"}}
    every = [choice.usd for choice in planned(work).choices]
    middle = sorted(every)[len(every) // 2]
    found = planned(work, goals={"budget": middle + 0.01})
    shown = [choice.usd for choice in found.choices]
    assert 1 < len(shown) < len(every)
    assert shown == sorted(shown)
    assert max([*shown, *(choice.usd for choice in found.front)]) <= middle + 0.01


def test_a_retired_machine_is_not_planned_though_it_has_a_price() -> None:
    text = yaml.safe_dump({**TRAIN, "limits": {"chips": ["L4"]}})
    usual = plan(session(), "test.yaml", None, 50, None, text)
    assert usual.winner is not None
    retired = (usual.winner.provider, usual.winner.machine)
    later = Session(session().config, session().today, [])
    machines = tuple(replace(one, retired=True) if one.key == retired else one for one in session().catalog.machines)
    later.__dict__["catalog"] = replace(session().catalog, machines=machines)
    found = plan(later, "test.yaml", None, 50, None, text)
    assert found.winner is not None
    assert all((one.provider, one.machine) != retired for one in found.choices)
    assert RuleKind.RETIRED in [one.rule.kind for one in found.refused]


def test_choices_that_need_different_amounts_of_a_quota_are_told_apart() -> None:
    from chipwise.api.session.wiring import open_session
    from chipwise.planner.quotas import Default, _other_choices, defaults

    default: Default = next(one for one in defaults(open_session().catalog) if one.by_vcpu and one.maximum == 0)
    (line,) = _other_choices([(1, default, 192.0), (3, default, 384.0), (4, default, 192.0), (5, default, 384.0)])
    assert line.endswith("needed are 384 vCPUs for choice 3 and 5, 192 vCPUs for choice 4.")


def test_what_lifting_a_limit_leaves_is_counted_under_the_other_limits() -> None:
    """Spot machines, which a service does not take unasked, are not among the offers that an older price would leave."""
    work = SERVE | {"limits": {"max_price_age": "1d"}}
    text = yaml.safe_dump(work)
    found = plan(session(), "test.yaml", None, 5, None, text)
    assert found.winner is None
    counts = [one.offers for miss in found.missing for one in miss.remedies if isinstance(one, LiftLimit)]
    free = plan(session(), "test.yaml", None, 5, None, yaml.safe_dump(SERVE))
    refused = sum(one.offers for one in free.refused)
    assert counts == [len(session().catalog.offers) - refused]


def test_a_commitment_that_the_catalog_has_no_terms_of_is_said() -> None:
    clouds = {"clouds": ["runpod"], "commit": "3y"}
    found = planned(SERVE, limits=clouds)
    assert found.winner is not None
    assert found.without_terms == "runpod"
    assert "No price for a commitment is known of runpod" in headline(found)
    assert not planned(SERVE, limits={"clouds": ["runpod"]}).without_terms


@pytest.mark.parametrize(("kind", "family"), [("cpu", "CPU"), ("CPU", "CPU"), ("gpu", "NVIDIA"), ("tpu", "Google TPU")])
def test_a_kind_of_chip_means_all_chips_of_that_kind(kind: str, family: str) -> None:
    simulation = {"kind": "hpc", "name": "a", "steps": 1, "flop_per_step": 1e17, "bytes_per_step": 1e14, "precision": "fp64"}
    work = TRAIN if kind == "tpu" else simulation
    found = plan(open_session(), "a.yaml", text=yaml.safe_dump(work | {"limits": {"chips": [kind]}}))
    assert found.winner is not None
    assert found.winner.family.startswith((family, "AMD") if kind == "gpu" else family)
    assert len({choice.chip for choice in found.choices}) > 1 or kind == "tpu"
