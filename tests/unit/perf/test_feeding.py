from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import BadInput
from chipwise.perf.arrays import Coded, column
from chipwise.perf.feeding import PAGEABLE, PINNED, RATES, TERMS, Feeding, feed, tiers

kinds = st.sampled_from(list(RATES))
places = st.sampled_from(list(tiers()))
amounts = st.floats(1e-3, 1e6)


def pictures(**other: Any) -> Feeding:
    """Eight chips at 2,500 pictures a second each: 256 per chip and step."""
    usual = Feeding(
        compute_s=column(0.1),
        samples=column(2048.0),
        sample_bytes=column(110e3),
        device_bytes=column(602e3),
        kind=Coded.of("jpeg"),
        tier=Coded.of("local-nvme"),
        workers=column(192.0),
        streams=column(192.0),
        chips=column(8.0),
    )
    return replace(usual, **other)


def test_pictures_are_decoded_slower_than_eight_fast_chips_learn_from_them() -> None:
    fed = feed(pictures(workers=column(96.0)))
    assert fed.bottleneck.texts() == ["preprocess"]
    assert fed.workers_needed.tolist() == [np.ceil(2048 / 0.1 / 120)]


def test_with_as_many_workers_as_it_says_preprocessing_is_no_bottleneck() -> None:
    needed = feed(pictures(workers=column(8.0))).workers_needed
    assert feed(pictures(workers=needed)).terms["preprocess"][0] <= 0.1


def test_stored_tokens_hardly_cost_anything() -> None:
    fed = feed(Feeding(column(1.0), column(64.0), column(16384.0), column(32768.0), tier=Coded.of("object-store")))
    assert fed.bottleneck.texts() == ["compute"]
    assert fed.waiting_share.tolist() == [0]


def test_small_files_in_an_object_store_wait_for_their_first_byte() -> None:
    shards, files = (
        feed(pictures(tier=Coded.of("object-store"), objects=column(one), streams=column(32.0))) for one in (0.0, 1.0)
    )
    assert files.terms["read"][0] > 10 * shards.terms["read"][0]
    assert files.bottleneck.texts() == ["read"]


def test_a_data_set_that_fits_into_memory_is_read_from_there_in_later_epochs() -> None:
    held = pictures(tier=Coded.of("network-block"), dataset_bytes=column(150e9), host_memory=column(1e12))
    assert feed(held).place.texts() == ["network-block"]
    assert feed(held, later=True).place.texts() == ["memory"]
    assert feed(held, later=True).step_s[0] < feed(held).step_s[0]


def test_a_data_set_that_fits_onto_the_disk_only_is_read_from_there() -> None:
    held = pictures(dataset_bytes=column(2e12), host_memory=column(1e12), local_disk=column(4e12), tier=Coded.of("nfs"))
    assert feed(held, later=True).place.texts() == ["local-nvme"]


def test_tokens_that_fit_onto_the_device_are_not_copied_again() -> None:
    tokens = Feeding(
        column(0.01), column(64.0), column(16384.0), column(32768.0), dataset_bytes=column(1e9), device_memory=column(4e9)
    )
    later = feed(tokens, later=True)
    assert later.place.texts() == ["device"]
    assert later.step_s.tolist() == [0.01]


def test_pageable_memory_is_copied_slower() -> None:
    pinned, pageable = (feed(pictures(pinned=column(one))).terms["copy"][0] for one in (1.0, 0.0))
    assert pageable == pytest.approx(pinned / PAGEABLE)
    assert pinned == pytest.approx(2048 * 602e3 / 8 / PINNED)


@given(amounts, amounts, st.floats(0, 1e9), kinds, places, st.integers(1, 256), st.integers(0, 1), st.booleans())
def test_a_step_is_never_shorter_than_its_longest_term_nor_longer_than_their_sum(
    compute: float, samples: float, size: float, kind: str, tier: str, workers: int, overlapped: int, later: bool
) -> None:
    fed = feed(
        Feeding(
            column(compute),
            column(samples),
            column(size),
            column(size),
            Coded.of(kind),
            Coded.of(tier),
            workers=column(float(workers)),
            overlapped=column(float(overlapped)),
        ),
        later,
    )
    terms = [float(fed.terms[name][0]) for name in TERMS]
    assert max(terms) <= fed.step_s[0] * (1 + 1e-12)
    assert fed.step_s[0] <= sum(terms) * (1 + 1e-12)
    assert fed.step_s[0] == pytest.approx(max(terms) if overlapped else sum(terms))


@given(st.integers(1, 200), st.integers(0, 200), st.floats(1e9, 1e11), st.floats(0, 1e11))
def test_more_workers_and_a_faster_link_are_never_slower(workers: int, more: int, link: float, faster: float) -> None:
    slow = feed(pictures(workers=column(float(workers)), link=column(link)))
    quick = feed(pictures(workers=column(float(workers + more)), link=column(link + faster)))
    assert quick.step_s[0] <= slow.step_s[0]


def test_a_faster_tier_is_never_slower() -> None:
    order = sorted(tiers().values(), key=lambda tier: tier.node)
    steps = feed(pictures(tier=Coded.of([tier.name for tier in order]))).terms["read"]
    memory = [tier.name for tier in order].index("memory")
    assert steps[memory] == steps.min()


def test_an_array_of_feedings_gives_what_each_gives_alone() -> None:
    kind, tier = ["jpeg", "tokens", "video"], ["nfs", "memory", "object-store"]
    together = feed(pictures(kind=Coded.of(kind), tier=Coded.of(tier), workers=column([8.0, 16.0, 32.0])))
    for i, workers in enumerate((8.0, 16.0, 32.0)):
        alone = feed(pictures(kind=Coded.of(kind[i]), tier=Coded.of(tier[i]), workers=column(workers)))
        assert together.step_s[i] == alone.step_s[0]


@pytest.mark.parametrize(
    ("other", "field"),
    [
        ({"kind": Coded.of("jpg")}, "kind"),
        ({"tier": Coded.of("s3")}, "tier"),
        ({"workers": column(0.0)}, "workers"),
        ({"samples": column(-1.0)}, "samples"),
        ({"compute_s": column(np.nan)}, "compute_s"),
    ],
)
def test_what_cannot_be_is_refused_by_field(other: dict[str, Any], field: str) -> None:
    with pytest.raises(BadInput, match=f"(?m)^{field}: "):
        feed(pictures(**other))


def test_every_tier_says_what_its_figures_rest_on() -> None:
    assert {tier.basis for tier in tiers().values()} <= {"measured", "public documentation", "rule of thumb"}
    assert all(tier.stream <= tier.node for tier in tiers().values())
