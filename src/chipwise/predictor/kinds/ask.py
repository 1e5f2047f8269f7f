"""What is asked about a workload file: chip, options that go with its kind, and the model that it names or describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chipwise.errors import BadInput
from chipwise.predictor.known import Known
from chipwise.predictor.options import GOALS, LEARNING_OPTIONS, LOADS, SERVING_OPTIONS, SIZES
from chipwise.workload.common import Common
from chipwise.workload.kinds import Batch, Learning, Serve
from chipwise.workload.model.inline import shape_from_mapping
from chipwise.workload.model.registry import Model
from chipwise.workload.model.shape import DecoderShape, EncoderDecoderShape, EncoderShape, Shape
from chipwise.workload.model.spelled import names_file

_OF_LEARNING = ("chips", "chips_per_node", "network", *SIZES, *LEARNING_OPTIONS, "global_batch", "recompute", "framework")
_OF_BATCH = ("chips", "chips_per_node", "network", *SIZES, *SERVING_OPTIONS, *LOADS, "engine", "replicas")
_OF_SERVING = (*_OF_BATCH, *GOALS, "percentile")
_OPTIONS = {"train": _OF_LEARNING, "finetune": _OF_LEARNING, "serve": _OF_SERVING, "batch": _OF_BATCH}
_OTHER_OPTIONS = ("chips",)


@dataclass(frozen=True, slots=True)
class Ask:
    known: Known
    path: str
    hardware: str
    options: Mapping[str, Any]  # options, by name

    @property
    def chips(self) -> float | None:
        return None if self.options.get("chips") is None else float(self.options["chips"])


def options_of(kind: str) -> tuple[str, ...]:
    """Names of the options that go with a kind of work."""
    return _OPTIONS.get(kind, _OTHER_OPTIONS)


def kind_of(work: Common) -> str:
    return str(getattr(work, "kind", ""))


def known_model(ask: Ask, work: Learning | Serve | Batch) -> tuple[Known, str, Shape]:
    """The model, and what is known with it: by name, by a file beside the workload, or by the shape in it."""
    known = ask.known
    if work.is_unknown:
        raise BadInput(
            "model: only a run of it is known, and this asks for more.", remedy="Name the model, or describe its shape."
        )
    if isinstance(work.model, str):
        file = Path(ask.path).parent / work.model
        is_path = names_file(work.model) or ("/" in work.model and file.exists())
        name = str(file) if is_path else work.model
        return known, name, known.find_model(name).shape
    shape = shape_from_mapping(work.model, ask.path)
    described = Model(
        name=f"{work.name} (own shape)",
        aliases=(),
        family="own",
        shape=shape,
        context=None,
        published_parameters=None,
        source=ask.path,
        as_of="read now",
    )
    return known.with_model(described), described.name, shape


def by_samples(shape: Shape, task: str) -> bool:
    """Whether a model is asked about per sample: to serve, all but decoders; to train, all but transformers over tokens."""
    over_tokens = DecoderShape if task == "serve" else DecoderShape | EncoderShape | EncoderDecoderShape
    return not isinstance(shape, over_tokens)
