"""Endpoints of exporters and servers, on text in the form that they publish; and exporters that lie."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from chipwise.adapters.probes import prometheus
from chipwise.errors import BadInput, ChipwiseError, NotAllowed, OutsideFailed, TryLater
from chipwise.observe import metrics
from chipwise.observe.sample import NoReading
from chipwise.units import MIB

LABELS = 'UUID="GPU-1",pci_bus_id="00000000:3B:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",Hostname="node-1"'
DCGM = f"""\
# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{{gpu="0",{LABELS}}} 87
DCGM_FI_DEV_GPU_UTIL{{gpu="1",{LABELS}}} 3
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{gpu="0",{LABELS}}} 0.412345
DCGM_FI_DEV_FB_USED{{gpu="0",{LABELS}}} 70112
DCGM_FI_DEV_POWER_USAGE{{gpu="0",{LABELS}}} 512.334000
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{gpu="0",{LABELS}}} 1234567890
DCGM_FI_PROF_PCIE_RX_BYTES{{gpu="0",{LABELS}}} 5000000 1700000000000
DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS{{gpu="0",{LABELS}}} 1
DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS{{gpu="0",{LABELS}}} 2
DCGM_FI_DEV_MEMORY_TEMP{{gpu="0",{LABELS}}} 9223372036854775794
DCGM_FI_DEV_GPU_UTIL{{gpu="0",GPU_I_ID="3",{LABELS}}} 99
"""
VLLM = """\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="meta/llama, 8B"} 12.0
vllm:num_requests_running{engine="1",model_name="meta/llama, 8B"} 3.0
vllm:num_requests_waiting{engine="0",model_name="a\\"b"} 4.0
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:kv_cache_usage_perc{engine="1"} 0.75
vllm:prompt_tokens_total{engine="0"} 1.5e+06
vllm:request_success_total{finished_reason="stop"} 10
vllm:request_success_total{finished_reason="length"} 5
process_cpu_seconds_total 12
"""


def endpoint(text: str) -> prometheus.Endpoint:
    return prometheus.connect("http://node:9400/metrics", lambda url: text)


def test_the_dcgm_exporter_by_its_names() -> None:
    probe = endpoint(DCGM)
    first, second = probe.read(1.0)
    assert (first.source, second.source) == ("nvidia:0", "nvidia:1")
    assert second.readings == {"busy": 0.03}
    assert first.readings == pytest.approx(
        {
            "busy": 0.87,
            "tensor_active": 0.412345,
            "memory_used": 70112 * MIB,
            "power": 512.334,
            "energy": 1234567.89,
            "pcie_received": 5e6,
            "remapped_rows": 3.0,
            "memory_temperature": NoReading("the exporter has no value for it"),
        }
    )
    assert probe.devices()[0].name == "NVIDIA H100 80GB HBM3"


def test_a_server_of_several_engines_adds_up() -> None:
    [sample] = endpoint(VLLM).read(1.0)
    assert sample.source == "server:node:9400"
    assert sample.readings == {
        "running": 15.0,
        "waiting": 4.0,
        "kv_used": 0.75,
        "prompt_tokens": 1.5e6,
        "requests": 15.0,
    }


def test_every_name_means_a_metric_of_ours() -> None:
    assert {meaning.metric for meaning in prometheus._DCGM.values()} <= set(metrics.DEVICE)
    assert {meaning.metric for meaning in prometheus._SERVERS.values()} <= set(metrics.SERVER)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("NaN", "reports nan, which is no number"),
        ("+Inf", "reports inf, which is no number"),
        ("-5", "which is below zero"),
        ("300", "reports 3, which cannot be"),
        ("1e400", "no number"),
    ],
)
def test_a_lie_is_a_reason_and_all_else_stays(value: str, reason: str) -> None:
    text = DCGM.replace("} 87\n", f"}} {value}\n")
    [first, _] = endpoint(text).read(1.0)
    busy = first.readings["busy"]
    assert isinstance(busy, NoReading)
    assert reason in busy.reason
    assert first.value("power") == 512.334


@pytest.mark.parametrize("text", ["", "<html>\n", "x\n", "vllm:num_requests_running abc\n", "up 1\n", "{}\n", "\0" * 1000])
def test_an_endpoint_without_a_known_name_is_refused(text: str) -> None:
    with pytest.raises(OutsideFailed, match="publishes no metric") as caught:
        endpoint(text)
    assert caught.value.remedy


@pytest.mark.parametrize("url", ["", "localhost:8000", "file:///etc/passwd", "ftp://x/metrics", "http://"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(BadInput, match="not the address"):
        prometheus.connect(url, lambda url: VLLM)


def test_an_endpoint_that_falls_silent_is_a_reason_for_each_of_its_metrics() -> None:
    answers = [VLLM, VLLM]

    def fetch(url: str) -> str:
        if not answers:
            raise TryLater("node:9400 does not answer: refused.")
        return answers.pop()

    probe = prometheus.connect("http://node:9400/metrics", fetch)
    probe.read(1.0)
    [sample] = probe.read(2.0)
    assert sample.readings["running"] == NoReading("node:9400 does not answer: refused.")


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/closed":
            self.send_error(403)
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"x" * (prometheus.MOST_BYTES + 1) if self.path == "/endless" else VLLM.encode())

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Handler) as listener:
        threading.Thread(target=listener.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{listener.server_port}"
        listener.shutdown()


def test_a_real_endpoint(server: str) -> None:
    [sample] = prometheus.connect(f"{server}/metrics").read(0.0)
    assert sample.value("running") == 15.0


@pytest.mark.parametrize(
    ("path", "kind", "words"), [("/closed", NotAllowed, "403"), ("/endless", OutsideFailed, "more than 8 MiB")]
)
def test_what_an_endpoint_may_not_do(server: str, path: str, kind: type[ChipwiseError], words: str) -> None:
    with pytest.raises(kind, match=words):
        prometheus.connect(server + path)


def test_nobody_there() -> None:
    with pytest.raises(TryLater, match="does not answer") as caught:
        prometheus.connect("http://127.0.0.1:9/metrics")
    assert caught.value.exit_code == 3
