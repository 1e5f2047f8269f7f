"""Serving engines: the words by which each starts, and what each refuses before anything starts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from chipwise.adapters.serving_engines import command, llama_cpp, sglang, tgi, vllm
from chipwise.adapters.serving_programs import llama_cpp as program
from chipwise.api.serving.engines import engine_named, names
from chipwise.errors import BadInput, ChipwiseError, UnknownName
from chipwise.serving.engine import ReplicaRequest, ServingMachine

LLAMA = ReplicaRequest(
    "meta-llama/Llama-3.1-8B-Instruct",
    "llama-8b",
    port=9000,
    gpus=2,
    context=4096,
    at_once=64,
    precision="fp8",
    tensor_ways=2,
)
CPUS, GPUS = ServingMachine(0, 8), ServingMachine(4, 32, "H100-SXM")


def test_every_engine_of_the_issue_is_there_by_the_name_that_people_type() -> None:
    assert set(names()) >= {"command", "llama.cpp", "sglang", "tgi", "vllm"}
    assert engine_named("llama.cpp") is llama_cpp
    with pytest.raises(UnknownName, match=r"Did you mean vllm"):
        engine_named("vlm")


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        (
            vllm,
            (
                "vllm serve meta-llama/Llama-3.1-8B-Instruct --served-model-name llama-8b --host 127.0.0.1 --port 9000 "
                "--quantization fp8 --tensor-parallel-size 2 --max-model-len 4096 --max-num-seqs 64"
            ),
        ),
        (
            tgi,
            (
                "text-generation-launcher --model-id meta-llama/Llama-3.1-8B-Instruct --port 9000 --num-shard 2 --quantize fp8 "
                "--max-total-tokens 4096 --max-input-tokens 4095 --max-batch-size 64 --max-concurrent-requests 128"
            ),
        ),
        (
            sglang,
            (
                "python3 -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct --served-model-name llama-8b "
                "--host 127.0.0.1 --port 9000 --tp-size 2 --quantization fp8 --context-length 4096 --max-running-requests 64 "
                "--enable-metrics"
            ),
        ),
    ],
)
def test_an_engine_is_started_with_the_flags_of_the_plan(engine: object, words: str) -> None:
    start = engine.start(LLAMA)  # type: ignore[attr-defined]
    assert " ".join(start.command) == words
    assert start.at_once == 64
    assert start.first is not None


def test_a_command_listens_where_it_is_told() -> None:
    request = ReplicaRequest("x", "x", port=9000, command=("./server", "--listen=:{port}"), health="/ready")
    start = command.start(request)
    assert start.command == ("./server", "--listen=:9000")
    assert start.env == {"PORT": "9000"}
    assert start.health == "/ready"


def test_llama_cpp_shares_its_context_among_the_requests_at_once(tmp_path: Path) -> None:
    request = ReplicaRequest(str(tmp_path / "a.gguf"), "a", port=9000, cpus=3, context=2048, at_once=8, extra_words=("-v",))
    words = " ".join(llama_cpp.start(request).command)
    assert words.endswith(f"--model {tmp_path}/a.gguf --alias a --port 9000 --parallel 8 --ctx-size 16384 --threads 3 -v")


@pytest.mark.parametrize(
    ("engine", "machine", "reason"),
    [
        (vllm, CPUS, "vLLM needs a GPU, and this machine has none. llama.cpp serves GGUF files on CPUs"),
        (tgi, CPUS, "TGI needs a GPU"),
        (sglang, CPUS, "SGLang needs a GPU"),
        (vllm, ServingMachine(1, 8, "L4"), "The plan splits llama-8b over 2 GPUs, and this machine has 1."),
        (llama_cpp, CPUS, "llama.cpp serves a GGUF file, and meta-llama/Llama-3.1-8B-Instruct is no file here."),
        (command, CPUS, "The engine command needs a command."),
    ],
)
def test_what_an_engine_cannot_do_is_refused_with_the_reason(engine: object, machine: ServingMachine, reason: str) -> None:
    with pytest.raises(BadInput) as caught:
        engine.check(LLAMA, machine)  # type: ignore[attr-defined]
    assert reason in str(caught.value)


def test_an_engine_that_is_not_installed_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    for engine, remedy in (
        (vllm, "pip install vllm"),
        (tgi, "text-generation-inference"),
        (sglang, "pip install 'sglang[all]'"),
    ):
        with pytest.raises(ChipwiseError) as caught:
            engine.check(LLAMA, GPUS)
        assert remedy in str(caught.value)


def test_a_file_that_is_no_gguf_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(BadInput, match="is not a GGUF file"):
        llama_cpp.check(ReplicaRequest(str(path), "model"), CPUS)


def test_llama_cpp_from_the_package_answers_embeddings_where_they_are_asked_for() -> None:
    """With a stand-in for the library, which has a setting for each word."""
    library = SimpleNamespace(
        CommonParams=lambda: SimpleNamespace(
            model=SimpleNamespace(), model_alias=set(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace()
        ),
        llama_pooling_type=SimpleNamespace(LLAMA_POOLING_TYPE_MEAN=1, LLAMA_POOLING_TYPE_LAST=3),
    )
    words = ["--model", "tiny.gguf", "--port", "9000", "--threads", "2"]
    plain = program.parameters(library, program.options_parser().parse_args(words))
    assert not hasattr(plain, "embedding")
    with_embeddings = program.parameters(
        library, program.options_parser().parse_args([*words, "--embeddings", "--pooling", "last"])
    )
    assert (with_embeddings.embedding, with_embeddings.pooling_type) == (True, 3)
    assert with_embeddings.cpuparams.n_threads == 2
