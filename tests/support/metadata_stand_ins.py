"""Stand-ins for the metadata servers of three clouds, on the loopback, that answer as each cloud documents.

EC2     PUT /latest/api/token gives a token, without which everything is 401; paths are 404 until there is something to say
Google  needs `Metadata-Flavor: Google` (403 without it); `wait_for_change` holds the answer until the value is another than
        that of `last_etag`, or `timeout_sec` is over
Azure   needs `Metadata: true` (400 without it); StartRequests acknowledge an event
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


class StandIn(ThreadingHTTPServer):
    """`said` is what is there now, by path. `trouble`: a status for everything, or "hang", or "garbage"."""

    daemon_threads = True

    def __init__(self, cloud: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.cloud = cloud
        self.said: dict[str, str] = {}
        self.tokens: set[str] = set()
        self.trouble: int | str = 0
        self.asked: list[tuple[str, str]] = []  # method and path
        self.acknowledged: list[str] = []
        self.changed = threading.Condition()
        self.closing = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def say(self, path: str, text: str | None) -> None:
        with self.changed:
            if text is None:
                self.said.pop(path, None)
            else:
                self.said[path] = text
            self.changed.notify_all()


class _Handler(BaseHTTPRequestHandler):
    server: StandIn

    def do_GET(self) -> None:
        self._asked("GET")

    def do_PUT(self) -> None:
        self._asked("PUT")

    def do_POST(self) -> None:
        self._asked("POST")

    def _asked(self, method: str) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.server.asked.append((method, parts.path))
        if self.server.trouble == "hang":
            while not self.server.closing:
                time.sleep(0.05)
            return None
        if self.server.trouble == "garbage":
            return self._reply(200, "<html>\x00 this is no metadata")
        if isinstance(self.server.trouble, int) and self.server.trouble:
            return self._reply(self.server.trouble, "trouble")
        return getattr(self, f"_{self.server.cloud}")(method, parts.path, query)  # type: ignore[no-any-return]

    def _ec2(self, method: str, path: str, query: dict[str, str]) -> None:
        if path == "/latest/api/token":
            if method != "PUT" or not self.headers["X-aws-ec2-metadata-token-ttl-seconds"]:
                return self._reply(400, "")
            token = f"token-{len(self.server.tokens)}"
            self.server.tokens.add(token)
            return self._reply(200, token)
        if self.headers["X-aws-ec2-metadata-token"] not in self.server.tokens:
            return self._reply(401, "")
        return self._said(path.removeprefix("/latest/meta-data/"))

    def _google(self, method: str, path: str, query: dict[str, str]) -> None:
        if self.headers["Metadata-Flavor"] != "Google":
            return self._reply(403, "")
        key = path.removeprefix("/computeMetadata/v1/instance/")
        if query.get("wait_for_change") == "true":
            until = time.monotonic() + float(query["timeout_sec"])
            with self.server.changed:
                while _etag(self.server.said.get(key, "")) == query["last_etag"] and not self.server.closing:
                    if not self.server.changed.wait(min(max(until - time.monotonic(), 0), 0.2)) and time.monotonic() >= until:
                        break
        return self._said(key)

    def _azure(self, method: str, path: str, query: dict[str, str]) -> None:
        if self.headers["Metadata"] != "true" or "api-version" not in query:
            return self._reply(400, "")
        if method == "POST":
            wish: Any = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.server.acknowledged += [one["EventId"] for one in wish["StartRequests"]]
            return self._reply(200, "")
        return self._said(path.removeprefix("/metadata/"))

    def _said(self, path: str) -> None:
        found = self.server.said.get(path)
        self._reply(404 if found is None else 200, found or "", _etag(found or ""))

    def _reply(self, status: int, text: str, etag: str = "") -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if etag:
            self.send_header("ETag", etag)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def _etag(text: str) -> str:
    return text.encode().hex()[:16] or "0"


@contextmanager
def serving(cloud: str) -> Iterator[StandIn]:
    server = StandIn(cloud)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing = True
        server.shutdown()
        server.server_close()
        thread.join(5)
