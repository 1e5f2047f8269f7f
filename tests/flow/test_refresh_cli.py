"""Fresh prices through the command line: they replace the old ones, and a failed refresh changes nothing."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from azure_prices import H100, AzurePrices
from command import Chipwise

pytestmark = pytest.mark.real_catalog


@pytest.fixture
def azure() -> Iterator[AzurePrices]:
    with AzurePrices() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def price(chipwise: Chipwise) -> tuple[float, str]:
    rows = chipwise("offers", H100, "--region", "eastus", "--purchase", "on-demand", "--json").json
    assert len(rows) == 1
    return rows[0]["usd_per_hour"], rows[0]["as_of"]


def test_a_refresh_replaces_the_old_price_and_keeps_what_the_feed_does_not_know(chipwise: Chipwise, azure: AzurePrices) -> None:
    assert price(chipwise) == (98.32, "2026-06-18")
    done = chipwise("catalog", "refresh", "azure", "-o", f"endpoint={azure.url}")
    assert done.code == 0, done.err
    assert price(chipwise)[0] == 77.7
    machine = chipwise("machines", H100, "--json").json[0]
    assert (machine["chip"], machine["chips"]) == ("H100-SXM", 8)
    status = chipwise("catalog", "status", "--json").json
    assert next(row for row in status["providers"] if row["provider"] == "azure")["from"].startswith("feed")


def test_a_refresh_that_is_cut_off_leaves_the_catalog_as_it_was(chipwise: Chipwise, azure: AzurePrices) -> None:
    assert chipwise("catalog", "refresh", "azure", "-o", f"endpoint={azure.url}").code == 0
    azure.price, azure.cut = 55.5, True
    done = chipwise("catalog", "refresh", "azure", "-o", f"endpoint={azure.url}", "-o", "retries=1")
    assert done.code == 3
    assert price(chipwise)[0] == 77.7
    assert [path.name for path in (chipwise.data_dir / "feeds").iterdir()] == ["azure.json"]


def test_a_price_that_cannot_be_is_left_out_and_said(chipwise: Chipwise, azure: AzurePrices) -> None:
    azure.price = 9000.0
    done = chipwise("catalog", "refresh", "azure", "-o", f"endpoint={azure.url}", "--json")
    assert price(chipwise)[0] == 98.32
    assert any("price in USD/h" in complaint for complaint in done.json[0]["refused"])


def test_a_broken_snapshot_is_named_and_the_rest_works(chipwise: Chipwise, azure: AzurePrices) -> None:
    assert chipwise("catalog", "refresh", "azure", "-o", f"endpoint={azure.url}").code == 0
    (chipwise.data_dir / "feeds" / "azure.json").write_text('{"cut off')
    done = chipwise("offers", H100, "--region", "eastus")
    assert done.code == 0
    assert "azure" in done.err
    assert price(chipwise) == (98.32, "2026-06-18")


def test_an_inventory_is_imported_and_offered(chipwise: Chipwise, tmp_path: Path) -> None:
    file = tmp_path / "servers.csv"
    header = "name,chip,chips,memory,region,purchase price,lifetime years,power,usd per kwh\n"
    file.write_text(header + "rack-1,H100 SXM,8,2TiB,berlin,$280k,4,10200,0.19\n")
    done = chipwise("catalog", "import", str(file), "--json")
    assert done.code == 0, done.err
    assert done.json[0]["refused"] == []
    rows = chipwise("offers", "--provider", "onprem", "--json").json
    assert [(row["machine"], row["chip"], row["chips"], row["purchase"]) for row in rows] == [
        ("rack-1", "H100-SXM", 8, "owned")
    ]


def test_a_skypilot_catalog_is_imported(chipwise: Chipwise, tmp_path: Path) -> None:
    folder = tmp_path / "catalogs" / "lambda"
    folder.mkdir(parents=True)
    header = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice\n"
    (folder / "vms.csv").write_text(header + "gpu_8x_h100_sxm5,H100,8,208,1800,25.0,us-east-1,,\n")
    done = chipwise("catalog", "import", str(tmp_path / "catalogs"), "-o", "as_of=2026-11-10", "--json")
    assert done.code == 0, done.err
    rows = chipwise("offers", "gpu_8x_h100_sxm5", "--region", "lambda/us-east-1", "--json").json
    assert [(row["usd_per_hour"], row["as_of"]) for row in rows] == [(25.0, "2026-11-10")]


def corrupt(chipwise: Chipwise, change: Any) -> None:
    """An import, with one value of its stored snapshot changed by hand."""
    inventory = chipwise.home / "servers.csv"
    inventory.write_text("name,chip,chips,region,hourly cost\nrack-1,H100 SXM,8,berlin,12\nrack-2,T4,2,berlin,1\n")
    assert chipwise("catalog", "import", str(inventory)).code == 0
    path = chipwise.data_dir / "feeds" / "onprem.json"
    stored = json.loads(path.read_text())
    change(stored)
    path.write_text(json.dumps(stored))


CHANGES = {
    "a price beyond numbers": lambda s: s["offers"]["price"].__setitem__(0, 10**400),
    "a negative price": lambda s: s["offers"]["price"].__setitem__(0, -3.0),
    "no machines": lambda s: s["machines"].__setitem__("rows", s["machines"]["rows"][:1]),
    "another provider": lambda s: s.__setitem__("provider", "elsewhere"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_absurd_values_in_a_stored_snapshot_are_passed_over(chipwise: Chipwise, name: str) -> None:
    corrupt(chipwise, CHANGES[name])
    others = [("chips", "h100"), ("machines", "--json"), ("regions", "--json"), ("catalog", "status")]
    for arguments in (("offers", "--chip", "t4", "--json"), *(others if name == "a negative price" else ())):
        done = chipwise(*arguments)
        assert done.code == 0, (arguments, done.err)
        if "--json" in arguments:
            assert isinstance(done.json, list)


def test_a_snapshot_never_leans_on_machines_of_a_file_that_may_go_away(chipwise: Chipwise, tmp_path: Path) -> None:
    own = chipwise.config_dir / "catalog" / "own.yaml"
    own.write_text("machines: [{name: dgx, provider: foo, price_per_hour: 1}]")
    folder = tmp_path / "sky" / "foo"
    folder.mkdir(parents=True)
    header = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region\n"
    (folder / "vms.csv").write_text(header + "dgx,H100,8,0.01,0.001,5,r1\n")
    chipwise("catalog", "import", str(tmp_path / "sky"))
    own.unlink()
    assert chipwise("chips", "h100").code == 0


@pytest.mark.parametrize("special", ["/dev/zero", "fifo"])
def test_what_is_not_a_file_among_the_snapshots_is_named_not_read(chipwise: Chipwise, special: str) -> None:
    feeds = chipwise.data_dir / "feeds"
    feeds.mkdir(parents=True)
    if special == "fifo":
        os.mkfifo(feeds / "z.json")
    else:
        (feeds / "z.json").symlink_to(special)
    done = chipwise("offers", "--chip", "h100")
    assert done.code == 0
    assert "z.json" in done.err


def test_what_was_imported_can_be_forgotten(chipwise: Chipwise, azure: AzurePrices) -> None:
    assert chipwise("catalog", "refresh", "azure", "-o", f"endpoint={azure.url}").code == 0
    assert price(chipwise)[0] == 77.7
    assert chipwise("catalog", "forget", "azure").code == 0
    assert price(chipwise) == (98.32, "2026-06-18")
    assert chipwise("catalog", "forget", "azure").code == 2


def test_a_refresh_of_one_region_keeps_the_others(chipwise: Chipwise, azure: AzurePrices) -> None:
    azure.region = "westeurope"
    assert chipwise("catalog", "refresh", "azure", "--region", "westeurope", "-o", f"endpoint={azure.url}").code == 0
    azure.region, azure.price = "eastus", 66.6
    assert chipwise("catalog", "refresh", "azure", "--region", "eastus", "-o", f"endpoint={azure.url}").code == 0
    rows = {row["region"]: row["usd_per_hour"] for row in chipwise("offers", H100, "--purchase", "on-demand", "--json").json}
    assert (rows["westeurope"], rows["eastus"]) == (77.7, 66.6)


class GooglePrices(ThreadingHTTPServer):
    """Stands in for the Cloud Billing Catalog API, in its documented format, two SKUs to the page."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Skus)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


def sku(description: str, group: str, usd: float, unit: str = "h") -> dict[str, Any]:
    units, nanos = divmod(round(usd * 1e9), 10**9)
    rate = {"startUsageAmount": 0, "unitPrice": {"currencyCode": "USD", "units": str(units), "nanos": nanos}}
    return {
        "name": "services/6F81-5844-456A/skus/0",
        "skuId": "0",
        "description": description,
        "category": {"serviceDisplayName": "Compute Engine", "resourceGroup": group, "usageType": "OnDemand"},
        "serviceRegions": ["us-central1"],
        "serviceProviderName": "Google",
        "pricingInfo": [
            {
                "effectiveTime": "2026-11-01T00:00:00Z",
                "summary": "",
                "pricingExpression": {"usageUnit": unit, "displayQuantity": 1, "tieredRates": [rate]},
            }
        ],
    }


class _Skus(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        skus = [
            sku("A2 Instance Core running in Americas", "CPU", 0.03),
            sku("A2 Instance Ram running in Americas", "RAM", 0.004, "GiBy.h"),
            sku("Nvidia Tesla A100 GPU running in Americas", "GPU", 2.5),
        ]
        status = 200
        page: dict[str, Any] = {"skus": skus[:2], "nextPageToken": "2"}
        if "pageToken=2" in self.path:
            page = {"skus": skus[2:], "nextPageToken": ""}
        if self.headers.get("X-Goog-Api-Key") != "a-key":
            status, page = 403, {"error": {"code": 403, "message": "no permission", "status": "PERMISSION_DENIED"}}
        body = json.dumps(page).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_google_prices_are_put_together_from_parts_with_the_key_of_the_environment(chipwise: Chipwise) -> None:
    with GooglePrices() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = ("-o", f"endpoint={server.url}", "-o", "retries=1")
        assert chipwise("catalog", "refresh", "gcp", *endpoint).code in (2, 3)  # no key
        assert chipwise("catalog", "refresh", "gcp", *endpoint, GOOGLE_API_KEY="wrong").code == 3
        done = chipwise("catalog", "refresh", "google cloud", *endpoint, GOOGLE_API_KEY="a-key")
        server.shutdown()
    assert done.code == 0, done.err
    machine = chipwise("machines", "a2-highgpu-1g", "--json").json[0]
    rows = chipwise("offers", "a2-highgpu-1g", "--region", "gcp/us-central1", "--purchase", "on-demand", "--json").json
    expected = 0.03 * machine["vcpus"] + 0.004 * machine["memory_bytes"] / 2**30 + 2.5
    assert rows[0]["usd_per_hour"] == pytest.approx(expected)
    assert rows[0]["as_of"] >= "2026-11-01"
