"""The import of an inventory of owned machines."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from chipwise.adapters.feeds import inventory
from chipwise.catalog.feed import FeedSettings, Snapshot
from chipwise.catalog.offer import Purchase
from chipwise.errors import BadInput, InvalidFile, UnknownName
from chipwise.spelling import fold
from chipwise.units import GIB

TODAY = date(2026, 11, 15)
CHIP_OF = {
    fold(alias): name for alias, name in (("H100-SXM", "H100-SXM"), ("H100", "H100-SXM"), ("L40S", "L40S"), ("T4", "T4"))
}
GOOD = """Name,Chip,Chips,vCPUs,Memory,Disk,Network,Site,Count,Purchase price,Power watts,Hourly cost
dgx,H100,8,224,2TiB,30.7TB,400 Gbit/s,berlin,4,"$300,000",10.2kW,
edge-box,l40s,2,64,512,3840,25Gbps,berlin,10,,900,$1.80/h
edge-box,l40s,2,64,512,3840,25Gbps,oslo,2,,900,$1.60/h
head,,,32,256 GiB,,10Gbps,berlin,,,,
"""


def fetch(path: Path, text: str | bytes = GOOD, **options: str) -> Snapshot:
    file = path / "machines.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    settings = FeedSettings(TODAY, options={"path": str(file)} | options, chip_of=CHIP_OF)
    return inventory.fetch(settings, lambda done, total, what: None)


def test_quantities_are_read_with_their_units(tmp_path: Path) -> None:
    machines = {machine.name: machine for machine in fetch(tmp_path).machines}
    dgx, box = machines["dgx"], machines["edge-box"]
    assert (dgx.provider, dgx.chip, dgx.chips, dgx.vcpus) == ("onprem", "H100-SXM", 8, 224)
    assert (dgx.memory_bytes, dgx.disk_bytes, dgx.network_bytes_per_s) == (2048 * GIB, 30.7e12, 50e9)
    assert (dgx.purchase_usd, dgx.power_w) == (300_000, 10_200)
    assert (box.memory_bytes, box.disk_bytes) == (512 * GIB, 3840e9)
    assert (machines["head"].chip, machines["head"].chips) == (None, None)


def test_a_stated_hourly_cost_is_the_offer(tmp_path: Path) -> None:
    offers = {(offer.machine, offer.region): offer for offer in fetch(tmp_path).offers}
    assert {key: offer.usd_per_hour for key, offer in offers.items()} == {
        ("edge-box", "berlin"): 1.8,
        ("edge-box", "oslo"): 1.6,
    }
    assert offers["edge-box", "berlin"].purchase is Purchase.OWNED
    assert offers["edge-box", "berlin"].notes == "10 owned"


def test_a_machine_without_cost_or_lifetime_is_listed_without_a_price(tmp_path: Path) -> None:
    snapshot = fetch(tmp_path)
    assert snapshot.skipped == ("no hourly cost and no lifetime, so no price: dgx, head",)
    assert [region.name for region in snapshot.regions] == ["berlin", "oslo"]


def test_an_hourly_cost_is_derived_from_purchase_power_and_lifetime(tmp_path: Path) -> None:
    snapshot = fetch(tmp_path, lifetime_years="4", usd_per_kwh="0.20", pue="1.3")
    dgx = next(offer for offer in snapshot.offers if offer.machine == "dgx")
    assert dgx.usd_per_hour == pytest.approx(300_000 / (4 * 8760) + 10.2 * 1.3 * 0.20)
    assert "derived" in dgx.notes
    assert "PUE 1.3" in dgx.notes


@pytest.mark.parametrize("paid", ["", "yes"])
def test_electricity_alone_counts_of_what_is_paid_and_both_costs_are_kept(tmp_path: Path, paid: str) -> None:
    text = f"name,chip,purchase price,power,paid\nbox,h100,$250k,10 kW,{paid}\n"
    snapshot = fetch(tmp_path, text, lifetime_years="4", usd_per_kwh="0.20", pue="1.3")
    (machine,), (offer,) = snapshot.machines, snapshot.offers
    energy = 10 * 1.3 * 0.20
    assert machine.energy_usd_per_hour == pytest.approx(energy)
    assert machine.paid == (paid == "yes")
    assert machine.full_usd_per_hour == pytest.approx(250_000 / (4 * 8760) + energy)
    assert offer.usd_per_hour == pytest.approx(energy if paid else 250_000 / (4 * 8760) + energy)


@pytest.mark.parametrize(
    ("row", "said"), [("box,h100,,,yes", "give power and usd per kwh"), ("box,h100,,10 kW,perhaps", "neither yes nor no")]
)
def test_a_paid_machine_needs_its_electricity(tmp_path: Path, row: str, said: str) -> None:
    with pytest.raises(InvalidFile, match=said):
        fetch(tmp_path, f"name,chip,purchase price,power,paid\n{row}\n")


def test_an_assumed_pue_is_said(tmp_path: Path) -> None:
    dgx = fetch(tmp_path, lifetime_years="4", usd_per_kwh="0.20").offers[0]
    assert dgx.usd_per_hour == pytest.approx(300_000 / (4 * 8760) + 10.2 * 1.5 * 0.20)
    assert "PUE 1.5 (assumed)" in dgx.notes


def test_known_power_without_a_price_of_electricity_is_a_problem_and_not_free(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="usd_per_kwh"):
        fetch(tmp_path, lifetime_years="4")


def test_a_row_may_say_its_own_lifetime(tmp_path: Path) -> None:
    text = "name,purchase price,lifetime years\nbox,8760,2 years\n"
    assert fetch(tmp_path, text).offers[0].usd_per_hour == pytest.approx(0.5)


def test_every_bad_row_is_told_at_once_with_its_line(tmp_path: Path) -> None:
    text = """name,chip,chips,memory,count,hourly cost
a,H1000,8,2TiB,1,1
b,H100,eight,2TiB,1,1
c,H100,8,2 parsecs,1.5,-3
,H100,8,2TiB,1,1
d,,4,2TiB,1,nan
b,H100,8,2TiB,1,1
a,L40S,1,1TiB,1,1
a,L40S,1,1TiB,1,1
"""
    with pytest.raises(InvalidFile) as caught:
        fetch(tmp_path, text)
    found = {(problem.line, problem.field) for problem in caught.value.problems}
    assert found == {
        (2, "chip"),
        (3, "chips"),
        (4, "memory"),
        (4, "count"),
        (4, "hourly cost"),
        (5, "name"),
        (6, "chip"),
        (6, "hourly cost"),
        (9, "name"),
    }
    assert "H100-SXM" in str(caught.value)
    assert "machines.csv:2:" in str(caught.value)


def test_one_name_is_one_kind_of_machine(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="other figures"):
        fetch(tmp_path, "name,site,memory\na,x,1TiB\na,y,2TiB\n")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\n",
        b"name\n",
        b"chip,chips\nH100,8\n",
        b"name,colour\nbox,red\n",
        b"\xff\xfe",
        b'name\n"open',
        b"name\n\x00\n",
        b"name,name\na,b\n",
    ],
)
def test_a_file_that_is_no_inventory_is_invalid(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(InvalidFile):
        fetch(tmp_path, text)


def test_semicolons_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    snapshot = fetch(tmp_path, "\ufeffname;chip;chips;hourly cost\nbox;T4;1;0,5\n".replace("0,5", "0.5"))
    assert snapshot.offers[0].usd_per_hour == 0.5


def test_options_are_checked(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="path=FILE"):
        inventory.fetch(FeedSettings(TODAY), lambda done, total, what: None)
    with pytest.raises(BadInput, match="no file"):
        inventory.fetch(FeedSettings(TODAY, options={"path": str(tmp_path / "none.csv")}), lambda done, total, what: None)
    with pytest.raises(BadInput):
        inventory.fetch(FeedSettings(TODAY, options={"path": str(tmp_path)}), lambda done, total, what: None)
    with pytest.raises(UnknownName, match="lifetime_years"):
        fetch(tmp_path, lifetime="4")
    with pytest.raises(BadInput, match="lifetime_years"):
        fetch(tmp_path, lifetime_years="long")
    assert fetch(tmp_path, provider="lab").provider == "lab"


def test_how_many_there_are_is_kept_by_site(tmp_path: Path) -> None:
    found = fetch(tmp_path, "name,chip,region,count,hourly cost\nbox,h100,berlin,4,2\nbox,h100,paris,2,2\nbox,h100,rome,,2\n")
    machine = found.machines[0]
    assert [machine.owned_in(region) for region in ("berlin", "paris", "rome")] == [4, 2, None]
