"""Models that read text and write none: embeddings and rankings, by Text Embeddings Inference (TEI) or vLLM's pooling runner.

TEI answers requests and reads no batch files, computes in 16 or 32 bits on NVIDIA chips and in 32 on processors. vLLM does both
in 16 and 32 bits, and pools what decoders compute as well. Which networks each knows: TEI 1.9, "Supported models" of its
README; vLLM 0.32.0, vllm/model_executor/models/registry.py.
"""

from __future__ import annotations

from collections.abc import Collection

from chipwise.renderer.deployment import Model
from chipwise.workload.model.decoder import DecoderShape
from chipwise.workload.model.encoder import EncoderShape
from chipwise.workload.model.shape import Shape

TEI, VLLM = "tei", "vllm"
RUNNER = ("--runner", "pooling")
TEI_NUMBERS = {
    "nvidia": {"fp16": "float16", "bf16": "float16", "fp32": "float32"},  # its CUDA builds have no bfloat16
    "cpu": {"fp32": "float32"},
}
_VLLM_NUMBERS = ("fp16", "bf16", "fp32")
_VLLM_DEVICES = ("nvidia", "amd", "cpu")  # builds for others generate text alone


def poolers(shape: Shape) -> tuple[str, ...]:
    """Engines that pool what a network computes. Of encoders those like BERT: others are towers of larger models."""
    if isinstance(shape, DecoderShape):
        return (VLLM,)
    if not isinstance(shape, EncoderShape) or not shape.embedding_norm:
        return ()
    known_to_vllm = shape.token_types > 0  # MPNet and DistilBERT have none, and vLLM has neither
    return (TEI, VLLM) if known_to_vllm else (TEI,)


def pooling_engine(model: Model, device: str, serves: bool, images: Collection[str]) -> str | None:
    """The engine for a model on a device, among those with an image that runs there; None: no engine does it by itself."""
    if TEI in model.pooled and TEI in images and serves and model.precision in TEI_NUMBERS.get(device, {}):
        return TEI
    known = VLLM in model.pooled and VLLM in images and device in _VLLM_DEVICES
    return VLLM if known and model.precision in _VLLM_NUMBERS else None


def tei_words(model: Model, device: str, port: int, slots: int | None) -> tuple[str, ...]:
    """`--hostname`, since TEI reads it from HOSTNAME otherwise, which in a pod is the pod's name."""
    words = ["text-embeddings-router", "--model-id", model.source, "--served-model-name", model.served]
    words += ["--hostname", "0.0.0.0", "--port", str(port)]
    if number := TEI_NUMBERS.get(device, {}).get(model.precision):
        words += ["--dtype", number]
    if slots is not None:
        words += ["--max-concurrent-requests", str(2 * slots)]
    return tuple(words)
