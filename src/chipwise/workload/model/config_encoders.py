"""How encoders, encoder-decoders, image models and convolutional nets write their config.json, as inline fields.

Defaults are those of the configuration classes in the transformers library: what a file leaves out has that value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from chipwise.workload.model.config_decoders import Form, read_heads, read_inside
from chipwise.workload.model.fields import MANY_LAYERS, Fields


def _bert(fields: Fields) -> Form:
    return {
        "kind": "encoder",
        "layers": fields.whole_number("num_hidden_layers", high=MANY_LAYERS),
        **read_heads(fields),
        "ffn": fields.whole_number("intermediate_size"),
        "vocab": fields.whole_number("vocab_size"),
        "positions": fields.whole_number("max_position_embeddings"),
        "token_types": fields.whole_number("type_vocab_size", 2),
        "embedding_norm": True,
        "final_norm": False,
        "pooler": True,
    }


def _distilbert(fields: Fields) -> Form:
    return {
        "kind": "encoder",
        "layers": fields.whole_number("n_layers", high=MANY_LAYERS),
        **read_heads(fields, "dim", "n_heads"),
        "ffn": fields.whole_number("hidden_dim"),
        "vocab": fields.whole_number("vocab_size"),
        "positions": fields.whole_number("max_position_embeddings"),
        "embedding_norm": True,
        "final_norm": False,
    }


def _t5(fields: Fields) -> Form:
    layers, gated = fields.whole_number("num_layers", high=MANY_LAYERS), fields.values.get("feed_forward_proj", "relu")
    fields.has("feed_forward_proj")
    return {
        "kind": "encoder-decoder",
        "layers": layers,
        "decoder_layers": fields.whole_number("num_decoder_layers", layers, high=MANY_LAYERS),
        "hidden": fields.whole_number("d_model"),
        "heads": fields.whole_number("num_heads"),
        "head_dim": fields.whole_number("d_kv"),
        "ffn": fields.whole_number("d_ff"),
        "vocab": fields.whole_number("vocab_size"),
        "gated": isinstance(gated, str) and gated.startswith("gated"),
        "tied_embeddings": fields.flag("tie_word_embeddings", True),
        "relative_buckets": fields.whole_number("relative_attention_num_buckets", 32),
        "norm": "rmsnorm",
        "attention_bias": False,
        "mlp_bias": False,
    }


def _whisper(fields: Fields) -> Form:
    return _bart(fields) | {
        "attention_bias": "qvo",
        "final_norm": True,
        "embedding_norm": False,
        "encoder_positions": fields.whole_number("max_source_positions", 1500),
        "decoder_positions": fields.whole_number("max_target_positions", 448),
        "mels": fields.whole_number("num_mel_bins", 80),
    }


def _bart(fields: Fields) -> Form:
    positions = fields.whole_number("max_position_embeddings", 1024) + 2
    return {
        "kind": "encoder-decoder",
        "layers": fields.whole_number("encoder_layers", high=MANY_LAYERS),
        "decoder_layers": fields.whole_number("decoder_layers", high=MANY_LAYERS),
        **read_heads(fields, "d_model", "encoder_attention_heads"),
        "ffn": fields.whole_number("encoder_ffn_dim"),
        "vocab": fields.whole_number("vocab_size"),
        "tied_embeddings": True,
        "final_norm": False,
        "embedding_norm": True,
        "encoder_positions": positions,
        "decoder_positions": positions,
    }


def _vision(fields: Fields) -> Form:
    labels = fields.values.get("id2label") if fields.has("id2label") else {}
    return {
        "kind": "vision",
        "layers": fields.whole_number("num_hidden_layers", high=MANY_LAYERS),
        **read_heads(fields),
        "ffn": fields.whole_number("intermediate_size"),
        "image_size": fields.whole_number("image_size", 224),
        "patch": fields.whole_number("patch_size"),
        "channels": fields.whole_number("num_channels", 3),
        "classes": len(labels) if isinstance(labels, Mapping) else 0,
    }


def _clip(fields: Fields) -> Form:
    """Older files leave out of the towers whatever equals the defaults, which are those of ViT-B/32."""
    width = fields.whole_number("projection_dim", 512)
    small = {"num_hidden_layers": 12, "max_position_embeddings": 77, "vocab_size": 49408}
    text = small | {"hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 2048}
    image = {
        "num_hidden_layers": 12,
        "hidden_size": 768,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "patch_size": 32,
    }
    plain = {"embedding_norm": False, "final_norm": True, "pooler": False, "token_types": 0, "projection": width}
    pictured = {"patch_bias": False, "norm_before": True, "classes": 0, "projection": width}
    return {
        "kind": "two-tower",
        "text": read_inside(fields, "text_config", text | _stated(fields, "text_config"), _bert) | plain,
        "image": read_inside(fields, "vision_config", image | _stated(fields, "vision_config"), _vision) | pictured,
    }


def _stated(fields: Fields, name: str) -> Form:
    section = fields.section(f"{name}_dict" if fields.has(f"{name}_dict") and not fields.has(name) else name)
    return {field: value for field, value in section.items() if value is not None}


def _resnet(fields: Fields) -> Form:
    labels = fields.values.get("id2label") if fields.has("id2label") else {}
    block = "basic" if fields.values.get("layer_type") == "basic" else "bottleneck"
    outputs = fields.whole_numbers("hidden_sizes")
    return {
        "kind": "convnet",
        "block": block,
        "blocks": list(fields.whole_numbers("depths", high=MANY_LAYERS)),
        "widths": [output if block == "basic" else max(1, output // 4) for output in outputs],
        "stem": fields.whole_number("embedding_size", 64),
        "channels": fields.whole_number("num_channels", 3),
        "classes": len(labels) if isinstance(labels, Mapping) and labels else 1000,
    }


ENCODERS: dict[str, Callable[[Fields], Form]] = {
    "bart": _bart,
    "bert": _bert,
    "clip": _clip,
    "distilbert": _distilbert,
    "mt5": _t5,
    "resnet": _resnet,
    "roberta": _bert,
    "t5": _t5,
    "vit": _vision,
    "whisper": _whisper,
    "xlm-roberta": _bert,
}
