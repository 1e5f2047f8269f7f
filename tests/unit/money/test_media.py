"""Managed transcoders: what every minute of every output costs, against a few-line computation."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.catalog.load import load
from chipwise.money.media import MediaService, bill, media_services_of, picture_of
from chipwise.workload.media import Codec, Resolution, Video
from effort import cases


def video(codec: str, width: int, height: int, fps: float = 25) -> Video:
    return Video(codec=Codec(codec), resolution=Resolution(width=width, height=height), fps=fps)


@cache
def service(provider: str) -> MediaService:
    return next(one for one in media_services_of(load().rows("media")) if one.provider == provider)


LADDER = (video("h264", 640, 480), video("h264", 1280, 720), video("h264", 1920, 1080), video("h264", 3840, 2160))


def test_half_an_hour_in_four_sizes_costs_what_the_price_list_says() -> None:
    """Google's own example: 30 minutes x $0.135."""
    price = bill(service("gcp"), LADDER, 30 * 60)
    assert price is not None
    assert price.cost.usd == pytest.approx(30 * (0.015 + 0.03 + 0.03 + 0.06))
    assert price.certain


def test_each_output_takes_the_cheapest_tier_that_has_its_codec() -> None:
    price = bill(service("aws"), (video("h264", 1920, 1080, 60), video("h265", 1920, 1080)), 600)
    assert price is not None
    assert price.cost.usd == pytest.approx(10 * (0.015 * 2 + 0.048))
    assert price.tiers == ("basic", "professional")
    assert not price.certain


def test_what_a_service_does_not_make_has_no_price() -> None:
    assert bill(service("gcp"), (video("av1", 1920, 1080),), 60) is None
    assert picture_of(video("h264", 7680, 4320)) is None
    assert bill(service("gcp"), (video("h264", 7680, 4320),), 60) is None


@settings(deadline=None, max_examples=cases(100))
@given(seconds=st.floats(0.1, 1e9), count=st.integers(1, 4))
def test_twice_the_playing_time_costs_twice_and_more_outputs_cost_more(seconds: float, count: int) -> None:
    single, double = bill(service("gcp"), LADDER[:count], seconds), bill(service("gcp"), LADDER[:count], 2 * seconds)
    fewer = bill(service("gcp"), LADDER[: count - 1], seconds)
    assert single is not None
    assert double is not None
    assert fewer is not None
    assert double.cost.usd == pytest.approx(2 * single.cost.usd)
    assert fewer.cost.usd < single.cost.usd
