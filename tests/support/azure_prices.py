"""The Azure Retail Prices API as a server of the test: one machine, with a price that the test sets."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

H100 = "Standard_ND96isr_H100_v5"


class AzurePrices(ThreadingHTTPServer):
    """Stands in for the Azure Retail Prices API, in its documented format."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.price = 77.7
        self.region = "eastus"
        self.cut = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Answer(BaseHTTPRequestHandler):
    server: AzurePrices

    def do_GET(self) -> None:
        item: dict[str, Any] = {
            "currencyCode": "USD",
            "tierMinimumUnits": 0.0,
            "retailPrice": self.server.price,
            "unitPrice": self.server.price,
            "armRegionName": self.server.region,
            "location": "US East",
            "effectiveStartDate": "2026-11-01T00:00:00Z",
            "meterName": "ND96isr H100 v5",
            "productName": "Virtual Machines NDsr H100 v5 Series Linux",
            "skuName": "ND96isrH100v5",
            "serviceName": "Virtual Machines",
            "serviceFamily": "Compute",
            "unitOfMeasure": "1 Hour",
            "type": "Consumption",
            "isPrimaryMeterRegion": True,
            "armSkuName": H100,
        }
        body = json.dumps({"Items": [item], "NextPageLink": None, "Count": 1}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if self.server.cut else body)
        self.close_connection = self.server.cut

    def log_message(self, format: str, *args: object) -> None:
        pass
