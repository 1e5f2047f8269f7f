from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.catalog.fact import UNKNOWN
from chipwise.catalog.load import load
from chipwise.catalog.price_tables import StoragePrice
from chipwise.errors import InvalidSettings
from chipwise.money.storage import StorageChoice, Tiers
from chipwise.perf.feeding import tiers as speeds
from chipwise.units import GB, MB, TB

PLACES = [
    ("aws", "us-east-1"),
    ("aws", "eu-central-1"),
    ("gcp", "us-east4"),
    ("azure", "westeurope"),
    ("oci", "x"),
    ("vast", "x"),
]
JOB: dict[str, Any] = {"size_bytes": 1 * TB, "needed_bytes_per_s": 1 * GB, "machines": 2, "hours": 100.0}


@cache
def tiers() -> Tiers:
    return Tiers(load(prices=False).rows("storage"), speeds())


def choose(place: Any = ("aws", "us-east-1"), **job: Any) -> StorageChoice:
    return tiers().choose(*place, **(JOB | job))


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "place": draw(st.sampled_from(PLACES)),
        "size_bytes": draw(st.floats(1e6, 1e15)),
        "needed_bytes_per_s": draw(st.floats(1e3, 1e11)),
        "machines": draw(st.integers(1, 64)),
        "hours": draw(st.floats(0.01, 5000)),
        "local_disk_bytes": draw(st.none() | st.floats(0, 3e13)),
        "host_memory_bytes": draw(st.none() | st.floats(0, 2e12)),
        "passes": draw(st.floats(0.1, 100)),
        "file_bytes": draw(st.none() | st.floats(1e3, 1e9)),
        "data_format": draw(st.none() | st.sampled_from(["jsonl", "jpeg"])),
    }


def at_most(a: float, b: float) -> bool:
    return a <= b * (1 + 1e-9) + 1e-12


# -- what is chosen


def test_a_modest_need_is_met_by_the_object_store() -> None:
    found = choose()

    assert (found.tier, found.feeds, found.product) == ("object-store", True, "aws S3 Standard storage")
    capacity = 1000 * 0.023 * 100 / 730
    assert found.lines[0].usd == pytest.approx(capacity)
    assert not found.assumed


def test_data_that_lies_there_already_costs_no_keeping_but_its_reading() -> None:
    new, kept = choose(file_bytes=1e6, needed_bytes_per_s=1e8), choose(file_bytes=1e6, needed_bytes_per_s=1e8, in_place=True)
    assert {line.name for line in new.lines} == {"storage", "storage requests"}
    assert {line.name for line in kept.lines} == {"storage requests"}
    assert kept.usd == pytest.approx(next(line.usd for line in new.lines if line.name == "storage requests"))
    assert "it is there already" in kept.why
    assert "it is there already" not in new.why


def test_data_that_is_read_again_stays_in_memory_where_it_fits() -> None:
    again = choose(passes=5, host_memory_bytes=2 * TB)

    assert again.resident
    assert "memory" in again.why
    assert not choose(passes=5, host_memory_bytes=1 * TB).resident
    assert not choose(passes=1, host_memory_bytes=2 * TB).resident


def test_the_local_disk_is_used_only_when_it_holds_the_data() -> None:
    small = {"passes": 200, "file_bytes": 1 * MB, "needed_bytes_per_s": 8 * GB}

    assert choose(**small, local_disk_bytes=4 * TB).tier == "local-nvme"
    assert choose(**small, local_disk_bytes=1 * TB).tier != "local-nvme", "0.9 of a disk may be filled"


def test_a_slow_first_pass_counts_unless_many_follow() -> None:
    job = {"file_bytes": 100_000.0, "needed_bytes_per_s": 2 * GB, "local_disk_bytes": 4 * TB}

    assert choose(**job, passes=2).tier != "local-nvme"
    assert choose(**job, passes=500).tier == "local-nvme"


def test_local_disks_cost_where_the_provider_sells_them_apart() -> None:
    job = {"passes": 200, "file_bytes": 1 * MB, "needed_bytes_per_s": 8 * GB, "local_disk_bytes": 4 * TB}

    assert "local disks" in {line.name for line in choose(("gcp", "us-east4"), **job).lines}
    assert "local disks" not in {line.name for line in choose(**job).lines}


def test_many_small_files_cost_requests_and_leave_the_object_store() -> None:
    few, many = choose(needed_bytes_per_s=1 * MB), choose(needed_bytes_per_s=1 * MB, file_bytes=10_000.0, passes=10)

    assert few.tier == "object-store"
    assert many.tier != "object-store"
    some = {line.name: line.usd for line in choose(needed_bytes_per_s=1 * MB, file_bytes=1 * MB, passes=10).lines}
    assert some["storage requests"] == pytest.approx(1e6 * 10 * 0.0004 / 1000)


def test_speed_that_is_sold_apart_is_paid_for() -> None:
    block = {"file_bytes": 300_000.0, "passes": 1000, "size_bytes": 0.1 * TB, "machines": 1}
    slow, fast = choose(**block, needed_bytes_per_s=0.1 * GB), choose(**block, needed_bytes_per_s=0.9 * GB)

    assert {slow.product, fast.product} == {"aws EBS gp3 storage"}
    assert {line.name: line.usd for line in fast.lines}["storage throughput"] == pytest.approx(775 * 0.04 * 100 / 730)
    assert "storage throughput" not in {line.name for line in slow.lines}


def test_a_file_system_grows_until_it_is_fast_enough() -> None:
    one = choose(size_bytes=1 * TB, needed_bytes_per_s=4 * GB, machines=1, file_bytes=10_000.0)

    assert one.tier == "parallel-file-system"
    assert one.delivered_bytes_per_s == pytest.approx(2.54 * GB, rel=0.01)  # 256 files under way, 1 ms to open each
    assert one.lines[0].how.startswith("22.3 TB x")  # of 1 TB of data


def test_when_nothing_is_fast_enough_the_fastest_is_named_a_bottleneck() -> None:
    found = choose(needed_bytes_per_s=50 * GB, file_bytes=50_000.0)

    assert not found.feeds
    assert found.delivered_bytes_per_s < 50 * GB
    assert "of 50 GB/s" in found.why
    assert "pack them into shards" in found.why


def test_what_shrinks_is_compressed() -> None:
    plain, packed = choose(), choose(data_format=".jsonl")

    assert (plain.compression, packed.compression) == ("none", "zstd")
    assert packed.usd < plain.usd
    assert packed.workers > plain.workers / 4


def test_workers_grow_with_the_need() -> None:
    assert choose(needed_bytes_per_s=0.1 * GB).workers < choose(needed_bytes_per_s=8 * GB).workers


# -- prices that are not there


def test_a_region_without_a_price_takes_the_providers_other_regions() -> None:
    found = choose(("aws", "eu-central-1"))

    assert found.usd == pytest.approx(choose().usd)
    assert "us-east-1" in found.assumed[0]
    assert "eu-central-1" in found.assumed[0]


def test_a_provider_without_prices_takes_the_typical_one() -> None:
    found = choose(("lambda", "us-east-1"))

    assert "lists no price" in found.assumed[0]
    assert found.lines[0].usd == pytest.approx(1000 * 0.023 * 100 / 730)


def test_what_is_for_sale_in_all_regions_is_not_assumed() -> None:
    found = choose(("coreweave", "north-america"))

    assert found.product == "coreweave storage AI Object Storage hot"
    assert found.assumed == ("requests: price of aws S3",)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("size_bytes", -1.0),
        ("machines", 0),
        ("hours", math.nan),
        ("passes", 0),
        ("file_bytes", 0.0),
        ("local_disk_bytes", -1.0),
    ],
)
def test_what_cannot_be_is_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(InvalidSettings) as error:
        choose(**{field: value})

    assert [problem.field for problem in error.value.problems] == [field]
    assert error.value.problems[0].allowed


def test_prices_and_speeds_must_be_there() -> None:
    with pytest.raises(InvalidSettings, match="nfs"):
        Tiers(load(prices=False).rows("storage"), {name: speed for name, speed in speeds().items() if name != "nfs"})
    with pytest.raises(InvalidSettings, match="object store"):
        Tiers([StoragePrice("aws", "all", "EBS", "gp3 storage", "GB-month", 0.08, UNKNOWN)], speeds())


def test_a_faster_tier_needs_no_other_code() -> None:
    @dataclass(frozen=True)
    class Quick:
        node: float = 1e12
        stream: float = 1e12
        first_byte_s: float = 0.0

    every = Tiers(load(prices=False).rows("storage"), dict.fromkeys(speeds(), Quick()))

    assert every.choose("aws", "us-east-1", **(JOB | {"needed_bytes_per_s": 500 * GB})).tier == "object-store"


# -- laws


@given(jobs())
@settings(deadline=None)
def test_the_total_is_the_sum_of_its_lines(job: dict[str, Any]) -> None:
    found = choose(**job)

    assert found.usd == pytest.approx(math.fsum(line.usd for line in found.lines))
    assert found.cost.usd == pytest.approx(found.usd)
    assert all(line.how for line in found.lines)


@given(jobs(), st.floats(1, 100))
@settings(deadline=None)
def test_more_bytes_are_never_cheaper(job: dict[str, Any], times: float) -> None:
    small, large = choose(**job), choose(**job | {"size_bytes": job["size_bytes"] * times})

    if small.feeds and large.feeds:
        assert at_most(small.usd, large.usd)


@given(jobs(), st.floats(0, 1))
@settings(deadline=None)
def test_a_slower_need_is_never_dearer(job: dict[str, Any], share: float) -> None:
    fast, slow = choose(**job), choose(**job | {"needed_bytes_per_s": job["needed_bytes_per_s"] * share})

    if fast.feeds:
        assert slow.feeds
        assert at_most(slow.usd, fast.usd)


@given(jobs())
@settings(deadline=None)
def test_storage_feeds_exactly_when_it_delivers_what_is_needed(job: dict[str, Any]) -> None:
    found = choose(**job)

    assert found.feeds == (found.delivered_bytes_per_s >= job["needed_bytes_per_s"] * (1 - 1e-12))
    assert 1 <= found.prefetch <= 8
    assert found.workers >= 1


@given(jobs(), st.floats(1, 10))
@settings(deadline=None)
def test_longer_is_never_cheaper(job: dict[str, Any], times: float) -> None:
    short, long = choose(**job), choose(**job | {"hours": job["hours"] * times})

    if short.feeds:
        assert at_most(short.usd, long.usd)
