"""The number format and the software of work by samples: as asked, or what is usual for the chip."""

from __future__ import annotations

from collections.abc import Iterable

from chipwise.errors import BadInput, InvalidSettings, Problem
from chipwise.perf.kernels import edge
from chipwise.perf.part import Part
from chipwise.perf.published_vision import ENGINES, FORMATS
from chipwise.spelling import fold, nearest


def _spelled(name: str, text: str, allowed: Iterable[str]) -> str:
    known = {fold(one): one for one in allowed}
    if fold(text) not in known:
        near = tuple(known[one] for one in nearest(fold(text), known))
        raise InvalidSettings(
            Problem(
                field=name, message=f"{text[:60]!r} is not known", line=None, allowed=", ".join(known.values()), nearest=near
            )
        )
    return known[fold(text)]


def usual_precision(wanted: str | None, part: Part, task: str) -> str:
    """Unless stated, a format that networks are published in; devices at the edge that have none of them run int8."""
    allowed = edge.PRECISIONS if part.kind == "edge" else tuple(FORMATS)
    if wanted is None:
        if part.kind == "edge" and task == "serve":
            return "fp16" if part.has("fp16") or not part.has("int8") else "int8"
        return (
            "bf16" if part.has("bf16") and (task == "train" or part.kind != "gpu") else "fp16" if part.has("fp16") else "fp32"
        )
    name = _spelled("precision", wanted, allowed)
    usable = [one for one in allowed if part.runs(one)]
    if name not in usable:
        raise InvalidSettings(Problem("precision", f"{part.name} has no {name} arithmetic", None, ", ".join(usable)))
    return name


def usual_engine(wanted: str | None, part: Part, task: str) -> str:
    if wanted is not None:
        if part.kind not in ("gpu", "edge") and wanted == "pytorch-compiled":
            raise BadInput(f"--compiled does not go with {part.name}: its usual software compiles.", remedy="Leave it out.")
        if part.kind == "edge":
            raise BadInput(f"--engine does not go with {part.name}: its compiler is the engine.", remedy="Leave it out.")
        return _spelled("framework" if task == "train" else "engine", wanted, ENGINES)
    usual = {"edge": "compiled", "cpu": "openvino", "tpu": "flax", "neuron": "neuron", "gaudi": "habana"}
    return usual.get(part.kind, "pytorch" if task == "train" or part.vendor != "NVIDIA" else "tensorrt")
