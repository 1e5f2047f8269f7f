"""How each decoder architecture writes its config.json, turned into the fields of an inline shape.

Defaults are those of the configuration classes in the transformers library: what a file leaves out has that value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from chipwise.workload.model.fields import MANY_LAYERS, Fields

Form = dict[str, object]  # fields of an inline shape


def read_heads(fields: Fields, hidden: str = "hidden_size", heads: str = "num_attention_heads", kv: str = "") -> Form:
    """Width and heads, with the divisions that the architecture itself insists on."""
    width, count = fields.whole_number(hidden), fields.whole_number(heads)
    groups = fields.whole_number(kv, count) if kv else count
    if not fields.has("head_dim") and width % count and fields.sound(hidden, heads):
        fields.problem(heads, f"{count} do not divide {hidden} {width}.", f"a divisor of {hidden}")
    if count % groups and fields.sound(heads, kv):
        fields.problem(kv, f"{groups} do not divide {count} {heads}.", f"a divisor of {heads}")
    return {"hidden": width, "heads": count, "kv_heads": groups}


def _llama(fields: Fields, *, bias: str = "", tied: bool = False) -> Form:
    """The shape most decoders share: RMS norm, gated feed-forward, grouped queries, rotary positions."""
    form: Form = {
        "layers": fields.whole_number("num_hidden_layers", high=MANY_LAYERS),
        **read_heads(fields, kv="num_key_value_heads"),
        "head_dim": fields.optional("head_dim"),
        "ffn": fields.whole_number("intermediate_size"),
        "vocab": fields.whole_number("vocab_size"),
        "attention_bias": bias or fields.flag("attention_bias"),
        "mlp_bias": fields.flag("mlp_bias"),
        "tied_embeddings": fields.flag("tie_word_embeddings", tied),
    }
    return form


def _mistral(fields: Fields) -> Form:
    return _llama(fields) | {"window": fields.optional("sliding_window")}


def _mixtral(fields: Fields) -> Form:
    form = _llama(fields) | {"experts": fields.whole_number("num_local_experts", 8)}
    return form | {"active_experts": fields.whole_number("num_experts_per_tok", 2)}


def _qwen2(fields: Fields) -> Form:
    return _llama(fields, bias="qkv")


def _qwen_experts(fields: Fields, form: Form) -> Form:
    """Layers with experts are every `decoder_sparse_step`-th, less those named in `mlp_only_layers`."""
    layers, step = fields.whole_number("num_hidden_layers", high=MANY_LAYERS), fields.whole_number("decoder_sparse_step", 1)
    dense = fields.whole_numbers("mlp_only_layers", low=0) if fields.values.get("mlp_only_layers") else ()
    sparse = [layer for layer in range(layers) if layer not in dense and (layer + 1) % step == 0]
    form |= {"experts": fields.whole_number("num_experts"), "active_experts": fields.whole_number("num_experts_per_tok")}
    return form | {"expert_ffn": fields.whole_number("moe_intermediate_size"), "dense_layers": layers - len(sparse)}


def _qwen2_moe(fields: Fields) -> Form:
    shared = {"shared_ffn": fields.whole_number("shared_expert_intermediate_size"), "shared_gate": True}
    return _qwen_experts(fields, _qwen2(fields)) | shared


def _qwen3(fields: Fields) -> Form:
    return _llama(fields) | {"head_dim": fields.whole_number("head_dim", 128), "qk_norm": "head"}


def _qwen3_moe(fields: Fields) -> Form:
    return _qwen_experts(fields, _qwen3(fields))


def _gemma(fields: Fields) -> Form:
    return _llama(fields, tied=True) | {"head_dim": fields.whole_number("head_dim", 256)}


def _gemma2(fields: Fields) -> Form:
    form = _gemma(fields) | {"norms_per_layer": 4}
    return form | _windows(fields, 4096, 2)


def _gemma3(fields: Fields) -> Form:
    """The multimodal files leave out of `text_config` whatever equals the default of its class."""
    if "text_config" in fields.values:
        text = dict(fields.section("text_config"))
        defaults = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208}
        return read_inside(fields, "text_config", defaults | text, _gemma3_text)
    return _gemma3_text(fields)


def _gemma3_text(fields: Fields) -> Form:
    return _gemma(fields) | {"norms_per_layer": 4, "qk_norm": "head"} | _windows(fields, 4096, 6)


def _windows(fields: Fields, window: int, period: int) -> Form:
    """Sliding windows in all layers but each `period`-th (or as `layer_types` lists them)."""
    layers = fields.whole_number("num_hidden_layers", high=MANY_LAYERS)
    listed = fields.values.get("layer_types") if fields.has("layer_types") else None
    pattern = fields.whole_number("sliding_window_pattern", period)
    windowed = listed.count("sliding_attention") if isinstance(listed, list) else layers - layers // pattern
    return {"window": fields.whole_number("sliding_window", window), "windowed_layers": min(windowed, layers)}


def read_inside(fields: Fields, name: str, section: Mapping[str, object], reader: Callable[[Fields], Form]) -> Form:
    inner = Fields(section, name)
    form = reader(inner)
    fields.problems.extend(inner.problems)
    return form


def _phi(fields: Fields) -> Form:
    form = _llama(fields, bias="qkvo") | {"norm": "layernorm", "norms_per_layer": 1, "gated": False}
    return form | {"mlp_bias": True, "head_bias": True}


def _phi3(fields: Fields) -> Form:
    return _mistral(fields)


def _starcoder2(fields: Fields) -> Form:
    bias = fields.flag("use_bias", True)
    form = _mistral(fields) | {"norm": "layernorm", "gated": False, "attention_bias": bias, "mlp_bias": bias}
    return form | {"tied_embeddings": fields.flag("tie_word_embeddings", True)}


def _olmo2(fields: Fields) -> Form:
    return _llama(fields) | {"qk_norm": "full"}


def _cohere(fields: Fields) -> Form:
    if fields.flag("use_qk_norm"):
        fields.problem("use_qk_norm", "is true: separate norms for every head are not counted here.", "false")
    return _llama(fields, tied=True) | {"norm": "layernorm-without-bias", "norms_per_layer": 1}


def _gpt2(fields: Fields) -> Form:
    hidden = fields.whole_number("n_embd")
    return {
        "layers": fields.whole_number("n_layer", high=MANY_LAYERS),
        **read_heads(fields, "n_embd", "n_head"),
        "kv_heads": 1 if fields.flag("multi_query") else None,  # gpt_bigcode
        "ffn": fields.whole_number("n_inner", 4 * hidden),
        "vocab": fields.whole_number("vocab_size"),
        "positions": fields.whole_number("n_positions"),
        "tied_embeddings": fields.flag("tie_word_embeddings", True),
        **_with_biases(),
    }


def _with_biases() -> Form:
    return {"norm": "layernorm", "gated": False, "attention_bias": True, "mlp_bias": True}


def _gptj(fields: Fields) -> Form:
    hidden = fields.whole_number("n_embd")
    return {
        "layers": fields.whole_number("n_layer", high=MANY_LAYERS),
        **read_heads(fields, "n_embd", "n_head"),
        "ffn": fields.whole_number("n_inner", 4 * hidden),
        "vocab": fields.whole_number("vocab_size"),
        "tied_embeddings": fields.flag("tie_word_embeddings"),
        **_with_biases(),
        "attention_bias": False,
        "norms_per_layer": 1,
        "head_bias": True,
    }


def _gpt_neox(fields: Fields) -> Form:
    return {
        "layers": fields.whole_number("num_hidden_layers", high=MANY_LAYERS),
        **read_heads(fields),
        "ffn": fields.whole_number("intermediate_size"),
        "vocab": fields.whole_number("vocab_size"),
        "tied_embeddings": fields.flag("tie_word_embeddings"),
        **_with_biases(),
        "attention_bias": fields.flag("attention_bias", True),
    }


def _mpt(fields: Fields) -> Form:
    hidden = fields.whole_number("d_model")
    attention = fields.section("attn_config") if fields.has("attn_config") else {}
    bare = fields.flag("no_bias", True)
    return {
        "layers": fields.whole_number("n_layers", high=MANY_LAYERS),
        **read_heads(fields, "d_model", "n_heads"),
        "kv_heads": attention.get("kv_n_heads"),
        "ffn": hidden * fields.whole_number("expansion_ratio", 4),
        "vocab": fields.whole_number("vocab_size"),
        "tied_embeddings": fields.flag("tie_word_embeddings", True),
        "positions": 0 if attention.get("alibi") else fields.whole_number("max_seq_len"),
        **_with_biases(),
        "attention_bias": not bare,
        "mlp_bias": not bare,
        "norm": "layernorm-without-bias" if bare else "layernorm",
    }


def _falcon(fields: Fields) -> Form:
    heads = fields.whole_number("num_attention_heads")
    new = fields.flag("new_decoder_architecture")
    parallel, multi = fields.flag("parallel_attn", True), fields.flag("multi_query", True)
    norms = fields.whole_number("num_ln_in_parallel_attn", 2) if new else 1 if parallel else 2
    bias = fields.flag("bias")
    return {
        "layers": fields.whole_number("num_hidden_layers", high=MANY_LAYERS),
        **read_heads(fields),
        "kv_heads": fields.whole_number("num_kv_heads", heads) if new else 1 if multi else heads,
        "ffn": fields.whole_number("ffn_hidden_size", 4 * fields.whole_number("hidden_size")),
        "vocab": fields.whole_number("vocab_size"),
        "tied_embeddings": fields.flag("tie_word_embeddings", True),
        "norm": "layernorm",
        "norms_per_layer": norms,
        "gated": False,
        "attention_bias": bias,
        "mlp_bias": bias,
    }


def _bloom(fields: Fields) -> Form:
    hidden = "hidden_size" if "hidden_size" in fields.values or "n_embed" not in fields.values else "n_embed"
    heads = "n_head" if "n_head" in fields.values else "num_attention_heads"
    layers = "n_layer" if "n_layer" in fields.values else "num_hidden_layers"
    return {
        "layers": fields.whole_number(layers, high=MANY_LAYERS),
        **read_heads(fields, hidden, heads),
        "ffn": 4 * fields.whole_number(hidden),
        "vocab": fields.whole_number("vocab_size"),
        "embedding_norm": True,
        "tied_embeddings": fields.flag("tie_word_embeddings", True),
        **_with_biases(),
    }


def _opt(fields: Fields) -> Form:
    hidden = fields.whole_number("hidden_size")
    bias = fields.flag("enable_bias", True)
    before = fields.flag("do_layer_norm_before", True)
    return {
        "layers": fields.whole_number("num_hidden_layers", high=MANY_LAYERS),
        **read_heads(fields),
        "ffn": fields.whole_number("ffn_dim"),
        "vocab": fields.whole_number("vocab_size"),
        "positions": fields.whole_number("max_position_embeddings") + 2,
        "embedding_width": fields.whole_number("word_embed_proj_dim", hidden),
        "final_norm": before and not fields.flag("_remove_final_layer_norm"),
        "tied_embeddings": fields.flag("tie_word_embeddings", True),
        **_with_biases(),
        "attention_bias": bias,
        "mlp_bias": bias,
    }


def _deepseek(fields: Fields) -> Form:
    layers, width = fields.whole_number("num_hidden_layers", high=MANY_LAYERS), fields.whole_number("moe_intermediate_size")
    return {
        "layers": layers,
        "hidden": fields.whole_number("hidden_size"),
        "heads": fields.whole_number("num_attention_heads"),
        "q_lora": fields.optional("q_lora_rank"),
        "kv_lora": fields.whole_number("kv_lora_rank"),
        "nope_dim": fields.whole_number("qk_nope_head_dim"),
        "rope_dim": fields.whole_number("qk_rope_head_dim"),
        "v_head_dim": fields.whole_number("v_head_dim"),
        "ffn": fields.whole_number("intermediate_size"),
        "vocab": fields.whole_number("vocab_size"),
        "experts": fields.whole_number("n_routed_experts"),
        "active_experts": fields.whole_number("num_experts_per_tok"),
        "expert_ffn": width,
        "shared_ffn": width * fields.whole_number("n_shared_experts", 0, low=0),
        "dense_layers": fields.whole_number("first_k_dense_replace", 0, low=0, high=layers),
        "tied_embeddings": fields.flag("tie_word_embeddings"),
    }


def _deepseek_v3(fields: Fields) -> Form:
    return _deepseek(fields) | {"router_bias": True}


def _gpt_oss(fields: Fields) -> Form:
    form = _llama(fields, bias="qkvo") | {"head_dim": fields.whole_number("head_dim", 64), "mlp_bias": True, "sinks": True}
    form |= {"experts": fields.whole_number("num_local_experts"), "router_bias": True}
    return form | {"active_experts": fields.whole_number("num_experts_per_tok")} | _windows(fields, 128, 2)


def _llama4(fields: Fields) -> Form:
    if "text_config" in fields.values:
        return read_inside(fields, "text_config", fields.section("text_config"), _llama4)
    layers, step = (
        fields.whole_number("num_hidden_layers", high=MANY_LAYERS),
        fields.whole_number("interleave_moe_layer_step", 1),
    )
    width, window = fields.whole_number("intermediate_size"), fields.optional("attention_chunk_size")
    return _llama(fields) | {
        "ffn": fields.whole_number("intermediate_size_mlp"),
        "experts": fields.whole_number("num_local_experts"),
        "active_experts": fields.whole_number("num_experts_per_tok", 1),
        "expert_ffn": width,
        "shared_ffn": width,
        "dense_layers": layers - layers // step,
        "window": window,
        "windowed_layers": layers - layers // 4 if window else 0,  # each fourth layer sees everything
    }


DECODERS: dict[str, Callable[[Fields], Form]] = {
    "bloom": _bloom,
    "cohere": _cohere,
    "deepseek_v2": _deepseek,
    "deepseek_v3": _deepseek_v3,
    "falcon": _falcon,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "gemma3_text": _gemma3,
    "gpt2": _gpt2,
    "gpt_bigcode": _gpt2,
    "gpt_neox": _gpt_neox,
    "gpt_oss": _gpt_oss,
    "gptj": _gptj,
    "granite": _llama,
    "kimi_k2": _deepseek_v3,
    "llama": _llama,
    "llama4": _llama4,
    "llama4_text": _llama4,
    "mistral": _mistral,
    "mixtral": _mixtral,
    "mpt": _mpt,
    "olmo2": _olmo2,
    "opt": _opt,
    "phi": _phi,
    "phi3": _phi3,
    "qwen2": _qwen2,
    "qwen2_moe": _qwen2_moe,
    "qwen3": _qwen3,
    "qwen3_moe": _qwen3_moe,
    "smollm3": _llama,
    "starcoder2": _starcoder2,
}
