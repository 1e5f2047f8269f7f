"""The four questions: every number in an answer is one of the plan's, and each kind of work is answered in its own words."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import plans
from chipwise.api.catalog.check import check
from chipwise.api.session.wiring import open_session
from chipwise.api.verbs import plan
from chipwise.planner.explain.asked import asked_of
from chipwise.planner.explain.asking import BUDGET, DEADLINE, LATENCY, PARALLEL, SCALING, answers
from chipwise.planner.explain.asking_latency import Asked
from chipwise.planner.reasons.goals import TooSlow
from chipwise.planner.reasons.sizes import LacksMemory
from chipwise.planner.remedies import Advice
from chipwise.planner.values.plan import Loss, Missing, Obstacle, Plan
from chipwise.planner.values.split import GenerationSplit

pytestmark = pytest.mark.real_catalog

ROOT = Path(__file__).resolve().parents[3]
SESSION = open_session()
KINDS = ("train", "finetune", "serve", "batch", "hpc", "render", "transcode", "stream", "interactive", "hybrid")


@cache
def planned(kind: str) -> Plan:
    return plan(SESSION, f"{ROOT}/examples/{kind}/workload.yaml")


def told(found: Plan) -> dict[str, str]:
    return {one.question: one.told for one in found.answers}


@pytest.mark.parametrize("kind", KINDS)
def test_all_four_are_answered_in_short_sentences(kind: str) -> None:
    found = told(planned(kind))
    goal = LATENCY if planned(kind).per == "month" else DEADLINE
    assert list(found) == [PARALLEL, goal, SCALING, BUDGET]
    for one in found.values():
        assert one.endswith(".")
        assert max(len(part) for part in re.split(r"(?<=\.) (?=[A-Z0-9])", one)) <= 160
        assert not re.search(r"nan|inf\b|e\+\d", one)


def test_a_job_is_held_against_fewer_chips_of_its_kind() -> None:
    found = planned("hpc")
    assert found.winner is not None
    text = told(found)[PARALLEL]
    gain, few, share = re.findall(r"are ([\d.]+)x as fast as (\d+),.*: (\d+)% of linear", text)[0]
    many = found.winner.chips * found.winner.machines
    assert f"the {many} {found.winner.chip} " in text
    assert int(share) == pytest.approx(100 * float(gain) * int(few) / many, rel=0.02)
    assert "99.8% of it can be split: never more than 500x" in text  # Amdahl: 1 / 0.002


def test_a_limit_on_chips_is_named_where_it_keeps_scaling_untested() -> None:
    lone = plans.plan(answers=())
    for question in (PARALLEL, SCALING):
        text = {one.question: one.told for one in answers(lone, Asked(most_chips=8))}[question]
        assert "limits.chip_count allows at most 8 chips" in text


def test_scaling_tells_time_and_cost_of_rows_that_are_there() -> None:
    path = ROOT / "examples" / "train" / "workload.yaml"
    narrow = path.read_text(encoding="utf-8").replace("clouds: [aws, gcp, azure]", "clouds: [aws]\n  chips: [h100-sxm]")
    found = plan(SESSION, str(path), text=narrow)
    assert found.winner is not None
    assert found.rows is not None
    text = told(found)[SCALING]
    share = int(re.findall(r"2x the chips: [^;]* \((?:work [^:;]*: )?(\d+)% of linear\)", text)[0])
    total, own = found.winner.chips * found.winner.machines, found.winner
    rivals = [found.rows.choice(at) for at in found.rows.ranked[:400].tolist()]
    alike = [one for one in rivals if (one.provider, one.chip, one.purchase) == (own.provider, own.chip, own.purchase)]
    twice = min((one for one in alike if one.chips * one.machines == 2 * total), key=lambda one: one.usd)
    assert share == pytest.approx(100 * own.work_s / (2 * twice.work_s), abs=0.51)


def test_a_cheaper_one_that_is_too_slow_is_named_with_its_time() -> None:
    path = ROOT / "examples" / "train" / "workload.yaml"
    found = plan(SESSION, str(path), text=path.read_text(encoding="utf-8").replace("deadline: 5d", "deadline: 1d"))
    assert found.rows is not None
    priced = found.rows.priced
    late = priced.seconds > 86400.0
    assert f"${priced.usd[late].min():,.0f}" in told(found)[DEADLINE]


def test_a_budget_is_held_against_the_winner_and_what_twice_as_much_buys() -> None:
    found = planned("train")
    assert found.winner is not None
    text = told(found)[BUDGET]
    assert text.startswith(f"{found.winner.usd / 5000:.0%} of the $5,000 a job.")
    assert "Twice the money" in text
    assert "Fastest: " in text


def test_a_service_is_counted_in_copies() -> None:
    one = plans.choice(
        purchase="on-demand",
        rate=15.0,
        replicas=2,
        machines=2,
        chips=1,
        split=GenerationSplit(tp=1, pp=1, replicas=1),
        usd=200.0,
    )
    found = plans.service(choices=(one,), front=(one,))
    text = {a.question: a.told for a in answers(found, Asked(rate=12.0, budget_usd=1000.0))}
    assert "2 copies of the model, 7.5 req/s each" in text[PARALLEL]
    assert "capacity 15 req/s, 12 needed" in text[SCALING]
    # 24 / 7.5 = 3.2, 48 / 7.5 = 6.4
    assert "24 req/s: 4 machines, about $400; for 48 req/s: 7 machines, about $700" in text[SCALING]
    assert text[BUDGET].startswith("20% of the $1,000 a month.")
    assert "buys 10 machines: about 75 req/s" in text[BUDGET]


def test_a_copy_over_two_machines_takes_two_for_each_further_one() -> None:
    one = plans.choice(rate=2.0, replicas=1, machines=2, chips=8, split=GenerationSplit(tp=8, pp=2, replicas=1), usd=100.0)
    found = plans.service(choices=(one,), front=(one,))
    text = {a.question: a.told for a in answers(found, Asked(rate=2.0))}
    assert "1 copy of the model over 16 chips, 2 req/s in all" in text[PARALLEL]
    assert "4 req/s: 4 machines, about $200; for 8 req/s: 8 machines, about $400" in text[SCALING]


def test_latency_tells_what_is_reached_of_what_is_allowed_and_who_is_too_slow() -> None:
    one = replace(plans.service().choices[0], latency={"ttft p90": 0.31})
    slow = Loss("NVIDIA Turing", None, TooSlow("ttft p90", 2.0, 1.0))
    small = Loss("NVIDIA Pascal", None, LacksMemory(1.7e9))
    found = plans.service(choices=(one,), front=(one,), losses=(slow, small))
    text = {a.question: a.told for a in answers(found, Asked(rate=1.0, goals={"ttft p90": 0.8, "tpot p90": 0.05}))}
    assert text[LATENCY] == "met (ttft p90 310 ms of 800 ms, tpot p90 within 50 ms). Too slow at any rate: NVIDIA Turing."
    late = {a.question: a.told for a in answers(found, Asked(rate=1.0, goals={"ttft p90": 0.2}))}
    assert late[LATENCY].startswith("missed by the estimate (ttft p90 310 ms of 200 ms)")


def test_where_nothing_fits_only_what_is_missing_is_told() -> None:
    found = answers(plans.nothing(), Asked(deadline_s=5 * 86400.0))
    assert [(one.question, one.told) for one in found] == [(DEADLINE, "nothing meets it: misses the deadline of 5 d: 6 d.")]
    memory = Missing(Obstacle.MEMORY, LacksMemory(3e9), (Advice("more chips"),))
    assert answers(plans.nothing(memory), Asked()) == ()


def test_a_plan_without_rows_is_answered_from_its_choices() -> None:
    found = answers(plans.plan(), Asked(deadline_s=5 * 86400.0))
    assert [one.question for one in found] == [PARALLEL, DEADLINE, SCALING, BUDGET]


def test_a_schedule_that_pauses_leaves_less_time(tmp_path: Path) -> None:
    text = (ROOT / "examples/hpc/workload.yaml").read_text(encoding="utf-8")
    paused = text + 'schedule: {kind: business-hours, time_zone: Europe/Berlin, start: "08:00", end: "20:00"}\n'
    file = tmp_path / "workload.yaml"
    file.write_text(paused, encoding="utf-8")
    asked = asked_of(SESSION.known, check(SESSION, str(file)).workload, "job")
    assert asked.deadline_s == pytest.approx(72 * 3600 * 60 / 168)
    assert asked.splits == 0.998


def test_a_budget_by_the_day_is_held_against_what_a_day_takes() -> None:
    found = plans.plan()  # $100 in 10 hours
    text = {a.question: a.told for a in answers(found, Asked(budget_usd=30.0, budget_per="hour", period_s=3600.0))}
    assert text[BUDGET].startswith("$10.00 of the $30.00 allowed in each hour, $100 in all.")


def test_nothing_is_called_fastest_beside_a_scale_that_is_faster() -> None:
    path = ROOT / "examples" / "train" / "workload.yaml"
    narrow = path.read_text(encoding="utf-8").replace("clouds: [aws, gcp, azure]", "clouds: [aws]\n  chips: [h100-sxm]")
    text = told(plan(SESSION, str(path), text=narrow))
    assert "2x the chips" in text[SCALING]
    assert "Nothing is faster" not in text[BUDGET]
