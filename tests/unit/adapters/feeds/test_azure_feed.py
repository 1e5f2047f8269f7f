"""The Azure feed against a local server that answers in the documented format of the Retail Prices API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

from chipwise.adapters.feeds import azure
from chipwise.adapters.wire import http
from chipwise.catalog.feed import FeedSettings, Snapshot
from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import Offer, Purchase, Verdict
from chipwise.errors import BadInput, ChipwiseError, NoResult, NotFound, OutsideFailed, TryLater, UnknownName
from loopback import Reply, Serve

TODAY = date(2026, 11, 15)
H100 = "Standard_ND96isr_H100_v5"


def item(name: str = H100, price: object = 98.32, region: str = "eastus", **changes: object) -> dict[str, Any]:
    """One row, with the fields and spellings of the documentation."""
    return {
        "currencyCode": "USD",
        "tierMinimumUnits": 0.0,
        "retailPrice": price,
        "unitPrice": price,
        "armRegionName": region,
        "location": "US East",
        "effectiveStartDate": "2026-04-01T00:00:00Z",
        "meterName": "ND96isr H100 v5",
        "productName": "Virtual Machines NDsr H100 v5 Series Linux",
        "skuName": "ND96isrH100v5",
        "serviceName": "Virtual Machines",
        "serviceFamily": "Compute",
        "unitOfMeasure": "1 Hour",
        "type": "Consumption",
        "isPrimaryMeterRegion": True,
        "armSkuName": name,
    } | changes


ROWS = [
    item(),
    item(price=39.3, skuName="ND96isrH100v5 Spot"),
    item(price=19.7, skuName="ND96isrH100v5 Low Priority"),
    item(price=120.0, productName="Virtual Machines NDsr H100 v5 Series Windows"),
    item(price=551221.0, type="Reservation", reservationTerm="1 Year"),
    item(price=1102442.0, type="Reservation", reservationTerm="3 Years"),
    item(price=70.0, type="DevTestConsumption"),
    item("Standard_NC4as_T4_v3", 0.526),
    item("Standard_NC4as_T4_v3", 0.6, "westeurope"),
]


def page(items: list[dict[str, Any]], following: str | None = None) -> Reply:
    fields = {"BillingCurrency": "USD", "CustomerEntityId": "Default", "CustomerEntityType": "Retail"}
    return Reply(json.dumps(fields | {"Items": items, "NextPageLink": following, "Count": len(items)}))


def two_to_the_page(asked: Any) -> Reply:
    rows = [
        row for row in ROWS if f"'{row['armRegionName']}'" in asked.query["$filter"] or "Region" not in asked.query["$filter"]
    ]
    start = int(asked.query.get("$skip", "0"))
    query = "&".join(f"{name}={value.replace(' ', '%20')}" for name, value in asked.query.items() if name != "$skip")
    more = f"{asked.host}{asked.path}?{query}&$skip={start + 2}" if start + 2 < len(rows) else None
    return page(rows[start : start + 2], more)


@pytest.fixture
def server(serve: Serve) -> Iterator[Any]:
    with serve(two_to_the_page) as running:
        yield running


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nothing sleeps; the waits are kept."""
    kept: list[float] = []
    monkeypatch.setattr(http, "pause", kept.append)
    return kept


def fetch(server: Any, regions: tuple[str, ...] = (), known: tuple[Machine, ...] = (), **options: str) -> Snapshot:
    settings = FeedSettings(TODAY, regions, {"endpoint": server.url} | options, known=known)
    return azure.fetch(settings, lambda done, total, what: None)


def offers(snapshot: Snapshot) -> dict[tuple[str, str, Purchase], Offer]:
    return {(offer.machine, offer.region, offer.purchase): offer for offer in snapshot.offers}


def test_all_pages_are_read_and_each_way_to_buy_is_told_apart(server: Any) -> None:
    found = offers(fetch(server))
    assert found[H100, "eastus", Purchase.ON_DEMAND].usd_per_hour == 98.32
    assert found[H100, "eastus", Purchase.SPOT].usd_per_hour == 39.3
    assert found[H100, "eastus", Purchase.RESERVED_1Y].usd_per_hour == pytest.approx(551221 / 8760)
    assert found[H100, "eastus", Purchase.RESERVED_3Y].usd_per_hour == pytest.approx(1102442 / 26280)
    assert len(found) == 6
    assert len(server.asked) == 5


def test_the_service_is_asked_for_gpu_machines_in_usd(server: Any) -> None:
    fetch(server)
    query = server.asked[0].query
    assert query["currencyCode"] == "USD"
    assert "serviceName eq 'Virtual Machines'" in query["$filter"]
    assert "startswith(armSkuName, 'Standard_N')" in query["$filter"]


def test_named_regions_are_asked_one_by_one(server: Any) -> None:
    found = fetch(server, ("eastus", "westeurope"))
    assert {offer.region for offer in found.offers} == {"eastus", "westeurope"}
    asked = {query["$filter"].split("armRegionName eq ")[1].split(" ")[0] for query in (one.query for one in server.asked)}
    assert asked == {"'eastus'", "'westeurope'"}


def test_a_machine_the_catalog_knows_keeps_its_row_and_its_spelling(server: Any) -> None:
    known = Machine("azure", H100.upper(), "H100-SXM", 8, vcpus=96)
    machines = {machine.name: machine for machine in fetch(server, known=(known,)).machines}
    assert machines[H100.upper()] is known
    assert (machines["Standard_NC4as_T4_v3"].chip, machines["Standard_NC4as_T4_v3"].chips) == (None, None)


def test_the_row_in_force_counts_beside_older_and_later_ones(serve: Serve) -> None:
    rows = [
        item(price=6.26, effectiveStartDate="2026-04-01T00:00:00Z", effectiveEndDate="2026-07-31T00:00:00Z"),
        item(price=5.79, effectiveStartDate="2026-08-01T00:00:00Z"),
        item(price=5.9, effectiveStartDate="2026-05-01T00:00:00Z"),
        item(price=4.0, effectiveStartDate="2027-01-01T00:00:00Z"),
    ]
    with serve(lambda asked: page(rows)) as server:
        assert [offer.usd_per_hour for offer in fetch(server).offers] == [5.79]


def test_throttling_is_waited_out_as_long_as_the_service_asks(server: Any, waits: list[float]) -> None:
    server.first = [Reply("", 429, {"Retry-After": "7"}), Reply("oops", 500), Reply("{", cut=True)]
    assert len(fetch(server).offers) == 6
    assert waits[0] == 7
    assert len(waits) == 3


def test_a_body_that_is_cut_off_every_time_ends_the_refresh(server: Any) -> None:
    server.first = [Reply('{"Items": [', cut=True)] * 5
    with pytest.raises(TryLater, match="Retail Prices"):
        fetch(server)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply("<html>Sign in</html>"), OutsideFailed),
        (Reply('{"Items": [{'), OutsideFailed),
        (Reply("[1, 2]"), OutsideFailed),
        (Reply('{"Items": 3}'), OutsideFailed),
        (Reply("[" * 100_000), OutsideFailed),
        (Reply('{"Error": {"Code": "BadRequest", "Message": "Invalid OData filter"}}', 400), BadInput),
        (Reply("", 404), NotFound),
        (Reply("", 302, {"Location": "http://127.0.0.1:9/"}), OutsideFailed),
        (Reply("", 503), TryLater),
        (page([item(currencyCode="EUR")]), OutsideFailed),
        (page([item()], "http://127.0.0.2:80/elsewhere"), OutsideFailed),
        (page([]), NoResult),
    ],
)
def test_a_bad_answer_is_one_of_our_errors_and_no_snapshot(serve: Serve, reply: Reply, error: type[ChipwiseError]) -> None:
    with serve(lambda asked: reply) as server, pytest.raises(error) as caught:
        fetch(server, retries="2")
    assert caught.value.remedy
    assert len(str(caught.value)) < 600


def test_pages_that_lead_in_a_circle_end_the_refresh(serve: Serve) -> None:
    with serve(lambda asked: page([item()], f"{asked.host}/api/retail/prices?again")) as server:
        with pytest.raises(OutsideFailed, match="no end"):
            fetch(server)
        assert len(server.asked) < 5


@pytest.mark.parametrize("price", [0, -1.5, float("nan"), float("inf"), 1e300, None, "dear", True, [1], 10**400])
def test_a_price_that_cannot_be_is_skipped_and_said(serve: Serve, price: object) -> None:
    row = item("Standard_NC6", 1.0)
    text = json.dumps({"Items": [row, item(price=price)], "NextPageLink": None})
    with serve(lambda asked: Reply(text)) as server:
        found = fetch(server)
    assert [offer.machine for offer in found.offers] == ["Standard_NC6"]
    assert any("price is missing" in line and H100 in line for line in found.skipped)


def test_a_spot_price_at_a_tenth_is_marked_as_the_floor(serve: Serve) -> None:
    with serve(lambda asked: page([item(price=10.0), item(price=1.0, skuName="X Spot")])) as server:
        spot = offers(fetch(server))[H100, "eastus", Purchase.SPOT]
    assert spot.verdict is Verdict.FLOOR


def test_rows_of_another_shape_are_skipped(serve: Serve) -> None:
    rows = [item(), item("Standard_NC6", unitOfMeasure="1 Month"), item("", 1.0), {"unexpected": 1}, 7]
    with serve(lambda asked: Reply(json.dumps({"Items": rows}))) as server:
        found = fetch(server)
    assert [offer.machine for offer in found.offers] == [H100]
    assert any("unit" in line for line in found.skipped)


def test_what_cannot_be_a_name_is_refused_before_it_is_sent(server: Any) -> None:
    with pytest.raises(BadInput):
        fetch(server, ("eastus' or 'a' eq 'a",))
    with pytest.raises(UnknownName, match="families"):
        fetch(server, familes="N")
    with pytest.raises(BadInput, match="web address"):
        azure.fetch(FeedSettings(TODAY, options={"endpoint": "ftp://x"}), lambda done, total, what: None)
    assert not server.asked


def test_proxy_settings_that_cannot_be_used_are_told(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "gopher://nowhere")
    with pytest.raises(BadInput, match="proxy"):
        fetch(server)
