from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.load import DATA, load
from chipwise.catalog.names import Names, find_retired
from chipwise.errors import BadInput, UnknownName

CATALOG = load()
NAMES = Names(CATALOG)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("H100-SXM", {"H100-SXM"}),
        ("nvidia h100_sxm", {"H100-SXM"}),
        ("H100-SXM5-80GB", {"H100-SXM"}),
        ("h100", {"H100-SXM", "H100-PCIe", "H100-NVL"}),
        ("NVIDIA H100", {"H100-SXM", "H100-PCIe", "H100-NVL"}),
        ("A100 80GB", {"A100-80", "A100-80-PCIe"}),
        ("a100", {"A100-40", "A100-40-PCIe", "A100-80", "A100-80-PCIe"}),
        ("A100-80", {"A100-80"}),
        ("a10g", {"A10G"}),
        ("l40", {"L40"}),
        ("4090", {"RTX-4090"}),
        ("trainium", {"Trainium1", "Trainium2", "Trainium3"}),
        ("Gaudi 2", {"Gaudi2"}),
        ("NVIDIA H100 80GB HBM3", {"H100-SXM"}),
        ("NVIDIA A100 80GB PCIe", {"A100-80-PCIe"}),
        ("NVIDIA A100-SXM4-80GB", {"A100-80"}),
        ("A100 SXM4", {"A100-40", "A100-80"}),
        ("NVIDIA Tesla V100-SXM2-16GB", {"V100-16"}),
        ("NVIDIA GeForce RTX 4090", {"RTX-4090"}),
        ("AMD Instinct MI300X", {"MI300X"}),
        ("Qualcomm Cloud AI 100", {"Cloud-AI-100"}),
        ("nvidia-tesla-a100", {"A100-40"}),
        ("orin nano", {"Jetson-Orin-Nano-4GB", "Jetson-Orin-Nano-8GB", "Jetson-Orin-Nano-Super"}),
        ("H100-80", {"H100-SXM", "H100-PCIe"}),
        ("TPU v5e", {"TPU-v5e"}),
        ("Tesla T4", {"T4"}),
    ],
)
def test_a_typed_name_means_these_chips_in_a_filter(typed: str, meant: set[str]) -> None:
    assert {chip.name for chip in NAMES.chips(typed)} == meant


@pytest.mark.parametrize(
    ("family", "chosen"), [("h100", "H100-SXM"), ("A100", "A100-80"), ("v100", "V100-16"), ("rtx pro 6000", "RTX-PRO-6000-SE")]
)
def test_where_one_chip_is_needed_the_common_form_is_taken_and_said(family: str, chosen: str) -> None:
    one = NAMES.one_chip(family)
    assert one.chip.name == chosen
    assert one.remark is not None
    assert chosen in one.remark


def test_a_chips_own_name_is_taken_without_a_word() -> None:
    assert NAMES.one_chip("H200").remark is None


@pytest.mark.parametrize(("typo", "right"), [("h10", "H100"), ("a10gg", "A10G"), ("trainum1", "Trainium1"), ("L40SS", "L40S")])
def test_a_typo_is_refused_with_the_nearest_names(typo: str, right: str) -> None:
    with pytest.raises(UnknownName) as error:
        NAMES.chips(typo)
    assert right in error.value.nearest


def test_every_chip_is_found_by_its_own_name_and_by_its_aliases() -> None:
    for chip in CATALOG.chips.values():
        assert chip in NAMES.chips(chip.name)
        for alias in chip.aliases:
            assert chip.family in {found.family for found in NAMES.chips(alias)}, alias


def test_every_family_has_exactly_one_common_form() -> None:
    by_family: dict[str, list[bool]] = {}
    for chip in CATALOG.chips.values():
        by_family.setdefault(chip.family, []).append(chip.common)
    assert {family for family, common in by_family.items() if sum(common) != 1} == set()


@pytest.mark.parametrize(
    ("typed", "count", "provider"),
    [
        ("p5", 2, "aws"),
        ("aws p5.48xlarge", 1, "aws"),
        ("p5.48xl", 1, "aws"),
        ("p6", 2, "aws"),
        ("gcp/a3-highgpu-8g", 1, "gcp"),
        ("p5.48xlarge", 1, "aws"),
        ("ml.p5.48xlarge", 1, "aws"),
        ("trn1", 2, "aws"),
        ("a3-highgpu", 4, "gcp"),
    ],
)
def test_a_machine_or_family_name_means_these_machines(typed: str, count: int, provider: str) -> None:
    found = NAMES.machines(typed)
    assert len(found) == count
    assert {machine.provider for machine in found} == {provider}


def test_azure_names_are_understood_with_and_without_their_prefix() -> None:
    assert NAMES.machines("Standard_ND96isr_H100_v5") == NAMES.machines("nd96isr_h100_v5")


def test_every_machine_is_found_by_its_own_name() -> None:
    for machine in CATALOG.machines:
        assert machine in NAMES.machines(machine.name)


def test_regions_that_differ_in_a_separator_are_two_regions() -> None:
    assert {region.provider for region in NAMES.regions("us-east1")} == {"gcp"}
    assert "gcp" not in {region.provider for region in NAMES.regions("us-east-1")}


def test_what_several_regions_begin_with_means_all_of_them_but_no_other_region_of_one_provider() -> None:
    assert {("aws", "us-east-1"), ("gcp", "us-east4"), ("ibm", "us-east")} <= {
        region.key for region in NAMES.regions("us-east")
    }
    assert {region.key for region in NAMES.regions("eastus")} == {("azure", "eastus")}
    assert {region.name for region in NAMES.regions("europe-west1")} == {"europe-west1"}


def test_a_region_is_found_by_country_group_and_provider() -> None:
    assert all(region.country == "SWE" for region in NAMES.regions("swe"))
    assert {region.country for region in NAMES.regions("EU")} >= {"DEU", "FRA", "SWE"}
    assert "USA" not in {region.country for region in NAMES.regions("EU")}
    assert [region.key for region in NAMES.regions("aws/us-east-1")] == [("aws", "us-east-1")]


@pytest.mark.parametrize(
    ("typed", "name"), [("Google Cloud", "gcp"), ("amazon", "aws"), ("Oracle", "oci"), ("vast.ai", "vast")]
)
def test_providers_go_by_several_names(typed: str, name: str) -> None:
    assert NAMES.provider(typed) == name


@pytest.mark.parametrize(
    "typed", ["Elastic Inference", "f1", "f1.2xlarge", "p2.xlarge", "P2", "p3.2xlarge", "g3s.xlarge", "K80"]
)
def test_retired_things_are_answered_with_their_successor(typed: str) -> None:
    found = find_retired(typed, DATA)
    assert found is not None
    assert found.successor


@pytest.mark.parametrize("typed", ["p4d", "p5", "f2", "g5", "inf2", "h100"])
def test_what_is_sold_is_not_called_retired(typed: str) -> None:
    assert find_retired(typed, DATA) is None


@given(st.text(max_size=300))
def test_any_text_is_either_resolved_or_refused_as_unknown(text: str) -> None:
    for find in (NAMES.chips, NAMES.machines, NAMES.regions):
        with suppress(BadInput):  # UnknownName, or a country without a region
            assert find(text)


def test_the_index_for_feeds_knows_common_forms(catalog: Catalog) -> None:
    index = Names(catalog).chip_index()
    assert index["h100"] == "H100-SXM"
    assert index["a10080gb"] == "A100-80"
    assert index["l4"] == "L4"
