"""The GCP feed against a local server that answers in the documented format of the Cloud Billing Catalog.

Prices are those of us-central1 in 2026, so that the sums can be held against published prices of whole machines.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

from chipwise.adapters.feeds import gcp
from chipwise.adapters.wire import http
from chipwise.adapters.wire.gcpskus import SkuPart, read_description
from chipwise.catalog.feed import FeedSettings, Snapshot
from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import Purchase
from chipwise.errors import BadInput, ChipwiseError, NoResult, NotAllowed, OutsideFailed, TryLater
from chipwise.units import GB, GIB
from loopback import Reply, Serve

TODAY = date(2026, 11, 15)
KEY = "test-key-0123"


def sku(
    description: str, group: str, usd: float, usage: str = "OnDemand", unit: str = "h", **changes: object
) -> dict[str, Any]:
    units, nanos = divmod(round(usd * 1e9), 10**9)
    price = {"currencyCode": "USD", "units": str(units), "nanos": nanos}
    expression = {"usageUnit": unit, "displayQuantity": 1, "tieredRates": [{"startUsageAmount": 0, "unitPrice": price}]}
    return {
        "name": "services/6F81-5844-456A/skus/0000-0000-0000",
        "skuId": "0000-0000-0000",
        "description": description,
        "category": {"serviceDisplayName": "Compute Engine", "resourceGroup": group, "usageType": usage},
        "serviceRegions": ["us-central1", "us-east1"],
        "pricingInfo": [{"effectiveTime": "2026-11-01T00:00:00Z", "summary": "", "pricingExpression": expression}],
        "serviceProviderName": "Google",
    } | changes


SKUS = [
    sku("A2 Instance Core running in Americas", "CPU", 0.031611),
    sku("A2 Instance Ram running in Americas", "RAM", 0.004237, unit="GiBy.h"),
    sku("Nvidia Tesla A100 GPU running in Americas", "GPU", 2.933908),
    sku("Spot Preemptible A2 Instance Core running in Americas", "CPU", 0.0158055, "Preemptible"),
    sku("Spot Preemptible A2 Instance Ram running in Americas", "RAM", 0.0021185, "Preemptible", "GiBy.h"),
    sku("Nvidia Tesla A100 GPU attached to Spot Preemptible VMs running in Americas", "GPU", 1.46, "Preemptible"),
    sku("Commitment v1: A2 Cpu in Americas for 1 Year", "CPU", 0.019915, "Commit1Yr"),
    sku("Commitment v1: A2 Ram in Americas for 1 Year", "RAM", 0.002669, "Commit1Yr", "GiBy.h"),
    sku("Commitment v1: Nvidia Tesla A100 GPU running in Americas for 1 Year", "GPU", 1.848362, "Commit1Yr"),
    sku("Nvidia Tesla A100 80GB GPU running in Americas", "GPU", 3.928),
    sku("Reserved Nvidia Tesla A100 GPU in Americas", "GPU", 0.0),
    sku("DWS Defined Duration Nvidia Tesla A100 GPU running in Americas", "GPU", 0.5),
    sku("SSD backed Local Storage", "LocalSSD", 0.08, unit="GiBy.mo"),
    sku("A4 Nvidia B200 (1 gpu slice) running in Americas", "GPU", 16.11),
    sku("N1 Predefined Instance Core running in Americas", "N1Standard", 0.031611),
    sku("N1 Predefined Instance Ram running in Americas", "N1Standard", 0.004237, unit="GiBy.h"),
    sku("Nvidia Tesla T4 GPU running in Americas", "GPU", 0.35),
    sku("TpuV5e running in Americas", "TPU", 1.2),
    sku("C4A Arm Instance Core running in Americas", "CPU", 9.0),
    sku("Network Internet Egress from Americas to China", "PremiumInternetEgress", 0.1, unit="GiBy"),
]
A2 = Machine("gcp", "a2-highgpu-1g", "A100-40", 1, vcpus=12, memory_bytes=85 * GIB)
KNOWN = (
    A2,
    Machine("gcp", "a2-ultragpu-1g", "A100-80", 1, vcpus=12, memory_bytes=170 * GIB, disk_bytes=375 * GB),
    Machine("gcp", "a4-highgpu-8g", "B200", 8, vcpus=224, memory_bytes=3968 * GIB),
    Machine("gcp", "n1-standard-8+1xT4", "T4", 1, vcpus=8, memory_bytes=30 * GIB),
    Machine("gcp", "tpu-v5litepod-8", "TPU-v5e", 8),
    Machine("gcp", "a3-highgpu-8g", "H100-SXM", 8, vcpus=208, memory_bytes=1872 * GIB),
    Machine("gcp", "x9-odd-1g", "H100-SXM", 1, vcpus=8, memory_bytes=30 * GIB),
)


def three_to_the_page(asked: Any) -> Reply:
    if asked.headers.get("X-Goog-Api-Key") != KEY:
        body = {"error": {"code": 403, "message": "The caller does not have permission", "status": "PERMISSION_DENIED"}}
        return Reply(json.dumps(body), 403)
    start = int(asked.query.get("pageToken", "0"))
    following = str(start + 3) if start + 3 < len(SKUS) else ""
    return Reply(json.dumps({"skus": SKUS[start : start + 3], "nextPageToken": following}))


@pytest.fixture
def server(serve: Serve) -> Iterator[Any]:
    with serve(three_to_the_page) as running:
        yield running


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "pause", lambda seconds: None)


def fetch(server: Any, known: tuple[Machine, ...] = KNOWN, regions: tuple[str, ...] = (), **options: str) -> Snapshot:
    settings = FeedSettings(TODAY, regions, {"endpoint": server.url, "api_key": KEY} | options, known=known)
    return gcp.fetch(settings, lambda done, total, what: None)


def prices(snapshot: Snapshot, region: str = "us-central1") -> dict[tuple[str, Purchase], float]:
    return {(offer.machine, offer.purchase): offer.usd_per_hour for offer in snapshot.offers if offer.region == region}


def test_a_machine_is_the_sum_of_its_parts(server: Any) -> None:
    found = prices(fetch(server))
    assert found["a2-highgpu-1g", Purchase.ON_DEMAND] == pytest.approx(3.673385, abs=1e-6)
    assert found["a2-highgpu-1g", Purchase.SPOT] == pytest.approx(1.8297385, abs=1e-6)
    assert found["a2-highgpu-1g", Purchase.RESERVED_1Y] == pytest.approx(2.314207, abs=1e-5)
    assert found["n1-standard-8+1xT4", Purchase.ON_DEMAND] == pytest.approx(0.73, abs=1e-5)


def test_local_ssd_that_comes_with_a_machine_is_in_its_price(server: Any) -> None:
    host_and_gpu = 12 * 0.031611 + 170 * 0.004237 + 3.928
    assert prices(fetch(server))["a2-ultragpu-1g", Purchase.ON_DEMAND] == pytest.approx(host_and_gpu + 375 * 0.08 / 730)


def test_slices_and_tpu_chips_hold_their_host(server: Any) -> None:
    found = prices(fetch(server))
    assert found["a4-highgpu-8g", Purchase.ON_DEMAND] == pytest.approx(8 * 16.11)
    assert found["tpu-v5litepod-8", Purchase.ON_DEMAND] == pytest.approx(8 * 1.2)


def test_a_machine_with_a_missing_part_is_skipped_with_the_part(server: Any) -> None:
    snapshot = fetch(server)
    assert not any(offer.machine == "a3-highgpu-8g" for offer in snapshot.offers)
    assert any("H100 80GB gpu" in line and "a3-highgpu-8g" in line for line in snapshot.skipped)
    assert any("no SKU is known" in line and "x9-odd-1g" in line for line in snapshot.skipped)
    assert {machine.name for machine in snapshot.machines} == {offer.machine for offer in snapshot.offers}


def test_all_pages_are_read_and_the_key_stays_out_of_the_address(server: Any) -> None:
    fetch(server)
    assert len(server.asked) == 7
    assert server.asked[0].path == "/v1/services/6F81-5844-456A/skus"
    assert all(KEY not in str(asked.query) for asked in server.asked)


def test_regions_can_be_chosen(server: Any) -> None:
    assert {offer.region for offer in fetch(server, regions=("us-east1",)).offers} == {"us-east1"}
    with pytest.raises(NoResult, match="mars-1"):
        fetch(server, regions=("mars-1",))


def test_without_a_key_it_says_where_to_put_one(server: Any) -> None:
    with pytest.raises(NotAllowed, match="GOOGLE_API_KEY"):
        fetch(server, api_key="")
    with pytest.raises(NotAllowed, match="does not have permission") as caught:
        fetch(server, api_key="wrong")
    assert "wrong" not in str(caught.value)
    with pytest.raises(BadInput):
        fetch(server, api_key="two\nlines")


def test_without_known_machines_there_is_nothing_to_price(server: Any) -> None:
    with pytest.raises(NoResult, match="parts"):
        fetch(server, known=())


def test_failures_that_pass_are_tried_again(server: Any) -> None:
    server.first = [Reply("", 503), Reply("<html>", 200), Reply("{", cut=True)]
    assert fetch(server).offers


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply("<html>"), OutsideFailed),
        (Reply('{"skus": [{"descr'), OutsideFailed),
        (Reply("{}"), OutsideFailed),
        (Reply('{"skus": {}}'), OutsideFailed),
        (Reply('{"skus": [], "nextPageToken": 7}'), OutsideFailed),
        (Reply(json.dumps({"skus": [sku("A2 Instance Core running in X", "CPU", 1.0), 3, None]})), NoResult),
        (Reply("", 429), TryLater),
        (Reply(json.dumps({"skus": SKUS[:3]}).replace("USD", "EUR")), OutsideFailed),
    ],
)
def test_a_bad_answer_is_one_of_our_errors(serve: Serve, reply: Reply, error: type[ChipwiseError]) -> None:
    with serve(lambda asked: reply) as server, pytest.raises(error) as caught:
        fetch(server, retries="2")
    assert caught.value.remedy


def test_a_page_token_that_returns_ends_the_refresh(serve: Serve) -> None:
    with serve(lambda asked: Reply('{"skus": [], "nextPageToken": "same"}')) as server:
        with pytest.raises(OutsideFailed, match="no end"):
            fetch(server)
        assert len(server.asked) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"pricingInfo": []},
        {"pricingInfo": [{"effectiveTime": "2030-01-01T00:00:00Z"}]},
        {"pricingInfo": [{"pricingExpression": {"usageUnit": "h", "tieredRates": []}}]},
        {
            "pricingInfo": [
                {"pricingExpression": {"usageUnit": "h", "tieredRates": [{"unitPrice": {"units": "-1", "nanos": 0}}]}}
            ]
        },
        {
            "pricingInfo": [
                {"pricingExpression": {"usageUnit": "h", "tieredRates": [{"unitPrice": {"units": "x" * 99, "nanos": "y"}}]}}
            ]
        },
        {
            "pricingInfo": [
                {"pricingExpression": {"usageUnit": "mo", "tieredRates": [{"unitPrice": {"units": "1", "nanos": 0}}]}}
            ]
        },
        {"serviceRegions": "everywhere"},
        {"category": None},
    ],
)
def test_a_gpu_without_a_usable_price_leaves_its_machine_without_one(serve: Serve, change: dict[str, Any]) -> None:
    skus = [*SKUS[:2], SKUS[2] | change, *SKUS[14:17]]
    with serve(lambda asked: Reply(json.dumps({"skus": skus}))) as server:
        found = prices(fetch(server))
    assert set(found) == {("n1-standard-8+1xT4", Purchase.ON_DEMAND)}


@pytest.mark.parametrize(
    ("description", "group", "part"),
    [
        ("A3Plus Instance Core running in Iowa", "CPU", SkuPart("core", "a3plus")),
        ("N2D AMD Instance Ram running in Hong Kong", "RAM", SkuPart("ram", "n2d")),
        ("Commitment v1: Cpu in Americas for 3 Years", "CPU", SkuPart("core", "n1")),
        ("Spot Preemptible C4A Arm Instance Core running in Salt Lake City", "CPU", SkuPart("core", "c4a")),
        ("Nvidia H100 80GB Plus GPU running in Americas", "GPU", SkuPart("gpu", "h100 80gb plus")),
        ("H200 141GB GPU running in Americas", "GPU", SkuPart("gpu", "h200 141gb")),
        ("RTX 6000 96GB attached to Spot Preemptible VMs running in Iowa", "GPU", SkuPart("gpu", "rtx 6000 96gb")),
        ("Nvidia L4 GPU attached to Spot Preemptible VMs running in Hong Kong", "GPU", SkuPart("gpu", "l4")),
        ("Commitment v1: Nvidia L4 GPU running in Frankfurt for 1 Year", "GPU", SkuPart("gpu", "l4")),
        ("A4X Nvidia GB200 (1 gpu slice) running in Americas", "GPU", SkuPart("slice", "a4x")),
        ("TpuV6e attached to Spot Preemptible VMs running in Americas", "TPU", SkuPart("tpu", "v6e")),
        ("TPU7x running in Americas", "TPU", SkuPart("tpu", "v7x")),
        ("SSD backed Local Storage attached to Spot Preemptible VMs in Iowa", "LocalSSD", SkuPart("ssd", "")),
        ("Commitment v1: Local SSD In Iowa for 1 Year", "LocalSSD", SkuPart("ssd", "")),
        ("Storage PD Capacity in Iowa", "PDStandard", None),
        ("E2 Instance Core", "Network", None),
        ("", "GPU", None),
    ],
)
def test_descriptions_are_read_as_google_writes_them(description: str, group: str, part: SkuPart | None) -> None:
    assert read_description(description, group) == part
