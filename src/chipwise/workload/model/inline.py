"""A shape written as plain fields, in a workload file, a user's model file or a row of the registry.

    {kind: decoder, layers: 32, hidden: 4096, heads: 32, kv_heads: 8, ffn: 14336, vocab: 128256}

`kind` is decoder unless given. Every problem is reported at once; an unknown field comes with the nearest known ones.
Defaults are those of today's models (no biases, RMS norm, gated feed-forward for decoders; biases and layer norm for
encoders), so a short description gives the right count for most of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from chipwise.spelling import nearest
from chipwise.workload.model.decoder import DecoderShape
from chipwise.workload.model.encoder import EncoderDecoderShape, EncoderShape, TwoTowerShape, VisionShape
from chipwise.workload.model.fields import MANY_COUNTS, MANY_LAYERS, MANY_ROWS, Fields
from chipwise.workload.model.layers import Attention, Experts, FeedForward, LatentAttention, Norm, QkNorm, Stack

if TYPE_CHECKING:  # other kinds are imported by who reads them: most descriptions are of one transformer
    from chipwise.workload.model.convnet import ConvShape
    from chipwise.workload.model.counted import CountedShape
    from chipwise.workload.model.diffusion import DiffusionShape, JointTransformerShape
    from chipwise.workload.model.recommender import RecommenderShape
    from chipwise.workload.model.shape import Shape
    from chipwise.workload.model.unet import UNetShape, VaeShape

REMEDY = "Fix these fields, or name a known model such as llama-3.1-8b instead."
EXAMPLE = "Write it like {kind: decoder, layers: 32, hidden: 4096, heads: 32, kv_heads: 8, ffn: 14336, vocab: 128256}."


def shape_from_mapping(mapping: Mapping[str, object], title: str = "shape") -> Shape:
    """The shape that the fields describe; InvalidFile (a BadInput) with every problem, each under its field's name.

    `title` is what the message calls the place: a file, or the field that holds the shape.
    """
    fields = Fields(mapping)
    shape = _read(fields)
    fields.finish(title, REMEDY if mapping else EXAMPLE)
    assert shape is not None  # without problems there is a shape
    return shape


def _read(fields: Fields) -> Shape | None:
    """None when the kind is unknown; otherwise a shape that counts only if no problem was noted."""
    kind = fields.text("kind", "decoder").lower().replace("_", "-")
    reader = KINDS.get(kind)
    if reader is None:
        fields.problem("kind", f"is {kind!r}.", ", ".join(KINDS), nearest(kind, KINDS))
        return None
    shape = reader(fields)
    fields.refuse_unknown()
    return shape


def _nested(fields: Fields, name: str, kinds: tuple[str, ...]) -> Shape | None:
    """A shape inside a shape, its problems noted under the outer field's name."""
    section = fields.section(name)
    if not section:
        if fields.has(name) and not any(problem.field.endswith(name) for problem in fields.problems):
            fields.problem(name, "is empty.", "a mapping of fields")
        return None
    return _inner(fields, name, section, kinds)


def _inner(fields: Fields, name: str, section: Mapping[str, object], kinds: tuple[str, ...]) -> Shape | None:
    inner = Fields({"kind": kinds[0], **section}, f"{fields.path}.{name}".lstrip("."))
    shape = _read(inner)
    if shape is not None and shape.kind not in kinds:
        inner.problem("kind", f"is {shape.kind!r}.", ", ".join(kinds))
    fields.problems.extend(inner.problems)
    return shape


def _attention(fields: Fields, bias: str) -> Attention:
    hidden, heads = fields.whole_number("hidden"), fields.whole_number("heads")
    kv_heads = fields.whole_number("kv_heads", heads)
    if not fields.has("head_dim") and hidden % heads and fields.sound("hidden", "heads"):
        fields.problem("heads", f"{heads} do not divide hidden {hidden}.", "a divisor of hidden, or head_dim as well")
    if heads % kv_heads and fields.sound("heads", "kv_heads"):
        fields.problem("kv_heads", f"{kv_heads} do not divide {heads} heads.", "a divisor of heads")
    return Attention(
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=fields.whole_number("head_dim", max(1, hidden // heads)),
        bias=_biases(fields, bias),
        qk_norm=fields.choice("qk_norm", QkNorm, QkNorm.NONE),
        sinks=fields.flag("sinks"),
    )


def _biases(fields: Fields, default: str) -> str:
    """`attention_bias`: true for all of q, k, v, o, false for none, or the letters of those that have one."""
    value = fields.values.get("attention_bias") if fields.has("attention_bias") else default
    if isinstance(value, bool):
        return "qkvo" if value else ""
    if not isinstance(value, str) or not set(value) <= set("qkvo") or len(set(value)) != len(value):
        fields.problem("attention_bias", f"is {str(value)[:40]!r}.", "true, false, or some of the letters qkvo")
        return default
    return value


def _latent(fields: Fields) -> LatentAttention:
    return LatentAttention(
        hidden=fields.whole_number("hidden"),
        heads=fields.whole_number("heads"),
        kv_lora=fields.whole_number("kv_lora"),
        nope_dim=fields.whole_number("nope_dim"),
        rope_dim=fields.whole_number("rope_dim"),
        v_head_dim=fields.whole_number("v_head_dim"),
        q_lora=fields.optional("q_lora"),
    )


def _decoder(fields: Fields) -> DecoderShape:
    layers = fields.whole_number("layers", high=MANY_LAYERS)
    attention = _latent(fields) if fields.has("kv_lora") else _attention(fields, "")
    hidden, gated, bias = attention.hidden, fields.flag("gated", True), fields.flag("mlp_bias")
    ffn = fields.whole_number("ffn", fields.optional("expert_ffn"))
    experts = _experts(fields, FeedForward(hidden, fields.whole_number("expert_ffn", ffn), gated, bias))
    dense_layers = fields.whole_number("dense_layers", 0, low=0, high=layers)
    window = fields.optional("window")
    return DecoderShape(
        layers=layers,
        hidden=hidden,
        vocab=fields.whole_number("vocab"),
        attention=attention,
        mlp=FeedForward(hidden, ffn, gated, bias),
        experts=experts,
        dense_layers=dense_layers if experts else 0,
        norm=fields.choice("norm", Norm, Norm.RMS),
        norms_per_layer=fields.whole_number("norms_per_layer", 2, low=0, high=10),
        final_norm=fields.flag("final_norm", True),
        embedding_norm=fields.flag("embedding_norm"),
        tied_embeddings=fields.flag("tied_embeddings"),
        positions=fields.whole_number("positions", 0, low=0),
        embedding_width=fields.optional("embedding_width"),
        head_bias=fields.flag("head_bias"),
        window=window,
        windowed_layers=fields.whole_number("windowed_layers", layers if window else 0, low=0, high=layers),
    )


def _experts(fields: Fields, expert: FeedForward) -> Experts | None:
    count = fields.whole_number("experts", 0, low=0, high=100_000)
    shared = fields.whole_number("shared_ffn", 0, low=0)
    gate, bias = fields.flag("shared_gate"), fields.flag("router_bias")
    for name in ("active_experts", "expert_ffn", "shared_ffn", "dense_layers"):
        if not count and fields.has(name):
            fields.problem(name, "says something about experts, of which there are none.", "leave it out, or give experts too")
    if not count:
        return None
    return Experts(
        expert=expert,
        count=count,
        active=fields.whole_number("active_experts", high=count),
        shared=FeedForward(expert.hidden, shared, expert.gated, expert.bias) if shared else None,
        shared_gate=gate,
        router_bias=bias,
    )


def _stack(fields: Fields, layers: int) -> Stack:
    attention = _attention(fields, "qkvo")
    return Stack(
        layers=layers,
        attention=attention,
        mlp=FeedForward(attention.hidden, fields.whole_number("ffn"), fields.flag("gated"), fields.flag("mlp_bias", True)),
        norm=fields.choice("norm", Norm, Norm.LAYER),
        final_norm=fields.flag("final_norm", True),
        relative_buckets=fields.whole_number("relative_buckets", 0, low=0),
    )


def _encoder(fields: Fields) -> EncoderShape:
    return EncoderShape(
        stack=_stack(fields, fields.whole_number("layers", high=MANY_LAYERS)),
        vocab=fields.whole_number("vocab"),
        positions=fields.whole_number("positions", 0, low=0),
        token_types=fields.whole_number("token_types", 0, low=0),
        embedding_norm=fields.flag("embedding_norm"),
        pooler=fields.flag("pooler"),
        projection=fields.whole_number("projection", 0, low=0),
    )


def _encoder_decoder(fields: Fields) -> EncoderDecoderShape:
    layers = fields.whole_number("layers", high=MANY_LAYERS)
    encoder = _stack(fields, layers)
    return EncoderDecoderShape(
        encoder=encoder,
        decoder=replace(encoder, layers=fields.whole_number("decoder_layers", layers, high=MANY_LAYERS), cross=True),
        vocab=fields.whole_number("vocab"),
        tied_embeddings=fields.flag("tied_embeddings", True),
        encoder_positions=fields.whole_number("encoder_positions", 0, low=0),
        decoder_positions=fields.whole_number("decoder_positions", 0, low=0),
        embedding_norm=fields.flag("embedding_norm"),
        mels=fields.whole_number("mels", 0, low=0),
    )


def _vision(fields: Fields) -> VisionShape:
    image_size, patch = fields.whole_number("image_size"), fields.whole_number("patch")
    if patch > image_size and fields.sound("patch", "image_size"):
        fields.problem("patch", f"{patch} is larger than image_size {image_size}.", "a divisor of image_size")
    return VisionShape(
        stack=_stack(fields, fields.whole_number("layers", high=MANY_LAYERS)),
        image_size=image_size,
        patch=patch,
        channels=fields.whole_number("channels", 3),
        class_token=fields.flag("class_token", True),
        patch_bias=fields.flag("patch_bias", True),
        norm_before=fields.flag("norm_before"),
        classes=fields.whole_number("classes", 0, low=0),
        projection=fields.whole_number("projection", 0, low=0),
    )


def _two_tower(fields: Fields) -> TwoTowerShape | None:
    text, image = _nested(fields, "text", ("encoder",)), _nested(fields, "image", ("vision",))
    return TwoTowerShape(text, image) if isinstance(text, EncoderShape) and isinstance(image, VisionShape) else None


def _convnet(fields: Fields) -> ConvShape:
    from chipwise.workload.model.convnet import Block, ConvShape

    blocks = fields.whole_numbers("blocks", high=MANY_LAYERS)
    widths = fields.whole_numbers("widths", (64, 128, 256, 512))
    if len(blocks) != len(widths) and fields.sound("blocks", "widths"):
        fields.problem("blocks", f"has {len(blocks)} stages and widths {len(widths)}.", "as many entries as widths")
    if not fields.has("block"):
        fields.problem("block", "is missing.", ", ".join(Block))
    return ConvShape(
        block=fields.choice("block", Block, Block.BASIC),
        blocks=blocks,
        widths=widths,
        stem=fields.whole_number("stem", widths[0]),
        channels=fields.whole_number("channels", 3),
        classes=fields.whole_number("classes", 1000),
        image_size=fields.whole_number("image_size", 224),
        groups=fields.whole_number("groups", 1),
        group_width=fields.whole_number("group_width", 64),
    )


def _unet(fields: Fields) -> UNetShape:
    from chipwise.workload.model.unet import UNetShape

    widths, depths = fields.whole_numbers("widths"), fields.whole_numbers("depths", low=0, high=MANY_LAYERS)
    if len(widths) != len(depths) and fields.sound("widths", "depths"):
        fields.problem("depths", f"has {len(depths)} levels and widths {len(widths)}.", "as many entries as widths")
    return UNetShape(
        widths=widths,
        depths=depths,
        middle_depth=fields.whole_number("middle_depth", max(1, depths[-1]), low=0, high=MANY_LAYERS),
        text_width=fields.whole_number("text_width"),
        latent_channels=fields.whole_number("latent_channels", 4),
        blocks=fields.whole_number("blocks", 2, high=MANY_LAYERS),
        added_width=fields.whole_number("added_width", 0, low=0),
    )


def _joint_transformer(fields: Fields) -> JointTransformerShape:
    from chipwise.workload.model.diffusion import JointTransformerShape

    hidden, heads = fields.whole_number("hidden"), fields.whole_number("heads")
    if hidden % heads and fields.sound("hidden", "heads"):
        fields.problem("heads", f"{heads} do not divide hidden {hidden}.", "a divisor of hidden")
    return JointTransformerShape(
        hidden=hidden,
        heads=heads,
        joint_layers=fields.whole_number("joint_layers", high=MANY_LAYERS),
        text_width=fields.whole_number("text_width"),
        pooled_width=fields.whole_number("pooled_width"),
        single_layers=fields.whole_number("single_layers", 0, low=0, high=MANY_LAYERS),
        ffn=fields.optional("ffn"),
        latent_channels=fields.whole_number("latent_channels", 16),
        patch=fields.whole_number("patch", 2),
        qk_norm=fields.flag("qk_norm"),
        guidance=fields.flag("guidance"),
        short_last_text=fields.flag("short_last_text"),
    )


def _vae(fields: Fields) -> VaeShape:
    from chipwise.workload.model.unet import VaeShape

    return VaeShape(
        latent_channels=fields.whole_number("latent_channels", 4),
        widths=fields.whole_numbers("widths", (128, 256, 512, 512)),
        blocks=fields.whole_number("blocks", 2, high=MANY_LAYERS),
        channels=fields.whole_number("channels", 3),
        latent_projections=fields.flag("latent_projections", True),
    )


def _diffusion(fields: Fields) -> DiffusionShape | None:
    from chipwise.workload.model.diffusion import DiffusionShape, JointTransformerShape
    from chipwise.workload.model.unet import UNetShape, VaeShape

    denoiser = _nested(fields, "denoiser", ("unet", "joint-transformer"))
    listed = fields.values.get("text_encoders") if fields.has("text_encoders") else ()
    encoders = []
    for index, item in enumerate(listed if isinstance(listed, list | tuple) else (listed,)):
        if isinstance(item, Mapping):
            encoders.append(_inner(fields, f"text_encoders[{index}]", item, ("encoder",)))
        else:
            fields.problem(f"text_encoders[{index}]", f"is {str(item)[:40]!r}.", "a mapping of fields")
    vae = _nested(fields, "vae", ("vae",)) if fields.has("vae") else VaeShape()
    image_size, text_tokens = fields.whole_number("image_size", 512), fields.whole_number("text_tokens", 77)
    guided = fields.flag("guided", True)
    read = tuple(encoder for encoder in encoders if isinstance(encoder, EncoderShape))
    if not isinstance(denoiser, UNetShape | JointTransformerShape) or not isinstance(vae, VaeShape):
        return None
    return DiffusionShape(
        denoiser=denoiser, text_encoders=read, vae=vae, image_size=image_size, text_tokens=text_tokens, guided=guided
    )


def _recommender(fields: Fields) -> RecommenderShape:
    from chipwise.workload.model.recommender import Interaction, RecommenderShape

    width, bottom = fields.whole_number("embedding_width"), fields.whole_numbers("bottom")
    interaction = fields.choice("interaction", Interaction, Interaction.DOT)
    if bottom[-1] != width and fields.sound("bottom", "embedding_width"):
        fields.problem("bottom", f"ends in {bottom[-1]}, embeddings are {width} wide.", "a last layer of embedding_width")
    crossed = interaction is Interaction.CROSS
    return RecommenderShape(
        tables=fields.whole_numbers("tables", high=MANY_ROWS),
        embedding_width=width,
        dense_inputs=fields.whole_number("dense_inputs"),
        bottom=bottom,
        top=fields.whole_numbers("top"),
        interaction=interaction,
        cross_layers=fields.whole_number("cross_layers", None if crossed else 0, low=0, high=MANY_LAYERS),
        cross_rank=fields.whole_number("cross_rank", None if crossed else 0, low=0),
        lookups=fields.optional("lookups"),
    )


def _network(fields: Fields) -> CountedShape:
    from chipwise.workload.model.counted import CountedShape, Layers, usual_activations

    parameters = fields.whole_number("parameters", high=MANY_COUNTS)
    macs = fields.whole_number("macs", high=MANY_COUNTS)
    if not fields.has("layers"):
        fields.problem("layers", "is missing.", ", ".join(Layers))
    layers = fields.choice("layers", Layers, Layers.CNN)
    image_size = fields.whole_number("image_size", 0, low=0)
    return CountedShape(
        parameters=parameters,
        macs=macs,
        activations=fields.whole_number(
            "activations", usual_activations(layers, parameters, macs, image_size), high=MANY_COUNTS
        ),
        layers=layers,
        products=fields.whole_number("products", 60, high=MANY_LAYERS),
        image_size=image_size,
        seconds=fields.whole_number("seconds", 0, low=0),
        sequence=fields.whole_number("sequence", 0, low=0),
        tables=fields.whole_number("tables", 0, low=0, high=parameters - 1),
    )


KINDS: dict[str, Callable[[Fields], Shape | None]] = {
    "decoder": _decoder,
    "encoder": _encoder,
    "encoder-decoder": _encoder_decoder,
    "vision": _vision,
    "two-tower": _two_tower,
    "convnet": _convnet,
    "diffusion": _diffusion,
    "unet": _unet,
    "joint-transformer": _joint_transformer,
    "vae": _vae,
    "recommender": _recommender,
    "network": _network,
}
