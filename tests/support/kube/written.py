"""A stand-in for the port of a kubelet at which the server asks for what containers wrote. Each pod writes what a test says."""

from __future__ import annotations

import ssl
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from kube.control_plane import Cluster
from kube.credentials import Authority

LOOK_S = 0.05
LONGEST_S = 60.0


class Written:
    """`lines` of pods by name. Who follows one gets what comes until it is `over`."""

    def __init__(self) -> None:
        self.lines: defaultdict[str, list[str]] = defaultdict(list)
        self.over: set[str] = set()
        self.port = 0

    def serve(self, cluster: Cluster, node: str) -> None:
        """Of this node's pods."""
        told = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.port}},
        }
        cluster.api.merge("v1", "Node", node, {"status": told}, status=True).must()


def _answering(written: Written) -> type[BaseHTTPRequestHandler]:
    class Port(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            pod, sent, until = self.path.split("/")[3], 0, time.monotonic() + LONGEST_S
            self.send_response(200)
            self.end_headers()  # without a length: until the connection is closed
            while True:
                over = pod in written.over or "follow=true" not in self.path or time.monotonic() > until
                new = written.lines[pod][sent:]
                try:
                    self.wfile.write("".join(f"{line}\n" for line in new).encode())
                    self.wfile.flush()
                except OSError:  # whoever asked has gone
                    return
                sent += len(new)
                if over:
                    return
                time.sleep(LOOK_S)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Port


@contextmanager
def kubelet_port(folder: Path, answering: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """Where an API server asks a node for what its pods wrote: over TLS, on the loopback."""
    pair = Authority("kubelet").issue(["node"], ["127.0.0.1"])
    (folder / "kubelet.crt").write_bytes(pair.certificate)
    (folder / "kubelet.key").write_bytes(pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "kubelet.crt", folder / "kubelet.key")
    server = ThreadingHTTPServer(("127.0.0.1", 0), answering)
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


@contextmanager
def written_by_pods(folder: Path) -> Iterator[Written]:
    made = Written()
    with kubelet_port(folder, _answering(made)) as made.port:
        yield made
