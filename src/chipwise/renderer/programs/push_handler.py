#!/usr/bin/env python3
"""Runs the program of the workload for each object that arrives."""

from __future__ import annotations

import json
import os
import subprocess
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

SETTINGS: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
COMMAND: list[str] = SETTINGS["COMMAND"]  # it finds the object's address in OBJECT_URL


class Handler(BaseHTTPRequestHandler):
    """Pub/Sub pushes one message for each object that arrived. Any answer but 2xx sends it again."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        about = body.get("message", {}).get("attributes", {})
        url = f"gs://{about.get('bucketId', '')}/{about.get('objectId', '')}"
        process = subprocess.run(COMMAND, env={**os.environ, "OBJECT_URL": url}, check=False)
        self.send_response(204 if process.returncode == 0 else 500)
        self.end_headers()

    def do_GET(self) -> None:
        self.send_response(204)
        self.end_headers()


if __name__ == "__main__":
    HTTPServer(("", int(os.environ.get("PORT", "8080"))), Handler).serve_forever()
