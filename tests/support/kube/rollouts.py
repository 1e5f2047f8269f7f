"""The real controller of Argo Rollouts beside the test cluster, and a Prometheus that answers what a test says."""

from __future__ import annotations

import contextlib
import json
import threading
import time
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from kube import programs
from kube.control_plane import Cluster
from kube.process import free_ports

API = "argoproj.io/v1alpha1"


class PlayedPrometheus:
    """Answers every instant query with one number, by the name of a metric in it; those of no name here have no series."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        self.queries: list[str] = []
        played = self

        class Answers(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
                self._answer(urllib.parse.parse_qs(body).get("query", [""])[0])

            def do_GET(self) -> None:
                self._answer(urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query).get("query", [""])[0])

            def _answer(self, query: str) -> None:
                played.queries.append(query)
                found = [value for name, value in played.values.items() if name in query]
                series = [{"metric": {}, "value": [time.time(), str(value)]} for value in found[:1]]
                text = json.dumps({"status": "success", "data": {"resultType": "vector", "result": series}}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> PlayedPrometheus:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


@contextlib.contextmanager
def controller(cluster: Cluster) -> Iterator[None]:
    programs.program("rollouts-controller")
    cluster.install("argo-rollouts")
    metrics, health = free_ports(2)
    arguments = [f"--kubeconfig={cluster.kubeconfig()}", "--leader-elect=false"]
    running = cluster.run("rollouts-controller", [*arguments, f"--metricsPort={metrics}", f"--healthzPort={health}"])
    try:
        yield
    finally:
        cluster.halt(running)
