"""A refresh from AWS: the real boto3 against a running moto server, and the Price List from a local server.

moto has instance types, offerings and spot history; it has no Price List, and every spot price it gives is 0.00001.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from chipwise.adapters.feeds import aws
from chipwise.adapters.stores import snapshots
from chipwise.catalog.feed import FeedSettings, Snapshot
from chipwise.catalog.offer import Purchase, Verdict
from chipwise.errors import NoResult, NotAllowed, OutsideFailed, TryLater, UnknownName
from chipwise.spelling import fold
from chipwise.units import GB, GIB, MIB
from command import Chipwise

pytest.importorskip("moto")

TODAY = date(2026, 11, 15)
REGIONS = ("us-east-1", "us-east-2")
CHIPS = (
    "A100-40",
    "A100-80",
    "H100-SXM",
    "H200",
    "B200",
    "L4",
    "L40S",
    "T4",
    "T4G",
    "A10G",
    "V100-32",
    "Inferentia1",
    "Inferentia2",
    "Trainium1",
    "Trainium2",
    "VU47P",
    "Alveo-U30",
    "RTX-PRO-6000-SE",
    "RTX-PRO-4500-SE",
)
CHIP_OF = {fold(name): name for name in CHIPS} | {
    fold(alias): name
    for alias, name in (
        ("A100", "A100-40"),
        ("H100", "H100-SXM"),
        ("Inferentia", "Inferentia1"),
        ("Trainium", "Trainium1"),
        ("U30", "Alveo-U30"),
        ("RTX PRO Server 6000", "RTX-PRO-6000-SE"),
        ("RTX PRO 4500 Blackwell Server Edition", "RTX-PRO-4500-SE"),
    )
}
ON_DEMAND = {"p5.48xlarge": 55.04, "p4d.24xlarge": 21.957642, "g6.xlarge": 0.8048, "g6f.large": 0.202, "trn1.32xlarge": 21.5}


def product(machine: str, region: str, hourly: float, reserved: float | None = None) -> str:
    """One entry of GetProducts in the documented format, aws_v1."""

    def dimension(unit: str, usd: float) -> dict[str, Any]:
        return {"unit": unit, "pricePerUnit": {"USD": f"{usd:.10f}"}, "appliesTo": [], "beginRange": "0", "endRange": "Inf"}

    def reservation(length: str, option: str, **usd: float) -> dict[str, Any]:
        named = {"LeaseContractLength": length, "PurchaseOption": option, "OfferingClass": "standard"}
        dimensions = {f"S.{length}.{unit}": dimension(unit, amount) for unit, amount in usd.items()}
        return {"effectiveDate": "2025-06-01T00:00:00Z", "termAttributes": named, "priceDimensions": dimensions}

    terms: dict[str, Any] = {
        "OnDemand": {
            "S.J": {
                "effectiveDate": "2026-11-01T00:00:00Z",
                "termAttributes": {},
                "priceDimensions": {"S.J.6": dimension("Hrs", hourly)},
            }
        }
    }
    if reserved is not None:
        terms["Reserved"] = {
            "S.1": reservation("1yr", "No Upfront", Hrs=reserved),
            "S.2": reservation("3yr", "No Upfront", Hrs=reserved * 0.7),
            "S.3": reservation("1yr", "All Upfront", Quantity=reserved * 0.9 * 8760, Hrs=0.0),
            "S.4": reservation("1yr", "Partial Upfront", Quantity=1.0, Hrs=0.001),
        }
    attributes = {"instanceType": machine, "regionCode": region, "operatingSystem": "Linux", "tenancy": "Shared"}
    attributes |= {"preInstalledSw": "NA", "capacitystatus": "Used", "servicecode": "AmazonEC2"}
    return json.dumps({"product": {"productFamily": "Compute Instance", "attributes": attributes, "sku": "S"}, "terms": terms})


class PriceList(ThreadingHTTPServer):
    """Answers GetProducts two products to the page; `faults` are answered first, one per request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _PriceListAnswer)
        self.faults: list[tuple[int, str]] = []
        self.requests: list[dict[str, Any]] = []
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def entries(self, region: str) -> list[str]:
        return [product(machine, region, usd, usd * 0.6) for machine, usd in ON_DEMAND.items()]


class _PriceListAnswer(BaseHTTPRequestHandler):
    server: PriceList

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.requests.append(asked)
            fault = self.server.faults.pop(0) if self.server.faults else None
        assert self.headers["X-Amz-Target"] == "AWSPriceListService.GetProducts"
        if fault is not None:
            return self.reply(*fault)
        region = next(item["Value"] for item in asked["Filters"] if item["Field"] == "regionCode")
        entries, start = self.server.entries(region), int(asked.get("NextToken", "0"))
        page: dict[str, Any] = {"FormatVersion": "aws_v1", "PriceList": entries[start : start + 2]}
        if start + 2 < len(entries):
            page["NextToken"] = str(start + 2)
        return self.reply(200, json.dumps(page))

    def reply(self, status: int, body: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/x-amz-json-1.1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def moto_url() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def prices() -> Iterator[PriceList]:
    server = PriceList()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_REGION", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")


def refresh(moto_url: str, pricing_url: str, regions: tuple[str, ...] = REGIONS, **options: str) -> Snapshot:
    given = {"endpoint": moto_url, "pricing_endpoint": pricing_url, "retries": "3", "families": "p g gr inf trn f vt"} | options
    settings = FeedSettings(TODAY, regions, given, CHIP_OF)
    return aws.fetch(settings, lambda done, total, what: None)


@pytest.fixture(scope="module")
def snapshot(moto_url: str) -> Iterator[Snapshot]:
    server = PriceList()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        yield refresh(moto_url, server.url)
    server.shutdown()
    server.server_close()
    thread.join()


def test_machines_come_with_their_chips_memory_and_network(snapshot: Snapshot) -> None:
    machines = {machine.name: machine for machine in snapshot.machines}
    p5, p4d, g6 = machines["p5.48xlarge"], machines["p4d.24xlarge"], machines["g6.xlarge"]
    assert (p5.chip, p5.chips, p5.vcpus, p5.memory_bytes) == ("H100-SXM", 8, 192, 2048 * GIB)
    assert (p5.network_bytes_per_s, p5.fabric, p5.disk_bytes) == (3200e9 / 8, "efa", 30400 * GB)
    assert p5.storage_bytes_per_s == 10000e6
    assert (p4d.chip, p4d.chip_memory_bytes, p4d.network_bytes_per_s) == ("A100-40", 40 * GIB, 400e9 / 8)
    assert (g6.chip, g6.chips, g6.fabric, g6.cpu_arch) == ("L4", 1, "no", "x86_64")
    assert g6.network_bytes_per_s == 10e9 / 8
    assert g6.network_baseline_bytes_per_s == 2.5e9 / 8


def test_a_slice_of_a_chip_is_a_fraction_of_it(snapshot: Snapshot) -> None:
    machine = next(machine for machine in snapshot.machines if machine.name == "g6f.large")
    assert (machine.chip, machine.chips, machine.chip_memory_bytes) == ("L4", 0.125, 2861 * MIB)


def test_every_accelerator_that_moto_knows_finds_its_chip(snapshot: Snapshot) -> None:
    lost = [line for line in snapshot.skipped if "no chip" in line]
    assert lost == ["the catalog has no chip for NVIDIA B300: p6-b300.48xlarge"]
    assert {machine.chip for machine in snapshot.machines} == {*CHIPS, None}


def test_trainium2_is_not_given_the_memory_that_ec2_misreports(snapshot: Snapshot) -> None:
    machine = next(machine for machine in snapshot.machines if machine.name == "trn2.48xlarge")
    assert (machine.chip, machine.chips, machine.chip_memory_bytes) == ("Trainium2", 16, None)


def test_list_prices_are_on_demand_and_reserved_per_hour(snapshot: Snapshot) -> None:
    offers = {(offer.machine, offer.region, offer.purchase): offer for offer in snapshot.offers}
    key = ("g6.xlarge", "us-east-1")
    assert offers[*key, Purchase.ON_DEMAND].usd_per_hour == pytest.approx(0.8048)
    assert offers[*key, Purchase.RESERVED_1Y].usd_per_hour == pytest.approx(0.8048 * 0.6)
    assert offers[*key, Purchase.RESERVED_3Y].usd_per_hour == pytest.approx(0.8048 * 0.42)
    assert offers[*key, Purchase.RESERVED_1Y_UPFRONT].usd_per_hour == pytest.approx(0.8048 * 0.54)
    assert offers[*key, Purchase.ON_DEMAND].as_of == "2026-11-15"
    assert {offer.region for offer in snapshot.offers} == set(REGIONS)


def test_a_spot_price_far_below_on_demand_is_kept_and_cannot_win(snapshot: Snapshot) -> None:
    spot = [offer for offer in snapshot.offers if offer.purchase is Purchase.SPOT]
    assert len(spot) > 50
    assert {offer.verdict for offer in spot} == {Verdict.EXCLUDE}
    assert not any(offer.can_win for offer in spot)
    assert all("placeholder" in offer.why and offer.usd_per_hour_max == 0.00001 for offer in spot)


def test_no_two_offers_share_a_key_and_each_is_of_a_machine_of_the_snapshot(snapshot: Snapshot) -> None:
    keys = [offer.key for offer in snapshot.offers]
    assert len(keys) == len(set(keys))
    assert {offer.machine for offer in snapshot.offers} <= {machine.name for machine in snapshot.machines}


def test_the_price_list_is_asked_for_linux_on_shared_machines_region_by_region(moto_url: str, prices: PriceList) -> None:
    refresh(moto_url, prices.url, families="g6")
    asked = [{item["Field"]: item["Value"] for item in request["Filters"]} for request in prices.requests]
    assert {filters["regionCode"] for filters in asked} == set(REGIONS)
    assert all(filters["operatingSystem"] == "Linux" and filters["tenancy"] == "Shared" for filters in asked)
    assert sum("NextToken" in request for request in prices.requests) == 2 * len(REGIONS)


def test_progress_reaches_its_total(moto_url: str, prices: PriceList) -> None:
    seen: list[tuple[int, int | None, str]] = []
    options = {"endpoint": moto_url, "pricing_endpoint": prices.url, "families": "g6"}
    aws.fetch(FeedSettings(TODAY, REGIONS, options, CHIP_OF), lambda done, total, what: seen.append((done, total, what)))
    assert [done for done, _, _ in seen] == list(range(1, len(seen) + 1))
    assert seen[-1][0] == seen[-1][1]
    assert "us-east-1: list prices" in [what for _, _, what in seen]


def test_a_throttled_price_list_is_asked_again(moto_url: str, prices: PriceList) -> None:
    prices.faults = [(400, '{"__type": "ThrottlingException", "message": "Rate exceeded"}')]
    assert any(offer.machine == "g6.xlarge" for offer in refresh(moto_url, prices.url, ("us-east-1",), families="g6").offers)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ((200, "<html>Sign in to the network</html>"), OutsideFailed),
        ((200, '{"FormatVersion": "aws_v1", "PriceList": [{"prod'), OutsideFailed),
        ((400, '{"__type": "AccessDeniedException", "message": "no pricing:GetProducts"}'), NotAllowed),
        ((400, '{"__type": "ExpiredTokenException", "message": "expired"}'), NotAllowed),
        ((503, "{}"), TryLater),
    ],
)
def test_a_failing_price_list_ends_the_refresh_with_a_reason(
    moto_url: str, prices: PriceList, fault: tuple[int, str], expected: type[OutsideFailed]
) -> None:
    prices.faults = [fault] * 50
    with pytest.raises(expected) as caught:
        refresh(moto_url, prices.url, ("us-east-1",), families="g6", retries="2")
    assert caught.value.remedy


def test_a_price_list_without_prices_is_no_snapshot(moto_url: str, prices: PriceList) -> None:
    prices.faults = [(200, '{"FormatVersion": "aws_v1", "PriceList": []}')]
    with pytest.raises(OutsideFailed, match="without one usable price"):
        refresh(moto_url, prices.url, ("us-east-1",), families="g6")


def test_an_unreachable_service_asks_to_try_later(prices: PriceList) -> None:
    with pytest.raises(TryLater):
        refresh("http://127.0.0.1:9", prices.url, ("us-east-1",), retries="1")


def test_without_credentials_it_says_so(moto_url: str, prices: PriceList, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(NotAllowed, match="credentials"):
        refresh(moto_url, prices.url, ("us-east-1",))


def test_a_misspelt_region_is_refused_with_the_nearest(moto_url: str, prices: PriceList) -> None:
    with pytest.raises(UnknownName, match="us-east-1"):
        refresh(moto_url, prices.url, ("us-esat-1",))


def test_families_nobody_offers_are_no_result(moto_url: str, prices: PriceList) -> None:
    with pytest.raises(NoResult, match="families=all"):
        refresh(moto_url, prices.url, ("us-east-1",), families="zz")


def test_a_refresh_that_fails_leaves_the_old_snapshot_as_it_was(
    moto_url: str, prices: PriceList, snapshot: Snapshot, tmp_path: Path
) -> None:
    before = snapshots.save(tmp_path, snapshot).read_bytes()
    prices.faults = [(200, '{"FormatVersion": "aws_v1", "PriceList": [{"prod')]
    with pytest.raises(OutsideFailed):
        snapshots.save(tmp_path, refresh(moto_url, prices.url, families="g6"))
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [before]
    assert snapshots.load(tmp_path) == ([snapshot], [])


def test_a_refresh_by_the_command_line_shows_in_every_listing(chipwise: Chipwise, moto_url: str, prices: PriceList) -> None:
    """The whole way as a user goes it: real boto3, a running moto, the price list in its documented format."""
    environment = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true"}
    user = Chipwise(chipwise.home, environment)
    options = [
        "-o",
        f"endpoint={moto_url}",
        "-o",
        f"pricing_endpoint={prices.url}",
        "-o",
        "families=p g trn",
        "-o",
        "retries=2",
    ]
    done = user("catalog", "refresh", "aws", "--region", "us-east-1", *options, "--json")
    assert done.code == 0, done.err
    assert done.json[0]["offers"] > len(ON_DEMAND)
    rows = user("offers", "p5.48xlarge", "--region", "aws/us-east-1", "--json").json
    by_purchase = {row["purchase"]: row for row in rows}
    assert by_purchase["on-demand"]["usd_per_hour"] == ON_DEMAND["p5.48xlarge"]
    assert by_purchase["on-demand"]["as_of"] == "2026-11-15"
    assert by_purchase["reserved-1y"]["usd_per_hour"] == pytest.approx(ON_DEMAND["p5.48xlarge"] * 0.6)
    assert by_purchase["spot"]["as_of"] == "2026-08-22"  # moto's spot prices are placeholders: ours stays, and it is said
    assert any("price in USD/h" in complaint for complaint in done.json[0]["refused"])
    machine = user("machines", "p5.48xlarge", "--json").json[0]
    assert (machine["chip"], machine["chips"]) == ("H100-SXM", 8)
    assert "link" in machine["inferred"]  # what only the package knows stays, and stays marked
    prices.faults = [(500, "{}")] * 20
    failed = user("catalog", "refresh", "aws", "--region", "us-east-1", *options)
    assert failed.code == 3
    again = user("offers", "p5.48xlarge", "--region", "aws/us-east-1", "--purchase", "on-demand", "--json").json
    assert [row["as_of"] for row in again] == ["2026-11-15"]
