"""What a plan says of its data: counted where its place is stated, one line where it is not."""

from __future__ import annotations

from functools import cache

import pytest

from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import plan
from chipwise.planner.explain.reason_words import words
from chipwise.planner.explain.words import headline
from chipwise.planner.values.plan import Plan
from chipwise.views.plan import plan_view

ARCHIVE = """kind: transcode
name: archive
duration: 20000h
source: {codec: h264, resolution: 1080p, fps: 25, bitrate: 45 Mbit/s}
outputs: [{codec: h265, resolution: 1080p, fps: 25, bitrate: 6.5 Mbit/s}]
goals: {deadline: 30d}
"""
READ_GB, WRITTEN_GB = 405_000.0, 58_500.0


@cache
def session() -> Session:
    return open_session()


def planned(text: str) -> Plan:
    return plan(session(), "workload.yaml", text=text)


def aws_egress_usd(gigabytes: float) -> float:
    """The published bands of a month: 10, 40 and 100 TB, then the rest."""
    total, left = 0.0, gigabytes
    for band, price in ((10_000, 0.09), (40_000, 0.085), (100_000, 0.07), (float("inf"), 0.05)):
        total += min(band, left) * price
        left -= min(band, left)
    return total


def gcp_egress_usd(gigabytes: float) -> float:
    total, left = 0.0, gigabytes
    for band, price in ((1_000, 0.12), (9_000, 0.11), (float("inf"), 0.08)):
        total += min(band, left) * price
        left -= min(band, left)
    return total


def test_moving_an_archive_is_told_in_the_headline_where_it_costs_more_than_the_work() -> None:
    found = planned(ARCHIVE + 'limits: {regions: ["aws:us-west-2"]}\n')
    assert found.winner is not None
    assert found.data is not None
    assert found.data.usd is not None
    assert not any(line.name == "transfer" for line in found.winner.cost.lines)
    assert "about 405 TB (20,000 h x 45 Mbit/s)" in headline(found)
    assert "set data.place" in headline(found)
    low, high = found.data.usd
    assert low == pytest.approx((READ_GB + WRITTEN_GB) * 0.02)  # another region of the same cloud
    assert high == pytest.approx(gcp_egress_usd(READ_GB) + aws_egress_usd(WRITTEN_GB))
    view = plan_view(found)["data"]
    assert (view["counted"], view["read"]["derived"]) == (False, True)
    assert view["read"]["bytes"] == pytest.approx(405e12)


def test_a_stated_place_counts_bytes_there_and_results_back_in_cost_and_time() -> None:
    found = planned(ARCHIVE + "data: {place: aws:us-east-1}\nlimits: {clouds: gcp}\n")
    winner = found.winner
    assert winner is not None
    line = next(line for line in winner.cost.lines if line.name == "transfer")
    assert line.usd == pytest.approx(aws_egress_usd(READ_GB) + gcp_egress_usd(WRITTEN_GB))
    assert line.how.startswith("405 TB from aws:us-east-1 and 58.5 TB back")
    moving_s = (READ_GB + WRITTEN_GB) * 1e9 / (5e9 / 8)
    assert winner.moving_s == pytest.approx(moving_s + 2 * 300)
    assert winner.seconds > moving_s
    assert any("Included: moving that from" in note for note in found.notes)


def test_data_in_a_cloud_draws_the_machines_there() -> None:
    found = planned(ARCHIVE + "data: {place: gcp:us-central1}\n")
    assert found.winner is not None
    assert (found.winner.provider, found.winner.region) == ("gcp", "us-central1")


def test_what_streams_send_is_told_by_the_month_and_results_alone_are_sent() -> None:
    live = ARCHIVE.replace("duration: 20000h", "streams: 200").replace("goals: {deadline: 30d}\n", "limits: {clouds: aws}\n")
    found = planned(live)
    assert found.data is not None
    assert found.data.usd is not None
    assert "and writes about 427 TB a month. Sending that out of the cloud would add" in headline(found)
    assert found.data.usd[0] >= aws_egress_usd(200 * 730 * 3600 * 6.5e6 / 8 / 1e9)
    ensemble = planned("kind: hpc\nname: a\nflop_per_step: 1e15\nworking_set: 250GB\nruns: 6\nprecision: fp64\n")
    told = (headline(ensemble), *(turn.told for turn in ensemble.turns))
    assert any(
        "It writes about 1.5 TB (6 runs x a working set of 250 GB). Sending that to another region" in text for text in told
    )


def test_a_deadline_that_only_moving_misses_says_so() -> None:
    found = planned(ARCHIVE.replace("30d", "7d") + "data: {place: /mnt/archive}\n")
    assert found.winner is None
    assert "moving the data takes 42.9 d" in words(found.missing[0].reason)


def test_little_data_is_a_line_of_its_own_and_what_a_service_sends_is_not_told() -> None:
    batch = planned("kind: batch\nname: a\nmodel: llama-3.1-8b\nitems: 5M\ninput_tokens: 1800\noutput_tokens: 200\n")
    assert batch.turns[0].told.startswith(
        "It reads about 36 GB (5 million items x 1,800 tokens x 4 bytes) and writes about 4 GB. Moving that"
    )
    service = planned("kind: serve\nname: a\nmodel: llama-3.1-8b\narrival: 2 req/s\ninput_tokens: 500\noutput_tokens: 200\n")
    assert service.data is not None
    assert not any("data.place" in text for text in (*service.notes, *(turn.told for turn in service.turns)))


CLIP = """kind: transcode
name: clip
duration: 1 min
source: {codec: h264, resolution: 1080p, fps: 25}
outputs: [{codec: h264, resolution: 480p, fps: 25}]
limits: {requires: [nvenc], interruptible: false}
"""


def test_managed_transcoders_stand_beside_machines_and_win_where_they_cost_less() -> None:
    short = planned(CLIP)
    assert short.service is not None
    assert short.service.usd == pytest.approx(0.015)
    first = headline(short)
    assert first.startswith(
        "Use gcp Transcoder API, paid per minute: $0.015 a job (price of 2026-11-15); $0.90 per hour of video"
    )
    long = planned(CLIP.replace("1 min", "10000h"))
    assert long.service is None
    assert long.services[0].usd == pytest.approx(10_000 * 60 * 0.015)


def test_a_second_hand_price_of_a_transcoder_is_no_answer() -> None:
    found = planned(CLIP.replace("requires:", "clouds: aws, requires:"))
    able = [service for service in found.services if not service.refused]
    assert [(service.provider, service.certain, service.unchecked) for service in able] == [("aws", False, ())]
    assert found.winner is not None
    assert able[0].usd < 0.9 * found.winner.usd
    assert found.service is None
    views = {view["provider"]: view for view in plan_view(found)["services"]}
    assert (views["aws"]["certain"], views["gcp"]["certain"], views["gcp"]["format_known"]) == (False, True, True)


def test_a_deadline_is_not_checked_against_a_transcoder_whose_speed_nobody_states() -> None:
    found = planned(CLIP + "goals: {deadline: 1h}\n")
    untimed = found.unsure_service
    assert untimed is not None
    assert (untimed.provider, untimed.unchecked) == ("gcp", ("deadline: its speed is not published",))
    assert found.service is None  # what is not checked comes second
    assert (
        "gcp Transcoder API costs $0.015 a job (56% less), but its speed is not published: how long it takes is not known."
        in headline(found)
    )
    views = {view["provider"]: view for view in plan_view(found)["services"]}
    assert views["gcp"]["unchecked"] == ["deadline: its speed is not published"]


def test_a_service_is_refused_by_limits_and_pays_for_moving_as_machines_do() -> None:
    found = planned(ARCHIVE + "data: {place: aws:us-east-1}\nlimits: {clouds: aws}\n")
    by_provider = {service.provider: service for service in found.services}
    minutes = 20_000 * 60
    assert by_provider["gcp"].usd == pytest.approx(minutes * 0.03 + aws_egress_usd(READ_GB) + gcp_egress_usd(WRITTEN_GB))
    assert by_provider["gcp"].refused
    assert by_provider["aws"].usd == pytest.approx(minutes * 0.048)
    assert not by_provider["aws"].refused


TRAINED = """kind: train
name: small
model: gpt2
tokens: 1e9
data: {{size: 4TB, place: "{place}"}}
limits: {{regions: ["{region}"]}}
"""


def test_data_next_to_the_chips_costs_no_keeping_beside_what_is_paid_for_it() -> None:
    near = planned(TRAINED.format(place="aws:us-east-1", region="aws:us-east-1"))
    far = planned(TRAINED.format(place="aws:us-west-2", region="aws:us-east-1"))
    assert near.winner is not None
    assert far.winner is not None
    assert "storage" not in {line.name for line in near.winner.cost.lines}
    assert "storage" in {line.name for line in far.winner.cost.lines}


def test_an_unknown_price_of_egress_is_said_and_not_free() -> None:
    found = planned(TRAINED.format(place="azure:westeurope", region="aws:us-east-1"))
    assert found.winner is not None
    assert any(line.name == "transfer" and line.usd > 0 for line in found.winner.cost.lines)
    assert any("azure lists no price of egress" in note for note in found.notes)
