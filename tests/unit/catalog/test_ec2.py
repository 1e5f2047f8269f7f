from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.ec2 import parse
from chipwise.catalog.load import DATA


@pytest.mark.parametrize(
    ("name", "group", "generation", "attributes"),
    [
        ("p4de.24xlarge", "accelerated", "4", "de"),
        ("m7i-flex.large", "general purpose", "7", "i flex"),
        ("x2iedn.metal", "memory optimized", "2", "iedn"),
        ("c7gn.16xlarge", "compute optimized", "7", "gn"),
        ("i3en.24xlarge", "storage optimized", "3", "en"),
        ("im4gn.16xlarge", "storage optimized", "4", "gn"),
        ("hpc7a.96xlarge", "high performance computing", "7", "a"),
        ("p6-b200.48xlarge", "accelerated", "6", "b200"),
        ("trn1n.32xlarge", "accelerated", "1", "n"),
        ("ml.g5.2xlarge", "accelerated", "5", ""),
    ],
)
def test_a_name_is_parsed_into_its_parts(name: str, group: str, generation: str, attributes: str) -> None:
    parts = parse(name, DATA)
    assert parts is not None
    assert parts.meaning.group == group
    assert parts.generation == generation
    shown = [a.attribute for a in parts.attributes]
    assert "".join(shown) == attributes.replace(" ", "")
    assert all(attribute.meaning for attribute in parts.attributes)


def test_a_size_says_how_many_vcpus_it_stands_for() -> None:
    parts = parse("p4de.24xlarge", DATA)
    assert parts is not None
    assert parts.size_meaning is not None
    assert "96 vCPU" in parts.size_meaning


@pytest.mark.parametrize(
    "name", ["", "h100", "Standard_NC4as_T4_v3", "p4de.24xlargest", "zzz9.large", "a3-highgpu-8g", "p5.", ".xlarge"]
)
def test_what_is_not_an_ec2_name_is_not_parsed(name: str) -> None:
    assert parse(name, DATA) is None


def test_every_aws_machine_of_the_catalog_can_be_parsed(catalog: Catalog) -> None:
    odd = [m.name for m in catalog.machines if m.provider == "aws" and parse(m.name, DATA) is None]
    assert [name for name in odd if "ultraserver" not in name.lower()] == []


@given(st.text(alphabet="abcdefghimnprtuxz0123456789.-", max_size=30))
def test_any_text_is_parsed_or_not_without_an_error(text: str) -> None:
    parts = parse(text, DATA)
    assert parts is None or text.lower().removeprefix("ml.").startswith(parts.family)
