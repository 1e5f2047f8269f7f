"""What the ec2 engine asks for: user data within its limit, money with a second belt, settings that is not possible."""

from __future__ import annotations

import gzip
from dataclasses import replace
from math import isclose
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chipwise.adapters.engines.ec2 import machine_choice
from chipwise.adapters.engines.ec2.config import Config
from chipwise.adapters.engines.ec2.engine import connect
from chipwise.adapters.engines.ec2.errors import TABLE, NoCapacity, of_code, quota
from chipwise.adapters.engines.ec2.notices import read
from chipwise.adapters.engines.ec2.user_data import MOST_BYTES, packed, user_data
from chipwise.catalog.load import load
from chipwise.catalog.offer import Purchase
from chipwise.errors import BadInput, NotAllowed, TryLater
from chipwise.runner.events import Placed, Submitted, after, first
from chipwise.runner.job import Job, MachinePlace, Needs, Spec

CONFIG = Config("eu-west-1", "s3://kept/team")
SPOT = MachinePlace(Purchase.SPOT, "aws", "eu-west-1", "eu-west-1a", "g6.xlarge", 0.5)
FAR = replace(SPOT, region="us-west-2", zone="us-west-2a")


def job(**asked: Any) -> Job:
    spec = replace(Spec(("python", "train.py"), "train", places=(SPOT, FAR)), **asked)
    return after(first("j1", Submitted(spec), 0.0), Placed(1, SPOT), 0.0)


@given(st.integers(0, 7_000))
def test_user_data_of_a_job_arrives_as_it_was_packed(size: int) -> None:
    text = user_data(job(env={"A": Random(size).randbytes(size // 2).hex()}), CONFIG, 0)  # packing halves it
    assert len(packed(text)) <= MOST_BYTES
    assert gzip.decompress(packed(text)).decode() == text


def test_user_data_that_does_not_fit_is_refused_with_numbers() -> None:
    with pytest.raises(BadInput, match=r"16,384 bytes; command and settings of j1 need 2\d,\d{3} on top of"):
        user_data(job(env={"A": Random(1).randbytes(20_000).hex()}), CONFIG, 0)


def test_no_secret_and_no_key_stands_in_user_data() -> None:
    text = user_data(job(secrets={"TOKEN": "hf/token"}), CONFIG, 0)
    assert "SECRETS=(TOKEN hf/token '')" in text
    assert "AKIA" not in text


@pytest.mark.parametrize("asked", [{"secrets": {"A": ""}}, {"env": {"A B": "c"}}, {"env": {"A;B": "c"}}, {"command": ()}])
def test_what_cannot_be_told_to_a_machine_is_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        user_data(job(**asked), CONFIG, 0)


@given(st.floats(0.0, 1e4), st.floats(0.01, 100.0), st.integers(1, 8))
@example(0.14, 0.1, 3)
def test_the_timer_of_the_machine_never_leaves_more_than_the_budget(budget: float, price: float, machines: int) -> None:
    place = replace(SPOT, usd_per_hour=price)
    wanted = job(budget_usd=budget, places=(place,), needs=Needs(machines=machines))
    wanted = replace(wanted, attempts=(replace(wanted.attempts[0], where=place),))
    whole = budget / price / machines * 60.0
    if whole < 2.5:
        with pytest.raises(NotAllowed, match=r"the rest pays for [0-2]\.\d minutes"):
            machine_choice.hard_minutes(wanted, CONFIG, 0.0)
    else:
        minutes = machine_choice.hard_minutes(wanted, CONFIG, 0.0)
        # Either bound may be met to the last bit: the same reckoned in another order.
        assert whole - 1.0 <= minutes or isclose(minutes, whole - 1.0, rel_tol=1e-15)
        assert minutes <= whole or isclose(minutes, whole, rel_tol=1e-15)


def test_what_earlier_attempts_cost_is_not_there_to_be_spent_again() -> None:
    wanted = job(budget_usd=1.0, places=(SPOT,))
    before = replace(wanted.attempts[0], held=0.0, begun=0.0, ended=3600.0)
    then = replace(wanted, attempts=(before, replace(wanted.attempts[0], number=2)))
    assert (machine_choice.hard_minutes(wanted, CONFIG, 9e3), machine_choice.hard_minutes(then, CONFIG, 9e3)) == (120, 60)


def test_a_budget_is_for_the_dearest_machine_that_may_come_and_needs_its_price() -> None:
    stays = replace(SPOT, purchase=Purchase.ON_DEMAND, usd_per_hour=2.0)
    assert machine_choice.hard_minutes(job(budget_usd=1.0, places=(SPOT, stays)), CONFIG, 0.0) == 30
    other = replace(SPOT, machine="g6.2xlarge", usd_per_hour=None)
    with pytest.raises(BadInput, match=r"price of g6\.2xlarge"):
        machine_choice.hard_minutes(job(budget_usd=1.0, places=(SPOT, other)), CONFIG, 0.0)


@given(st.floats(0.001, 10.0), st.floats(0.01, 100.0), st.integers(1, 8))
def test_what_a_start_would_refuse_of_a_budget_is_refused_before_anything_is_recorded(
    budget: float, price: float, machines: int
) -> None:
    place = replace(SPOT, usd_per_hour=price)
    wanted = job(budget_usd=budget, places=(place,), needs=Needs(machines=machines))
    wanted = replace(wanted, attempts=(replace(wanted.attempts[0], where=place, machines=machines),))
    try:
        machine_choice.hard_minutes(wanted, CONFIG, 0.0)
    except NotAllowed:
        with pytest.raises(BadInput, match=r"pays for \d\.\d minutes of .* a start needs 2\.5"):
            machine_choice.check_budget(wanted, CONFIG, 0.0)
    else:
        machine_choice.check_budget(wanted, CONFIG, 0.0)


def test_without_a_limit_there_is_no_timer() -> None:
    assert machine_choice.hard_minutes(job(), CONFIG, 0.0) == 0
    assert machine_choice.hard_minutes(job(longest_s=3600.0), CONFIG, 0.0) == 70


def test_an_attempt_on_fewer_machines_asks_for_those() -> None:
    wanted = job(needs=Needs(machines=4, machines_least=2))
    fewer = replace(wanted, attempts=(replace(wanted.attempts[0], machines=2),))
    asked = machine_choice.fleet(fewer, CONFIG, [SPOT], [("eu-west-1a", "subnet-1")])
    assert asked is not None
    assert (asked["TargetCapacitySpecification"]["TotalTargetCapacity"], asked["SpotOptions"]["MinTargetCapacity"]) == (2, 2)
    assert "\nMACHINES=2\n" in user_data(fewer, CONFIG, 0)


def test_only_places_of_the_region_are_asked_for() -> None:
    assert machine_choice.places(job(), CONFIG, spot=True) == [SPOT]
    with pytest.raises(BadInput, match="us-east-1"):
        machine_choice.check(job(), [replace(CONFIG, region="us-east-1")])


@pytest.mark.parametrize(
    ("machine", "kind"),
    [
        *((one, "arm64") for one in ("c8g.large", "m7gd.metal", "is4gen.xlarge", "im4gn.large", "a1.large", "g5g.xlarge")),
        *((one, "arm64") for one in ("hpc7g.4xlarge", "c8g-flex.large", "p6e-gb200.36xlarge", "x2gd.medium")),
        *((one, "x86_64") for one in ("g6.xlarge", "g4dn.xlarge", "gr6.4xlarge", "g6e.xlarge", "m7i-flex.large")),
        *((one, "x86_64") for one in ("p6-b200.48xlarge", "trn1.2xlarge", "u-6tb1.metal", "x2iedn.large", "c7a.large")),
    ],
)
def test_the_architecture_stands_in_the_name_of_a_type(machine: str, kind: str) -> None:
    assert machine_choice.architecture(machine) == kind


def test_every_machine_of_the_catalog_has_the_architecture_that_its_name_says() -> None:
    known = [one for one in load().machines if one.provider == "aws"]
    assert len(known) > 100
    wrong = [
        one.name
        for one in known
        if one.cpu_arch and (str(one.cpu_arch) == "arm64") != (machine_choice.architecture(one.name) == "arm64")
    ]
    assert wrong == []


def test_neuron_chips_are_no_gpus_to_a_machine() -> None:
    trained = job(needs=Needs(gpus=1), places=(replace(SPOT, machine="trn1.2xlarge"),))
    on = replace(trained, attempts=(replace(trained.attempts[0], where=replace(SPOT, machine="trn1.2xlarge")),))
    assert "\nGPUS=0\n" in user_data(on, CONFIG, 0)
    assert "\nGPUS=1\n" in user_data(job(needs=Needs(gpus=1)), CONFIG, 0)


def test_a_fleet_has_one_architecture_and_what_it_leaves_out_is_told() -> None:
    arm, stays = replace(SPOT, machine="g5g.xlarge"), replace(SPOT, machine="g5g.xlarge", purchase=Purchase.ON_DEMAND)
    wanted = job(places=(arm, SPOT, stays))
    assert (machine_choice.places(wanted, CONFIG, spot=True), machine_choice.places(wanted, CONFIG, spot=False)) == ([SPOT], [])
    assert machine_choice.skipped_machines(wanted, CONFIG) == [
        "g5g.xlarge not requested together with g6.xlarge, which is x86_64"
    ]
    other = replace(wanted, attempts=(replace(wanted.attempts[0], where=arm),))
    assert (machine_choice.places(other, CONFIG, spot=True), machine_choice.places(other, CONFIG, spot=False)) == (
        [arm],
        [stays],
    )
    assert machine_choice.skipped_machines(job(), CONFIG) == []


def test_the_token_differs_by_place_attempt_and_purchase_and_by_nothing_else() -> None:
    one = machine_choice.token(CONFIG, ("j1", 1), "fleet spot")
    assert one == machine_choice.token(replace(CONFIG, tries=9), ("j1", 1), "fleet spot")
    others = [
        machine_choice.token(CONFIG, ("j1", 2), "fleet spot"),
        machine_choice.token(CONFIG, ("j1", 1), "fleet on-demand"),
        machine_choice.token(replace(CONFIG, keep="s3://kept/other"), ("j1", 1), "fleet spot"),
    ]
    assert len({one, *others}) == 4


@pytest.mark.parametrize(
    "bad", [{"region": ""}, {"keep": "/tmp"}, {"keep": "s3://"}, {"idle_minutes": 0.0}, {"orphan_minutes": 1.0}]
)
def test_settings_that_cannot_be_are_refused_at_once(bad: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        connect(replace(CONFIG, **bad))


@pytest.mark.parametrize("code", sorted(TABLE))
def test_every_error_of_the_table_says_what_happened_and_what_to_do(code: str) -> None:
    error = of_code(code, "as AWS says it.", "ec2:CreateFleet")
    assert error.remedy
    assert "as AWS says it" in str(error)


def test_a_quota_of_none_is_final_and_one_that_is_used_up_is_not() -> None:
    none = of_code("VcpuLimitExceeded", "your current vCPU limit of 0 allows", "", "p5.48xlarge")
    assert isinstance(none, NotAllowed)
    assert "'Running On-Demand P5 and P6 instances' is 0 vCPUs" in str(none)
    assert isinstance(of_code("VcpuLimitExceeded", "your current vCPU limit of 64 allows", "", "m7i.large"), NoCapacity)
    assert isinstance(of_code("RequestLimitExceeded", "", ""), TryLater)
    assert quota("m7i.large", spot=True) == "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests"


@given(
    st.one_of(
        st.text(), st.sampled_from(['{"detail-type": 3}', "[]", '{"detail-type": "EC2 Spot Instance Interruption Warning"}'])
    )
)
def test_messages_that_are_no_notice_are_none(body: str) -> None:
    assert read({"Body": body, "ReceiptHandle": "r"}, 0.0) is None
