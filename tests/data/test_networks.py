"""The table of counted networks: every name is found, every row can be predicted from, and what is large is not fast."""

from __future__ import annotations

import csv

import pytest

from chipwise.errors import UnknownName
from chipwise.perf.net import Size
from chipwise.perf.networks import net_of
from chipwise.workload.model import networks
from chipwise.workload.model.counted import CountedShape
from chipwise.workload.model.registry import find


def _rows() -> list[dict[str, str]]:
    with (networks.DATA / "counted.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_name_is_answered() -> None:
    assert len(networks.names()) > 2290
    for name in networks.names():
        find(name)


def test_a_row_has_counts_that_are_possible_and_a_source() -> None:
    with (networks.DATA / "sources.csv").open(encoding="utf-8", newline="") as file:
        sources = {row["source"] for row in csv.DictReader(file)}
    for row in _rows():
        numbers = [float(row[name]) for name in ("parameters_m", "gmacs", "activations_m", "products")]
        assert min(numbers) > 0, row
        assert row["source"] in sources
        assert set(row["derived"]) <= set("pag")
        assert row["unit"] == {True: "", False: row["unit"]}[not row["size"]]


def test_what_a_network_multiplies_is_what_its_row_counts() -> None:
    for name in networks.names():
        shape = find(name).shape
        if isinstance(shape, CountedShape):
            net = net_of(shape, Size(steps=1.0, guidance=1.0))
            assert net.flop == pytest.approx(shape.forward_flop(), rel=0.25), name
            assert net.parameters == shape.parameters


@pytest.mark.parametrize(
    "name", ["convnext_base", "mobilenetv3_large_100", "swin_tiny_patch4_window7_224", "YOLOv8n", "yolo11m", "CogVideoX-5B"]
)
def test_networks_that_people_name_have_counts_of_their_own(name: str) -> None:
    shape = find(name).shape
    assert isinstance(shape, CountedShape)
    assert find(name).source.startswith("https://")


def test_a_size_at_the_end_of_a_name_is_the_pictures() -> None:
    small, large = find("convnext_base").shape, find("convnext_base_384").shape
    assert isinstance(small, CountedShape)
    assert isinstance(large, CountedShape)
    assert (small.image_size, large.image_size) == (224, 384)
    assert large.macs > 2 * small.macs


def test_what_nobody_counted_is_refused_with_the_nearest_names_and_what_to_give() -> None:
    with pytest.raises(UnknownName) as refused:
        find("convnext_bas")
    assert "convnext_base" in refused.value.nearest
    assert "kind: network" in str(refused.value)
