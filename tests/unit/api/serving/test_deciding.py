"""Policies over a service that runs: what they may know, when they are asked, and what is refused of their settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chipwise.errors import ChipwiseError
from chipwise.runner.asked_policy import AskedPolicy
from chipwise.runner.submission.serving import ScalingOptions, checked_scaling, replica_counts
from chipwise.serving.engine import ReplicaRequest
from chipwise.serving.service import (
    ReplicaRecord,
    ServiceDoor,
    ServiceRecord,
    ServiceScaling,
    ServiceVersion,
    read_service,
    written,
)

VERSION = ServiceVersion(1, "command", ReplicaRequest("tiny", "tiny"), 0.0)
REPLICAS = tuple(ReplicaRecord(f"tiny-{number}", "j", 1, 8000 + number, at_once=4) for number in (1, 2))
SERVICE = ServiceRecord(
    "tiny",
    ServiceDoor(),
    (VERSION,),
    REPLICAS,
    fewest_replicas=0,
    most_replicas=8,
    scaling=ServiceScaling(policy="hpa:50", every_s=10.0),
    cold_start_s=2.0,
)


def seen(arrived: int, answered: int, slot_s: float, waiting: int = 0) -> dict[str, Any]:
    states = {record.name: {"away": False, "requests": 2} for record in REPLICAS}
    return {"arrived": arrived, "answered": answered, "slot_s": slot_s, "waiting": waiting, "replicas": states}


def test_a_policy_is_asked_at_its_own_pace_and_not_before_the_speed_of_a_replica_is_known() -> None:
    policy = AskedPolicy("hpa:50")
    assert policy.answer(SERVICE, seen(0, 0, 0.0), 1000.0) is None
    assert policy.answer(SERVICE, seen(5, 5, 10.0), 1005.0) is None
    assert policy.answer(SERVICE, seen(5, 5, 20.0), 1010.0) is None
    assert not policy.has_begun
    answer = policy.answer(SERVICE, seen(45, 45, 100.0, waiting=3), 1020.0)
    assert answer is not None
    assert answer.replicas == pytest.approx(4.0)  # all places were filled, twice the target
    assert answer.reason == "hpa:50 wants 4: 4 requests/s came, utilisation 100%, 3 waiting"


def test_a_policy_of_a_file_is_told_the_service(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "def begin(service):\n    return lambda signals: signals.arrived / 10 / service.replica_per_s + service.cold_start_s"
    )
    policy = AskedPolicy(str(file))
    policy.answer(SERVICE, seen(0, 0, 0.0), 1000.0)
    answer = policy.answer(SERVICE, seen(40, 40, 80.0), 1010.0)
    assert answer is not None
    assert answer.replicas == pytest.approx(4.0 / 2.0 + 2.0)


def test_requests_that_become_longer_count_as_more_work() -> None:
    policy = AskedPolicy("target-tracking")
    policy.answer(SERVICE, seen(0, 0, 0.0), 0.1)
    policy.answer(SERVICE, seen(400, 400, 80.0), 10.1)
    policy.answer(SERVICE, seen(440, 440, 160.0), 20.1)
    assert policy.has_begun


def test_how_a_service_is_scaled_is_written_and_read_again_and_an_old_file_is_read_too() -> None:
    assert read_service(written(SERVICE)) == SERVICE
    old = {name: value for name, value in written(SERVICE).items() if name not in ("scaling", "cold_start_s")}
    assert read_service(old).scaling == ServiceScaling()


def test_zero_needs_a_second_number_and_settings_need_two() -> None:
    assert replica_counts("0-4") == (0, 4)
    for text in ("0", "0-0", "9999"):
        with pytest.raises(ChipwiseError):
            replica_counts(text)
    with pytest.raises(ChipwiseError, match="is not scaled"):
        checked_scaling(ScalingOptions(policy="hpa"), None)
    with pytest.raises(ChipwiseError, match="hpaa"):
        checked_scaling(ScalingOptions(policy="hpaa"), 4)
    assert checked_scaling(ScalingOptions(idle_s=60.0), 4, ServiceScaling("knative")) == ServiceScaling("knative", idle_s=60.0)


def test_a_parked_request_waits_for_several_cold_starts_and_longer_than_the_queue() -> None:
    assert SERVICE.parks_s == pytest.approx(3 * 2.0 + 30.0)
    assert ServiceRecord("tiny", ServiceDoor(), (VERSION,)).parks_s is None
