"""Laws of numerical work, and the workload kind it is for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import BadInput
from chipwise.perf.kernels import hpc
from chipwise.perf.kernels.chips import BYTES, Chips
from chipwise.perf.part import Part, Parts
from chipwise.workload.goals import Precision
from chipwise.workload.kinds import Hpc
from chipwise.workload.parse import load

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"
CHIP = Part(
    name="made up",
    vendor="-",
    kind="gpu",
    architecture="-",
    memory_bytes=64e9,
    bandwidth=2e12,
    rates={"fp64": 1e13, "fp32": 2e13, "bf16": 3e14},
    power_w=400,
    link=2e11,
    domain=8,
    fabric=2.5e10,
    pcie=2.4e10,
)
RATES, SPEEDS, SIZES = st.floats(1e11, 1e15), st.floats(1e10, 1e13), st.floats(1e3, 1e15)
COUNTS = st.integers(1, 512)
STEPS: list[Callable[[], hpc.Step]] = [
    lambda: hpc.generic(1e12, 1e11),
    lambda: hpc.gemm(4096, 4096, 4096),
    lambda: hpc.fft(2**20),
    lambda: hpc.fft(512, 3),
    lambda: hpc.stencil(1e9, 8),
    lambda: hpc.spmv(1e8, 1e7),
    lambda: hpc.monte_carlo(1e9, 50, 3),
    lambda: hpc.molecular_dynamics(1e6, 80, steps=100),
]


def chip(rate: float = 1e13, bandwidth: float = 2e12, **other: float) -> Part:
    return replace(CHIP, rates={"fp64": rate, "fp32": 2 * rate}, bandwidth=bandwidth, **other)  # type: ignore[arg-type]


def seconds(part: Part, work: hpc.Step, split: hpc.Split | None = None) -> float:
    return float(hpc.time(Chips.of([part], "fp64"), work, split).total[0])


@given(SIZES, SIZES, RATES, SPEEDS, st.floats(1, 10), st.floats(1, 10))
def test_more_compute_or_bandwidth_is_never_slower(
    flop: float, moved: float, rate: float, bandwidth: float, faster: float, wider: float
) -> None:
    work = hpc.generic(flop, moved)
    assert seconds(chip(rate * faster, bandwidth * wider), work) <= seconds(chip(rate, bandwidth), work) * (1 + 1e-12)


@given(SIZES, st.sampled_from(hpc.PATTERNS), COUNTS, st.floats(1e9, 1e12), st.floats(1, 10), st.floats(1, 10))
def test_a_faster_link_or_network_is_never_slower(
    sent: float, pattern: str, count: int, link: float, nearer: float, farther: float
) -> None:
    work, split = hpc.generic(1e10, 1e9), hpc.Split.of(count, pattern, sent)
    slow, fast = chip(link=link, fabric=link / 8), chip(link=link * nearer, fabric=link / 8 * farther)
    assert seconds(fast, work, split) <= seconds(slow, work, split) * (1 + 1e-12)


@given(SIZES, SIZES, st.integers(1, 4096), st.floats(0, 1))
def test_halving_the_chips_never_raises_throughput_where_nothing_is_sent(
    flop: float, moved: float, count: int, parallel: float
) -> None:
    work = hpc.generic(flop, moved)
    whole = seconds(CHIP, work, hpc.Split.of(2 * count, parallel=parallel))
    assert whole <= seconds(CHIP, work, hpc.Split.of(count, parallel=parallel)) * (1 + 1e-12)


@given(st.floats(0, 0.999), COUNTS)
def test_speed_up_stays_below_amdahls_limit(parallel: float, count: int) -> None:
    work = hpc.generic(1e15, 1e12, launches=0)
    faster = seconds(CHIP, work) / seconds(CHIP, work, hpc.Split.of(count, parallel=parallel))
    assert faster <= 1 / (1 - parallel) * (1 + 1e-9)
    assert faster <= count * (1 + 1e-9)


@given(st.lists(st.tuples(RATES, SPEEDS, SIZES, SIZES, COUNTS, st.sampled_from(hpc.PATTERNS)), min_size=1, max_size=6))
def test_the_array_call_equals_the_calls_one_by_one(rows: list[tuple[float, float, float, float, int, str]]) -> None:
    parts = [chip(rate, bandwidth) for rate, bandwidth, *_ in rows]
    _, _, flop, moved, counts, patterns = zip(*rows, strict=True)
    split = hpc.Split.of(counts, patterns, 1e7, 0.99)
    together = hpc.time(Chips.of(parts, "fp64"), hpc.generic(flop, moved), split)
    for i, part in enumerate(parts):
        alone = hpc.time(
            Chips.of([part], "fp64"), hpc.generic(flop[i], moved[i]), hpc.Split.of(counts[i], patterns[i], 1e7, 0.99)
        )
        assert together.total[i] == pytest.approx(alone.total[0], rel=1e-12)
        assert together.relative[i] == pytest.approx(alone.relative[0], rel=1e-12)
        assert together.bottleneck().texts()[i] == alone.bottleneck().texts()[0]


@pytest.mark.parametrize("make", STEPS)
def test_every_kernel_has_positive_terms_that_sum_to_the_total(make: Callable[[], hpc.Step]) -> None:
    terms = hpc.time(Chips.of([CHIP], "fp64"), make(), hpc.Split.of(16, "halo", 1e6, 0.999))
    assert all((term >= 0).all() for term in terms.seconds)
    assert terms.total == pytest.approx(sum(terms.seconds))
    assert 0 < terms.low[0] < terms.total[0] < terms.high[0] < np.inf


def test_one_chip_sends_nothing_and_many_do() -> None:
    for pattern in hpc.PATTERNS:
        terms = hpc.time(Chips.of([CHIP], "fp64"), hpc.generic(1e9, 1e9), hpc.Split.of([1, 2, 64], pattern, 1e8))
        sent = terms["communication"] > 0
        assert sent.tolist() == [False, pattern != "none", pattern != "none"]


def test_a_product_of_matrices_is_bound_by_compute_and_a_sparse_one_by_memory() -> None:
    chips = Chips.of([CHIP], "fp64")
    assert hpc.time(chips, hpc.gemm(8192, 8192, 8192)).bottleneck().texts() == ["compute"]
    assert hpc.time(chips, hpc.spmv(1e9, 1e8)).bottleneck().texts() == ["memory"]


def test_a_transform_counts_five_n_log_n_and_a_longer_one_more_passes() -> None:
    assert hpc.fft(1024, 1, 8).flop[0] == 5 * 1024 * 10 * 8
    assert hpc.fft(512, 3).flop[0] == pytest.approx(5 * 512**3 * 27)
    moved = hpc.fft([2**12, 2**20, 2**26]).moved / np.array([2**12, 2**20, 2**26])
    assert moved.tolist() == [32.0, 64.0, 96.0]


def test_vector_kernels_do_not_get_the_rate_of_matrix_units() -> None:
    chips = Chips.of([CHIP], "bf16")
    assert (chips.rate[0], chips.matrix_rate[0]) == (4e13, 3e14)


def test_double_precision_that_no_sheet_states_is_slow_and_unsure(parts: Parts) -> None:
    chips = Chips.of([parts["L4"], parts["TPU-v5e"], parts["EPYC-Genoa"]], "fp64")
    assert chips.rate[0] == 0.473e12
    assert chips.spread[0] == 0.0
    assert chips.spread[1] >= 1.0
    assert chips.rate[2] == pytest.approx(11.37e12 / 2)


def test_every_format_a_workload_may_name_has_a_size() -> None:
    assert set(BYTES) == {precision.value for precision in Precision}


def test_the_example_workload_is_bound_by_memory_and_more_chips_finish_sooner(parts: Parts) -> None:
    work = load(EXAMPLES / "hpc" / "workload.yaml")
    assert isinstance(work, Hpc)
    terms = hpc.job(work, [parts["H200"]], [8, 16, 64])
    assert terms.bottleneck().texts()[0] == "memory"
    assert terms.total[0] > terms.total[1] > terms.total[2]
    assert hpc.fits(Chips.of([parts["H200"]], "fp64"), work.working_set or 0.0, [1, 2, 4]).tolist() == [False, True, True]


def test_runs_side_by_side_take_as_long_as_one(parts: Parts) -> None:
    work = Hpc(name="w", flop_per_step=1e15, runs=6)
    terms = hpc.job(work, [parts["H200"]], 4, at_once=[1, 2, 4, 6])
    assert (terms.total / terms.total[3]).tolist() == pytest.approx([6, 3, 2, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hpc.generic(1e9, 1e9, repeats=0), "repeats: 0 .*above 0"),
        (lambda: hpc.generic(-1, 1e9), "flop: -1 .*from 0"),
        (lambda: hpc.generic(1, 1, kernel="gem"), "kernel: 'gem'.*Allowed: generic, gemm.*Did you mean gemm"),
        (lambda: hpc.Split.of(0), "chips: 0 .*from 1"),
        (lambda: hpc.Split.of(2, "ring"), "pattern: 'ring'.*Allowed: none, halo, allreduce, alltoall, broadcast"),
        (lambda: hpc.Split.of(2, parallel=1.5), "parallel: 1.5"),
        (lambda: hpc.gemm(1, 1, 1, "fp65"), "precision: 'fp65'.*Allowed: fp64, .*Did you mean fp64"),
        (lambda: hpc.fft(16, 4), "dimensions: '4'.*Allowed: 1, 2, 3"),
        (lambda: hpc.molecular_dynamics(1e5, 50, steps=-1), "steps: -1"),
        (lambda: Chips.of([], "fp64"), "parts: there are none"),
    ],
)
def test_bad_input_names_the_field_and_what_is_allowed(call: Callable[[], object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        call()
