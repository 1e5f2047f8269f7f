"""How large a sample is: what may be asked of each kind of model, and what is taken where nobody asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chipwise.errors import BadInput
from chipwise.perf.net import GENERATED, SPOKEN, STEPS, Size
from chipwise.predictor.options import SIZES, option
from chipwise.workload.common import Sized
from chipwise.workload.model.registry import Model
from chipwise.workload.model.shape import (
    ConvShape,
    CountedShape,
    DecoderShape,
    DiffusionShape,
    EncoderDecoderShape,
    EncoderShape,
    Layers,
    RecommenderShape,
    Shape,
    TwoTowerShape,
    VisionShape,
)

WHISPER_RATE = 50.0  # places of an encoder for a second of sound, after its stride


def refuse(model: str, unused: Sequence[str], how: str = "predicted by samples") -> None:
    shown, does = ", ".join(map(option, unused)), "does" if len(unused) == 1 else "do"
    raise BadInput(f"{shown} {does} not go with {model}, which is {how}.", remedy="Leave it out.")


def named_sizes(shape: Shape) -> tuple[str, ...]:
    """Options that say how large a sample is, of those that mean something to it."""
    denoises = isinstance(shape, DiffusionShape) or (isinstance(shape, CountedShape) and shape.layers is Layers.DIT)
    hears = (isinstance(shape, EncoderDecoderShape) and shape.mels) or (isinstance(shape, CountedShape) and shape.seconds)
    sees = not hears and not isinstance(shape, EncoderShape | EncoderDecoderShape | RecommenderShape | DecoderShape)
    if isinstance(shape, CountedShape):
        sees = not hears and not shape.reads_text
    named = {"image_size": sees, "steps": denoises, "guidance": denoises, "clip_s": hears, "compiled": True}
    return tuple(name for name, means in named.items() if means)


def sizes_of(work: Sized) -> dict[str, Any]:
    """What a workload file says of a sample's size, as options."""
    stated = {"image_size": work.image_size, "steps": work.steps, "guidance": work.guidance, "clip_s": work.clip}
    return {name: value for name, value in (stated | {"compiled": work.compiled}).items() if value is not None}


def check_sizes(model: Model, settings: Mapping[str, Any]) -> None:
    if unused := [name for name in SIZES if name in settings and name not in named_sizes(model.shape)]:
        refuse(model.name, unused)


def size_of(shape: Shape, settings: Mapping[str, Any]) -> Size:
    """How large a sample is: as asked, or the model's own."""
    training = settings.get("task") == "train"
    if isinstance(shape, EncoderShape | EncoderDecoderShape):
        heard = WHISPER_RATE * float(settings.get("clip_s") or 0.0) if isinstance(shape, EncoderDecoderShape) else 0.0
        length = float(settings.get("input_tokens") or settings.get("seq") or heard)
    elif isinstance(shape, CountedShape) and shape.seconds:
        length = float(settings.get("clip_s") or 0.0)
    elif isinstance(shape, CountedShape) and shape.reads_text:
        length = float(settings.get("input_tokens") or settings.get("seq") or 0.0)
    else:
        length = float(settings.get("image_size") or 0.0)
    return Size(
        length,
        generated=float(settings.get("output_tokens") or 0.0),
        steps=1.0 if training else float(settings.get("steps") or 0.0),
        guidance=1.0 if training else {None: 0.0, True: 2.0, False: 1.0}[settings.get("guidance")],
    )


def sample_words(shape: Shape, settings: Mapping[str, Any], training: bool) -> dict[str, float]:
    heard = settings.get("clip_s")
    tokens = settings.get("input_tokens") or settings.get("seq") or (WHISPER_RATE * float(heard) if heard else None)
    side = float(settings.get("image_size") or 0.0)
    steps = 1.0 if training else float(settings.get("steps") or STEPS)
    match shape:
        case ConvShape() | VisionShape():
            return {"side": side or float(shape.image_size)}
        case CountedShape() if shape.seconds:
            return {"seconds": float(settings.get("clip_s") or shape.seconds)}
        case CountedShape() if shape.reads_text:
            return {"tokens": float(tokens or shape.sequence)}
        case CountedShape():
            pictures = {"side": side or float(shape.image_size)} if shape.image_size else {}
            return pictures | ({"steps": steps} if shape.layers is Layers.DIT else {})
        case TwoTowerShape():
            return {"side": side or float(shape.image.image_size), "tokens": float(shape.text.positions)}
        case EncoderShape():
            return {"tokens": float(tokens or shape.positions or 512)}
        case EncoderDecoderShape():
            length = float(tokens or (1500 if shape.mels else 512))
            written = SPOKEN * length if shape.mels else GENERATED
            return {"tokens": length, "generated": float(settings.get("output_tokens") or written)}
        case DiffusionShape():
            return {"side": side or float(shape.image_size), "steps": steps}
        case RecommenderShape():
            return {"rows_read": float(shape.rows_read)}
        case _:
            return {}
