"""Laws of pipelines and chains."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.catalog.catalog import Catalog
from chipwise.errors import BadInput
from chipwise.perf.arrays import column
from chipwise.perf.kernels import fpga
from chipwise.workload.kinds import Stream
from chipwise.workload.parse import load

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"
CLOCKS, COUNTS = st.floats(1e8, 1e9), st.integers(1, 64)
DEVICE = fpga.Fabric(column(1e6), column(5e3), column(4e7), column(4e11), column(2.5e8))


@given(CLOCKS, COUNTS, COUNTS, COUNTS, st.floats(1, 1e9))
def test_more_lanes_are_never_slower(clock: float, lanes: int, more: int, interval: int, items: float) -> None:
    few = fpga.batch(fpga.CircuitPipeline.of(clock, lanes, interval), items, 64, 4e11, 64)
    many = fpga.batch(fpga.CircuitPipeline.of(clock, lanes + more, interval), items, 64, 4e11, 64)
    assert many.total[0] <= few.total[0] * (1 + 1e-12)
    assert few.total == pytest.approx(sum(few.seconds))


@given(CLOCKS, st.floats(1, 4), st.floats(1e9, 1e12), st.floats(1e8, 1e11), st.floats(1, 8))
def test_a_faster_clock_memory_or_host_link_is_never_slower(
    clock: float, faster: float, bandwidth: float, pcie: float, wider: float
) -> None:
    slow = fpga.batch(fpga.CircuitPipeline.of(clock), 1e6, 128, bandwidth, 64, pcie)
    fast = fpga.batch(fpga.CircuitPipeline.of(clock * faster), 1e6, 128, bandwidth * wider, 64, pcie * wider)
    assert fast.total[0] <= slow.total[0] * (1 + 1e-12)


@given(CLOCKS, COUNTS, COUNTS)
def test_a_long_batch_reaches_clock_times_lanes_over_interval(clock: float, lanes: int, interval: int) -> None:
    design = fpga.CircuitPipeline.of(clock, lanes, interval, depth=200)
    assert 1e12 / fpga.batch(design, 1e12).total[0] == pytest.approx(clock * lanes / interval, rel=1e-6)
    assert fpga.batch(design, 1)["fill"][0] == pytest.approx(200 / clock)


@given(st.lists(st.tuples(CLOCKS, COUNTS, st.floats(1, 1e9)), min_size=1, max_size=5))
def test_the_array_call_equals_the_calls_one_by_one(rows: list[tuple[float, int, float]]) -> None:
    clock, lanes, items = (np.array(values, dtype=float) for values in zip(*rows, strict=True))
    together = fpga.batch(fpga.CircuitPipeline.of(clock, lanes), items, 8, 1e11, 4)
    for i, (c, n, k) in enumerate(rows):
        assert together.total[i] == pytest.approx(fpga.batch(fpga.CircuitPipeline.of(c, n), k, 8, 1e11, 4).total[0])


@given(st.floats(0, 1e7), st.floats(0, 1e7))
def test_a_larger_design_never_fits_where_a_smaller_one_did_not(luts: float, more: float) -> None:
    small, large = fpga.fit(DEVICE, luts), fpga.fit(DEVICE, luts + more)
    assert large.luts[0] >= small.luts[0]
    assert small.ok[0] or not large.ok[0]


def test_a_device_without_a_resource_fits_only_designs_that_need_none_of_it() -> None:
    bare = fpga.Fabric(column(1e6), column(0.0), column(4e7), column(1e11), column(2.5e8))
    assert fpga.fit(bare, 1e5, 0).ok[0]
    assert not fpga.fit(bare, 1e5, 1).ok[0]


@pytest.mark.parametrize(
    ("name", "design", "exact"),
    [
        ("aes-256-cbc-encrypt", "AES-256-CBC encrypt", True),
        ("AES-256-GCM", "AES-256-CBC decrypt", False),
        ("crc32", "CRC32", True),
        ("hmac-sha1", "HMAC-SHA1", True),
        ("snappy-compress", "Snappy compress, one unit", True),
        ("filter-symbols", None, False),
        ("sha-256", None, False),
        ("smith-waterman", None, False),
    ],
)
def test_an_operation_is_matched_to_a_design_in_bytes_or_to_none(
    name: str, design: str | None, exact: bool, catalog: Catalog
) -> None:
    found = fpga.match(name, catalog.rows("fpga_throughput"))
    assert (found.known.workload if found.known else None, found.exact) == (design, exact)


def test_the_slowest_operation_is_the_bottleneck(catalog: Catalog) -> None:
    known = catalog.rows("fpga_throughput")
    chain = fpga.chain(DEVICE, [fpga.match(name, known) for name in ("parse", "snappy-compress", "crc32")], 4096)
    assert chain.message.bottleneck().texts() == ["snappy-compress"]
    assert chain.messages_per_s[0] * 4096 == pytest.approx(0.26e9, rel=0.01)


def test_what_nobody_published_is_less_sure_than_what_somebody_did(catalog: Catalog) -> None:
    known = catalog.rows("fpga_throughput")
    spreads = [fpga.match(name, known).spread for name in ("crc32", "aes-256-gcm", "filter-symbols")]
    assert spreads == sorted(spreads)
    assert spreads[0] < spreads[1] < spreads[2]


@given(st.integers(1, 16), st.integers(1, 16), st.floats(1, 1e5))
def test_lanes_raise_a_chains_rate_and_leave_its_latency(lanes: int, more: int, size: float) -> None:
    operations = [fpga.Operation("one", None, False), fpga.Operation("two", None, False)]
    few, many = (fpga.chain(DEVICE, operations, size, n) for n in (lanes, lanes + more))
    assert many.messages_per_s[0] >= few.messages_per_s[0]
    assert many.latency.total[0] == few.latency.total[0]


def test_the_example_workload_fits_an_f2_card_and_keeps_up(catalog: Catalog) -> None:
    work = load(EXAMPLES / "stream" / "workload.yaml")
    assert isinstance(work, Stream)
    rows = [row for row in catalog.rows("fpgas") if row.name in ("VU47P", "Alveo-U30")]
    flow = fpga.flow(work, fpga.Fabric.of(rows), catalog.rows("fpga_throughput"))
    assert flow.fit.ok.tolist() == [True, False]
    assert (flow.messages_per_s > 4.5e6).all()
    assert fpga.devices_needed(work, flow).tolist() == [1.0, 1.0]
    assert (flow.latency.total < 5e-6).all()


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("clock_hz", lambda: fpga.CircuitPipeline.of(0)),
        ("lanes", lambda: fpga.CircuitPipeline.of(1e8, 0)),
        ("interval", lambda: fpga.CircuitPipeline.of(1e8, 1, 0.5)),
        ("items", lambda: fpga.batch(fpga.CircuitPipeline.of(1e8), 0)),
        ("bandwidth", lambda: fpga.batch(fpga.CircuitPipeline.of(1e8), 1, 8, 0)),
        ("message_bytes", lambda: fpga.chain(DEVICE, [fpga.Operation("x", None, False)], -1)),
        ("luts", lambda: fpga.fit(DEVICE, -1)),
        ("operations", lambda: fpga.chain(DEVICE, [], 64)),
    ],
)
def test_bad_input_names_the_field(field: str, call: object) -> None:
    assert callable(call)
    with pytest.raises(BadInput, match=f"^{field}: "):
        call()
