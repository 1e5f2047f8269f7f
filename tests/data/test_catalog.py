"""Every row of the packaged catalog passes the integrity suite, and nothing got lost on the way in."""

from __future__ import annotations

import csv
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from chipwise.catalog import integrity
from chipwise.catalog.catalog import Catalog
from chipwise.catalog.chip import ChipKind, Precision
from chipwise.catalog.load import DATA, load
from chipwise.catalog.offer import Offer, Purchase, Verdict
from chipwise.catalog.tables import TABLES
from chipwise.errors import InvalidFile


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load()


def test_every_row_passes_the_integrity_suite(catalog: Catalog) -> None:
    assert [str(complaint) for complaint in integrity.check(catalog)] == []


FACTS = {
    "boards": 144,
    "commitments": 122,
    "compliance": 210,
    "corrections": 74,
    "cpus": 11,
    "edge_devices": 15,
    "embodied": 37,
    "energy": 151,
    "fabrics": 90,
    "failures": 11,
    "fpga_throughput": 18,
    "fpgas": 4,
    "images": 43,
    "interruptions": 1157,
    "media": 9,
    "price_decline": 200,
    "price_drift": 128,
    "price_history": 107,
    "quantisation": 299,
    "quantum": 16,
    "quotas": 30,
    "runtimes": 136,
    "serverless": 106,
    "storage": 139,
    "tokens": 410,
}


def test_no_fact_was_lost(catalog: Catalog) -> None:
    """The facts the catalog started from; a new row may be added, none may go missing without a line in left_out.csv."""
    assert {table: len(catalog.rows(table)) for table in TABLES if len(catalog.rows(table)) < FACTS[table]} == {}
    assert len(catalog.chips) >= 105 + 3 + 9  # chips, and processors and edge devices that stand only in their own tables
    assert len(catalog.machines) >= 1208
    assert len(catalog.providers) >= 26
    assert len(catalog.regions) >= 322
    assert len(catalog.offers) >= 14_683


def test_regions_know_what_the_facts_know_and_no_more(catalog: Catalog) -> None:
    regions = catalog.regions
    assert sum(region.grid_g_per_kwh is not None for region in regions) >= 203
    assert sum(region.pue is not None for region in regions) >= 134
    assert sum(region.latitude is not None for region in regions) >= 100
    named = [region for region in regions if "prices only" in region.fact.notes]
    assert len(named) == 118
    assert all("country" in region.fact.inferred for region in named if region.country)


def test_every_kind_of_chip_is_there(catalog: Catalog) -> None:
    assert {chip.kind for chip in catalog.chips.values()} == set(ChipKind)


def test_every_verdict_file_row_marks_an_offer(catalog: Catalog) -> None:
    marked = {offer.key for offer in catalog.offers if offer.verdict}
    with (DATA / "verdicts.csv").open(newline="") as file:
        rows = {(r["provider"], r["machine"], r["region"], Purchase(r["purchase"])) for r in csv.DictReader(file)}
    assert rows == marked


def test_what_is_listed_as_left_out_gives_a_reason() -> None:
    with (DATA / "left_out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows
    assert all(row["reason"] for row in rows)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"memory_gb": 80_000.0}, "memory in GB"),
        ({"memory_bytes_per_s": 3350.0}, "bandwidth"),
        ({"power_w": 0.07}, "power"),
        ({"rates": {Precision.FP16: 2e15, Precision.FP8: 1e15}}, "fp16 not above fp8"),
        ({"year": 1022}, "year"),
    ],
)
def test_the_suite_catches_a_chip_with_a_wrong_unit(catalog: Catalog, change: dict[str, object], rule: str) -> None:
    broken = replace(catalog.chips["H100-SXM"], **change)  # type: ignore[arg-type]
    assert any(rule in complaint.rule for complaint in integrity.check_chip(broken))


def test_the_suite_catches_prices_that_are_far_off_or_undated() -> None:
    far = Offer("aws", "p5.48xlarge", "us-east-1", Purchase.ON_DEMAND, 500.0, "2026-11-01", source="test")
    complaints = list(integrity.check_price_spread(load(offers=[far])))
    assert any("on-demand within 3x" in complaint.rule for complaint in complaints)
    noted = replace(far, notes="a price with a reason")
    assert list(integrity.check_price_spread(load(offers=[noted]))) == []
    undated = replace(far, as_of="2026-11")
    assert any("date" in complaint.rule for complaint in integrity.check_offer(undated))


def test_the_suite_catches_a_spot_price_that_saves_nothing_and_is_not_marked() -> None:
    dear = Offer("aws", "p5.48xlarge", "us-east-1", Purchase.SPOT, 90.0, "2026-11-01", source="test")
    assert any("spot" in complaint.rule for complaint in integrity.check_price_spread(load(offers=[dear])))
    marked = replace(dear, verdict=Verdict.NO_SAVING, why="dearer than on-demand")
    assert list(integrity.check_price_spread(load(offers=[marked]))) == []


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("nowhere,p5.48xlarge,1,,,,,,2026-01-01,,,,x,,,,", "no region of aws is called 'nowhere'"),
        ("us-east-1,p99.huge,1,,,,,,2026-01-01,,,,x,,,,", "no machine of aws is called 'p99.huge'"),
        ("us-east-1,p5.48xlarge,cheap,,,,,,2026-01-01,,,,x,,,,", "cheap"),
        ("us-east-1,p5.48xlarge,1", "3 cells"),
    ],
)
def test_a_bad_row_in_the_data_is_told_with_its_file_and_line(tmp_path: Path, row: str, said: str) -> None:
    """Whoever edits the data and slips gets a sentence, not a traceback."""
    shutil.copytree(DATA, tmp_path / "data", ignore=shutil.ignore_patterns("models"))
    path = tmp_path / "data" / "offers" / "aws.csv"
    lines = path.read_text().count("\n")
    path.write_text(path.read_text() + row + "\n")
    with pytest.raises(InvalidFile) as error:
        load(data=tmp_path / "data")
    assert said in str(error.value)
    assert error.value.problems[0].line == lines + 1
