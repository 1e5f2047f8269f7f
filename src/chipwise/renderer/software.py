"""Which image runs a workload on a chip, and with which command, where the workload does not say.

Images are rows of the catalog's table `images`, with what each was built for. The usual command of a kind is a start: rendered
files say that it is ours and where the user's own goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from chipwise.catalog.tables import ImageRow
from chipwise.planner.values.split import Split, model_ways
from chipwise.renderer.deployment import Form, Model, Node, Software
from chipwise.renderer.encoders import RUNNER, TEI, pooling_engine, tei_words
from chipwise.renderer.file import CannotRender
from chipwise.renderer.images import UNVERIFIED, device_of, image_row, images_for
from chipwise.renderer.launch.archive import archive_words
from chipwise.renderer.launch.caching import kernel_settings
from chipwise.renderer.launch.encoding import ffmpeg_words
from chipwise.renderer.launch.timing import drain_seconds, drains
from chipwise.renderer.layout import machines_at_once, machines_of_copy
from chipwise.renderer.quoting import dns_name
from chipwise.renderer.serving import flags
from chipwise.renderer.serving.flags import VLLM_NUMBERS, EngineFlags
from chipwise.workload.common import Common
from chipwise.workload.kinds import Batch, Interactive, Render, Serve, Transcode
from chipwise.workload.program import Engine, Framework, Program

QUANTIZED = ("int8", "int4", "fp4")  # engines do not make these from the hub's weights as they load them
_ENGINES = {
    "vllm": (8000, "/health"),
    "tgi": (8080, "/health"),
    "sglang": (30000, "/health"),
    "triton": (8000, "/v2/health/ready"),
    TEI: (8080, "/health"),
}


@dataclass(frozen=True, slots=True)
class SoftwareRequest:
    """What the choice of software depends on."""

    work: Common
    form: Form
    node: Node
    model: Model | None
    machines: int
    split: Split
    slots: int | None
    name: str  # of the deployment
    precision: str = ""
    longest_s: float | None = None  # of the longest answer of a service
    taught_by: str = ""  # the stage that hands over the weights, or adapters of them
    adapters: bool = False


def software_of(request: SoftwareRequest, rows: Sequence[ImageRow]) -> Software:
    program = request.work.program or Program()
    purpose = _purpose(request, program, rows)
    row = image_row(rows, purpose, request.node)
    if row is None:
        row = _replaced(rows, request.node, purpose, program)
    engine = purpose if purpose in _ENGINES else ""
    answers = request.form is Form.SERVICE and purpose != "ffmpeg"  # encoders take streams and give streams: nobody calls them
    port, health = _ENGINES.get(purpose, (8000, "/health")) if answers else (None, None)
    if answers and purpose == "triton" and request.model is not None and program.command is None:
        health = f"/v2/models/{request.model.served}/ready"  # the server alone is ready with no model at all
    built = program.image is None and not engine and purpose not in ("jupyter", "blender", "ffmpeg")
    base = f"{row.image}:{row.tag}"
    command = program.command or (*_usual(request, purpose, program.port or port), *_ending(request, purpose, row.version))
    env = dict(_settings(request, purpose)) | dict(program.env)
    secrets = tuple((key, *kept.split("/", 1)) for key, kept in sorted(program.secrets.items()))
    return Software(
        image=program.image or (f"{request.name}:1" if built else base),
        base=base,
        built=built,
        purpose=purpose,
        version=row.version,
        command=tuple(command),
        is_custom=program.command is not None,
        env=tuple(sorted(env.items())),
        secrets=tuple((key, name, part) for key, name, part in secrets),
        port=program.port or port,
        health=program.health or health,
        requirements=program.requirements,
        framework=str(_framework(request, program)),
        engine=engine,
        cuda=row.cuda,
        driver=row.driver,
        pull_secret=program.pull_secret or "",
        unverified=UNVERIFIED.get(row.known, "") if program.image is None else "",
    )


def _replaced(rows: Sequence[ImageRow], node: Node, purpose: str, program: Program) -> ImageRow:
    """A program with an image of its own needs none of ours; anything else is told."""
    plain = next(row for row in rows if row.purpose == "plain" and row.device == "cpu")
    if program.image is not None or purpose == "plain":
        return plain
    runs = sorted({row.purpose for row in rows if image_row([row], row.purpose, node) is not None})
    raise CannotRender(
        f"No image is known that runs {purpose} on {node.chip} ({node.arch} hosts).",
        remedy=f"Give program.image with one of your own, or program.engine or framework among: {', '.join(runs) or 'none'}.",
    )


def _framework(request: SoftwareRequest, program: Program) -> Framework:
    if program.framework is not None:
        return program.framework
    kind = getattr(request.work, "kind", "")
    if kind in ("train", "finetune"):
        return Framework.JAX if request.node.kind == "tpu" else Framework.PYTORCH
    return Framework.MPI if kind == "hpc" and request.machines * max(request.node.chips, 1) > 1 else Framework.NONE


def _purpose(request: SoftwareRequest, program: Program, rows: Sequence[ImageRow]) -> str:
    if program.engine is not None and program.engine is not Engine.OWN:
        return str(program.engine)
    framework = _framework(request, program)
    match request.work:
        case Interactive():
            return "jupyter"
        case Transcode():
            return "ffmpeg"
        case Render(engine=str() as engine) if engine.lower() in ("cycles", "eevee", "blender"):
            return "blender"
    if request.form is Form.DEVICES:  # each kind of device has a runtime of its own, which comes with its board
        return "plain"
    if request.model is not None and program.engine is not Engine.OWN and program.command is None:
        if request.model.generates:
            return "vllm"
        if isinstance(request.work, Serve | Batch) and (pooler := _pooling(request, request.model, rows)):
            return pooler
        if isinstance(request.work, Serve) and device_of(request.node) in ("nvidia", "cpu"):
            return "triton"
    if framework in (Framework.PYTORCH, Framework.JAX):
        return str(framework)
    if request.model is not None:
        return "pytorch"
    return "cuda" if request.node.kind == "gpu" else "plain"


def _pooling(request: SoftwareRequest, model: Model, rows: Sequence[ImageRow]) -> str | None:
    node = request.node
    return pooling_engine(model, device_of(node), isinstance(request.work, Serve), images_for(rows, node))


def _usual(request: SoftwareRequest, purpose: str, port: int | None) -> tuple[str, ...]:
    """What the kind usually runs: from the plan where the plan says it, a named place for the user's program elsewhere."""
    match purpose:
        case "vllm":
            return _vllm(request, port)
        case "tgi":
            return _tgi(request, port)
        case "sglang":
            return _sglang(request, port)
        case "tei":
            return tei_words(_served(request, "TEI"), device_of(request.node), port or _ENGINES[TEI][0], request.slots)
        case "triton":
            return ("tritonserver", "--model-repository=/models", f"--http-port={port or 8000}")
        case "jupyter":
            hub = (
                request.node.arch == "amd64" or not request.node.accelerated
            )  # the images of Jupyter itself have their own start
            return ("start-notebook.py",) if hub else ("jupyter", "lab", "--ip=0.0.0.0", "--no-browser")
        case "ffmpeg":
            assert isinstance(request.work, Transcode)
            words = ffmpeg_words(request.work, device_of(request.node) == "nvidia")
            return words if request.work.streams is not None else archive_words(words)
        case "blender":
            assert isinstance(request.work, Render)
            return (
                "blender",
                "--background",
                "/data/scene.blend",
                "--engine",
                "CYCLES",
                "--render-output",
                "/data/frames/",
                "--frame-start",
                "1",
                "--frame-end",
                f"{request.work.frames:.0f}",
                "--python-expr",
                "import bpy; bpy.context.scene.render.use_overwrite = False",
                "--render-anim",
                "--",
                "--cycles-device",
                "OPTIX" if request.node.accelerated else "CPU",
            )
    kind = getattr(request.work, "kind", "job")
    return (
        "python",
        {"train": "train.py", "finetune": "finetune.py", "serve": "serve.py", "batch": "batch.py"}.get(kind, "main.py"),
    )


def _ending(request: SoftwareRequest, purpose: str, version: str) -> tuple[str, ...]:
    """Words by which an engine ends the answers that it began, where it would drop them or wait a fixed time."""
    if request.form is not Form.SERVICE:
        return ()
    seconds = str(drain_seconds(request.longest_s))
    if purpose == "vllm" and request.model is not None and drains(purpose, version):
        return ("--shutdown-timeout", seconds)
    return (f"--exit-timeout-secs={seconds}",) if purpose == "triton" else ()


def _served(request: SoftwareRequest, engine: str) -> Model:
    """The model that an engine is to start with, which its command must name."""
    if request.model is None:
        raise CannotRender(
            f"{engine} serves a model that has a name, and {request.work.name} has none.",
            remedy="Leave program.engine out, give program.command with what it is to run, or name a model of the hub.",
        )
    return request.model


def _flags(request: SoftwareRequest, model: Model, port: int) -> EngineFlags:
    tensor, stages = model_ways(request.split)
    return EngineFlags(
        source=model.source,
        served=model.served,
        port=port,
        precision=model.precision,
        context=model.context,
        slots=request.slots,
        tensor_ways=tensor,
        stages=stages,
    )


def _vllm(request: SoftwareRequest, port: int | None) -> tuple[str, ...]:
    model = request.model
    if model is None:
        return ("python", "batch.py")
    engine = _flags(request, model, port or 8000)
    engine = replace(engine, tensor_ways=engine.tensor_ways * request.node.ways)
    if request.form is not Form.SERVICE:  # a batch goes through the same engine, from a file to a file
        files = ("--input-file", "/data/requests.jsonl", "--output-file", "/data/answers.jsonl")
        head: tuple[str, ...] = ("vllm", "run-batch", *files, "--model", model.source)
    else:
        head = flags.vllm_head(engine)
    words = [*head, *(() if model.generates else RUNNER), *VLLM_NUMBERS.get(model.precision, ()), *flags.vllm_limits(engine)]
    if request.taught_by and request.adapters:
        words += ["--enable-lora", "--lora-modules", f"{request.taught_by}=/hand-offs/in/{dns_name(request.taught_by, 30)}"]
    return tuple(words)


def _tgi(request: SoftwareRequest, port: int | None) -> tuple[str, ...]:
    return flags.tgi(_flags(request, _served(request, "TGI"), port or 8080))


def _sglang(request: SoftwareRequest, port: int | None) -> tuple[str, ...]:
    words = flags.sglang(_flags(request, _served(request, "SGLang"), port or 30000))
    # Without metrics nothing is published, and autoscaling sees nothing.
    return (*words, "--enable-metrics") if request.form is Form.SERVICE else words


_SPLITS = {
    "tp": "TENSOR_PARALLEL",
    "pp": "PIPELINE_PARALLEL",
    "cp": "CONTEXT_PARALLEL",
    "ep": "EXPERT_PARALLEL",
    "dp": "DATA_PARALLEL",
    "shard": "SHARD",
    "recompute": "RECOMPUTE",
    "micro_batch": "MICRO_BATCH",
    "batch": "BATCH",
    "tables": "TABLES_PARALLEL",
}


def _planned(request: SoftwareRequest) -> dict[str, str]:
    """What the plan reckoned with: a program of the user's own reads it from here, or is written so."""
    ways = ("tp", "pp", "cp", "ep")  # of which one means: not split
    split = request.split.as_dict()
    if request.node.ways > 1 and "tp" in split:  # ranks are cores: those of a chip share what the plan gives the chip
        split = split | {"tp": split["tp"] * request.node.ways}
    values = {
        f"PLAN_{name}": str(split[key]) for key, name in _SPLITS.items() if key in split and (key not in ways or split[key] > 1)
    }
    if request.precision:
        values["PLAN_PRECISION"] = request.precision
    return values


def _settings(request: SoftwareRequest, purpose: str) -> dict[str, str]:
    """Settings by which a program can do what the plan says, and find what it reads and keeps."""
    own = purpose not in ("vllm", "tgi", "sglang", TEI) and request.form is not Form.SESSIONS  # those are told by their flags
    values: dict[str, str] = _planned(request) if own else {}
    program, data = request.work.program, request.work.data
    if program is not None and program.checkpoints:
        values["CHECKPOINT_URL"] = program.checkpoints
    if data is not None and data.place and "://" in data.place:
        values["DATA_URL"] = data.place
    if request.model is not None and purpose in ("vllm", "tgi", "sglang", "pytorch"):
        values["HF_HOME"] = "/models/hub"
    if request.model is not None and purpose == TEI:
        values["HUGGINGFACE_HUB_CACHE"] = "/models/hub"  # which the image sets to /data
    if request.model is not None and request.form is not Form.DEVICES:
        values |= kernel_settings(purpose, request.node)
    machines = machines_at_once(request.form, request.node, request.machines, request.split)
    together = max(machines, machines_of_copy(request.form, request.node, request.split)) > 1
    if together and request.node.fabric == "efa" and request.node.kind == "gpu":
        values |= {"FI_PROVIDER": "efa", "NCCL_DEBUG": "WARN"}
    if together and request.node.kind == "neuron":
        values |= {"FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1", "FI_EFA_FORK_SAFE": "1"}
    return values
