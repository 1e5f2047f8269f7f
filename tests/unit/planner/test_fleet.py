"""Machines as shapes: whole accelerators, processors, slices, FPGAs and small devices."""

from __future__ import annotations

import pytest

from chipwise.api.session.wiring import Session, open_session
from chipwise.planner.fleet import Fleet, Shape, fleet_of, placed
from chipwise.planner.kinds.edge_catalog import PROVIDER, Use, with_devices
from chipwise.units import GIB, HOUR, YEAR


@pytest.fixture(scope="module")
def session() -> Session:
    return open_session()


@pytest.fixture(scope="module")
def wide(session: Session) -> Fleet:
    return fleet_of(session.catalog, session.parts, wide=True)


def shape_of(fleet: Fleet, provider: str, machine: str) -> Shape:
    at = int(fleet.shape_of[fleet.catalog.machine_index[provider, machine]])
    assert at >= 0
    return fleet.shapes[at]


def test_a_narrow_fleet_has_whole_accelerators_only(session: Session) -> None:
    narrow = fleet_of(session.catalog, session.parts)
    assert all(shape.is_whole and shape.share == 1 for shape in narrow.shapes)
    assert not {narrow.part(at).kind for at in range(len(narrow.shapes))} & {"cpu", "fpga", "edge"}


def test_every_shape_of_a_narrow_fleet_is_in_the_wide_one(session: Session, wide: Fleet) -> None:
    narrow = fleet_of(session.catalog, session.parts)
    assert set(narrow.shapes) <= set(wide.shapes)


def test_a_processor_is_the_share_of_its_socket(wide: Fleet) -> None:
    shape = shape_of(wide, "aws", "c6i.16xlarge")  # 64 vCPUs of a socket of 32 cores with two threads each
    part, socket = wide.parts[shape.part], wide.parts["Xeon-Ice-Lake"]
    assert shape.share == 1
    assert part.rates == socket.rates
    assert part.memory_bytes == 128 * GIB
    half = wide.parts[shape_of(wide, "aws", "c6i.8xlarge").part]
    assert half.bandwidth == socket.bandwidth / 2
    assert shape_of(wide, "aws", "c6i.32xlarge").share == 2


def test_a_core_without_hyper_threads_is_one_vcpu(wide: Fleet) -> None:
    assert shape_of(wide, "aws", "c7g.16xlarge").share == 1  # 64 vCPUs, 64 cores


def test_a_slice_has_its_share_of_rates_and_its_own_memory(wide: Fleet) -> None:
    shape = shape_of(wide, "aws", "g6f.2xlarge")
    part, whole = wide.parts[shape.part], wide.parts["L4"]
    assert (shape.share, shape.chips, shape.chip) == (0.25, 1, "L4")
    assert part.rates["bf16"] == whole.rates["bf16"] / 4
    assert part.memory_bytes < whole.memory_bytes / 3
    assert part.domain == 1


def test_several_slices_of_a_chip_count_each(wide: Fleet) -> None:
    shape = shape_of(wide, "runpod", "4x_PRO-6000-MIG-24GB_SECURE")
    assert (shape.chips, shape.share) == (4, 0.25)


def test_fpga_machines_are_shapes(wide: Fleet) -> None:
    assert shape_of(wide, "aws", "f2.12xlarge").chips == 2


def test_no_shape_is_larger_than_what_it_is_made_of(wide: Fleet) -> None:
    for at, shape in enumerate(wide.shapes):
        part, whole = wide.part(at), wide.parts[shape.chip]
        if part.kind != "cpu":
            assert part.memory_bytes <= whole.memory_bytes
            assert part.bandwidth <= whole.bandwidth


def test_a_network_that_nobody_states_is_slow(wide: Fleet) -> None:
    at = int(wide.shape_of[wide.catalog.machine_index["lambda", "gpu_1x_gh200"]])
    assert placed(wide, at).fabric < wide.part(at).fabric
    assert placed(wide, at).domain == 1


def test_devices_are_paid_for_over_three_years(session: Session) -> None:
    joined = with_devices(session.catalog, Use(730.0, 15.0))
    offers = {one.machine: one for one in joined.catalog.offers[len(session.catalog.offers) :]}
    assert all(one.provider == PROVIDER for one in offers.values())
    nano = offers["Jetson Orin Nano Super"].usd_per_hour
    assert 249 / (3 * YEAR / HOUR) < nano < 1.5 * 249 / (3 * YEAR / HOUR)


def test_a_device_that_works_few_hours_is_dear_by_the_hour(session: Session) -> None:
    always, seldom = (with_devices(session.catalog, Use(hours)).catalog.offers[-1].usd_per_hour for hours in (730.0, 73.0))
    assert seldom > 3 * always


def test_an_accelerator_without_memory_comes_with_a_board(session: Session) -> None:
    joined = with_devices(session.catalog, Use(730.0))
    machine = joined.catalog.machines[joined.catalog.machine_index[PROVIDER, "Hailo-8L (Raspberry Pi AI HAT+ 13 TOPS)"]]
    assert machine.purchase_usd is not None
    assert machine.purchase_usd > 70 + 80
    assert joined.least_w["Hailo-8L"] == pytest.approx(5.2 + 6)


def test_the_catalog_without_devices_stays_as_it_was(session: Session) -> None:
    before = len(session.catalog.offers)
    with_devices(session.catalog, Use(730.0))
    assert len(session.catalog.offers) == before
