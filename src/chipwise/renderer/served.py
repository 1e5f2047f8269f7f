"""What `serve` is asked for, as what a replica is to serve: a workload and its plan, a model, a file of weights, a command."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from chipwise.errors import BadInput
from chipwise.files.source import NamedText
from chipwise.planner.values.split import model_ways
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.describing import goals_of
from chipwise.renderer.hub_ids import closest_id
from chipwise.renderer.launch.health import LOAD_BYTES_PER_S, start_seconds
from chipwise.renderer.quoting import dns_name, is_hub_id
from chipwise.serving.cold_start import ColdStart
from chipwise.serving.engine import PORT, ReplicaRequest
from chipwise.workload.common import Common
from chipwise.workload.kinds import Serve
from chipwise.workload.model.registry import Model
from chipwise.workload.program import Engine, Program

FindModel = Callable[[str], Model]
LLAMA = "llama.cpp"
COMMAND, VLLM = "command", "vllm"
PLANNED = (VLLM, "tgi", "sglang")  # whose flags a plan says
UNMEASURED = ColdStart(0.0, 0.0)
_BY_SUFFIX = {".gguf": LLAMA}
_NOT_SERVED = (".onnx", ".pt", ".pth", ".safetensors", ".engine")  # single files that no engine here takes


@dataclass(frozen=True, slots=True)
class ServeRequest:
    """Options of `chipwise serve` that say what is served. None: not given."""

    words: tuple[str, ...]
    is_command: bool = False
    name: str | None = None
    engine: str | None = None
    weights: str | None = None
    environment: str | None = None
    context: int | None = None
    at_once: int | None = None
    gpus: int | None = None
    health: str | None = None
    components: Mapping[str, str] = field(default_factory=dict)  # that the program needs besides, with versions
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServedThing:
    """What was asked for, resolved."""

    name: str
    engine: str
    request: ReplicaRequest
    replicas: int = 1
    goals: Mapping[str, float] = field(default_factory=dict)
    expected: ColdStart = UNMEASURED
    workload: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""


def named(text: str) -> str:
    name = dns_name(text, 40)
    if not name:
        raise BadInput(f"{text[:60]!r} cannot be the name of a service.", remedy="Name it with --name.")
    return name


def with_options(replica: ReplicaRequest, request: ServeRequest) -> ReplicaRequest:
    return replace(
        replica,
        context=request.context if request.context is not None else replica.context,
        at_once=request.at_once if request.at_once is not None else replica.at_once,
        gpus=request.gpus if request.gpus is not None else replica.gpus,
        health=request.health or replica.health,
        extra_words=request.flags,
    )


def of_command(request: ServeRequest) -> ServedThing:
    name = Path(next((word for word in request.words[1:] if word.endswith((".py", ".sh"))), request.words[0])).stem
    return ServedThing(name, COMMAND, ReplicaRequest(name, dns_name(name, 60) or "default", command=request.words))


def _of_file(engine: str, path: str) -> tuple[ReplicaRequest, ColdStart]:
    file = Path(path).expanduser().absolute()
    size = float(file.stat().st_size) if file.is_file() else None
    expected = ColdStart(0.0, 0.0, weight_bytes=size, expected_s=size / LOAD_BYTES_PER_S if size else None)
    return ReplicaRequest(str(file), dns_name(file.stem, 60) or "default"), expected


def of_model(request: ServeRequest, word: str, find_model: FindModel) -> ServedThing:
    path = request.weights or word
    if path.lower().endswith(_NOT_SERVED):
        raise BadInput(
            f"No engine here serves {Path(path).name}.",
            remedy="Give a GGUF file, a model of the hub or a folder of one; or your own program behind --.",
        )
    engine = request.engine or _BY_SUFFIX.get(Path(path).suffix.lower(), VLLM)
    if engine == LLAMA:
        replica, expected = _of_file(engine, path)
        return ServedThing(replica.served, engine, replica, expected=expected)
    if engine == COMMAND:
        raise BadInput("The engine command needs a command.", remedy="Write it behind --: chipwise serve -- ./server {port}")
    source, title = _hub_id(path, find_model), dns_name(word.rpartition("/")[2], 60)
    return ServedThing(title, engine, ReplicaRequest(source, title or "default", gpus=1))


def _hub_id(word: str, find_model: FindModel) -> str:
    if is_hub_id(word) or Path(word).is_dir():
        return word
    known = find_model(word)
    hub = closest_id(word, known)
    if hub is None:
        raise BadInput(f"{known.name} has no id of the hub that we know.", remedy="Give the id, as owner/name, or a folder.")
    return hub


def of_workload(request: ServeRequest, path: str, work: Common) -> ServedThing:
    """Of an engine whose flags a plan says, that is still to come."""
    if not isinstance(work, Serve):
        raise BadInput(f"{path} is of the kind {getattr(work, 'kind', 'pipeline')}.", remedy="`serve` takes kind: serve.")
    program = work.program or Program()
    engine = request.engine or _engine_of(request, program)
    goals, folder = goals_of(work), str(Path(path).absolute().parent)
    if isinstance(path, NamedText):
        folder = ""
    model = work.model if isinstance(work.model, str) else work.name  # one that the file describes has no name of its own
    served = ServedThing(
        work.name,
        engine,
        ReplicaRequest(model, dns_name(model, 60) or "default"),
        goals=goals,
        workload=path,
        env=dict(program.env),
        secrets=dict(program.secrets),
        folder=folder,
    )
    if engine == COMMAND:
        words = _with_port(program.command or (), program.port)
        return replace(served, request=replace(served.request, command=words, health=program.health or ""))
    if engine in PLANNED:
        return served
    if request.weights is None:
        raise BadInput(
            f"{engine} serves a file, and {path} names the model {model}.", remedy="Give the file with --weights FILE."
        )
    replica, expected = _of_file(engine, request.weights)
    context = int(work.context) if work.context is not None else None
    return replace(served, request=replace(replica, served=served.request.served, context=context), expected=expected)


def _engine_of(request: ServeRequest, program: Program) -> str:
    if request.weights is not None:
        return _BY_SUFFIX.get(Path(request.weights).suffix.lower(), VLLM)
    if program.command is not None:
        return COMMAND
    return str(program.engine) if program.engine not in (None, Engine.OWN) else VLLM


def _with_port(words: tuple[str, ...], port: int | None) -> tuple[str, ...]:
    """Each replica listens on a port of its own: where the command names the file's, it is told another."""
    if port is None:
        return words
    return tuple(re.sub(rf"(?<!\d){port}(?!\d)", PORT, word) for word in words)


def of_plan(request: ServeRequest, path: str, served: ServedThing, deployment: Deployment) -> ServedThing:
    """Flags, copies and times as the plan has them. Its machine may be another: what this one lacks is refused."""
    model, scaling = deployment.model, deployment.scaling
    if model is None:
        raise BadInput(f"{path} names no model that {served.engine} could serve.", remedy="Give program.command in it.")
    tensor, stages = model_ways(deployment.split)
    replica = ReplicaRequest(
        model=request.weights or model.source,
        served=model.served,
        gpus=max(tensor * stages, 1),
        context=model.context,
        at_once=scaling.slots if scaling is not None else None,
        precision=model.precision,
        tensor_ways=tensor,
        stages=stages,
    )
    size = model.fetched_bytes or model.weight_bytes
    expected = ColdStart(
        0.0,
        0.0,
        weight_bytes=size,
        expected_s=size / LOAD_BYTES_PER_S if size else None,
        allowed_s=float(start_seconds(deployment)),
    )
    return replace(served, request=replica, replicas=scaling.usual if scaling is not None else 1, expected=expected)
