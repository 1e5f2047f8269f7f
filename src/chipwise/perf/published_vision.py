"""Rows of vision, encoder and diffusion measurements, published or our own, as configurations the model can be asked about.

Only what was run is read: `metric_value` and `other_reported` never, and of `notes` just the patterns below (scenario and
submitter, picture size, denoising steps, cores and copies, software, input pipeline). What a row leaves blank is filled with
what such a submission runs.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache

from chipwise.perf.net import Net, Size
from chipwise.perf.part import Part
from chipwise.perf.row_networks import net_of_row, side_of
from chipwise.perf.rows import Row
from chipwise.perf.tables import rows
from chipwise.perf.vision import METRICS


@dataclass(frozen=True, slots=True)
class VisionSoftware:
    """What software makes of a network."""

    unfused: float  # element-wise work that is left; 1: a pass for each norm, activation and sum
    scores: float  # passes over the square of scores that are left; 0: fused attention
    kernels: float  # per product
    launch_s: float  # of a kernel, on the host


TASKS = (
    "bert",
    "image-classification",
    "object-detection",
    "semantic-segmentation",
    "instance-segmentation",
    "medical-segmentation",
    "keypoint-detection",
    "oriented-detection",
    "video-classification",
    "encoder",
    "embedding",
    "reranker",
    "speech",
    "diffusion",
    "video-diffusion",
    "other",
)
_TRAINING = tuple(f"{task}-train" for task in TASKS)
_TRAINED = re.compile(
    r"^(resnet|resnext|ssd|retinanet|vgg|vit\b|vision-perceiver|clip|stable-diffusion|sd-|sdxl|flux|pixart|dlrm)", re.IGNORECASE
)
# Starting points of the fit, from the rows themselves.
ENGINES = {
    "tensorrt": VisionSoftware(0.05, 0.05, 1.0, 1e-6),
    "triton-tensorrt": VisionSoftware(0.3, 0.3, 1.5, 1e-6),
    "fastertransformer": VisionSoftware(0.3, 0.3, 4.0, 4e-6),
    "xla": VisionSoftware(1.2, 1.2, 6.0, 6e-6),
    "pytorch": VisionSoftware(1.8, 0.0, 3.5, 30e-6),
    "pytorch-1": VisionSoftware(1.8, 1.8, 3.5, 30e-6),
    "pytorch-compiled": VisionSoftware(0.5, 0.0, 2.0, 12e-6),
    "cuda-graph": VisionSoftware(1.8, 0.0, 3.5, 1e-6),
    "torchscript": VisionSoftware(1.4, 1.4, 4.0, 12e-6),
    "paddle": VisionSoftware(1.4, 1.4, 4.0, 15e-6),
    "ggml": VisionSoftware(1.2, 1.2, 4.0, 6e-6),
    "triton-pytorch": VisionSoftware(1.8, 1.8, 4.0, 20e-6),
    "mxnet": VisionSoftware(0.8, 0.8, 3.0, 8e-6),
    "onnxruntime": VisionSoftware(0.6, 0.6, 2.0, 8e-6),
    "flax": VisionSoftware(0.6, 0.6, 1.5, 2e-6),
    "neuron": VisionSoftware(0.2, 0.2, 1.0, 0.5e-6),
    "habana": VisionSoftware(0.6, 0.2, 2.0, 4e-6),
    "openvino": VisionSoftware(0.4, 0.4, 1.0, 2e-6),
    "pytorch-cpu": VisionSoftware(0.8, 0.8, 2.0, 3e-6),
}
# What in a row's engine names which of these, the first that is found.
_MARKS = (
    ("neuron", "neuron"),
    ("whisper.cpp", "ggml"),
    ("triton + tensorrt", "triton-tensorrt"),
    ("triton + pytorch", "triton-pytorch"),
    ("pytorch eager", "pytorch-1"),
    ("fastertransformer", "fastertransformer"),
    ("tensorrt", "tensorrt"),
    ("xla", "xla"),
    ("tf-nightly", "xla"),
    ("openvino", "openvino"),
    ("flax", "flax"),
    ("jax", "flax"),
    ("mxnet", "mxnet"),
    ("onnx", "onnxruntime"),
    ("tensorflow", "xla"),
)
# What the column `compiled` says beside the engine.
_COMPILED = {
    "compile": "pytorch-compiled",
    "blocks": "pytorch-compiled",
    "graph": "cuda-graph",
    "tensorrt": "tensorrt",
    "onnxruntime": "onnxruntime",
    "openvino": "openvino",
    "torchscript": "torchscript",
    "paddle": "paddle",
    "xla": "xla",
}
_PLAIN = {"cpu": "pytorch-cpu", "gaudi": "habana", "neuron": "neuron", "tpu": "flax"}  # PyTorch, or no name at all
# Bytes of an activation and of a weight.
FORMATS = {
    "fp32": (4.0, 4.0),
    "tf32": (4.0, 4.0),
    "fp16": (2.0, 2.0),
    "bf16": (2.0, 2.0),
    "fp8": (1.0, 1.0),
    "int8": (1.0, 1.0),
    "fp4": (1.0, 0.56),
}
_SCENARIOS = {"SingleStream": "single-stream", "MultiStream": "multi-stream", "Offline": "offline", "Server": "server"}
_SQUAD = 178.0  # mean tokens of the questions that MLPerf asks BERT; submissions do not pad to 384
_FILLED = 0.5  # FasterTransformer's example draws lengths evenly from 0 to the longest and skips the padding
_STEPS = {"sdxl-base": 20.0, "pixart-alpha": 20.0, "pixart-sigma": 20.0, "sd-1.5": 50.0, "sd-2.1": 50.0}
# Latency bounds of the MLPerf server scenario, in seconds.
_BOUNDS = {"resnet": 0.015, "bert": 0.13, "retinanet": 0.1, "ssd": 0.1, "sdxl": 20.0}
_LARGEST = 2048.0  # batch that submissions use
_DECODE_S = 1.0 / 7000.0  # a picture from its file to the chip, on the host of one chip
_CLOCK = 0.7  # guaranteed over boost, where the catalog does not say
_STACKED = 1.5e12  # bytes/s that only stacked memory gives, likewise


@dataclass(frozen=True, slots=True)
class VisionCase:
    """One configuration in full."""

    model: str  # the registry's name where it knows the model
    net: Net
    part: Part
    chips: float
    copies: float  # replicas side by side
    share: float  # of a chip that one copy has, where its cores work apart
    tensor: float
    stages: float  # of a pipeline
    batch: float  # samples of one copy's pass
    in_flight: float  # batches that each copy holds at once
    precision: str
    engine: str  # a name of ENGINES
    version: str  # with its release
    setting: str  # layout of pictures and automatic mixed precision, as far as stated
    scenario: str  # single-stream, multi-stream, offline, server, static, train
    source: str
    submitter: str
    metric: str
    node: float  # chips of one machine
    decoded: float  # seconds of host work per sample of an input pipeline
    input_width: float  # bytes of an input value on its way to the chip
    overlapped: bool  # the next batch comes in while this one is worked on
    guessed: int  # settings the row left open
    table_ways: float = 1.0  # chips that embedding tables are split over

    @property
    def training(self) -> bool:
        return self.scenario == "train"


def handles(row: Row) -> bool:
    """Inference rows of these tasks, and training rows of networks that are no language models."""
    task = row.text("task")
    return task in TASKS or task in _TRAINING or (not task.startswith("llm") and _TRAINED.match(row.text("model")) is not None)


def case_of(row: Row, part: Part) -> VisionCase:
    return _served(row, part) if row.text("task") in TASKS else _trained(row, part)


def engine_of(text: str, part: Part, compiled: str = "") -> tuple[str, str]:
    """A name of ENGINES, and the same with its release."""
    lowered = text.lower()
    usual = "openvino" if part.kind == "cpu" and not text else _PLAIN.get(part.kind, "pytorch" if text else "tensorrt")
    release = re.search(r"torch\D{0,3}(\d+\.\d+)", lowered) or re.search(r"(\d+\.\d+)", text)
    if compiled == "eager":
        old = release is not None and re.match(r"(0|1)\.", release[1]) and "torch" in lowered
        usual = "pytorch-cpu" if part.kind == "cpu" else "pytorch-1" if old else "pytorch"
    name = _COMPILED.get(compiled) or next((name for mark, name in _MARKS if mark in lowered), usual)
    return name, f"{name} {release[1]}" if release else name


def precision_of(text: str, part: Part) -> str:
    """The format of the products."""
    lowered = text.lower()
    if part.kind == "neuron" and "fp8" not in lowered:
        return "bf16"  # the compiler casts products whatever the weights' format
    if not lowered:
        return {"cpu": "int8", "tpu": "bf16", "gaudi": "bf16"}.get(part.kind, "fp16")
    formats = ("fp4", "fp8", "int8", "bf16", "fp16", "tf32", "fp32")
    name = next((mark for mark in formats if mark in lowered), "fp16")
    return "fp32" if name == "tf32" and not part.has("tf32") else name


@dataclass(frozen=True, slots=True)
class _Silicon:
    """What the catalog says of a chip that `Part` does not carry."""

    clock: float
    memory: str


@cache
def _silicon() -> dict[str, _Silicon]:
    return {
        row["name"]: _Silicon(float(row["base_mhz"] or 0) / float(row["boost_mhz"] or 1) or _CLOCK, row["memory_type"])
        for row in rows("../chips.csv")
    }


def clock(part: Part) -> float:
    """What a chip's clock keeps under full load at least, over the boost clock that its peak is stated for."""
    known = _silicon().get(part.name)
    return known.clock if known else _CLOCK


def stacked(part: Part) -> bool:
    """High-bandwidth memory beside the chip: within one architecture, another chip than those with graphics memory."""
    known = _silicon().get(part.name)
    return known.memory.startswith("HBM") if known else part.bandwidth > _STACKED


def _served(row: Row, part: Part) -> VisionCase:
    notes, name, task, metric = (row.text(column) for column in ("notes", "model", "task", "metric_name"))
    mlperf = re.search(r"scenario (\w+);", notes)
    scenario = _SCENARIOS.get(mlperf[1], "static") if mlperf else "static"
    stated = re.search(r"(\d+) Euler steps", notes)
    steps = row.number("steps", 0.0) or (float(stated[1]) if stated else _STEPS.get(name.lower(), 0.0))
    picture = Size(row.number("clip_s", 0.0) or side_of(row), steps, guidance=row.number("guidance", 0.0))
    engine, version = engine_of(row.text("engine") or row.text("framework"), part, row.text("compiled"))
    precision = precision_of(row.text("precision_weights"), part)
    tokens, padded = row.number("input_len", 0.0) or 128.0, 0.0
    if mlperf and task == "bert":
        tokens = _SQUAD
        if engine == "tensorrt" and precision == "fp16" and part.architecture == "Hopper":
            precision = "fp8"  # the results name the format of the inputs; the code narrows
    elif engine == "fastertransformer" and "(Triton)" in row.text("engine"):
        tokens, padded = _FILLED * tokens, tokens
    model, net = net_of_row(row, tokens, picture, padded)
    chips = row.number("chips", 0.0) or 1.0
    tensor, stages = max(row.number("tp", 0.0), 1.0), row.number("pp", 0.0) or 1.0
    batch = row.number("batch_or_concurrency", 0.0)
    copies, share, in_flight = max(chips / (tensor * stages), 1.0), 1.0, 1.0
    if part.kind == "neuron":
        copies, share, in_flight = _cores(notes, chips, batch, task)
    submitter = re.search(r"submitter ([^;]+);", notes)
    source = row.text("source_repo")
    return VisionCase(
        model=model,
        net=net,
        part=part,
        chips=chips,
        copies=copies,
        share=share,
        tensor=tensor,
        stages=stages,
        batch=batch or _usual_batch(name, net, part.rate(precision), scenario),
        in_flight=in_flight,
        precision=precision,
        engine=engine,
        version=version,
        setting=_setting(row),
        scenario=scenario,
        source=_source(source),
        submitter=submitter[1] if submitter else "",
        metric=metric,
        node=min(chips, float(part.domain)),
        decoded=_DECODE_S if "framework inference" in notes and task == "image-classification" else 0.0,
        input_width=1.0 if precision == "int8" else 2.0 if engine == "tensorrt" else 4.0,
        overlapped=scenario in ("offline", "server"),
        guessed=int(not batch) + int(not row.text("precision_weights")),
    )


def _setting(row: Row) -> str:
    layout = {"1": "nhwc", "0": "nchw"}.get(row.text("channels_last").partition(".")[0], "")
    mixed = "amp" if "amp" in (row.text("precision_weights") or row.text("precision")).lower() else ""
    return f"{layout} {mixed}".strip()


def _source(repository: str) -> str:
    return "mlperf" if repository.startswith("mlcommons/") else repository.rpartition("/")[2]


def _cores(notes: str, chips: float, batch: float, task: str) -> tuple[float, float, float]:
    """Copies, the share of a chip that each has, and batches in flight, on chips whose cores work apart."""
    stated = re.search(r"\((\d+) NeuronCores\)", notes)
    cores = float(stated[1]) if stated else 2.0
    workers = re.search(r"(\d+) model copies x (\d+) workers", notes)
    if workers:
        return float(workers[1]), 1.0 / cores, float(workers[2])
    if task == "diffusion":  # both halves of the guidance at once, one on each core
        return chips, 1.0, 1.0
    if task in ("image-classification", "other") and batch <= 1:  # one picture cannot be spread
        return 1.0, 1.0 / cores, 1.0
    return cores * chips, 1.0 / cores, 1.0


def _usual_batch(name: str, net: Net, rate: float, scenario: str) -> float:
    """What keeps a chip busy without breaking the bound: a power of two near a share of it at half the peak."""
    if scenario == "multi-stream":
        return 8.0
    bound = next((bound for mark, bound in _BOUNDS.items() if name.lower().startswith(mark)), 0.1)
    time = 0.25 * bound if scenario == "server" else min(max(bound, 0.05), 5.0)
    samples = time / (net.flop / (0.5 * rate))
    return min(2.0 ** math.floor(math.log2(max(samples, 1.0))), _LARGEST)


def _trained(row: Row, part: Part) -> VisionCase:
    notes, name, source = row.text("notes").lower(), row.text("model"), row.text("source_repo")
    compiled = row.text("compiled")
    software = row.text("framework") or row.text("engine") if compiled else ""
    engine, version = engine_of(software or _stack(notes, source, row.text("source_path").lower()), part, compiled)
    stated = row.text("precision") or row.text("precision_weights")
    precision = precision_of(stated, part) if stated or engine != "flax" else "bf16"
    chips, cores = row.number("chips", 1.0), 2.0 if part.kind == "neuron" else 1.0
    copies = chips * cores
    total, micro = row.number("global_batch_sequences", 0.0), row.number("micro_batch", 0.0)
    total = total or (0.0 if micro else row.number("batch_or_concurrency", 0.0))
    batch = total / copies or micro or (128.0 if precision in ("fp32", "tf32") else 256.0)
    read = source.startswith("mlcommons/") or "real data pipeline" in notes or "dali" in notes
    side = side_of(row) if row.text("image_size") else side_of(Row({"model": name}))
    model, net = net_of_row(row, row.number("seq_len", 0.0) or 197.0, Size(side, 1.0, guidance=1.0))
    return VisionCase(
        model=model,
        net=net,
        part=part,
        chips=chips,
        copies=copies,
        share=1.0 / cores,
        tensor=1.0,
        stages=1.0,
        batch=max(batch, 1.0),
        in_flight=1.0,
        precision=precision,
        engine=engine,
        version=version,
        setting=_setting(row),
        scenario="train",
        source=_source(source),
        submitter="",
        metric=row.text("metric_name"),
        node=row.number("chips_per_node", 0.0) or min(chips, float(part.domain)),
        decoded=_DECODE_S if read else 0.0,
        input_width=2.0,
        overlapped=True,
        guessed=int(not total and not micro) + int(not stated),
    )


def _stack(notes: str, source: str, path: str) -> str:
    """The software of a training row, in words that `engine_of` knows."""
    if "mxnet" in notes or "mxnet" in path or source.startswith("mlcommons/"):
        return "mxnet"
    return "tensorflow" if "tf1" in notes else "jax" if "jax" in source.lower() else "pytorch"


__all__ = ["ENGINES", "FORMATS", "METRICS", "TASKS", "VisionCase", "case_of", "clock", "engine_of", "handles", "stacked"]
