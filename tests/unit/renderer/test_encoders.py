"""Models that read text and write none are served by TEI or vLLM's pooling runner, and batches of them by vLLM."""

from __future__ import annotations

import subprocess
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml

from chipwise.api.render import RenderRequest, deployment_of
from chipwise.catalog.load import load
from chipwise.planner.values.split import UNSPLIT, GenerationSplit, Split
from chipwise.renderer.cluster import services
from chipwise.renderer.cluster.pod import template
from chipwise.renderer.deployment import Form, Model, Node, Software
from chipwise.renderer.encoders import poolers
from chipwise.renderer.launch.health import check_words
from chipwise.renderer.launch.shards import MOST_ANSWERED_BYTES, shards
from chipwise.renderer.launch.weights import weight_notes
from chipwise.renderer.software import SoftwareRequest, software_of
from chipwise.renderer.targets import kubernetes
from chipwise.renderer.yaml_text import plain
from chipwise.workload.common import Common
from chipwise.workload.kinds import Batch, Serve
from chipwise.workload.model.registry import find
from deployments import few_session as session
from fixed_deployments import CASES, SERVE

ROWS = load(prices=False).rows("images")
ARGUMENTS = Path(__file__).parents[2] / "support" / "arguments"
GPU = Node("aws", "us-east-1", "x", "L40S", "gpu", "NVIDIA", 1, capability=8.9)
CPU = Node("aws", "us-east-1", "x", "EPYC", "cpu", "AMD", 0)
BGE = Model("bge-m3", "BAAI/bge-m3", "fp16", None, 1.1e9, False, pooled=("tei", "vllm"))
ONLINE = Serve.model_validate({"name": "embed", "kind": "serve", "model": "bge-m3", "arrival": {"rate": 10}})
OFFLINE = Batch.model_validate({"name": "embed", "kind": "batch", "model": "bge-m3", "items": 1000})


def chosen(node: Node = GPU, model: Model = BGE, work: Common = ONLINE, split: Split = UNSPLIT) -> Software:
    form = Form.SERVICE if isinstance(work, Serve) else Form.JOB
    request = SoftwareRequest(work, form, node, model, 1, split, 16, "embed", longest_s=0.1)
    return software_of(request, ROWS)


def known(name: str) -> set[str]:
    [path] = ARGUMENTS.glob(f"{name}-[0-9]*.txt")
    return {line for line in path.read_text().splitlines() if not line.startswith("#")}


def flags(words: tuple[str, ...]) -> set[str]:
    return {word.partition("=")[0] for word in words if word.startswith("-")}


@pytest.mark.parametrize(
    ("capability", "tag"),
    [
        (7.5, "turing-1.9"),
        (8.0, "1.9"),
        (8.6, "86-1.9"),
        (8.9, "89-1.9"),
        (9.0, "hopper-1.9"),
        (10.0, "100-1.9"),
        (12.0, "120-1.9"),
    ],
)
def test_a_service_takes_the_build_of_tei_for_its_chip(capability: float, tag: str) -> None:
    software = chosen(replace(GPU, capability=capability))
    assert software.engine == "tei"
    assert software.image == f"ghcr.io/huggingface/text-embeddings-inference:{tag}"
    assert not software.built


def test_tei_is_started_with_arguments_of_its_release() -> None:
    software = chosen()
    assert software.command[:3] == ("text-embeddings-router", "--model-id", "BAAI/bge-m3")
    assert flags(software.command) <= known("tei")
    assert dict(software.env)["HUGGINGFACE_HUB_CACHE"] == "/models/hub"
    assert software.command[software.command.index("--hostname") + 1] == "0.0.0.0"


@pytest.mark.parametrize(("precision", "number"), [("fp16", "float16"), ("bf16", "float16"), ("fp32", "float32")])
def test_numbers_are_those_that_tei_has(precision: str, number: str) -> None:
    command = chosen(model=replace(BGE, precision=precision)).command
    assert command[command.index("--dtype") + 1] == number


def test_a_chip_without_a_build_of_tei_has_vllm_pool() -> None:
    software = chosen(replace(GPU, chip="V100", capability=7.0))
    assert software.engine == "vllm"
    assert software.command[software.command.index("--runner") :][:2] == ("--runner", "pooling")
    assert chosen(replace(GPU, arch="arm64", capability=9.0)).engine == "vllm"


def test_processors_compute_32_bits_by_tei_and_16_by_vllm() -> None:
    assert chosen(CPU, replace(BGE, precision="fp32")).command[0] == "text-embeddings-router"
    assert chosen(CPU, replace(BGE, precision="bf16")).command[0] == "vllm"


def test_numbers_that_neither_computes_stay_with_triton() -> None:
    assert chosen(model=replace(BGE, precision="int8")).engine == "triton"


def test_triton_is_ready_when_the_model_is_and_it_is_said_who_puts_it_there() -> None:
    """The server alone is ready with no model at all, and a rollout would put it in place of one that answers."""
    model = replace(BGE, precision="int8")
    software = chosen(model=model)
    assert software.health == f"/v2/models/{model.served}/ready"
    [note] = weight_notes(software, model, Form.SERVICE)
    assert "/models must hold" in note
    assert weight_notes(replace(software, is_custom=True), model, Form.SERVICE) == ()


def test_a_batch_goes_through_vllm_with_arguments_of_its_release() -> None:
    software = chosen(work=OFFLINE)
    assert software.command[:2] == ("vllm", "run-batch")
    assert "--runner" in software.command
    assert flags(software.command) <= known("vllm-run-batch")


def test_a_service_of_vllm_has_arguments_of_its_release() -> None:
    software = chosen(model=replace(BGE, pooled=("vllm",)))
    assert software.command[:3] == ("vllm", "serve", "BAAI/bge-m3")
    assert flags(software.command) <= known("vllm-serve")


@pytest.mark.parametrize("name", ["serve", "wide", "azure"])
def test_services_of_text_have_arguments_of_the_pinned_release(name: str) -> None:
    software = CASES[name].software
    assert software.engine == "vllm"
    assert flags(software.command) <= known("vllm-serve")


@pytest.mark.parametrize("precision", ["fp8", "bf16"])
@pytest.mark.parametrize("split", [UNSPLIT, GenerationSplit(tp=8, pp=2, replicas=1)])
def test_sglang_is_started_with_arguments_of_its_release(precision: str, split: Split) -> None:
    text = Model("llama-3-1-8b", "meta-llama/Llama-3.1-8B", precision, 8192, 8e9, True)
    named = {"name": "chat", "kind": "serve", "model": "bge-m3", "arrival": {"rate": 1}, "program": {"engine": "sglang"}}
    software = chosen(model=text, work=Serve.model_validate(named), split=split)
    assert software.command[:3] == ("python3", "-m", "sglang.launch_server")
    assert flags(software.command) - {"-m"} <= known("sglang"), "in full: a cut name holds only until another begins like it"


def test_a_group_of_sglang_has_arguments_of_its_release() -> None:
    wide = CASES["wide"]
    command = ("python3", "-m", "sglang.launch_server", "--model-path", "a/b", "--tp-size", "8", "--pp-size", "2")
    planned = replace(wide, software=replace(wide.software, engine="sglang", command=command))
    text = "".join(file.text for file in kubernetes.render(planned))
    [group] = [one for one in yaml.safe_load_all(text) if one["kind"] == "LeaderWorkerSet"]
    pods = group["spec"]["leaderWorkerTemplate"]
    words = [pods[role]["spec"]["containers"][0]["command"] for role in ("leaderTemplate", "workerTemplate")]
    assert all(flags(tuple(map(str, one))) - {"-m"} <= known("sglang") for one in words)


def test_tgi_is_started_with_arguments_of_its_release() -> None:
    text = Model("llama-3-1-8b", "meta-llama/Llama-3.1-8B", "fp8", 8192, 8e9, True)
    named = {"name": "chat", "kind": "serve", "model": "bge-m3", "arrival": {"rate": 1}, "program": {"engine": "tgi"}}
    software = chosen(model=text, work=Serve.model_validate(named))
    assert software.command[0] == "text-generation-launcher"
    assert flags(software.command) <= known("tgi")


@pytest.mark.parametrize(
    ("name", "engines"),
    [
        ("bge-m3", ("tei", "vllm")),
        ("bert-base", ("tei", "vllm")),
        ("BAAI/bge-reranker-large", ("tei", "vllm")),
        ("mpnet-base", ("tei",)),
        ("distilbert-base", ("tei",)),
        ("clip-l-text", ()),
        ("t5-xxl-encoder", ()),
        ("llama-3.1-8b", ("vllm",)),
    ],
)
def test_engines_pool_the_networks_that_they_know(name: str, engines: tuple[str, ...]) -> None:
    assert poolers(find(name).shape) == engines


@pytest.mark.parametrize(("engine", "metric"), [("tei", "te_queue_size"), ("triton", "nv_inference_pending_request_count")])
def test_an_engine_that_counts_those_that_wait_is_scaled_by_them(engine: str, metric: str) -> None:
    scaler = services.autoscaler(replace(SERVE, software=replace(SERVE.software, engine=engine)))
    assert f"'name': '{metric}'" in str(plain(scaler))


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/health" else 503)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_tei_has_time_to_answer_behind_its_batch() -> None:
    """Its /health asks the backend: with a second of time, a pod that works would be taken from the Service."""
    spec = plain(template(replace(SERVE, software=replace(SERVE.software, engine="tei")), [], {}))
    assert isinstance(spec, dict)
    [container] = spec["spec"]["containers"]
    probe = container["readinessProbe"]
    assert probe["timeoutSeconds"] >= 5
    assert probe["failureThreshold"] >= 3


def test_the_health_check_of_tei_runs_without_python_or_curl() -> None:
    server = HTTPServer(("127.0.0.1", 0), _Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    try:
        for path, expected in (("/health", 0), ("/other", 1)):
            planned = replace(SERVE, software=replace(SERVE.software, engine="tei", port=port, health=path))
            words = check_words(planned)
            assert words is not None
            assert subprocess.run(words, timeout=20).returncode == expected
    finally:
        server.shutdown()
        server.server_close()


def test_a_volume_has_room_for_embeddings_as_text_and_a_shard_for_memory() -> None:
    text = "name: nightly\nkind: batch\nmodel: bge-large-en-v1.5\nitems: 20M\ninput_tokens: 400\n"
    nightly = f"{text}schedule: {{kind: cron, expression: '0 1 * * *', time_zone: UTC}}\n"
    once, again = (deployment_of(session(), "x.yaml", RenderRequest(text=one)) for one in (text, nightly))
    answered = 20e6 * 1024 * 21
    sizes = [volume.size_bytes for one in (once, again) if (volume := one.volume("data")) is not None]
    assert answered < sizes[0] < 1.5 * answered
    assert sizes[1] > sizes[0] + answered
    assert answered / shards(again) <= MOST_ANSWERED_BYTES
