"""The plan as settings of vLLM, each with its reason. Triton's vLLM backend and Ray Serve take the same ones by another
spelling, so they are reckoned once, here."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.planner.values.split import model_ways
from chipwise.renderer.deployment import Deployment, Form, Model
from chipwise.renderer.file import CannotRender
from chipwise.renderer.serving.flags import VLLM_NUMBERS
from chipwise.text import decimal_size, duration


@dataclass(frozen=True, slots=True)
class Setting:
    """`name` as on the command line, without dashes before it."""

    name: str
    value: str | int
    reason: str

    @property
    def key(self) -> str:
        """As Python spells it."""
        return self.name.replace("-", "_")


def generating(deployment: Deployment, engine: str, pools: str = "") -> Model:
    """The model that an engine for text is to serve, or why there is none. `pools`: its name as one that also pools."""
    if deployment.form is Form.PIPELINE:
        serving = [stage.title for stage in deployment.stages if stage.model is not None and stage.model.generates]
        raise CannotRender(
            f"{engine} serves one model, and this is a pipeline.",
            remedy=f"Use one stage with --stage: {', '.join(serving)}." if serving else "Use --to argo or kubernetes.",
        )
    model = deployment.model
    if model is None or not (model.generates or pools in model.pooled):
        explanation = (
            "this has none with a name that could be fetched" if model is None else f"{model.name} generates none here"
        )
        raise CannotRender(
            f"{engine} serves models that generate text; {explanation}.",
            remedy="Use --to kubernetes, or triton for other models that are served.",
        )
    if deployment.form is Form.DEVICES:
        raise CannotRender(f"{engine} does not run on {deployment.node.chip}.", remedy="Use --to compose or dockerfile.")
    return model


def weights(model: Model) -> str:
    return model.source


def split(deployment: Deployment) -> list[Setting]:
    settings = []
    cores = deployment.node.ways
    shared, stages = model_ways(deployment.split)
    tensor = shared * cores
    if tensor > 1:
        noun = "Cores" if cores > 1 else "Chips"
        settings.append(
            Setting("tensor-parallel-size", tensor, f"{noun} that share every layer, as the plan splits the model.")
        )
    if stages > 1:
        settings.append(Setting("pipeline-parallel-size", stages, "Groups of chips that take the layers in turn."))
    return settings


def numbers(deployment: Deployment) -> list[Setting]:
    """How weights are stored. Without it the engine takes what the files have, and the plan's memory would not hold."""
    model = deployment.model
    assert model is not None
    entry = VLLM_NUMBERS.get(model.precision)
    if entry is None:
        return []
    flag, value = entry
    size = f" Weights take {decimal_size(model.weight_bytes)} so." if model.weight_bytes else ""
    return [Setting(flag.removeprefix("--"), value, f"The plan counts on {model.precision}.{size}")]


def room(deployment: Deployment) -> list[Setting]:
    """What bounds the memory of requests."""
    settings, model, scaling = [], deployment.model, deployment.scaling
    assert model is not None
    if model.context is not None:
        reason = "The longest request with its answer. More would take memory from requests that wait."
        settings.append(Setting("max-model-len", model.context, reason))
    if scaling is not None and scaling.slots is not None:
        rate = f"{scaling.per_replica:.1f} requests a second" if scaling.per_replica else "The planned rate"
        reason = f"Requests in work at a time: {rate} times their answer time, with room for bursts."
        settings.append(Setting("max-num-seqs", scaling.slots, reason))
    return settings


def runner(deployment: Deployment) -> list[Setting]:
    model = deployment.model
    assert model is not None
    reason = "It writes no text: what it computes is pooled, at /v1/embeddings, or /rerank where it ranks."
    return [] if model.generates else [Setting("runner", "pooling", reason)]


def engine_settings(deployment: Deployment) -> list[Setting]:
    """Those of the engine itself, in the order of the command that other targets write."""
    return [*runner(deployment), *numbers(deployment), *split(deployment), *room(deployment)]


def promised(deployment: Deployment) -> list[str]:
    """What to hold the running service against, one line for each figure."""
    lines = []
    for goal, seconds in deployment.predicted.latency.items():
        wanted = deployment.goals.get(goal)
        goal_text = f", goal {duration(wanted)}" if wanted is not None else ""
        lines.append(f"{goal}: {duration(seconds)} predicted{goal_text}")
    scaling = deployment.scaling
    if scaling is not None and scaling.per_replica:
        lines.append(f"requests a second of one replica, within the goals: {_number_text(scaling.per_replica)}")
    return lines


def _number_text(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
