"""Endpoints of SageMaker in Terraform: a model, the machine that its variant names, and the time that it has to start."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from chipwise.auditor.hardware import machines_named
from chipwise.auditor.source import Sources, TerraformBlock, whole_number
from chipwise.auditor.terraform import inner, line_inside, text_of

_MODEL = re.compile(r"aws_sagemaker_model\.([\w-]+)\.")
_STARTUP = "container_startup_health_check_timeout_in_seconds"
_NAMES = ("HF_MODEL_ID", "OPTION_MODEL_ID", "SM_VLLM_MODEL")
_SPLITS = ("SM_NUM_GPUS", "OPTION_TENSOR_PARALLEL_DEGREE", "SM_VLLM_TENSOR_PARALLEL_SIZE")


@dataclass(frozen=True, slots=True)
class Variant:
    path: str
    title: str
    machine: str
    devices: int  # 0: not known
    model: str  # empty: not said
    split: int  # devices that the model is split over; 0: not said
    split_path: str
    split_line: int
    startup_s: int  # 0: not said
    startup_line: int


def variants_of(sources: Sources) -> Iterator[Variant]:
    models = {block.labels[1]: block for block in sources.blocks if block.labels[:1] == ("aws_sagemaker_model",)}
    for block in sources.blocks:
        if block.labels[:1] == ("aws_sagemaker_endpoint_configuration",):
            for body in inner(block.body, "production_variants"):
                named = _MODEL.search(text_of(body.get("model_name")))
                yield _variant(sources, block, body, models.get(named[1]) if named else None)


def _variant(sources: Sources, block: TerraformBlock, body: Mapping[str, Any], model: TerraformBlock | None) -> Variant:
    machine = text_of(body.get("instance_type"))
    known = machines_named(machine.removeprefix("ml."))
    settings = _settings(model.body) if model else {}
    split = next((name for name in _SPLITS if whole_number(settings.get(name))), "")
    return Variant(
        path=block.path,
        title=block.title,
        machine=machine,
        devices=int(known[0].chips or 0) if known else 0,
        model=next((settings[name] for name in _NAMES if name in settings), ""),
        split=whole_number(settings.get(split)),
        split_path=model.path if model else block.path,
        split_line=line_inside(sources, model, split) if model and split else block.line,
        startup_s=whole_number(text_of(body.get(_STARTUP))),
        startup_line=line_inside(sources, block, _STARTUP),
    )


def _settings(body: Mapping[str, Any]) -> dict[str, str]:
    """Of its container, the one or the first of several."""
    for container in (*inner(body, "primary_container"), *inner(body, "container")):
        settings = container.get("environment")
        if isinstance(settings, Mapping):
            return {str(name).strip('"'): text_of(value) for name, value in settings.items()}
    return {}
