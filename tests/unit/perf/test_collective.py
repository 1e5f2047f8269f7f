"""Collectives against their textbook forms."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from chipwise.perf.arrays import column
from chipwise.perf.collective import LINK_EFFICIENCY, Network

NET = Network(column(400e9), column(8.0), column(50e9))


def test_a_large_all_reduce_inside_a_domain_moves_twice_its_size_less_one_share() -> None:
    size = column(8e9)
    ideal = 2 * 7 / 8 * 8e9 / (400e9 * LINK_EFFICIENCY)
    assert NET.all_reduce(size, column(8.0))[0] >= ideal
    assert NET.all_reduce(size, column(8.0))[0] < 1.01 * ideal


def test_one_chip_says_nothing() -> None:
    one = column(1.0)
    for told in (NET.all_reduce, NET.gather, NET.all_to_all):
        assert told(column(1e9), one)[0] == 0.0


def test_crossing_machines_costs_more_than_staying_inside() -> None:
    inside, outside = NET.all_reduce(column(1e9), column(8.0))[0], NET.all_reduce(column(1e9), column(16.0))[0]
    assert outside > inside


def test_members_further_apart_than_a_domain_use_the_network() -> None:
    near, far = NET.gather(column(1e9), column(4.0), 1.0)[0], NET.gather(column(1e9), column(4.0), 8.0)[0]
    assert far > 3 * near


@given(st.floats(1e3, 1e11), st.sampled_from([2.0, 4.0, 8.0, 64.0, 512.0]), st.floats(1.1, 10))
def test_more_bytes_take_longer_and_a_faster_network_never_does(size: float, chips: float, factor: float) -> None:
    faster = Network(NET.link * factor, NET.domain, NET.fabric * factor)
    for name in ("all_reduce", "gather", "all_to_all"):
        small, large = (getattr(NET, name)(column(s), column(chips))[0] for s in (size, size * factor))
        assert large >= small
        assert getattr(faster, name)(column(size), column(chips))[0] <= small * (1 + 1e-12)


def test_a_small_message_over_many_chips_goes_by_tree() -> None:
    tiny = NET.all_reduce(column(8.0), column(4096.0))[0]
    ring_hops = 2 * (512 - 1)
    assert tiny < ring_hops * 8e-6
    assert np.isfinite(tiny)
