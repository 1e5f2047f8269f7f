from __future__ import annotations

import pytest

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.compatibility import CompatibilityAnswer, check, components
from chipwise.catalog.load import DATA
from chipwise.errors import BadInput, UnknownName


@pytest.mark.parametrize(
    ("chip", "wanted", "reason"),
    [
        ("H100-SXM", {"cuda": "11.6"}, "11.8"),
        ("T4", {"flash-attention": "2"}, "compute capability 8.0"),
        ("V100-16", {"cuda": "13.0"}, "7.5"),
        ("V100-16", {"pytorch": "2.11"}, "12.6 build"),
        ("V100-16", {"vllm": ""}, "7.5"),
        ("T4", {"tensorrt-llm": "1.2"}, "8.0"),
        ("B200", {"cuda": "12.4"}, "12.8"),
        ("A100-80", {"flash-attention": "3"}, "Hopper"),
        ("A100-80", {"fp8": ""}, "8.9"),
        ("Trainium1", {"cuda": "12.4"}, "NVIDIA"),
        ("L4", {"neuron": "2.32"}, "Inferentia"),
        ("Inferentia1", {"neuron-sdk": "2.32"}, "2.26"),
        ("A100-80", {"cuda": "13.0", "driver": "535.104"}, "580"),
        ("H100-SXM", {"torch": "2.8", "cuda": "11.8"}, "12.6"),
        ("MI300X", {"cuda": "12.4"}, "NVIDIA"),
        ("V100-16", {"cuda": "13"}, "7.5"),
        ("L4", {"cuda": "13", "driver": "535"}, "580"),
        ("K80", {"cuda": "12"}, "Kepler"),
        ("V100-16", {"pytorch": "2.8"}, "12.6 build"),
        ("V100-16", {"pytorch": "2.11", "cuda": "12.8"}, "12.6 build"),
        ("H100-SXM", {"pytorch": "1.12"}, "default wheel"),
        ("L4", {"sglang": "", "driver": "550"}, "580"),
        ("V100-16", {"jax": ""}, "CUDA 13"),
        ("MI300X", {"flash-attention": "3"}, "NVIDIA"),
        ("MI300X", {"nvfp4": ""}, "NVIDIA"),
        ("Jetson-Thor-T5000", {"cuda": "12.8"}, "CUDA 13"),
        ("H100-SXM", {"cuda": "7.5"}, "CUDA"),
        ("VU9P", {"vllm": ""}, "GPUs"),
        ("EPYC-Genoa", {"rocm": "6.2"}, "ROCm"),
        ("V100-16", {"driver": "590.10"}, "R580"),
        ("B200", {"driver": "550"}, "570"),
    ],
)
def test_software_that_does_not_run_is_refused_with_the_reason(
    catalog: Catalog, chip: str, wanted: dict[str, str], reason: str
) -> None:
    first = check(catalog.chips[chip], wanted, DATA)[0]
    assert first.answer is CompatibilityAnswer.REFUSED
    assert reason in first.reason
    assert first.sources


@pytest.mark.parametrize(
    ("chip", "wanted"),
    [
        ("H100-SXM", {"cuda": "12.4"}),
        ("H100-SXM", {"cuda": "11.8"}),
        ("A100-80", {"flash-attention": "2", "cuda": "12.1"}),
        ("T4", {"cuda": "13.0", "driver": "580.65"}),
        ("V100-16", {"cuda": "12.6"}),
        ("Trainium2", {"neuron-sdk": "2.32"}),
        ("B200", {"cuda": "12.8"}),
        ("L4", {"vllm": "0.32", "driver": "580"}),
        ("A10", {"cuda": "11.1"}),
        ("T4", {"cuda": "10"}),
        ("A100-80", {"flash-attention": ""}),
        ("V100-16", {"pytorch": "2.8", "cuda": "12.6"}),
        ("EPYC-Genoa", {"pytorch": "2.8"}),
        ("MI300X", {"pytorch": "2.8"}),
        ("L4", {"cuda": "11.6"}),
        ("T4", {"jax": "", "driver": "580"}),
    ],
)
def test_software_that_runs_is_not_refused(catalog: Catalog, chip: str, wanted: dict[str, str]) -> None:
    assert CompatibilityAnswer.REFUSED not in {finding.answer for finding in check(catalog.chips[chip], wanted, DATA)}


def test_one_component_is_not_judged_with_the_cuda_that_another_brings(catalog: Catalog) -> None:
    found = check(catalog.chips["L4"], {"pytorch": "2.8", "jax": ""}, DATA)
    assert {finding.answer for finding in found} <= {CompatibilityAnswer.FINE, CompatibilityAnswer.UNSTATED}


def test_what_nobody_states_is_neither_refused_nor_promised(catalog: Catalog) -> None:
    found = check(catalog.chips["B200"], {"flash-attention": "2"}, DATA)
    assert [finding.answer for finding in found] == [CompatibilityAnswer.UNSTATED]


def test_an_unknown_component_is_refused_with_the_nearest() -> None:
    from chipwise.catalog.load import load

    with pytest.raises(UnknownName) as error:
        check(load().chips["T4"], {"vlm": "1"}, DATA)
    assert "vllm" in error.value.nearest


@pytest.mark.parametrize("version", ["eleven", "11.x", "-", "11..6", "1e9"])
def test_a_version_that_is_none_is_refused(catalog: Catalog, version: str) -> None:
    with pytest.raises(BadInput):
        check(catalog.chips["T4"], {"cuda": version}, DATA)


def test_newer_hardware_never_loses_a_cuda_that_older_hardware_of_the_line_needs_newer(catalog: Catalog) -> None:
    """A toolkit that refuses a chip for being too new refuses every newer chip as well."""
    line = ["T4", "A100-80", "L4", "H100-SXM", "B200"]
    for version in ("10.2", "11.0", "11.6", "11.8", "12.4", "12.8"):
        answers = [check(catalog.chips[chip], {"cuda": version}, DATA)[0].answer for chip in line]
        first = answers.index(CompatibilityAnswer.REFUSED) if CompatibilityAnswer.REFUSED in answers else len(answers)
        assert set(answers[first:]) <= {CompatibilityAnswer.REFUSED}, version


def test_every_component_can_be_asked_about_on_every_chip(catalog: Catalog) -> None:
    for chip in catalog.chips.values():
        for component in components(DATA):
            assert check(chip, {component: ""}, DATA)
