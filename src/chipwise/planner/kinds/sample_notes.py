"""How large samples are counted in a plan, and how to say otherwise."""

from __future__ import annotations

from typing import Any

from chipwise.perf.net import STEPS
from chipwise.predictor.sizes import WHISPER_RATE, sample_words, sizes_of
from chipwise.workload.kinds import Batch, Serve
from chipwise.workload.model.shape import EncoderDecoderShape, Shape


def size_notes(shape: Shape, work: Serve | Batch) -> list[str]:
    """What nobody stated is assumed; of pictures it is said in any case, since their steps decide."""
    settings: dict[str, Any] = sizes_of(work)
    for side in ("input_tokens", "output_tokens"):
        if (lengths := getattr(work, side)) is not None:
            settings[side] = lengths.mean
    size = sample_words(shape, settings, training=False)
    if "steps" in size:
        picture = f"denoising steps, {size['side']:g} x {size['side']:g} pixels"
        if work.steps:
            return [f"A picture: {work.steps} {picture}."]
        return [f"Assumed per picture: {STEPS} {picture}; see --steps."]
    parts: dict[str, str] = {}
    if "side" in size:
        parts["image_size"] = f"{size['side']:g} x {size['side']:g} pixels"
    if isinstance(shape, EncoderDecoderShape) and shape.mels:
        parts["clip"] = f"{size['tokens'] / WHISPER_RATE:g} s of audio"
    elif "seconds" in size:
        parts["clip"] = f"{size['seconds']:g} s of audio"
    elif "tokens" in size:
        parts["input_tokens"] = f"{size['tokens']:g} tokens"
    if "generated" in size:
        parts["output_tokens"] = f"{size['generated']:g} output tokens, sequential"
    unstated = {name: text for name, text in parts.items() if not getattr(work, name)}
    return [f"Assumed per item: {', '.join(unstated.values())}; see {', '.join(unstated)}."] if unstated else []
