"""What can be served, and what is refused before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from chipwise.api.serving.engines import check_here
from chipwise.api.serving.resolving import ServeRequest, resolve
from chipwise.api.session.wiring import Session
from chipwise.errors import BadInput, UnknownName
from chipwise.serving.engine import ReplicaRequest

OWN = """
kind: serve
name: Echo.service
model: llama-3.2-1b
arrival: {rate: 1 req/s}
input_tokens: 10
output_tokens: 10
goals: {ttft: {p95: 800ms}}
program: {command: [python, server.py, "--port=8123"], port: 8123, health: /ready, env: {MODE: fast}}
"""


def test_a_gguf_file_is_served_by_llama_cpp(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "Tiny Model.gguf"
    path.write_bytes(b"GGUF" + bytes(1_000_000))
    served = resolve(session, ServeRequest((str(path),), context=2048, at_once=2))
    assert (served.name, served.engine, served.request.model) == ("tiny-model", "llama.cpp", str(path))
    assert (served.request.context, served.request.at_once) == (2048, 2)
    assert served.expected.expected_s == pytest.approx(0.001, rel=0.01)


def test_a_command_is_served_as_it_is(session: Session) -> None:
    served = resolve(session, ServeRequest(("python", "chat.py", "{port}"), is_command=True, name="mine"))
    assert (served.name, served.engine, served.request.command) == ("mine", "command", ("python", "chat.py", "{port}"))


def test_a_workload_with_a_command_gives_each_replica_its_own_port(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "echo.yaml"
    path.write_text(OWN)
    served = resolve(session, ServeRequest((str(path),)))
    assert served.name == "echo-service"
    assert served.request.command == ("python", "server.py", "--port={port}")
    assert served.request.health == "/ready"
    assert served.goals == {"ttft p95": 0.8}
    assert (served.env, served.folder) == ({"MODE": "fast"}, str(tmp_path))


def test_a_workload_is_served_from_a_file_by_llama_cpp(session: Session, tmp_path: Path) -> None:
    workload, weights = tmp_path / "echo.yaml", tmp_path / "m.gguf"
    workload.write_text(OWN)
    weights.write_bytes(b"GGUF")
    served = resolve(session, ServeRequest((str(workload),), weights=str(weights)))
    assert (served.engine, served.request.model, served.request.served) == ("llama.cpp", str(weights), "llama-3-2-1b")


def test_a_model_by_name_is_the_one_of_the_hub(session: Session) -> None:
    served = resolve(session, ServeRequest(("llama-3.1-8b",), engine="tgi"))
    assert served.request.model.startswith("meta-llama/")
    assert served.engine == "tgi"


@pytest.mark.parametrize(
    ("words", "options", "reason"),
    [
        ((), {}, "There is nothing to serve"),
        (("a.gguf", "b.gguf"), {}, "is more than one thing"),
        (("net.onnx",), {}, "No engine here serves net.onnx"),
        (("./x",), {"is_command": True, "engine": "vllm"}, "A command is served as it is, and not by vllm"),
        (("llama-3.1-8b",), {"engine": "command"}, "The engine command needs a command"),
        (("examples/train/workload.yaml",), {}, "is of the kind train"),
        (("examples/serve/workload.yaml",), {"engine": "llama.cpp"}, "Give the file with --weights"),
    ],
)
def test_what_cannot_be_served_is_refused(
    words: tuple[str, ...], options: dict[str, object], reason: str, session: Session
) -> None:
    with pytest.raises(BadInput, match=reason):
        resolve(session, ServeRequest(words, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("chip", "engine", "precision", "components", "reason"),
    [
        ("T4", "vllm", "fp8", {}, "fp8 needs compute capability 8.9 or newer"),
        ("T4", "vllm", "bf16", {}, "bf16 needs compute capability 8.0 or newer"),
        ("T4", "vllm", "", {"flash-attention": "2"}, "FlashAttention needs compute capability 8.0 or newer"),
        ("V100", "sglang", "", {}, "SGLang .FlashInfer. needs compute capability 7.5 or newer"),
    ],
)
def test_a_chip_that_cannot_run_it_is_refused_with_the_reason(
    chip: str,
    engine: str,
    precision: str,
    components: dict[str, str],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    session: Session,
) -> None:
    monkeypatch.setenv("CHIPWISE_GPUS", "0")
    monkeypatch.setenv("CHIPWISE_CHIP", chip)
    with pytest.raises(BadInput, match=reason):
        check_here(session, engine, ReplicaRequest("m", "m", precision=precision), components)


def test_an_engine_that_there_is_not_is_named_with_those_that_there_are(session: Session) -> None:
    with pytest.raises(UnknownName, match=r"llama\.cpp"):
        check_here(session, "lama.cpp", ReplicaRequest("m", "m"), {})
