from __future__ import annotations

import math
from functools import cache

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.load import load
from chipwise.catalog.region import UNSTATED, readable
from chipwise.errors import BadInput, InvalidSettings, UnknownName
from chipwise.money.origins import Origin, origin_of
from chipwise.money.transfer import Gravity
from chipwise.units import GB, TB


@cache
def catalog() -> Catalog:
    return load(prices=False)


@cache
def gravity() -> Gravity:
    return Gravity(catalog().rows("storage"), catalog().regions, on_site=("mine",))


PLACES = st.sampled_from([region.key for region in catalog().regions])
CLOUDS = [
    f"{provider}:{name}" for provider, name in [region.key for region in catalog().regions] if name.replace("-", "").isalnum()
]
ORIGINS = st.sampled_from([None, "s3://b", "gs://b", "https://example.org/x", "/data", *CLOUDS])
SIZES = st.floats(0, 1e16)


# -- where data lies


@pytest.mark.parametrize(
    ("place", "meant"),
    [
        (None, Origin("unknown")),
        (" ", Origin("unknown")),
        ("aws:eu-central-1", Origin("cloud", "aws", "eu-central-1")),
        ("s3://bucket/set", Origin("cloud", "aws")),
        ("gs://bucket", Origin("cloud", "gcp")),
        ("abfss://box@account.dfs.core.windows.net/x", Origin("cloud", "azure")),
        ("https://account.blob.core.windows.net/x", Origin("cloud", "azure")),
        ("https://bucket.s3.eu-west-1.amazonaws.com/x", Origin("cloud", "aws", "eu-west-1")),
        ("https://s3.amazonaws.com/bucket", Origin("cloud", "aws")),
        ("https://storage.googleapis.com/bucket", Origin("cloud", "gcp")),
        ("https://objectstorage.us-ashburn-1.oraclecloud.com/n", Origin("cloud", "oci", "us-ashburn-1")),
        ("https://example.org/set.tar", Origin("web")),
        ("hf://datasets/x", Origin("web")),
        ("/data/set", Origin("own site")),
        ("nfs://server/set", Origin("own site")),
        ("server:/set", Origin("own site")),
        ("C:\\data", Origin("own site")),
    ],
)
def test_a_place_is_read_as_people_write_it(place: str | None, meant: Origin) -> None:
    assert origin_of(place) == meant


def test_an_unknown_cloud_is_refused_with_the_nearest_and_a_remedy() -> None:
    with pytest.raises(UnknownName) as error:
        gravity().bring("azur:westeurope", "aws", "us-east-1", TB)

    assert "azure" in error.value.nearest
    assert "cloud:region" in (error.value.remedy or "")


# -- what it costs and takes


def test_other_regions_and_other_clouds_cost_what_the_table_says() -> None:
    inside = gravity().bring("aws:us-west-2", "aws", "eu-west-1", TB)
    outside = gravity().bring("aws:us-west-2", "gcp", "us-central1", TB)

    assert (inside.kind, outside.kind) == ("other region", "other cloud")
    assert [inside.usd, outside.usd] == pytest.approx([20, 90])
    assert not inside.assumed
    assert not outside.assumed


def test_large_volumes_fall_into_cheaper_bands() -> None:
    found = gravity().bring("aws:us-west-2", "gcp", "us-central1", 200 * TB)

    assert found.usd == pytest.approx(1000 * (10 * 0.09 + 40 * 0.085 + 100 * 0.07 + 50 * 0.05))


def test_only_what_the_volume_reaches_is_assumed() -> None:
    place = next(place for place in CLOUDS if gravity().path(place, "lambda", "us-east-1").beyond)
    beyond, text = gravity().path(place, "lambda", "us-east-1").beyond[-1]
    few, much = (gravity().bring(place, "lambda", "us-east-1", size) for size in (0.9 * beyond, 1.1 * beyond))

    assert text not in few.assumed
    assert text in much.assumed


def test_hours_are_bytes_over_the_bandwidth_of_the_path() -> None:
    assert gravity().bring("aws:us-west-2", "aws", "eu-west-1", TB).hours == pytest.approx((60 + 800) / 3600)
    assert gravity().bring("aws:us-west-2", "gcp", "us-central1", TB).hours == pytest.approx((300 + 1600) / 3600)
    assert gravity().bring("/data", "aws", "eu-west-1", TB).hours == pytest.approx((10 + 8000) / 3600)


def test_small_files_cost_requests_and_time() -> None:
    large = gravity().bring("aws:us-west-2", "aws", "eu-west-1", TB, file_bytes=GB)
    small = gravity().bring("aws:us-west-2", "aws", "eu-west-1", TB, file_bytes=10_000)

    assert {line.name: line.usd for line in small.lines}["transfer requests"] == pytest.approx(1e8 * (0.0004 + 0.005) / 1000)
    assert small.hours == pytest.approx((60 + 1e8 / 3500) / 3600)
    assert small.hours > large.hours


def test_where_data_goes_counts_where_the_table_says_so() -> None:
    usd, _ = gravity().columns("gcp:us-central1", [("aws", "us-east-1"), ("aws", "ap-southeast-2")], TB)

    assert usd.tolist() == pytest.approx([120, 190])


def test_a_dear_region_stays_dear_in_the_bands_it_does_not_state() -> None:
    found = gravity().bring("aws:af-south-1", "gcp", "us-central1", 20 * TB)

    assert found.usd == pytest.approx(1000 * (10 * 0.154 + 10 * 0.154 * 0.085 / 0.09))
    assert "scaled" in found.assumed[0]


def test_a_cloud_without_prices_takes_typical_ones_and_says_so() -> None:
    found = gravity().bring("azure:westeurope", "aws", "eu-west-1", TB)

    assert found.usd == pytest.approx(90)
    assert "azure lists no price" in found.assumed[0]


def test_free_egress_is_free_inside_the_cloud_too() -> None:
    assert gravity().hand_off(("coreweave", "a"), ("coreweave", "b"), TB).usd == 0
    assert gravity().bring("oci:us-ashburn-1", "aws", "us-east-1", 9 * TB).usd == 0
    assert gravity().bring("oci:us-ashburn-1", "aws", "us-east-1", 20 * TB).usd == pytest.approx(850)


def test_a_bucket_without_a_region_is_counted_as_another_region() -> None:
    found = gravity().bring("s3://bucket", "aws", "us-east-1", TB)

    assert found.kind == "other region"
    assert "not said" in found.assumed[0]


def test_a_zone_is_in_its_region_and_case_does_not_count() -> None:
    assert gravity().bring("gcp:us-central1-a", "gcp", "us-central1", TB).kind == "in place"
    assert gravity().bring("aws:us-east-1b", "aws", "us-east-1", TB).kind == "in place"
    assert gravity().bring("fluidstack:finland", "fluidstack", "FINLAND", TB).kind == "in place"


def test_machines_of_ones_own_stand_where_paths_lie() -> None:
    assert gravity().bring("/data", "mine", "cellar", TB).hours == 0
    assert gravity().bring("/data", "aws", "us-east-1", TB).hours > 0


def test_nobody_saying_where_data_lies_is_said() -> None:
    found = gravity().bring(None, "aws", "us-east-1", TB)

    assert (found.usd, found.hours) == (0, 0)
    assert found.assumed


@pytest.mark.parametrize(
    ("size", "file", "field"), [(-1.0, None, "size_bytes"), (math.inf, None, "size_bytes"), (1.0, 0.0, "file_bytes")]
)
def test_sizes_that_cannot_be_are_refused(size: float, file: float | None, field: str) -> None:
    with pytest.raises(InvalidSettings) as error:
        gravity().bring("/data", "aws", "us-east-1", size, file)

    assert error.value.problems[0].field == field


def test_a_table_without_egress_is_refused() -> None:
    with pytest.raises(BadInput, match="egress"):
        Gravity((), catalog().regions)


# -- laws


@given(PLACES, SIZES)
@settings(deadline=None)
def test_the_same_region_never_costs(place: tuple[str, str], size: float) -> None:
    assume(readable(place[1]) != UNSTATED)  # of such a provider nobody knows whether two machines are in one region
    found = gravity().hand_off(place, place, size, file_bytes=1e4)

    assert (found.usd, found.hours, found.lines) == (0, 0, ())


@given(ORIGINS, PLACES, SIZES, st.floats(1, 100))
@settings(deadline=None)
def test_more_bytes_are_never_cheaper_nor_quicker(
    origin: str | None, place: tuple[str, str], size: float, times: float
) -> None:
    small, large = gravity().bring(origin, *place, size), gravity().bring(origin, *place, size * times)

    assert small.usd <= large.usd * (1 + 1e-9)
    assert small.hours <= large.hours * (1 + 1e-9)


@given(ORIGINS, PLACES, SIZES)
@settings(deadline=None)
def test_the_total_is_the_sum_of_its_lines(origin: str | None, place: tuple[str, str], size: float) -> None:
    found = gravity().bring(origin, *place, size, file_bytes=1e6)

    assert found.usd == pytest.approx(math.fsum(line.usd for line in found.lines))
    assert found.cost.usd == pytest.approx(found.usd)


@given(PLACES, SIZES)
@settings(deadline=None)
def test_staying_with_a_cloud_is_never_dearer_than_leaving_it(place: tuple[str, str], size: float) -> None:
    inside = gravity().hand_off(place, (place[0], "elsewhere"), size)
    outside = gravity().hand_off(place, ("nobody", "elsewhere"), size)

    assert inside.usd <= outside.usd * (1 + 1e-9)
    assert inside.hours <= outside.hours * (1 + 1e-9)


def test_columns_say_what_single_answers_say() -> None:
    places = [region.key for region in catalog().regions] * 2
    usd, hours = gravity().columns("aws:us-east-1", places, 3 * TB)

    single = [gravity().bring("aws:us-east-1", *place, 3 * TB) for place in places]
    assert usd.tolist() == [one.usd for one in single]
    assert hours.tolist() == [one.hours for one in single]
    assert gravity().columns(None, [], TB)[0].shape == (0,)
