"""The number format and the software of work by samples: as asked, or what is usual for the chip."""

from __future__ import annotations

from collections.abc import Iterable

from chipwise.errors import BadInput, InvalidSettings, Problem
from chipwise.perf.kernels import edge
from chipwise.perf.part import Part
from chipwise.perf.published_vision import ENGINES, FORMATS
from chipwise.spelling import fold, nearest


def _one_of(name: str, given: str, allowed: Iterable[str]) -> str:
    known = {fold(one): one for one in allowed}
    if fold(given) not in known:
        near = tuple(known[one] for one in nearest(fold(given), known))
        raise InvalidSettings(Problem(name, f"{given[:60]!r} is not known", None, ", ".join(known.values()), near))
    return known[fold(given)]


def usual_precision(given: str | None, part: Part, task: str) -> str:
    allowed = edge.PRECISIONS if part.kind == "edge" else tuple(FORMATS)
    if given is None:
        if part.kind in ("edge", "cpu") and task == "serve":
            return "int8" if part.has("int8") else "fp16" if part.kind == "edge" else "fp32"
        return (
            "bf16" if part.has("bf16") and (task == "train" or part.kind != "gpu") else "fp16" if part.has("fp16") else "fp32"
        )
    name = _one_of("precision", given, allowed)
    usable = [one for one in allowed if part.has(one) or one == "fp32"]
    if name not in usable:
        raise InvalidSettings(Problem("precision", f"{part.name} has no {name} arithmetic", None, ", ".join(usable)))
    return name


def usual_engine(given: str | None, part: Part, task: str) -> str:
    if given is not None:
        if part.kind == "edge":
            raise BadInput(f"--engine does not go with {part.name}: its compiler is the engine.", remedy="Leave it out.")
        return _one_of("framework" if task == "train" else "engine", given, ENGINES)
    usual = {"edge": "compiled", "cpu": "openvino", "tpu": "flax", "neuron": "neuron", "gaudi": "habana"}
    return usual.get(part.kind, "pytorch" if task == "train" or part.vendor != "NVIDIA" else "tensorrt")
