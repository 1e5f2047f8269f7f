"""Models and chips by name, as predictions take them, and how long a model's sequences may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.errors import BadInput, InvalidSettings, Problem
from chipwise.perf.arrays import Array
from chipwise.perf.rows import model_key
from chipwise.perf.transformer import Layer, layer_of
from chipwise.workload.model.shape import DecoderShape, EncoderDecoderShape, EncoderShape, VisionShape

if TYPE_CHECKING:
    from chipwise.predictor.known import Known


def layer_named(known: Known, name: str, online: bool = True) -> tuple[str, Layer]:
    """The key under which a model's measurements are pooled, and its shape."""
    layer: tuple[str, Layer] | None = known.memo.get(("layer", name))
    if layer is None:
        layer = known.memo["layer", name] = _layer_named(known, name, online)
    return layer


def _layer_named(known: Known, name: str, online: bool) -> tuple[str, Layer]:
    model = known.find_model(name, online)
    if not isinstance(model.shape, DecoderShape | EncoderShape | EncoderDecoderShape | VisionShape):
        kind = type(model.shape).__name__.removesuffix("Shape").lower()
        remedy = "chipwise predict answers such models in samples per second; estimate takes transformers over tokens."
        raise BadInput(f"{model.name} is a {kind} model, not a transformer over tokens.", remedy=remedy)
    return model_key(model.name), layer_of(model.shape)


def shown_name(known: Known, name: str) -> str:
    """The registry's name of a model; the pooled key may be that of a release with the same shape."""
    title: str | None = known.memo.get(("name", name))
    if title is None:
        title = known.memo["name", name] = known.find_model(name).name
    return title


def chip_named(known: Known, text: str) -> str:
    """The catalog's name of the chip that `text` means."""
    chip: str | None = known.memo.get(("chip", text))
    if chip is None:
        chip = known.memo["chip", text] = known.names.one_chip(text).chip.name
        missing = known.parts[chip].unstated
        if missing:
            remedy = f"Give them in your own catalog files ({chip} is in `chipwise chips {chip}`), or ask for another chip."
            raise BadInput(f"Not published for {chip}: {' and '.join(missing)}.", remedy=remedy)
    return chip


def stated_context(known: Known, model: str) -> int | None:
    if ("context", model) not in known.memo:
        found = known.find_model(model)  # what an encoder reads is not in the context of its decoder
        known.memo["context", model] = None if isinstance(found.shape, EncoderDecoderShape) else found.context
    stated: int | None = known.memo["context", model]
    return stated


def check_context(known: Known, model: str, field: str, tokens: Array) -> None:
    """A model does not answer about sequences that are longer than its own context."""
    stated, longest = stated_context(known, model), float(tokens.max())
    if stated is not None and longest > stated:
        problem = f"{longest:,.0f} tokens are more than the {stated:,} that {shown_name(known, model)} is stated for"
        raise InvalidSettings(Problem(field, problem, None, f"at most {stated:,} tokens in all"))


def context_notes(known: Known, model: str, tokens: Array) -> tuple[str, ...]:
    """Where sequences are longer than the model is stated for."""
    stated, longest = stated_context(known, model), float(tokens.max())
    if stated is None or longest <= stated:
        return ()
    return (f"{longest:,.0f} tokens are more than the {stated:,} that {shown_name(known, model)} is stated for.",)
