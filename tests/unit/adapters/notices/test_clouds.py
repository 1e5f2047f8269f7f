"""Each cloud's notices, from stand-ins for its metadata server that answer as it documents."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

import pytest

from chipwise.adapters.notices import azure, ec2, google, here
from chipwise.adapters.notices.notice import SPARE_S, Notice, Silent
from chipwise.adapters.notices.watching import Watch
from metadata_stand_ins import StandIn, serving

NOW = 1_700_000_000.0


@pytest.fixture
def aws() -> Iterator[StandIn]:
    with serving("ec2") as server:
        yield server


@pytest.fixture
def gcp() -> Iterator[StandIn]:
    with serving("google") as server:
        server.say("preempted", "FALSE")
        server.say("maintenance-event", "NONE")
        yield server


@pytest.fixture
def microsoft() -> Iterator[StandIn]:
    with serving("azure") as server:
        server.say("instance/compute/name", "trainer-1")
        server.say("scheduledevents", events())
        yield server


def events(*found: tuple[str, list[str], float | None], status: str = "Scheduled") -> str:
    return json.dumps(
        {
            "DocumentIncarnation": 3,
            "Events": [
                {
                    "EventId": f"e{number}",
                    "EventType": kind,
                    "ResourceType": "VirtualMachine",
                    "Resources": names,
                    "EventStatus": status,
                    "NotBefore": "" if at is None else format_datetime(datetime.fromtimestamp(at, UTC), usegmt=True),
                    "Description": "",
                    "EventSource": "Platform",
                    "DurationInSeconds": -1,
                }
                for number, (kind, names, at) in enumerate(found)
            ],
        }
    )


# EC2


def test_ec2_names_the_time_of_an_interruption(aws: StandIn) -> None:
    cloud = ec2.connect(aws.url)
    assert cloud.look() is None
    aws.say("spot/instance-action", '{"action": "terminate", "time": "2023-11-14T22:15:20Z"}')
    assert cloud.look() == Notice("AWS is reclaiming the spot machine", NOW + 120 - SPARE_S)
    assert aws.asked.count(("PUT", "/latest/api/token")) == 1


def test_ec2_is_asked_for_another_token_when_the_old_one_is_refused(aws: StandIn) -> None:
    cloud = ec2.connect(aws.url)
    cloud.look()
    aws.tokens.clear()
    aws.say("spot/instance-action", '{"action": "stop", "time": "2023-11-14T22:15:20Z"}')
    found = cloud.look()
    assert found is not None
    assert found.reason == "AWS is reclaiming the spot machine, and stops it"


def test_a_rebalance_recommendation_counts_from_when_it_was_first_seen(aws: StandIn) -> None:
    aws.say("events/recommendations/rebalance", '{"noticeTime": "2023-11-14T22:13:20Z"}')
    cloud = ec2.connect(aws.url)
    first = cloud.look()
    assert first is not None
    assert first.deadline == pytest.approx(time.time() + 120 - SPARE_S, abs=5)
    time.sleep(0.05)
    assert cloud.look() == first


def test_a_rebalance_recommendation_may_be_ignored(aws: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHIPWISE_REBALANCE", "ignore")
    aws.say("events/recommendations/rebalance", '{"noticeTime": "2023-11-14T22:13:20Z"}')
    assert ec2.connect(aws.url).look() is None


def test_an_interruption_without_a_time_has_the_time_that_it_always_has() -> None:
    for text in ('{"action": "terminate"}', '{"action": "terminate", "time": "soon"}', '{"action": "terminate", "time": null}'):
        assert ec2.interruption(text, NOW) == Notice("AWS is reclaiming the spot machine", NOW + 120 - SPARE_S)


@pytest.mark.parametrize(
    "text", ["", "<html>", "[]", "null", "3", '"terminate"', '{"time": "2023-11-14T22:15:20Z"}', '{"action": 3}']
)
def test_what_is_no_interruption_is_not_taken_for_one(text: str) -> None:
    assert ec2.interruption(text, NOW) is None
    assert ec2.rebalance(text, NOW) is None


# Google


def test_google_is_heard_the_moment_it_takes_a_machine_back(gcp: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(google, "WAITS_S", 2.0)
    cloud = google.connect(gcp.url)
    assert cloud.look() is None
    threading.Timer(0.5, gcp.say, ("preempted", "TRUE")).start()
    begun = time.monotonic()
    found = cloud.look()  # waits for the change
    assert 0.3 < time.monotonic() - begun < 1.8
    assert found is not None
    assert found.reason == "Google is reclaiming the spot machine"
    assert found.deadline == pytest.approx(time.time() + 30 - SPARE_S, abs=5)
    assert cloud.look() is not None


def test_a_google_machine_that_is_ended_for_maintenance_leaves_and_one_that_is_moved_does_not(gcp: StandIn) -> None:
    cloud = google.connect(gcp.url)
    gcp.say("maintenance-event", "MIGRATE_ON_HOST_MAINTENANCE")
    assert cloud.look() is None
    gcp.say("maintenance-event", "TERMINATE_ON_HOST_MAINTENANCE")
    found = cloud.look()
    assert found is not None
    assert "maintenance" in found.reason
    assert cloud.look() == found, "its time counts from when it was first seen"


def test_a_google_machine_without_a_key_has_no_notice(gcp: StandIn) -> None:
    gcp.said.clear()
    assert google.connect(gcp.url).look() is None


# Azure


@pytest.mark.parametrize("kind", ["Preempt", "Terminate", "Reboot", "Redeploy"])
def test_azure_events_that_end_a_machine_are_notices(microsoft: StandIn, kind: str) -> None:
    microsoft.say("scheduledevents", events((kind, ["Trainer-1"], NOW)))
    found = azure.connect(microsoft.url).look()
    assert found is not None
    assert (found.deadline, found.event) == (NOW - SPARE_S, "e0")


def test_azure_events_of_other_machines_and_pauses_are_none(microsoft: StandIn) -> None:
    microsoft.say(
        "scheduledevents", events(("Preempt", ["other"], NOW), ("Freeze", ["trainer-1"], NOW), ("New", ["trainer-1"], NOW))
    )
    assert azure.connect(microsoft.url).look() is None


def test_the_first_azure_event_counts_and_one_that_has_begun_has_seconds(microsoft: StandIn) -> None:
    text = events(("Reboot", ["trainer-1"], NOW + 900), ("Redeploy", ["trainer-1"], NOW + 600))
    found = azure.scheduled(text, "trainer-1", NOW)
    assert found is not None
    assert found.deadline == NOW + 600 - SPARE_S
    begun = azure.scheduled(events(("Preempt", ["trainer-1"], None), status="Started"), "trainer-1", NOW)
    assert begun is not None
    assert begun.deadline == NOW + azure.BEGUN_S
    microsoft.say("scheduledevents", events(("Preempt", ["trainer-1"], None), status="Started"))
    cloud = azure.connect(microsoft.url)
    first = cloud.look()
    time.sleep(0.05)
    assert cloud.look() == first, "its time counts from when it was first seen"


def test_azure_is_acknowledged_only_for_an_event_of_this_machine_alone(microsoft: StandIn) -> None:
    cloud = azure.connect(microsoft.url)
    for names, acknowledged in ((["trainer-1", "trainer-2"], []), (["trainer-1"], ["e0"])):
        microsoft.say("scheduledevents", events(("Reboot", names, NOW)))
        found = cloud.look()
        assert found is not None
        cloud.acknowledge(found)
        assert microsoft.acknowledged == acknowledged


def test_without_a_name_every_azure_event_counts_and_none_is_acknowledged() -> None:
    found = azure.scheduled(events(("Preempt", ["somebody"], NOW)), "", NOW)
    assert found is not None
    assert found.event == ""


@pytest.mark.parametrize(
    "text", ["", "<html>", "[]", "{}", '{"Events": 3}', '{"Events": [3]}', '{"Events": [{}]}', '{"Events": null}']
)
def test_azure_events_that_cannot_be_read_are_no_answer(text: str) -> None:
    with pytest.raises(Silent):
        azure.scheduled(text, "trainer-1", NOW)


# Trouble, the same for all


@pytest.mark.parametrize("name", here.CLOUDS)
@pytest.mark.parametrize("trouble", [500, 503, 403, 302, "garbage"])
def test_an_answer_that_says_nothing_is_no_notice(name: str, trouble: int | str) -> None:
    with serving(name) as server:
        server.trouble = trouble
        cloud = here.connect({"CHIPWISE_CLOUD": name, "CHIPWISE_METADATA_URL": server.url})
        assert cloud is not None
        try:
            found = cloud.look()
        except Silent:
            found = None
        assert found is None


@pytest.mark.parametrize("name", here.CLOUDS)
def test_a_port_where_nobody_listens_is_silence(name: str) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        cloud = here.connect({"CHIPWISE_CLOUD": name, "CHIPWISE_METADATA_URL": f"http://127.0.0.1:{held.getsockname()[1]}"})
        assert cloud is not None
        with pytest.raises(Silent):
            cloud.look()


def test_a_server_that_hangs_is_silence_after_a_short_while(aws: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chipwise.adapters.notices.asking.ask.__defaults__", (0.2, "GET", None))
    aws.trouble = "hang"
    begun = time.monotonic()
    with pytest.raises(Silent):
        ec2.connect(aws.url).look()
    assert time.monotonic() - begun < 3.0


def test_a_notice_outlives_a_metadata_server_that_falls_silent(aws: StandIn, capfd: pytest.CaptureFixture[str]) -> None:
    aws.say("spot/instance-action", json.dumps({"action": "terminate", "time": datetime.now(UTC).isoformat()}))
    cloud = ec2.connect(aws.url)
    cloud.every_s = 0.05
    watch = Watch(cloud)
    watch.begin()
    _until(lambda: watch.due(1.0) is not None)
    aws.trouble = 500
    asked = len(aws.asked)
    _until(lambda: len(aws.asked) > asked + 2)
    assert watch.due(1.0) is not None
    aws.trouble = 0
    aws.say("spot/instance-action", None)
    _until(lambda: watch.notice is None)
    assert "status 500" in capfd.readouterr().err


def test_a_notice_that_comes_long_before_is_heeded_when_its_time_comes() -> None:
    watch = Watch()
    for left, grace_s, due in ((900.0, 30.0, False), (100.0, 30.0, True), (900.0, 600.0, True), (-5.0, 1.0, True)):
        watch.notice = Notice("a restart", time.time() + left)
        assert (watch.due(grace_s) is not None) == due


# Which cloud


@pytest.mark.parametrize(
    ("said", "cloud"),
    [
        ({"sys_vendor": "Amazon EC2", "product_name": "g6.xlarge"}, "ec2"),
        ({"sys_vendor": "Xen", "bios_version": "4.11.amazon"}, "ec2"),
        ({"sys_vendor": "Google", "product_name": "Google Compute Engine"}, "google"),
        ({"sys_vendor": "Microsoft Corporation", "chassis_asset_tag": "7783-7084-3265-9085-8269-3286-77"}, "azure"),
        ({"sys_vendor": "Microsoft Corporation", "product_name": "Virtual Machine"}, ""),
        ({"sys_vendor": "Dell Inc."}, ""),
        ({}, ""),
    ],
)
def test_the_firmware_says_which_cloud_it_is(tmp_path: Path, said: dict[str, str], cloud: str) -> None:
    for name, text in said.items():
        (tmp_path / name).write_text(f"{text}\n")
    assert here.cloud_name(tmp_path) == cloud


def test_on_a_machine_of_no_cloud_nobody_is_asked(tmp_path: Path) -> None:
    begun = time.monotonic()
    assert here.connect({}, tmp_path) is None
    (tmp_path / "sys_vendor").write_text("Amazon EC2\n")
    assert here.connect({"CHIPWISE_CLOUD": "none"}, tmp_path) is None
    assert isinstance(here.connect({}, tmp_path), ec2.Ec2)
    assert time.monotonic() - begun < 1.0


def _until(what: object) -> None:
    late = time.monotonic() + 10.0
    while not what():  # type: ignore[operator]
        assert time.monotonic() < late
        time.sleep(0.02)
