"""Laws of edge devices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import BadInput
from chipwise.perf.kernels import edge
from chipwise.perf.kernels.edge import Devices
from chipwise.perf.part import Part, Parts

MODULE = Part(
    name="made up",
    vendor="-",
    kind="edge",
    architecture="-",
    memory_bytes=8e9,
    bandwidth=1e11,
    rates={"fp32": 2e12, "fp16": 4e12, "int8": 3e13},
    power_w=25,
    link=1e9,
    domain=1,
    fabric=1e8,
    pcie=4e9,
)
FLOP, WEIGHTS = st.floats(1e6, 1e12), st.floats(1e4, 1e9)


@given(FLOP, WEIGHTS, st.floats(1e11, 1e14), st.floats(1e9, 1e12), st.floats(1, 8), st.floats(1, 8))
def test_more_compute_or_bandwidth_is_never_slower(
    flop: float, weights: float, rate: float, bandwidth: float, faster: float, wider: float
) -> None:
    slow = Devices.of([replace(MODULE, rates={"fp32": 1e12, "int8": rate}, bandwidth=bandwidth)])
    fast = Devices.of([replace(MODULE, rates={"fp32": 1e12, "int8": rate * faster}, bandwidth=bandwidth * wider)])
    assert edge.frame(fast, flop, weights).total[0] <= edge.frame(slow, flop, weights).total[0] * (1 + 1e-12)
    assert edge.token(fast, weights).total[0] <= edge.token(slow, weights).total[0] * (1 + 1e-12)


@given(st.floats(0.1, 100), st.floats(0, 100), st.floats(-40, 95), st.floats(0, 50))
def test_more_watts_or_less_heat_is_never_slower(watts: float, more: float, ambient: float, cooler: float) -> None:
    on = Devices.of([MODULE])
    worse = edge.token(on, 1e9, power_mode=edge.mode(on, watts, ambient)).total[0]
    better = edge.token(on, 1e9, power_mode=edge.mode(on, watts + more, max(ambient - cooler, -60))).total[0]
    assert better <= worse * (1 + 1e-12)


@given(FLOP, WEIGHTS, st.integers(1, 64), st.integers(1, 64))
def test_a_larger_batch_raises_the_frame_rate(flop: float, weights: float, batch: int, more: int) -> None:
    on = Devices.of([MODULE])
    small, large = (edge.per_second(edge.frame(on, flop, weights, 1e5, n), n)[0] for n in (batch, batch + more))
    assert large >= small * (1 - 1e-12)


@given(st.lists(st.tuples(FLOP, WEIGHTS, st.floats(1, 60)), min_size=1, max_size=5))
def test_the_array_call_equals_the_calls_one_by_one(rows: list[tuple[float, float, float]]) -> None:
    flop, weights, watts = (np.array(values) for values in zip(*rows, strict=True))
    on = Devices.of([MODULE])
    together = edge.frame(on, flop, weights, power_mode=edge.mode(on, watts))
    assert together.total == pytest.approx(sum(together.seconds))
    for i, (f, w, p) in enumerate(rows):
        assert together.total[i] == pytest.approx(edge.frame(on, f, w, power_mode=edge.mode(on, p)).total[0])


def test_the_largest_mode_is_the_data_sheets_and_a_smaller_one_is_less_sure() -> None:
    on = Devices.of([MODULE])
    assert edge.mode(on).clock[0] == edge.mode(on, 25).clock[0] == edge.mode(on, 99).clock[0] == 1.0
    assert edge.mode(on, 10).clock[0] == pytest.approx(np.sqrt((10 - 6.25) / 18.75))
    assert edge.token(on, 1e9, power_mode=edge.mode(on, 10)).relative[0] > edge.token(on, 1e9).relative[0]


def test_heat_and_a_busy_memory_slow_a_device() -> None:
    on = Devices.of([MODULE])
    cool, hot, busy = (
        edge.token(on, 1e9, power_mode=at).total[0] for at in (edge.mode(on), edge.mode(on, None, 70), edge.mode(on, busy=0.5))
    )
    assert cool < hot
    assert cool < busy < 2.1 * cool


def test_a_small_language_model_is_bound_by_memory(parts: Parts) -> None:
    """A public figure for 8 billion weights in 4 bits on this kit is about 19 tokens/s."""
    terms = edge.token(Devices.of([parts["Jetson-Orin-Nano-Super"]], "int4"), 8.03e9)
    assert terms.bottleneck().texts() == ["memory"]
    assert 1 / terms.high[0] < 19 < 1 / terms.low[0]


def test_weights_that_do_not_fit_the_chip_come_over_the_host_link(parts: Parts) -> None:
    on = Devices.of([parts["Coral-Edge-TPU"]], "int8")
    small, large = edge.frame(on, 6e8, 4e6), edge.frame(on, 8e9, 25e6)
    assert small["streaming"][0] == 0
    assert large.bottleneck().texts() == ["streaming"]
    assert edge.fits(on, 25e6)[0]


@pytest.mark.parametrize(
    ("chip", "gflop", "million_weights", "grouped", "batch", "measured_ms"),
    [
        ("Coral-Edge-TPU", 1.14, 4.22, True, 1, 4.2),  # MobileNet v1 behind a Raspberry Pi 4: google-coral/edgetpu
        ("Coral-Edge-TPU", 0.60, 3.49, True, 1, 4.55),  # MobileNet v2
        ("Coral-Edge-TPU", 2.47, 6.8, True, 1, 15.1),  # SSD MobileNet v1
        ("Coral-Edge-TPU", 3.75, 6.2, True, 1, 18.2),  # SSD MobileNet v2, USB 3: aallan/benchmarking-ml-on-the-edge
        ("Hailo-8", 1.94, 3.56, True, 8, 1e3 / 297),  # EfficientDet lite 0: the vendor's model zoo
        ("Hailo-8", 6.92, 6.05, False, 8, 1e3 / 1472),  # YOLOv4 tiny
        ("Hailo-8L", 2.8, 8.16, True, 8, 1e3 / 206),  # EfficientNet lite 3
        ("Hailo-8L", 61.64, 33.98, False, 8, 1e3 / 89),  # DAMO-YOLO L35
    ],
)
def test_accelerators_without_memory_take_about_what_was_measured(
    parts: Parts, chip: str, gflop: float, million_weights: float, grouped: bool, batch: int, measured_ms: float
) -> None:
    """The shares were set by these rows and their like: this says that nothing moved, not how good the formula is."""
    on = Devices.of([parts[chip]], "int8")
    terms = edge.frame(on, gflop * 1e9, million_weights * 1e6, 5e6, batch, grouped=grouped)
    assert 0.5 < 1e3 * terms.total[0] / batch / measured_ms < 2.0


def test_a_model_must_leave_room_for_the_rest_of_the_program() -> None:
    assert edge.fits(Devices.of([MODULE], "int8"), [5e9, 6e9]).tolist() == [True, False]


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("precision", lambda: Devices.of([MODULE], "fp64")),
        ("parts", lambda: Devices.of([], "int8")),
        ("flop", lambda: edge.frame(Devices.of([MODULE]), 0, 1e6)),
        ("weights", lambda: edge.token(Devices.of([MODULE]), -1)),
        ("batch", lambda: edge.frame(Devices.of([MODULE]), 1e9, 1e6, batch=0)),
        ("watts", lambda: edge.mode(Devices.of([MODULE]), 0)),
        ("ambient_c", lambda: edge.mode(Devices.of([MODULE]), 10, 300)),
    ],
)
def test_bad_input_names_the_field(field: str, call: object) -> None:
    assert callable(call)
    with pytest.raises(BadInput, match=f"^{field}: "):
        call()
