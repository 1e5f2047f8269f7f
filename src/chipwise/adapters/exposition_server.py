"""Answers GET /metrics with a text that is made for each request; on this machine only, unless another address is named."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from chipwise.errors import BadInput, OutsideFailed

LOOPBACK = "127.0.0.1"
PATHS = ("/metrics", "/")
REQUEST_S = 10.0


def address(text: str) -> tuple[str, int]:
    """:9400 and 9400 are a port of this machine; 0.0.0.0:9400 is one that others reach."""
    host, _, port = text.strip().rpartition(":")
    host = host.strip("[]")
    if not port.isascii() or not port.isdecimal() or not 0 <= int(port) <= 65535 or any(c.isspace() or c == "/" for c in host):
        raise BadInput(
            f"{text[:60]!r} is not an address to serve at.", remedy="Write :9400, or 0.0.0.0:9400 for other machines."
        )
    return host or LOOPBACK, int(port)


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that breaks off is no news for whoever watches."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class Server:
    def __init__(self, place: tuple[str, int], text: Callable[[], str], content_type: str) -> None:
        class Handler(BaseHTTPRequestHandler):
            timeout = REQUEST_S
            server_version, sys_version = "chipwise", ""

            def do_GET(self) -> None:
                if self.path.partition("?")[0] not in PATHS:
                    self.send_error(404)
                    return
                content = text().encode()
                self.send_response(200)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None: ...

        try:
            self._listener = _Listener(place, Handler)
        except OSError as error:
            raise OutsideFailed(
                f"Nothing can be served at {place[0]}:{place[1]}: {error.strerror or error}.", remedy="Choose another port."
            ) from error
        threading.Thread(target=self._listener.serve_forever, args=(0.2,), daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._listener.server_address[1])

    def close(self) -> None:
        self._listener.shutdown()
        self._listener.server_close()
