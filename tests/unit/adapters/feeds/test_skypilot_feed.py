"""The import of SkyPilot catalogs, in the columns their repository documents."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import pytest

from chipwise.adapters.feeds import skypilot
from chipwise.catalog.feed import FeedSettings, Snapshot
from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import Purchase, Verdict
from chipwise.errors import BadInput, InvalidFile, NoResult, UnknownName
from chipwise.spelling import fold
from chipwise.units import GIB

TODAY = date(2026, 11, 15)
CHIP_OF = {
    fold(alias): name
    for alias, name in (
        ("A100-80", "A100-80"),
        ("A100", "A100-40"),
        ("H100-SXM", "H100-SXM"),
        ("V100-32", "V100-32"),
        ("T4", "T4"),
    )
}
AWS = """InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone
p4de.24xlarge,A100-80GB,8.0,96.0,1152.0,"{'Gpus': [{'Name': 'A100-80GB', 'Count': 8.0}]}",27.44705,9.5,us-east-1,use1-az1
p4de.24xlarge,A100-80GB,8.0,96.0,1152.0,"{'Gpus': [{'Name': 'A100-80GB', 'Count': 8.0}]}",27.44705,11.25,us-east-1,use1-az6
p4de.24xlarge,A100-80GB,8.0,96.0,1152.0,"{'Gpus': [{'Name': 'A100-80GB', 'Count': 8.0}]}",27.44705,,us-west-2,usw2-az1
p3dn.24xlarge,V100-32GB,8.0,96.0,768.0,,31.212,9.3,us-east-1,use1-az1
odd.large,Abacus,1.0,2.0,4.0,,0.5,,us-east-1,use1-az1
c7i.large,,,2.0,4.0,,0.08925,0.08925,us-east-1,use1-az1
broken.large,,,2.0,4.0,,nan,-1,us-east-1,use1-az1
"""
GCP = """InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,SpotPrice
a2-highgpu-1g,12.0,85.0,,,,us-central1,us-central1-a,0.73948,0.36975
a2-highgpu-1g,12.0,85.0,,,,us-central1,us-central1-b,0.73948,0.36975
a2-highgpu-2g,24.0,170.0,,,,us-central1,us-central1-a,1.47895,0.7395
n1-standard-8,8.0,30.0,,,,us-central1,us-central1-a,0.38,0.08
,,,A100,1.0,,us-central1,us-central1-a,2.93391,1.46
,,,T4,1.0,,us-central1,us-central1-a,0.35,0.14
,,,T4,1.0,,us-central1,us-central1-b,0.35,0.11
TPU-VM,,,tpu-v5litepod-8,1.0,,us-central1,us-central1-a,9.6,2.73774
"""
KNOWN = (
    Machine("gcp", "a2-highgpu-1g", "A100-40", 1, vcpus=12, memory_bytes=85 * GIB),
    Machine("gcp", "n1-standard-8+1xT4", "T4", 1, vcpus=8, memory_bytes=30 * GIB),
    Machine("gcp", "tpu-v5litepod-8", "TPU-v5e", 8),
)


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    for name, text in (("v7/aws", AWS.replace("27.44705", "99.0")), ("v8/aws", AWS), ("v8/gcp", GCP)):
        (tmp_path / "catalogs" / name).mkdir(parents=True)
        (tmp_path / "catalogs" / name / "vms.csv").write_text(text)
    return tmp_path


def fetch(path: Path, regions: tuple[str, ...] = (), **options: str) -> Snapshot:
    settings = FeedSettings(TODAY, regions, {"path": str(path)} | options, CHIP_OF, KNOWN)
    return skypilot.fetch(settings, lambda done, total, what: None)


def prices(snapshot: Snapshot) -> dict[tuple[str, str, Purchase], tuple[float, float | None]]:
    return {(o.machine, o.region, o.purchase): (o.usd_per_hour, o.usd_per_hour_max) for o in snapshot.offers}


def test_zones_become_the_cheapest_and_the_dearest_of_a_region(catalog: Path) -> None:
    found = prices(fetch(catalog, cloud="aws"))
    assert found["p4de.24xlarge", "us-east-1", Purchase.SPOT] == (9.5, 11.25)
    assert found["p4de.24xlarge", "us-east-1", Purchase.ON_DEMAND] == (27.44705, None)
    assert ("p4de.24xlarge", "us-west-2", Purchase.SPOT) not in found


def test_machines_come_with_chip_cores_and_memory(catalog: Path) -> None:
    machines = {machine.name: machine for machine in fetch(catalog, cloud="aws").machines}
    p4de = machines["p4de.24xlarge"]
    assert (p4de.provider, p4de.chip, p4de.chips, p4de.vcpus, p4de.memory_bytes) == ("aws", "A100-80", 8, 96, 1152 * GIB)
    assert machines["p3dn.24xlarge"].chip == "V100-32"
    assert (machines["c7i.large"].chip, machines["c7i.large"].chips) == (None, None)


def test_what_cannot_be_used_is_told(catalog: Path) -> None:
    skipped = fetch(catalog, cloud="aws").skipped
    assert "the catalog has no chip for Abacus: odd.large" in skipped
    assert "no usable price: line 8" in skipped


def test_spot_that_saves_nothing_is_marked(catalog: Path) -> None:
    spot = next(o for o in fetch(catalog, cloud="aws").offers if o.machine == "c7i.large" and o.purchase is Purchase.SPOT)
    assert spot.verdict is Verdict.NO_SAVING


def test_gcp_hosts_and_accelerators_are_put_together(catalog: Path) -> None:
    snapshot = fetch(catalog, cloud="gcp")
    found = prices(snapshot)
    assert found["a2-highgpu-1g", "us-central1", Purchase.ON_DEMAND][0] == pytest.approx(3.67339)
    assert found["n1-standard-8+1xT4", "us-central1", Purchase.SPOT] == pytest.approx((0.19, 0.22))
    assert found["tpu-v5litepod-8", "us-central1", Purchase.ON_DEMAND] == (9.6, None)
    assert {machine.name for machine in snapshot.machines} == {machine.name for machine in KNOWN}


def test_a_gcp_host_is_never_sold_without_its_accelerator(catalog: Path) -> None:
    snapshot = fetch(catalog, cloud="gcp")
    assert not any(offer.machine in ("a2-highgpu-2g", "n1-standard-8") for offer in snapshot.offers)
    assert any("priced apart" in line and "a2-highgpu-2g" in line for line in snapshot.skipped)


def test_every_layout_of_the_directory_is_found(catalog: Path, tmp_path: Path) -> None:
    (tmp_path / "flat").mkdir()
    (tmp_path / "flat" / "lambda.csv").write_text(AWS)
    (tmp_path / "deep" / "oci").mkdir(parents=True)
    (tmp_path / "deep" / "oci" / "vms.csv").write_text(AWS)
    assert [cloud for cloud, _ in skypilot.parts({"path": str(catalog)})] == ["aws", "gcp"]
    assert [cloud for cloud, _ in skypilot.parts({"path": str(tmp_path / "flat")})] == ["lambda"]
    assert fetch(tmp_path / "flat").provider == "lambda"
    assert fetch(tmp_path / "deep").provider == "oci"
    assert fetch(catalog, cloud="AWS").offers[-1].usd_per_hour != 99.0


def test_prices_are_as_old_as_the_file_unless_said(catalog: Path) -> None:
    file = catalog / "catalogs" / "v8" / "aws" / "vms.csv"
    os.utime(file, (1_780_000_000, 1_780_000_000))
    assert {offer.as_of for offer in fetch(catalog, cloud="aws").offers} == {"2026-05-28"}
    assert {offer.as_of for offer in fetch(catalog, cloud="aws", as_of="2026-08-22").offers} == {"2026-08-22"}
    with pytest.raises(BadInput, match="date"):
        fetch(catalog, cloud="aws", as_of="yesterday")


def test_a_region_can_be_chosen(catalog: Path) -> None:
    assert {offer.region for offer in fetch(catalog, ("us-west-2",), cloud="aws").offers} == {"us-west-2"}
    with pytest.raises(NoResult, match="mars"):
        fetch(catalog, ("mars",), cloud="aws")


def test_a_wrong_path_or_cloud_is_refused_with_a_remedy(catalog: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="path=DIR"):
        skypilot.fetch(FeedSettings(TODAY), lambda done, total, what: None)
    with pytest.raises(BadInput, match="cloud=aws"):
        fetch(catalog)
    with pytest.raises(UnknownName, match="Did you mean aws"):
        fetch(catalog, cloud="awz")
    with pytest.raises(BadInput, match="not a directory"):
        fetch(tmp_path / "nowhere")
    for odd in ("~nobody-at-all/x", "a\0b"):
        with pytest.raises(BadInput):
            skypilot.parts({"path": str(odd)})
    (tmp_path / "bare").mkdir()
    with pytest.raises(BadInput, match="no CLOUD"):
        fetch(tmp_path / "bare")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n",
        b"a,b\n1,2\n",
        AWS.encode().replace(b"Region", b"Place"),
        b"\xff\xfe\x00broken",
        b'InstanceType,"unfinished\n',
        b"Region,Region\n1,2",
    ],
)
def test_a_file_that_is_no_catalog_is_invalid(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "aws.csv").write_bytes(content)
    with pytest.raises((InvalidFile, NoResult)):
        fetch(tmp_path)
