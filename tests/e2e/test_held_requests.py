"""A request that the endpoint picker holds while the first copy starts gets through a real Envoy, however long that takes.

Envoy has the filter as Istio writes it for an InferencePool: the whole body in both directions, a limit of 10 s on the call,
and no limit on messages (Envoy's own is 200 ms). Both are shorter than what is held here. The picker is a stand-in that only
waits; what the real one holds, and for how long, is in its source (release 1.5.0): the saturation of no endpoint is 1
(`saturationdetector/utilization`), and `EnqueueAndWait` waits until defaultRequestTTL.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kube.process import free_ports
from render_checks import python_of

pytestmark = pytest.mark.e2e
HELD_S = 12
CALL_LIMIT_S = 10
PICKER = Path(__file__).parents[1] / "support" / "holding_picker.py"
TYPES = "type.googleapis.com/envoy.extensions"
DUPLEX = {
    f"{way}_{part}_mode": "FULL_DUPLEX_STREAMED" if part == "body" else "SEND"
    for way in ("request", "response")
    for part in ("header", "body", "trailer")
}


def cluster(name: str, port: int, options: dict[str, Any]) -> dict[str, Any]:
    address = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
    endpoints = [{"lb_endpoints": [{"endpoint": {"address": address}}]}]
    return {"name": name, "type": "STATIC", "load_assignment": {"cluster_name": name, "endpoints": endpoints}} | options


def config(door: int, picker: int, replica: int) -> dict[str, Any]:
    ext_proc = {
        "@type": f"{TYPES}.filters.http.ext_proc.v3.ExternalProcessor",
        "grpc_service": {"envoy_grpc": {"cluster_name": "picker"}, "timeout": f"{CALL_LIMIT_S}s"},
        "processing_mode": DUPLEX,
    }
    router = {"@type": f"{TYPES}.filters.http.router.v3.Router"}
    route = {"match": {"prefix": "/"}, "route": {"cluster": "replica", "timeout": "300s"}}
    manager = {
        "@type": f"{TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "door",
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]},
        "http_filters": [{"name": "picker", "typed_config": ext_proc}, {"name": "router", "typed_config": router}],
    }
    http2 = {
        "@type": f"{TYPES}.upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config": {"http2_protocol_options": {}},
    }
    spoken = {"typed_extension_protocol_options": {f"{TYPES.partition('/')[2]}.upstreams.http.v3.HttpProtocolOptions": http2}}
    address = {"socket_address": {"address": "127.0.0.1", "port_value": door}}
    listener = {"address": address, "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}]}
    clusters = [cluster("replica", replica, {}), cluster("picker", picker, spoken)]
    return {"static_resources": {"listeners": [listener], "clusters": clusters}}


@pytest.fixture
def door(tmp_path: Path) -> Iterator[str]:
    python = python_of("envoy")
    ports = free_ports(3)
    (tmp_path / "envoy.json").write_text(json.dumps(config(*ports)), encoding="utf-8")
    envoy = [str(Path(python).with_name("envoy")), "-c", str(tmp_path / "envoy.json"), "--concurrency", "1", "-l", "error"]
    with ExitStack() as stack:
        for words in ([python, str(PICKER), str(HELD_S), *map(str, ports[1:])], [*envoy, "--use-dynamic-base-id"]):
            running = stack.enter_context(subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=sys.stderr))
            stack.callback(running.terminate)
        yield f"http://127.0.0.1:{ports[0]}/v1/completions"


def test_a_request_that_is_held_longer_than_the_limits_of_istio_is_answered(door: str) -> None:
    request = urllib.request.Request(door, data=b'{"model": "a"}', method="POST")
    began, until = 0.0, time.monotonic() + 60
    answer = b""
    while not answer and time.monotonic() < until:
        began = time.monotonic()
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                answer = response.read()
        except OSError:  # it is not there yet
            assert time.monotonic() - began < CALL_LIMIT_S / 2, "cut off while it was held"
            time.sleep(0.5)
    assert answer == b"ok"
    assert time.monotonic() - began >= HELD_S
