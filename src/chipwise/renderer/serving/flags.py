"""The words by which engines serve a model: the same in rendered files and for replicas that are started here."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.serving.engine import ReplicaRequest

VLLM_NUMBERS = {
    "fp8": ("--quantization", "fp8"),
    "fp16": ("--dtype", "float16"),
    "bf16": ("--dtype", "bfloat16"),
    "fp32": ("--dtype", "float32"),
}
TGI_NUMBERS = {
    "fp8": ("--quantize", "fp8"),
    "int8": ("--quantize", "compressed-tensors"),
    "int4": ("--quantize", "awq"),
    "nf4": ("--quantize", "bitsandbytes-nf4"),
    "fp16": ("--dtype", "float16"),
    "bf16": ("--dtype", "bfloat16"),
}


@dataclass(frozen=True, slots=True)
class EngineFlags:
    """What a plan says of one replica. None and empty: the engine's own default."""

    source: str  # an id of the hub or a path
    served: str
    port: int
    host: str = "0.0.0.0"
    precision: str = ""
    context: int | None = None
    slots: int | None = None  # requests at once
    tensor_ways: int = 1
    stages: int = 1


def of_replica(request: ReplicaRequest) -> EngineFlags:
    """What a replica on this machine is started with."""
    return EngineFlags(
        source=request.model,
        served=request.served,
        port=request.port,
        host=request.host,
        precision=request.precision,
        context=request.context,
        slots=request.at_once,
        tensor_ways=request.tensor_ways,
        stages=request.stages,
    )


def vllm_limits(flags: EngineFlags) -> tuple[str, ...]:
    """Splits and sizes, which a batch has as well."""
    words: list[str] = []
    for flag, ways in (("--tensor-parallel-size", flags.tensor_ways), ("--pipeline-parallel-size", flags.stages)):
        if ways > 1:
            words += [flag, str(ways)]
    if flags.context is not None:
        words += ["--max-model-len", str(flags.context)]
    if flags.slots is not None:
        words += ["--max-num-seqs", str(flags.slots)]
    return tuple(words)


def vllm_head(flags: EngineFlags) -> tuple[str, ...]:
    served = ("--served-model-name", flags.served)
    return ("vllm", "serve", flags.source, *served, "--host", flags.host, "--port", str(flags.port))


def vllm(flags: EngineFlags) -> tuple[str, ...]:
    return (*vllm_head(flags), *VLLM_NUMBERS.get(flags.precision, ()), *vllm_limits(flags))


def tgi(flags: EngineFlags) -> tuple[str, ...]:
    words = ["text-generation-launcher", "--model-id", flags.source, "--port", str(flags.port)]
    words += ["--num-shard", str(flags.tensor_ways), *TGI_NUMBERS.get(flags.precision, ())]
    if flags.context is not None:
        words += ["--max-total-tokens", str(flags.context), "--max-input-tokens", str(flags.context - 1)]
    if flags.slots is not None:
        words += ["--max-batch-size", str(flags.slots), "--max-concurrent-requests", str(2 * flags.slots)]
    return tuple(words)


def sglang(flags: EngineFlags) -> tuple[str, ...]:
    words = ["python3", "-m", "sglang.launch_server", "--model-path", flags.source, "--served-model-name", flags.served]
    words += ["--host", flags.host, "--port", str(flags.port), "--tp-size", str(flags.tensor_ways)]
    if flags.stages > 1:
        words += ["--pp-size", str(flags.stages)]
    if flags.precision == "fp8":
        words += ["--quantization", "fp8"]
    elif flags.precision in ("fp16", "bf16", "fp32"):
        words += VLLM_NUMBERS[flags.precision]
    if flags.context is not None:
        words += ["--context-length", str(flags.context)]
    if flags.slots is not None:
        words += ["--max-running-requests", str(flags.slots)]
    return tuple(words)
