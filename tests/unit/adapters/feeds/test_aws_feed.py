"""The AWS feed against a local server in EC2's wire format, for what moto does not show: real spot prices, regions
that are not opted in, broken answers. The Price List's products are read from their documented texts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from chipwise.adapters.feeds import aws
from chipwise.adapters.wire.ec2 import read_machine
from chipwise.adapters.wire.pricelist import Product, read_product
from chipwise.catalog.feed import FeedSettings, Snapshot
from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import Purchase, Verdict
from chipwise.errors import BadInput, ChipwiseError, NotAllowed, OutsideFailed, TryLater, UnknownName
from chipwise.spelling import fold
from chipwise.units import GIB
from loopback import Reply, Serve

TODAY = date(2026, 11, 15)
CHIP_OF = {fold(name): name for name in ("A100-40", "A100-80", "V100-16", "V100-32", "H100-SXM", "Gaudi1", "Radeon-Pro-V520")}
CHIP_OF |= {fold("A100"): "A100-40", fold("V100"): "V100-16", fold("HL-205"): "Gaudi1", fold("V520"): "Radeon-Pro-V520"}
SPOT = (("g6.xlarge", "use1-az1", "0.30"), ("g6.xlarge", "use1-az2", "0.45"), ("g6.2xlarge", "use1-az1", "0.00"))


def xml(action: str, inner: str) -> Reply:
    return Reply(
        f'<{action}Response xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r</requestId>{inner}</{action}Response>'
    )


def refusal(code: str, status: int = 401) -> Reply:
    error = f"<Error><Code>{code}</Code><Message>said no</Message></Error>"
    return Reply(f"<Response><Errors>{error}</Errors><RequestID>r</RequestID></Response>", status)


def product_text(machine: str, usd: str, **changes: object) -> str:
    attributes = {"instanceType": machine, "regionCode": "us-east-1", "operatingSystem": "Linux", "tenancy": "Shared"}
    dimensions = {"S.J.6": {"unit": "Hrs", "pricePerUnit": {"USD": usd}}}
    terms = {"OnDemand": {"S.J": {"effectiveDate": "2026-01-01T00:00:00Z", "priceDimensions": dimensions}}}
    return json.dumps({"product": {"attributes": attributes | changes}, "terms": terms})


def answer(asked: Any) -> Reply:
    match asked.query.get("Action"):
        case "DescribeRegions":
            items = "".join(f"<item><regionName>{name}</regionName></item>" for name in ("us-east-1", "eu-west-1"))
            return xml("DescribeRegions", f"<regionInfo>{items}</regionInfo>")
        case "DescribeInstanceTypeOfferings":
            if "/eu-south-1/" in asked.headers["Authorization"]:
                return refusal("AuthFailure")
            items = "".join(f"<item><instanceType>g6.{size}</instanceType></item>" for size in ("xlarge", "2xlarge"))
            return xml("DescribeInstanceTypeOfferings", f"<instanceTypeOfferingSet>{items}</instanceTypeOfferingSet>")
        case "DescribeInstanceTypes":
            items = "".join(f"<item><instanceType>g6.{size}</instanceType></item>" for size in ("xlarge", "2xlarge"))
            return xml("DescribeInstanceTypes", f"<instanceTypeSet>{items}</instanceTypeSet>")
        case "DescribeSpotPriceHistory":
            items = "".join(
                f"<item><instanceType>{machine}</instanceType><productDescription>Linux/UNIX</productDescription>"
                f"<spotPrice>{price}</spotPrice><timestamp>{when}</timestamp><availabilityZone>{zone}</availabilityZone></item>"
                for machine, zone, price in SPOT
                for when, price in (("2026-11-14T00:00:00.000Z", "9.99"), ("2026-11-15T00:00:00.000Z", price))
            )
            return xml("DescribeSpotPriceHistory", f"<spotPriceHistorySet>{items}</spotPriceHistorySet>")
    texts = [
        product_text("g6.xlarge", "0.8048"),
        product_text("g6.2xlarge", "0.9776"),
        "{broken",
        product_text("m7i.large", "0.1"),
    ]
    return Reply(json.dumps({"FormatVersion": "aws_v1", "PriceList": texts}))


@pytest.fixture
def server(serve: Serve) -> Iterator[Any]:
    with serve(answer) as running:
        yield running


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_REGION", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test"), ("AWS_CONFIG_FILE", "/nonexistent")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # botocore's waits between attempts


def fetch(server: Any, regions: tuple[str, ...] = ("us-east-1",), known: tuple[Machine, ...] = (), **options: str) -> Snapshot:
    given = {"endpoint": server.url, "pricing_endpoint": server.url, "retries": "2", "families": "g6"} | options
    return aws.fetch(FeedSettings(TODAY, regions, given, CHIP_OF, known), lambda done, total, what: None)


def test_spot_is_the_newest_price_of_the_cheapest_and_of_the_dearest_zone(server: Any) -> None:
    snapshot = fetch(server)
    spot = [offer for offer in snapshot.offers if offer.purchase is Purchase.SPOT]
    assert [(o.machine, o.usd_per_hour, o.usd_per_hour_max, o.verdict) for o in spot] == [
        ("g6.xlarge", 0.30, 0.45, Verdict.FINE)
    ]
    assert "spot price is missing, zero or absurd: g6.2xlarge in use1-az1" in snapshot.skipped
    assert "a product of the Price List: not JSON: us-east-1" in snapshot.skipped


def test_all_enabled_regions_are_asked_when_none_is_named(server: Any) -> None:
    assert {offer.region for offer in fetch(server, ()).offers} == {"us-east-1", "eu-west-1"}
    assert server.asked[0].query["Action"] == "DescribeRegions"


def test_a_region_without_opt_in_is_skipped_and_the_rest_comes(server: Any) -> None:
    snapshot = fetch(server, ("us-east-1", "eu-south-1"))
    assert {offer.region for offer in snapshot.offers} == {"us-east-1"}
    assert "the account is not opted in to the region: eu-south-1" in snapshot.skipped


def test_when_every_region_refuses_the_refresh_ends(server: Any) -> None:
    with pytest.raises(NotAllowed, match="said no"):
        fetch(server, ("eu-south-1",))


def test_a_machine_the_catalog_holds_as_retired_stays_so(server: Any) -> None:
    known = (Machine("aws", "g6.xlarge", "L4", 1, retired=True),)
    assert {m.name: m.retired for m in fetch(server, known=known).machines} == {"g6.xlarge": True, "g6.2xlarge": False}


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply("<html><body>Sign in</body></html>"), OutsideFailed),
        (Reply("not xml at all"), OutsideFailed),
        (Reply("<DescribeInstanceTypeOfferingsResponse>", cut=True), OutsideFailed),
        (refusal("UnauthorizedOperation", 403), NotAllowed),
        (refusal("RequestLimitExceeded", 503), TryLater),
        (refusal("InternalError", 500), TryLater),
        (refusal("SomethingNew", 400), OutsideFailed),
        (Reply("", 502), TryLater),
    ],
)
def test_a_failing_region_ends_the_refresh_with_one_of_our_errors(
    serve: Serve, reply: Reply, error: type[ChipwiseError]
) -> None:
    def failing(asked: Any) -> Reply:
        return reply if asked.query.get("Action") == "DescribeInstanceTypeOfferings" else answer(asked)

    with serve(failing) as server, pytest.raises(error) as caught:
        fetch(server)
    assert type(caught.value) is error
    assert len(str(caught.value)) < 700


def test_a_server_that_repeats_its_page_token_ends_the_refresh(serve: Serve) -> None:
    def endless(asked: Any) -> Reply:
        return xml("DescribeInstanceTypeOfferings", "<instanceTypeOfferingSet/><nextToken>again</nextToken>")

    with serve(endless) as server, pytest.raises(OutsideFailed):
        fetch(server)


def test_options_are_checked_before_anything_is_asked(server: Any) -> None:
    with pytest.raises(UnknownName, match="endpoint"):
        fetch(server, endpint="x")
    with pytest.raises(BadInput, match="retries"):
        fetch(server, retries="many")
    with pytest.raises(BadInput, match="web address"):
        fetch(server, endpoint="localhost:5000")
    with pytest.raises(UnknownName, match="AWS profile is called 'nobody'"):
        fetch(server, profile="nobody")
    assert not server.asked


def test_a_broken_configuration_is_told(server: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(UnknownName, match="AWS profile is called 'nobody'"):
        fetch(server)
    (tmp_path / "config").write_text("[profile x\nregion")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    with pytest.raises(BadInput, match="AWS configuration"):
        fetch(server)


@pytest.mark.parametrize(
    ("name", "families", "expected"),
    [
        ("p5.48xlarge", ("p",), True),
        ("p6-b200.48xlarge", ("p",), True),
        ("gr6.4xlarge", ("g",), False),
        ("gr6.4xlarge", ("gr",), True),
        ("g6e.xlarge", ("g6",), True),
        ("g6.xlarge", ("g6e",), False),
        ("m7i-flex.large", ("m7",), True),
        ("u-6tb1.metal", ("u",), False),
        ("u-6tb1.metal", ("all",), True),
        ("", ("all",), False),
    ],
)
def test_families_are_series_generations_or_families(name: str, families: tuple[str, ...], expected: bool) -> None:
    assert aws.in_families(name, families) is expected


def gpu(name: str, mib: object, count: object = 8, maker: str = "NVIDIA") -> dict[str, Any]:
    gpus = [{"Name": name, "Manufacturer": maker, "Count": count, "MemoryInfo": {"SizeInMiB": mib}}]
    return {"InstanceType": "x1.large", "GpuInfo": {"Gpus": gpus}}


@pytest.mark.parametrize(
    ("entry", "chip"),
    [
        (gpu("A100", 40960), "A100-40"),
        (gpu("A100", 81920), "A100-80"),
        (gpu("V100", 16384), "V100-16"),
        (gpu("V100", 32768), "V100-32"),
        (gpu("H100", 81920), "H100-SXM"),
        (gpu("Gaudi HL-205", 32768, maker="Habana"), "Gaudi1"),
        (gpu("Radeon Pro V520", 8192, maker="AMD"), "Radeon-Pro-V520"),
        (gpu("A100", 163840), None),
        (gpu("Abacus", 1), None),
    ],
)
def test_the_memory_tells_parts_of_one_name_apart(entry: dict[str, Any], chip: str | None) -> None:
    machine, problem = read_machine(entry, CHIP_OF, TODAY)
    assert machine.chip == chip
    assert (problem is None) is (chip is not None)
    assert machine.chips == 8


@pytest.mark.parametrize(
    "entry",
    [
        {"InstanceType": "x"},
        {"InstanceType": "x", "GpuInfo": None, "MemoryInfo": [], "VCpuInfo": {"DefaultVCpus": "two"}},
        {"InstanceType": "x", "GpuInfo": {"Gpus": [None, {}, {"Name": ""}]}, "NetworkInfo": {"NetworkCards": [1]}},
        {"InstanceType": "x", "NetworkInfo": {"NetworkPerformance": "High"}, "MemoryInfo": {"SizeInMiB": float("inf")}},
    ],
)
def test_missing_and_wrong_fields_are_unknown_and_not_zero(entry: Mapping[str, Any]) -> None:
    machine, problem = read_machine(entry, CHIP_OF, TODAY)
    assert (machine.chip, machine.chips, machine.vcpus, machine.memory_bytes, machine.network_bytes_per_s) == (None,) * 5
    assert problem is None


def test_network_is_the_stated_total_and_else_the_sum_of_the_cards() -> None:
    cards = [{"PeakBandwidthInGbps": 200.0, "BaselineBandwidthInGbps": 100.0}] * 2
    network: dict[str, object] = {"NetworkCards": cards}
    entry = {"InstanceType": "x", "MemoryInfo": {"SizeInMiB": 1024}, "NetworkInfo": network}
    machine, _ = read_machine(entry, {}, TODAY)
    assert (machine.network_bytes_per_s, machine.network_baseline_bytes_per_s, machine.memory_bytes) == (50e9, 25e9, GIB)
    network["NetworkPerformance"] = "4x 100 Gigabit"
    machine, _ = read_machine(entry, {}, TODAY)
    assert (machine.network_bytes_per_s, machine.network_baseline_bytes_per_s) == (50e9, 50e9)


@pytest.mark.parametrize("text", ["", "{", "null", "[]", "7", "[" * 100_000, None, '{"product": []}', product_text("", "1.0")])
def test_a_product_that_cannot_be_read_is_a_reason(text: object) -> None:
    assert isinstance(read_product(text, TODAY), str)


def test_a_product_of_another_system_is_not_taken_for_linux() -> None:
    assert read_product(product_text("g6.xlarge", "1.0", operatingSystem="Windows"), TODAY) == "operatingSystem is Windows"
    assert (
        read_product(product_text("p5.48xlarge", "0", marketoption="CapacityBlock"), TODAY) == "marketoption is CapacityBlock"
    )


@pytest.mark.parametrize("usd", ["0.0000000000", "-1", "nan", "1e9", "free", "9" * 60])
def test_a_product_without_a_usable_price_has_none_and_says_so(usd: str) -> None:
    product = read_product(product_text("g6.xlarge", usd), TODAY)
    assert isinstance(product, Product)
    assert (dict(product.prices), product.unusable) == ({}, (Purchase.ON_DEMAND,))


def test_convertible_partial_and_future_terms_are_passed_over() -> None:
    def term(length: str, option: str, kind: str, usd: str, since: str = "2026-01-01") -> dict[str, Any]:
        named = {"LeaseContractLength": length, "PurchaseOption": option, "OfferingClass": kind}
        dimensions = {"d": {"unit": "Hrs", "pricePerUnit": {"USD": usd}}}
        return {"effectiveDate": f"{since}T00:00:00Z", "termAttributes": named, "priceDimensions": dimensions}

    item = json.loads(product_text("g6.xlarge", "1.0"))
    item["terms"]["Reserved"] = {
        "a": term("1yr", "No Upfront", "convertible", "0.1"),
        "b": term("1yr", "Partial Upfront", "standard", "0.2"),
        "c": term("1yr", "No Upfront", "standard", "0.6"),
        "d": term("1yr", "No Upfront", "standard", "0.3", since="2027-01-01"),
        "e": term("1yr", "No Upfront", "standard", "0.7", since="2025-01-01"),
        "f": "not a term",
    }
    product = read_product(json.dumps(item), TODAY)
    assert isinstance(product, Product)
    assert product.prices == {Purchase.ON_DEMAND: 1.0, Purchase.RESERVED_1Y: 0.6}
