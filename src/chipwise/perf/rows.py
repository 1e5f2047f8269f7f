"""Measurement rows as text, whatever file they came from, and the model shape that a row describes.

The registry knows details that tables leave out (latent attention, shared experts, tied heads); it is asked first, and the
row's own shape columns decide where the registry does not know the model or disagrees with them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from chipwise.errors import UnknownName
from chipwise.perf.transformer import Layer, layer_of
from chipwise.workload.model.registry import Registry, load
from chipwise.workload.model.shape import DecoderShape, EncoderDecoderShape, EncoderShape, VisionShape

_USUAL_WIDTH = 128  # of a head
# Multi-head latent attention: values per token and layer that it caches, ranks of queries, and of a head the values that scores
# are made of, those of them that carry no position, and those that come out.
_LATENT, _QUERY_RANK, _SCORED, _PLAIN, _OUT = 576.0, 1536.0, 192.0, 128.0, 128.0
_RENAMED = {"Mistral-7B": "mistral-7b-v0.3"}  # what engines are measured with has no sliding window
# Billions of parameters, in all and met by a token, of models whose tables give no shape.
_SIZES = {
    "nemotron-3-super": (120.0, 12.0),
    "nemotron-3-nano": (31.6, 3.6),
    "gemma-4-26b": (26.0, 4.0),
    "custom-moe-754b": (754.0, 75.0),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: cells by column name. Blank and absent are the same."""

    cells: Mapping[str, str]

    def text(self, name: str) -> str:
        return (self.cells.get(name) or "").strip()

    def number(self, name: str, default: float) -> float:
        text = self.text(name)
        if not text:
            return default
        try:
            value = float(text)
        except ValueError:
            return default
        return value if math.isfinite(value) else default


@cache
def _registry() -> Registry:
    return load()


@cache
def known_layer(name: str) -> Layer | None:
    try:
        shape = _registry().find(name).shape
    except UnknownName:
        return None
    if isinstance(shape, DecoderShape | EncoderShape | EncoderDecoderShape | VisionShape):
        return layer_of(shape)
    return None


# Releases with one shape: what is measured of one holds for the other.
_SAME_SHAPE = {
    "llama-3.1-8b": "llama-3-8b",
    "llama-3.1-70b": "llama-3-70b",
    "llama-3.3-70b": "llama-3-70b",
    "mistral-7b-v0.3": "mistral-7b",
}


@cache
def model_key(name: str) -> str:
    """The name under which a model's measurements are pooled, however a table or a user spells it."""
    try:
        known = _registry().find(name).name
    except UnknownName:
        known = name.strip().lower()
    return _SAME_SHAPE.get(known, known)


def layer_from_row(row: Row) -> tuple[Layer, float]:
    """The transformer that a row describes, and the length of its sequences where the row does not say."""
    name = _RENAMED.get(row.text("model"), row.text("model"))
    known = known_layer(name)
    layers, hidden = row.number("layers", 0.0), row.number("hidden", 0.0)
    length = _usual_length(name)
    if known is not None and (not layers or (known.layers in (layers, 2 * layers) and known.hidden in (hidden, 0.0))):
        return known, length
    if known is not None and known.hidden == hidden and known.layers != layers:  # the same layers, fewer of them
        body = known.parameters - known.table - known.head
        return replace(known, layers=layers, parameters=known.table + known.head + body * layers / known.layers), length
    if layers and hidden:
        return _from_columns(row, layers, hidden), length
    size = re.search(r"(\d+(?:\.\d+)?)b(?![a-z])", name.lower())
    guess = _SIZES.get(name.lower(), (float(size[1]) if size else 1.0,) * 2)
    total = row.number("params_b", 0.0) or guess[0]
    return _from_size(total * 1e9, total * 1e9 * guess[1] / guess[0], row), length


def _usual_length(name: str) -> float:
    lowered = name.lower()
    if lowered.startswith("t5"):
        return 640.0
    if "vit" in lowered:
        return 577.0 if "384" in lowered else 197.0
    if "bert" in lowered:
        return 384.0
    return 4096.0 if "llama-3" in lowered else 2048.0


def _gated(name: str) -> bool:
    """Two matrices in the feed-forward of older models, three since Llama."""
    plain = (
        "gpt-3",
        "gpt-j",
        "gpt2",
        "gpt-",
        "mpt",
        "vtrain",
        "megatron",
        "bloom",
        "falcon",
        "bert",
        "vit",
        "opt",
        "stablelm",
        "transformer-xl",
        "nemotron",
        "t5-",
    )
    lowered = name.lower()
    return not lowered.startswith(plain) or lowered.startswith("gpt-oss")


def _from_columns(row: Row, layers: float, hidden: float) -> Layer:
    name = row.text("model")
    ffn = row.number("ffn_hidden", 4 * hidden)
    heads = row.number("heads", max(hidden // _USUAL_WIDTH, 1))
    kv_heads = row.number("kv_heads", heads)
    vocab = row.number("vocab", 32000.0)
    experts, active = row.number("moe_experts_total", 0.0), row.number("moe_experts_active", 0.0)
    total = row.number("params_b", 0.0) * 1e9
    matrices = 3.0 if _gated(name) else 2.0
    if total and not experts:  # the count tells how many matrices a feed-forward has, and whether the head is tied
        width_kv = hidden / heads * kv_heads if hidden % heads == 0 else hidden
        rest = total - layers * (2 * hidden * hidden + 2 * hidden * width_kv)
        sums = {
            (count, tables): layers * count * hidden * ffn + tables * vocab * hidden
            for count in (2.0, 3.0)
            for tables in (1.0, 2.0)
        }
        nearest = min(sums, key=lambda pair: abs(rest - sums[pair]))
        if abs(rest - sums[nearest]) < 0.02 * total:
            matrices = nearest[0]
    width = hidden / heads if hidden % heads == 0 else _USUAL_WIDTH
    latent = bool(experts) and not row.text("kv_heads")
    width = max(width, 64.0)
    attention = hidden * heads * width * 2 + 2 * hidden * kv_heads * width
    if latent:
        queries = hidden * _QUERY_RANK + _QUERY_RANK * heads * _SCORED
        attention = queries + hidden * _LATENT + (_LATENT - 64.0) * heads * (_PLAIN + _OUT) + heads * _OUT * hidden
    mlp = matrices * hidden * ffn
    stored = mlp if not experts else experts * mlp + hidden * experts
    meets = mlp if not experts else active * mlp + hidden * experts
    body = layers * (attention + stored)
    table = vocab * hidden
    if total and experts and total > body + 2 * table:  # shared experts and dense layers that the columns do not show
        extra = (total - body - 2 * table) / layers
        meets, stored = meets + min(extra, 2 * mlp), stored + extra
    tied = bool(total) and abs(total - body - table) < abs(total - body - 2 * table)
    causal = 0.0 if "bert" in name.lower() or "vit" in name.lower() or name.lower().startswith("t5") else 1.0
    if name.lower().startswith("t5"):
        layers, attention = 2 * layers, attention * 1.5
    return Layer(
        layers=layers,
        hidden=hidden,
        vocab=vocab,
        heads=heads,
        query_width=heads * (_SCORED + _OUT) / 2 if latent else heads * width,
        kv_width=_LATENT if latent else 2 * kv_heads * width,
        kv_heads=1.0 if latent else kv_heads,
        attention_weights=attention,
        mlp_width=ffn,
        mlp_weights=meets,
        mlp_stored=stored,
        experts=experts,
        active=active,
        expert_layers=float(experts > 0),
        score_width=heads * (_SCORED + _OUT) if latent else 2 * heads * width,
        window=math.inf,
        windowed=0.0,
        causal=causal,
        parameters=total or layers * (attention + stored) + 2 * table,
        table=0.0 if tied or not causal else table,
        head=table if causal or "bert" in name.lower() else 0.0,
    )


def _from_size(parameters: float, active: float, row: Row) -> Layer:
    """A decoder of the usual proportions: 12 L h^2 parameters with h = 128 L, as most published families have.

    Where a token meets fewer, the rest is taken to be experts of 64.
    """
    hidden = _USUAL_WIDTH * max(round((active * 128 / 12) ** (1 / 3) / _USUAL_WIDTH), 2)
    layers = float(max(round(active / (12 * hidden**2)), 1))
    cells = {
        **row.cells,
        "layers": str(layers),
        "hidden": str(hidden),
        "ffn_hidden": str(4 * hidden),
        "model": "gpt-like",
        "moe_experts_total": "",
        "moe_experts_active": "",
        "heads": "",
        "kv_heads": "",
        "params_b": str(parameters / 1e9),
    }
    dense = _from_columns(Row(cells), layers, float(hidden))
    if active >= 0.9 * parameters:
        return dense
    stored = dense.mlp_stored + (parameters - active) / layers
    return replace(
        dense,
        experts=64.0,
        expert_layers=1.0,
        active=max(round(64 * dense.mlp_weights / stored), 1),
        mlp_stored=stored,
        mlp_width=dense.mlp_width * dense.mlp_weights / stored,
        parameters=parameters,
    )
