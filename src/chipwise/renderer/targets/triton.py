"""Triton Inference Server: a model repository with its configuration. The model's own file is the user's to put there."""

from __future__ import annotations

import json
import math

from chipwise.planner.values.split import SampleTrainingSplit
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.launch.timing import drain_seconds
from chipwise.renderer.quoting import one_line
from chipwise.renderer.serving import script
from chipwise.renderer.serving.settings import engine_settings, promised, weights

FITS = "served models: ONNX, TorchScript, TensorRT or OpenVINO with dynamic batching, text models by its vLLM backend"
EXPRESSES = frozenset({"layers", "regions"})  # one machine serves alike however it is bought, and wherever
WRITES = ("serve.sh",)
REPOSITORY = "model_repository"
WAIT_PART = 0.1  # of the latency goal that a request may wait for others
WAIT_S = 0.005  # where there is no goal
LARGEST = 128
HTTP, GRPC, METRICS = 8000, 8001, 8002
# Format of the file: backend, name of the file, how to get one.
_FORMATS = {
    "onnx": ("onnxruntime", "model.onnx"),
    "torchscript": ("pytorch", "model.pt"),
    "pt": ("pytorch", "model.pt"),
    "tensorrt": ("tensorrt", "model.plan"),
    "plan": ("tensorrt", "model.plan"),
    "openvino": ("openvino", "model.xml"),
}


def render(deployment: Deployment) -> list[File]:
    if deployment.form is not Form.PIPELINE:
        return _stage_files(deployment, "")
    serving = [stage for stage in deployment.stages if stage.form is Form.SERVICE and stage.model is not None]
    if not serving:
        raise CannotRender("No stage of the pipeline serves a model.", remedy="Use --to argo for its stages.")
    formats = {one.target: one.format for one in deployment.hand_offs if one.format}
    files = [file for stage in serving for file in _stage_files(stage, formats.get(stage.title, ""))]
    return list({file.path: file for file in files}.values())


def _stage_files(deployment: Deployment, format_name: str) -> list[File]:
    _can(deployment)
    model = deployment.model
    assert model is not None
    name = model.served
    folder = f"{REPOSITORY}/{name}"
    if model.generates:
        arguments = {"model": weights(model)} | {one.key: one.value for one in engine_settings(deployment)}
        files = [
            File(f"{folder}/config.pbtxt", _config(deployment, name, "vllm", _text_model(deployment), "See 1/model.json.")),
            File(f"{folder}/1/model.json", json.dumps(arguments, indent=2) + "\n"),
        ]
    else:
        backend, file = _FORMATS.get(format_name.lower(), _FORMATS["onnx"])
        about = f"Put the model's file at {folder}/1/{file}"
        about += "." if format_name.lower() in _FORMATS else ", exported from the framework it was trained with."
        body = [*_batching(deployment), *_instances(deployment), *_faster(deployment, backend)]
        files = [File(f"{folder}/config.pbtxt", _config(deployment, name, backend, body, about))]
    return [*files, File("serve.sh", _start(deployment), executable=True)]


def _can(deployment: Deployment) -> None:
    node, model = deployment.node, deployment.model
    if model is None or deployment.form is not Form.SERVICE:
        obstacle = "there is no model with a name" if deployment.form is Form.SERVICE else f"this is a {deployment.form}"
        raise CannotRender(f"Triton serves models, and {obstacle}.", remedy="Use --to kubernetes or dockerfile.")
    if node.accelerated and (node.kind, node.vendor) != ("gpu", "NVIDIA"):
        raise CannotRender(
            f"Triton runs on NVIDIA GPUs and CPUs, and the plan has {node.chip}.",
            remedy="Use --to vllm for text models, else kubernetes; or plan with --chip CHIP.",
        )


def _config(deployment: Deployment, name: str, backend: str, body: list[str], about: str) -> str:
    head = "".join(f"# {one_line(line)}\n" for line in [*heading(deployment, about).splitlines(), *promised(deployment)])
    return head + "\n" + "\n".join([f'name: "{name}"', f'backend: "{backend}"', *body]) + "\n"


def _text_model(deployment: Deployment) -> list[str]:
    return [
        "# The engine takes in requests as they come and batches them itself: Triton must not collect them first.",
        "max_batch_size: 0",
        "model_transaction_policy { decoupled: true }",
        "# The engine uses the chips given to it (tensor_parallel_size in 1/model.json).",
        "instance_group [ { count: 1 kind: KIND_MODEL } ]",
    ]


def wait_s(deployment: Deployment) -> float:
    """A part of the strictest goal for the whole answer."""
    strictest = min((seconds for goal, seconds in deployment.goals.items() if goal.startswith("latency")), default=None)
    return min(max(strictest * WAIT_PART, 100e-6), 0.1) if strictest is not None else WAIT_S


def largest_batch(deployment: Deployment) -> int:
    """What the plan runs at a time, or what comes in within the goal; a power of two, as engines build kernels for those."""
    if isinstance(deployment.split, SampleTrainingSplit):
        return max(deployment.split.batch, 1)
    rate = deployment.scaling.per_replica if deployment.scaling is not None else None
    if rate is None:
        return 16
    arrivals = rate * wait_s(deployment) / WAIT_PART
    return min(1 << max(math.ceil(math.log2(max(arrivals, 1.0))), 2), LARGEST)


def _batching(deployment: Deployment) -> list[str]:
    wait, batch = wait_s(deployment), largest_batch(deployment)
    goals = [seconds for goal, seconds in deployment.goals.items() if goal.startswith("latency")]
    longest = max(goals, default=wait / WAIT_PART)
    reason = (
        "A tenth of the strictest latency goal may go into waiting for others"
        if goals
        else "No latency goal is stated, so little time may go into waiting for others"
    )
    return [
        "# Inputs and outputs are read from the model's file, where the backend can (ONNX, TensorRT, OpenVINO).",
        "# As many as come in within the latency goal; the first dimension of the model must be free.",
        f"max_batch_size: {batch}",
        "dynamic_batching {",
        f"  # {reason}.",
        f"  max_queue_delay_microseconds: {round(wait * 1e6)}",
        "  # Beyond this a request misses even the loosest goal: say so at once.",
        "  default_queue_policy {",
        "    timeout_action: REJECT",
        f"    default_timeout_microseconds: {round(longest * 1e6)}",
        f"    max_queue_size: {4 * batch}",
        "  }",
        "}",
    ]


def _instances(deployment: Deployment) -> list[str]:
    if not deployment.node.accelerated:
        reason = "One for all processors: a backend uses several threads by itself."
        return [f"# {reason}", "instance_group [ { count: 1 kind: KIND_CPU } ]"]
    chips = deployment.node.chips
    reason = "# One copy on a chip, as the plan counts. A second hides copies behind computing: measure before."
    if deployment.per_machine > 1:
        sees = f"{chips} of a machine, {deployment.chips_each} in a pod"
        return [
            reason,
            f"# Without `gpus`: on every chip that the server sees ({sees}).",
            "instance_group [ { count: 1 kind: KIND_GPU } ]",
        ]
    listed = ", ".join(map(str, range(chips)))
    return [reason, f"instance_group [ {{ count: 1 kind: KIND_GPU gpus: [ {listed} ] }} ]"]


def _faster(deployment: Deployment, backend: str) -> list[str]:
    """ONNX through TensorRT, in the numbers that the plan counts on."""
    model = deployment.model
    assert model is not None
    if backend != "onnxruntime" or not deployment.node.accelerated:
        return []
    if model.precision in ("int8", "fp8"):
        return [f"# The plan counts on {model.precision}: the file must carry it (quantised when exported)."]
    if model.precision not in ("fp16", "bf16"):
        return []
    return [
        f"# The plan counts on {model.precision}; TensorRT computes in 16 bits. The first start builds its engine.",
        "optimization { execution_accelerators { gpu_execution_accelerator [ {",
        '  name: "tensorrt"',
        '  parameters { key: "precision_mode" value: "FP16" }',
        '  parameters { key: "trt_engine_cache_enable" value: "true" }',
        '  parameters { key: "trt_engine_cache_path" value: "/tmp/engines" }',
        "} ] } }",
    ]


def _start(deployment: Deployment) -> str:
    model = deployment.model
    assert model is not None
    image = deployment.platforms.get("Images", {}).get("triton", "")
    if model.generates and image:
        image = image.replace("-py3", "-vllm-python-py3")
    about = f"Run it in {image}, beside {REPOSITORY}/." if image else f"Run it in Triton's image, beside {REPOSITORY}/."
    words: list[tuple[str, str | None, str]] = [
        ("tritonserver", None, ""),
        ('--model-repository="$here/' + REPOSITORY + '"', None, ""),
        (f"--http-port={HTTP} --grpc-port={GRPC} --metrics-port={METRICS}", None, ""),
        ("--strict-readiness=true", None, "ready when every model is: the balancer sends nothing before"),
        ("--exit-on-error=true", None, "a model that does not load is a failed start, not an empty server"),
        (
            f"--exit-timeout-secs={drain_seconds(deployment.predicted.longest_s)}",
            None,
            "requests in work are answered before it ends",
        ),
    ]
    body = [*script.surroundings(deployment), 'here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"', *script.command(words)]
    return script.script(heading(deployment, about), body)
