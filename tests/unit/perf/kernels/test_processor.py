"""Laws of inference on processors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.catalog.catalog import Catalog
from chipwise.errors import BadInput
from chipwise.perf.kernels import processor
from chipwise.perf.kernels.processor import Processors
from chipwise.perf.part import Part, Parts

CPU = Part(
    name="made up",
    vendor="Intel",
    kind="cpu",
    architecture="-",
    memory_bytes=5e11,
    bandwidth=3e11,
    rates={"fp32": 1e13, "bf16": 1.6e14, "int8": 3.2e14},
    power_w=350,
    link=2.4e10,
    domain=1,
    fabric=6e9,
    pcie=2.4e10,
)
SIDES, VCPUS = st.integers(1, 65536), st.integers(1, 96)


def socket(rate: float = 1e13, bandwidth: float = 3e11) -> Part:
    return replace(CPU, rates={"fp32": rate, "bf16": 2 * rate}, bandwidth=bandwidth)


@given(SIDES, SIDES, SIDES, st.floats(1e11, 1e14), st.floats(1e10, 1e12), st.floats(1, 8), st.floats(1, 8))
def test_more_compute_or_bandwidth_is_never_slower(
    m: int, n: int, k: int, rate: float, bandwidth: float, faster: float, wider: float
) -> None:
    slow = processor.gemm(Processors.of([socket(rate, bandwidth)], "fp32"), m, n, k)
    fast = processor.gemm(Processors.of([socket(rate * faster, bandwidth * wider)], "fp32"), m, n, k)
    assert fast.total[0] <= slow.total[0] * (1 + 1e-12)
    assert slow.total == pytest.approx(sum(slow.seconds))


@given(VCPUS, st.integers(0, 96), st.floats(1e6, 1e11), st.integers(1, 64))
def test_more_vcpus_are_never_slower(vcpus: int, more: int, weights: float, batch: int) -> None:
    on = Processors.of([CPU], "bf16")
    few, many = (processor.token(on, weights, batch, vcpus=v).total[0] for v in (vcpus, vcpus + more))
    assert many <= few * (1 + 1e-12)


@given(st.floats(1e6, 1e11), st.integers(1, 256), st.integers(1, 256))
def test_a_larger_batch_takes_longer_in_all_and_less_for_each(weights: float, batch: int, more: int) -> None:
    on = Processors.of([CPU], "int8")
    small, large = (processor.token(on, weights, n).total[0] for n in (batch, batch + more))
    assert small <= large * (1 + 1e-12)
    assert large / (batch + more) <= small / batch * (1 + 1e-12)


@given(st.lists(st.tuples(SIDES, SIDES, SIDES, VCPUS), min_size=1, max_size=5))
def test_the_array_call_equals_the_calls_one_by_one(rows: list[tuple[int, int, int, int]]) -> None:
    m, n, k, vcpus = (np.array(values, dtype=float) for values in zip(*rows, strict=True))
    on = Processors.of([CPU], "bf16")
    together = processor.gemm(on, m, n, k, vcpus)
    for i, (a, b, c, v) in enumerate(rows):
        assert together.total[i] == pytest.approx(processor.gemm(on, a, b, c, v).total[0])


def test_tiles_are_told_by_their_rate_and_reach_less_of_it(parts: Parts, catalog: Catalog) -> None:
    on = Processors.of([parts["Xeon-Sapphire-Rapids"], parts["EPYC-Genoa"]], "bf16", catalog.rows("cpus"))
    assert on.tiles.tolist() == [1.0, 0.0]
    assert on.threads.tolist() == [96.0, 192.0]
    compute, _, _ = on.reached("gemm")
    assert compute[0] < compute[1]


def test_a_graviton_vcpu_is_a_whole_core(parts: Parts, catalog: Catalog) -> None:
    on = Processors.of([parts["Graviton4"]], "bf16", catalog.rows("cpus"))
    assert on.threads.tolist() == [96.0]


def test_a_format_without_a_unit_is_computed_in_single_precision_and_still_read_smaller(parts: Parts) -> None:
    milan = [parts["EPYC-Milan"]]
    wide, narrow = Processors.of(milan, "fp32"), Processors.of(milan, "int8")
    assert narrow.rate.tolist() == wide.rate.tolist()
    assert processor.token(narrow, 8e9).total[0] < 0.3 * processor.token(wide, 8e9).total[0]


def test_one_sequence_is_bound_by_memory_and_a_prompt_by_compute(parts: Parts, catalog: Catalog) -> None:
    on = Processors.of([parts["EPYC-Genoa"]], "bf16", catalog.rows("cpus"))
    assert processor.token(on, 8e9).bottleneck().texts() == ["memory"]
    assert processor.forward(on, 2 * 8e9 * 2048, 16e9).bottleneck().texts() == ["compute"]


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("precision", lambda: Processors.of([CPU], "fp12")),
        ("parts", lambda: Processors.of([replace(CPU, kind="gpu")], "fp32")),
        ("m", lambda: processor.gemm(Processors.of([CPU], "fp32"), 0, 1, 1)),
        ("vcpus", lambda: processor.gemm(Processors.of([CPU], "fp32"), 1, 1, 1, 0)),
        ("weights", lambda: processor.token(Processors.of([CPU], "fp32"), -1)),
        ("batch", lambda: processor.token(Processors.of([CPU], "fp32"), 1e9, 0)),
        ("flop", lambda: processor.forward(Processors.of([CPU], "fp32"), -1, 1)),
    ],
)
def test_bad_input_names_the_field_and_what_is_allowed(field: str, call: object) -> None:
    assert callable(call)
    with pytest.raises(BadInput, match=f"^{field}: .*Allowed: "):
        call()
