"""What a service keeps between starts: weights from the hub, and what engines compile for a chip and a model.

Compiled kernels are kept beside the weights. Engines name them by everything that they depend on, so that a new version or
other settings find none of the old ones. Times are published ones; nobody has measured them for every model and disk.
"""

from __future__ import annotations

from collections.abc import Iterable

from chipwise.renderer.deployment import Deployment, Form, Model, Node, Volume
from chipwise.renderer.file import CannotRender
from chipwise.renderer.launch.health import FETCH_BYTES_PER_S
from chipwise.text import decimal_size, duration

KERNELS = "/models/kernels"
# From the hub to one p5.48xlarge: Llama 3 70B (141 GB) in 207 s, Qwen3 235B in 705 s, less what reading the files took.
FASTEST_FETCH_BYTES_PER_S = 0.68e9
# Llama 3 70B in bf16 on 4 H100 by vLLM 0.11: load and engine start, with nothing kept and with weights and kernels kept.
EMPTY_S, KEPT_S = 315, 57
_MEASURED = "ray-serve-llm-perf-examples, replica initialization, October 2025"


def kernel_settings(purpose: str, node: Node) -> dict[str, str]:
    """Where an engine keeps what it compiles. By itself it is the home of its user, which is gone with the pod."""
    if node.kind == "neuron" and purpose in ("vllm", "pytorch"):
        cache = {"NEURON_COMPILE_CACHE_URL": f"{KERNELS}/neuron"}
        return cache | ({"VLLM_CACHE_ROOT": f"{KERNELS}/vllm"} if purpose == "vllm" else {})
    match purpose:
        case "vllm" if node.kind == "tpu":  # whose graphs are kept elsewhere than the rest: by itself in the user's home
            return {"VLLM_CACHE_ROOT": f"{KERNELS}/vllm", "VLLM_XLA_CACHE_PATH": f"{KERNELS}/xla"}
        case "vllm":
            return {"VLLM_CACHE_ROOT": f"{KERNELS}/vllm"}
        case "sglang":
            return {"TORCHINDUCTOR_CACHE_DIR": f"{KERNELS}/inductor", "TRITON_CACHE_DIR": f"{KERNELS}/triton"}
    return {}


def fetch_seconds(model: Model) -> tuple[float, float] | None:
    """Of the weights, from the fastest that was measured to what time-outs reckon with."""
    size = model.fetched_bytes or model.weight_bytes
    return (size / FASTEST_FETCH_BYTES_PER_S, size / FETCH_BYTES_PER_S) if size else None


def with_cache(deployment: Deployment) -> Deployment:
    """Refuses a cache that the machine's disk cannot hold."""
    volume, node = deployment.volume("models"), deployment.node
    if volume is None or not volume.on_machine:
        return deployment
    copies, disk = deployment.per_machine, node.disk_bytes
    if disk is None or copies * volume.size_bytes > disk:
        has = decimal_size(disk) if disk else "no disk of its own that we know of"
        raise CannotRender(
            f"{node.machine} has {has}, and {copies} x {decimal_size(volume.size_bytes)} of weights and kernels are to be kept"
            " on it.",
            remedy="Leave program.cache out: they are kept on storage that all machines share.",
        )
    return deployment


def cache_notes(engine: str, model: Model | None, form: Form, volumes: Iterable[Volume]) -> tuple[str, ...]:
    """Where somebody chose its place: what a start takes with an empty cache, and what a kept one saves, as far as is known."""
    times = fetch_seconds(model) if model is not None else None
    chosen = next((one for one in volumes if one.on_machine or one.storage_class), None)
    if (
        chosen is None
        or form is not Form.SERVICE
        or engine not in ("vllm", "sglang")
        or model is None
        or times is None
        or not model.generates
    ):
        return ()
    place = "the machine's own disk, as long as a pod lives" if chosen.on_machine else f"a volume of {chosen.storage_class}"
    sentence = (
        f"Weights and compiled kernels are kept on {place}. With nothing kept a start fetches for {duration(times[0])} to"
        f" {duration(times[1])} and compiles."
    )
    if engine == "vllm":
        sentence += (
            f" Measured by others on 4 H100: Llama 3 70B was ready {EMPTY_S} s after a start with nothing kept and {KEPT_S} s"
            f" after one with both on a local disk ({_MEASURED})."
        )
    return (sentence,)
