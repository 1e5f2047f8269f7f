"""How long jobs take where machines break and spot machines are taken away: choices of plans against runs that are played loss
by loss. Tolerances are four standard errors of the simulation itself: one choice in some ten thousand would miss by chance,
and the seed is fixed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from math import log, sqrt
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from numpy.typing import NDArray

import raw_tables as raw
from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.api.verbs import plan
from chipwise.money.gathering import all_back
from chipwise.planner.values.plan import Plan

NOWHERE = Path(__file__).resolve().parents[2] / "cases" / "no-such-folder"
PAIRED = ("K80 x8", "V100 x8")
RUNS, ERRORS, CHOICES = 2000, 4.0, 2
BOOT_S, REPAIR_S = 600.0, 900.0
NINE_IN_TEN = 1.2815515655446004  # standard deviations of a normal law
Array = NDArray[np.float64]
TRAIN = """
kind: train
name: pretraining
model: llama-3.1-8b
tokens: 20B tokens
sequence_length: 4096
goals: {deadline: 20d}
limits: {purchase: spot, clouds: aws}
"""
LARGE = """
kind: train
name: large
model: llama-3.1-70b
tokens: 300B tokens
sequence_length: 8192
goals: {deadline: 60d}
limits: {purchase: on-demand, chips: [h100, h200, b200]}
"""
EMBED = """
kind: batch
name: archive
model: bert-large
items: 300M
input_tokens: 300
goals: {deadline: 10d}
limits: {purchase: spot, clouds: aws}
"""
SLICE = """
kind: train
name: slice
model: llama-3.1-8b
tokens: 20B tokens
sequence_length: 2048
goals: {deadline: 7d}
limits: {purchase: spot, chips: [tpu-v5e], chip_count: {min: 256, max: 256}}
"""
FLEET = """
kind: train
name: fleet
model: llama-3.1-8b
tokens: 20B tokens
sequence_length: 2048
goals: {deadline: 60d}
limits: {purchase: spot, chips: [a100], clouds: [gcp], chip_count: {min: 32, max: 32}}
"""
SINGLES = """
kind: batch
name: singles
model: llama-3.1-8b
items: 20M
input_tokens: 1000
output_tokens: 100
goals: {deadline: 10d}
limits: {purchase: spot, clouds: crusoe, chips: [l40s], chip_count: {min: 16, max: 16}}
"""
PLANS = {"spot": TRAIN, "large": LARGE, "apart": EMBED, "slice": SLICE, "fleet": FLEET}


@dataclass(frozen=True)
class Job:
    """What a row of candidates is made of; seconds."""

    work_s: float
    rate_per_s: float  # losses of one machine
    taken_per_s: float  # of them those that are taken away, in the middle of what is known
    seldom: float  # times as often that they are, one time in ten at most
    often: float  # one time in ten at least
    machines: int
    save_s: float
    wait_s: float
    interval_s: float
    apart: bool
    alone: float  # so many machines to this power are lost independently, each with its part of the others
    slow: float  # one time in ten the work takes so many times as long
    absent: float  # share of the time in which there is no machine
    absent_s: float  # that it is waited for then
    assumed: bool


def played(work: Array, job: Job, rate: Array, draw: np.random.Generator) -> tuple[Array, Array]:
    """(seconds, losses) of runs of so much work each, stretch by stretch between checkpoints."""
    clock, left, losses, again = np.zeros(len(work)), work.copy(), np.zeros(len(work)), np.zeros(len(work))
    running = np.ones(len(work), dtype=bool)
    while running.any():
        last = left <= job.interval_s + job.save_s + 1e-9 * work
        need = np.where(last, left, job.interval_s + job.save_s) + again
        lives = draw.exponential(1 / rate)
        passed = lives >= need
        waits = draw.exponential(job.wait_s, len(work))
        clock += np.where(running, np.where(passed, need, lives + waits), 0.0)
        losses += running & ~passed
        left -= np.where(running & passed, job.interval_s, 0.0)
        again = np.where(passed, 0.0, BOOT_S + job.save_s)
        running &= ~(passed & last)
    return clock, losses


def simulated(job: Job, runs: int, seed: int, slow: bool) -> tuple[Array, Array]:
    """Machines on a common queue end together, so their times are averaged. With `slow`, what is not known of the speed and of
    the losses varies, too."""
    draw = np.random.default_rng(seed)
    factor = np.exp(draw.normal(size=runs) * log(job.slow) / NINE_IN_TEN) if slow else np.ones(runs)
    each = max(round(job.machines**job.alone), 1) if job.apart else 1
    rate = np.full(runs, job.rate_per_s * (1 if job.apart else job.machines))
    if slow:  # within an interval of eight in ten, whose ends stand for what is beyond
        place = np.clip(draw.normal(size=runs) / NINE_IN_TEN, -1.0, 1.0)
        times = np.where(place < 0, job.seldom, job.often) ** np.abs(place)
        rate += job.taken_per_s * (times - 1.0) * (1 if job.apart else job.machines)
    clock, losses = played(np.repeat(job.work_s * factor, each), job, np.repeat(rate, each), draw)
    first = np.where(draw.random(runs) < job.absent, draw.exponential(max(job.absent_s, 1e-9), runs), 0.0)
    lost = losses.reshape(runs, each).sum(axis=1) * (job.machines / each if job.apart else 1)
    return first + clock.reshape(runs, each).mean(axis=1), lost


@pytest.fixture(scope="module")
def plans() -> dict[str, Plan]:
    session = Session(Config(NOWHERE, NOWHERE), date(2026, 11, 15), [])
    return {name: plan(session, f"{name}.yaml", text=text) for name, text in PLANS.items()}


def jobs(found: Plan, most: int) -> list[tuple[int, Job]]:
    """Of the best candidates: the row, and what it is made of."""
    rows = found.rows
    assert rows is not None
    priced, chosen = rows.priced, []
    risk = priced.tails.risk
    whole = rows.ranked[priced.machines[rows.ranked] == 1] if found.workload == "slice" else rows.ranked
    for row in whole[:most].tolist():
        place = int(np.searchsorted(risk.rows, row))
        chosen.append(
            (
                row,
                Job(
                    work_s=float(risk.work_s[row]),
                    rate_per_s=float(risk.rate_per_s[place]),
                    taken_per_s=float(risk.taken_per_s[place]),
                    seldom=float(priced.tails.seldom[row]),
                    often=float(priced.tails.often[row]),
                    machines=int(risk.machines[place]),
                    save_s=float(risk.save_s[place]),
                    wait_s=float(risk.wait_s[place]),
                    interval_s=float(priced.tails.mean.interval_s[row]),
                    apart=bool(risk.apart[place]),
                    alone=float(risk.alone[place]),
                    slow=float(priced.tails.stretch[row]),
                    absent=float(priced.tails.absent[row]),
                    absent_s=float(priced.tails.absent_s[row]),
                    assumed=bool(priced.assumed[row]),
                ),
            )
        )
    return chosen


@pytest.mark.parametrize("name", PLANS)
def test_the_expected_time_and_losses_are_those_of_played_runs(plans: dict[str, Plan], name: str) -> None:
    rows = plans[name].rows
    assert rows is not None
    for row, job in jobs(plans[name], CHOICES):
        clock, losses = simulated(job, RUNS, seed=11, slow=False)
        error = float(clock.std()) / sqrt(RUNS)
        assert float(rows.priced.seconds[row]) - BOOT_S == pytest.approx(float(clock.mean()), abs=ERRORS * error + 1.0), job
        error = max(float(losses.std()), sqrt(float(losses.mean()))) / sqrt(RUNS)
        assert float(rows.priced.interruptions[row]) == pytest.approx(float(losses.mean()), abs=ERRORS * error + 1e-3), job


@pytest.mark.parametrize("name", PLANS)
def test_nine_played_runs_in_ten_keep_the_time_that_is_said_to_be_kept(plans: dict[str, Plan], name: str) -> None:
    """By the luck of the run and by how sure the speed is."""
    rows = plans[name].rows
    assert rows is not None
    for row, job in jobs(plans[name], CHOICES):
        choice = rows.choice(row)
        clock, _ = simulated(job, RUNS, seed=12, slow=True)
        share, error = float(np.mean(clock + BOOT_S <= choice.p90_s)), sqrt(0.9 * 0.1 / RUNS)
        assert share == pytest.approx(0.9, abs=ERRORS * error), job
        assert choice.by_s == choice.p90_s  # that a deadline is held against


@pytest.mark.parametrize("name", PLANS)
def test_as_many_played_runs_are_late_as_is_said(plans: dict[str, Plan], name: str) -> None:
    rows = plans[name].rows
    assert rows is not None
    for row, job in jobs(plans[name], CHOICES):
        clock, _ = simulated(job, RUNS, seed=13, slow=True)
        for share in (0.5, 0.75, 0.95):
            limit = float(np.quantile(clock + BOOT_S, share))
            late, error = float(rows.priced.tails.late(np.array([row]), limit)[0]), sqrt(share * (1 - share) / RUNS)
            assert late == pytest.approx(1 - share, abs=ERRORS * error), (share, job)


def breaks_per_s(chips: int) -> float:
    """Of one machine."""
    sudden = [row for row in raw.rows("tables/failures") if row["planned"] != "yes" and row["per_1000_chip_days"]]
    return (
        chips * median(float(row["per_1000_chip_days"]) for row in sudden if not row["chip"].startswith("TPU")) / 1000 / 86400
    )


def test_machines_break_as_often_as_the_middle_of_what_was_published(plans: dict[str, Plan]) -> None:
    rows = plans["large"].rows
    assert rows is not None
    for row, job in jobs(plans["large"], CHOICES):
        assert job.rate_per_s == pytest.approx(breaks_per_s(rows.choice(row).chips))
        assert job.wait_s == REPAIR_S
        assert job.absent == 0.0


def test_spot_machines_are_taken_as_often_as_the_bands_of_their_region_say(plans: dict[str, Plan]) -> None:
    """Of machines that would have lived for 66 hours, the middle between 6 and 730; and they break beside."""
    rows = plans["apart"].rows
    assert rows is not None
    bands = [row for row in raw.rows("tables/interruptions") if row["measure"] == "monthly_interruption_range"]
    for row, job in jobs(plans["apart"], CHOICES):
        choice = rows.choice(row)
        own = [one for one in bands if (one["region_or_zone"], one["machine_or_chip"]) == (choice.region, choice.machine)]
        latest = max(own, key=lambda one: one["as_of"])
        share = (float(latest["low"]) + float(latest["high"])) / 2
        taken = -log(1 - share) / sqrt(730.0 * 6.0) / 3600
        assert job.rate_per_s == pytest.approx(taken + breaks_per_s(choice.chips))
        assert job.wait_s == pytest.approx(3600 * raw.wait_h(choice.provider, choice.region, choice.chip))
        absent, mean_h = raw.first_wait(choice.provider, choice.region, choice.chip, choice.chips)
        assert (job.absent, job.absent * job.absent_s) == pytest.approx((absent, 3600 * mean_h))


def test_a_slice_is_lost_as_often_as_its_size_says(plans: dict[str, Plan]) -> None:
    """Eight chips are lost 3.2 times as often as one, in the same zone and weeks. 256 count as 32 machines of eight."""
    probes = [row for row in raw.rows("tables/interruptions") if row["measure"] == "loss_rate"]
    of = {(row["region_or_zone"], row["machine_or_chip"], row["period"]): float(row["value"]) for row in probes}
    ratios = [rate / of[zone, f"{label[:-1]}1", period] for (zone, label, period), rate in of.items() if label in PAIRED]
    times = 32 ** (log(median(ratios)) / log(8))
    assert (len(ratios), times) == (4, pytest.approx(6.7, rel=0.05))
    taken = max(float(row["value"]) for row in probes if (row["provider"], row["evidence"]) == ("gcp", "followed"))
    broken = median(
        float(row["per_1000_chip_days"])
        for row in raw.rows("tables/failures")
        if row["chip"].startswith("TPU") and row["per_1000_chip_days"] and row["planned"] != "yes"
    )
    for row, job in jobs(plans["slice"], 1):
        assert job.assumed
        assert job.rate_per_s == pytest.approx(times * taken / 3600 + 256 * broken / 1000 / 86400, rel=0.01)
        assert 0.02 < float(plans["slice"].rows.priced.tails.late(np.array([row]), 72 * 3600.0)[0]) < 0.2  # type: ignore[union-attr]


@pytest.mark.parametrize("number", [1, 4, 8])
def test_after_a_loss_others_are_lost_too_before_all_are_back(number: int) -> None:
    """Machines that come and go alone, each by itself: how long after a loss not all of them are there."""
    rate, wait, draw = 0.03, 2.6, np.random.default_rng(5)
    apart: list[float] = []
    for _ in range(1000):
        here = np.ones(number, dtype=bool)
        here[0] = False
        hours = 0.0
        while not here.all():
            rates = np.where(here, rate, 1 / wait)
            hours += float(draw.exponential(1 / rates.sum()))
            moved = int(draw.choice(number, p=rates / rates.sum()))
            here[moved] = not here[moved]
        apart.append(hours)
    error = float(np.std(apart)) / sqrt(len(apart))
    back = all_back(np.array([rate]), np.array([wait]), np.array([float(number)]))
    assert float(back[0]) == pytest.approx(float(np.mean(apart)), abs=ERRORS * error)


def test_a_fleet_of_single_chips_is_late_as_often_as_its_machines_are_lost_at_the_same_time() -> None:
    """Traces of several machines of one chip: all are there about as often as one is, so whoever takes one takes all. If each
    were lost by itself, the others would make up for it, and a late end were half as likely."""
    found = plan(Session(Config(NOWHERE, NOWHERE), date(2026, 11, 15), []), "singles.yaml", text=SINGLES)
    assert found.rows is not None
    tails = found.rows.priced.tails
    row, job = next((row, job) for row, job in jobs(found, 20) if job.machines == 16)
    assert (found.rows.choice(row).chips, job.apart) == (1, True)
    clock, _ = simulated(replace(job, alone=0.0), 10 * RUNS, seed=14, slow=True)
    risk = replace(tails.risk, alone=np.ones_like(tails.risk.alone))
    by_itself = replace(tails, risk=risk, mean=risk.mean())
    for share in (0.95, 0.99):
        limit = float(np.quantile(clock + BOOT_S, share))
        error = sqrt(share * (1 - share) / (10 * RUNS))
        assert float(tails.late(np.array([row]), limit)[0]) == pytest.approx(1 - share, abs=ERRORS * error)
        assert float(by_itself.late(np.array([row]), limit)[0]) < 1 - share - ERRORS * error
