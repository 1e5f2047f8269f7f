"""config.json files as the hub serves them, by hand: each must count what the registry counts; nonsense is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import BadInput, InvalidFile
from chipwise.workload.model.huggingface import READERS, read_config, shape_from_config
from chipwise.workload.model.registry import find
from chipwise.workload.model.shape import DecoderShape

Config = dict[str, Any]


def decoder(kind: str, layers: int, hidden: int, heads: int, kv_heads: int, ffn: int, vocab: int, **more: object) -> Config:
    """The fields that files of the Llama kind share, with some of the noise around them."""
    return {
        "architectures": ["SomethingForCausalLM"],
        "model_type": kind,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": ffn,
        "vocab_size": vocab,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-05,
        "rope_theta": 500000.0,
        "rope_scaling": None,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.43.0",
        "use_cache": True,
        **more,
    }


LLAMA = decoder("llama", 32, 4096, 32, 8, 14336, 128256, attention_bias=False, mlp_bias=False, tie_word_embeddings=False)
WINDOWS = ["sliding_attention", "full_attention"]
LABELS = {str(number): f"label {number}" for number in range(1000)}

CONFIGS: dict[str, Config] = {
    "llama-3.1-8b": LLAMA,
    "llama-3.2-1b": decoder("llama", 16, 2048, 32, 8, 8192, 128256, head_dim=64, tie_word_embeddings=True),
    "mistral-7b": decoder("mistral", 32, 4096, 32, 8, 14336, 32000, sliding_window=4096, tie_word_embeddings=False),
    "mistral-nemo-12b": decoder("mistral", 40, 5120, 32, 8, 14336, 131072, head_dim=128, sliding_window=None),
    "mixtral-8x7b": decoder("mixtral", 32, 4096, 32, 8, 14336, 32000, num_local_experts=8, num_experts_per_tok=2),
    "qwen2.5-7b": decoder("qwen2", 28, 3584, 28, 4, 18944, 152064, use_sliding_window=False, sliding_window=131072),
    "qwen1.5-moe-a2.7b": decoder(
        *("qwen2_moe", 24, 2048, 16, 16, 5632, 151936),
        num_experts=60,
        num_experts_per_tok=4,
        moe_intermediate_size=1408,
        shared_expert_intermediate_size=5632,
        decoder_sparse_step=1,
    ),
    "qwen3-8b": decoder("qwen3", 36, 4096, 32, 8, 12288, 151936, head_dim=128, attention_bias=False),
    "qwen3-30b-a3b": decoder(
        *("qwen3_moe", 48, 2048, 32, 4, 6144, 151936),
        head_dim=128,
        num_experts=128,
        num_experts_per_tok=8,
        moe_intermediate_size=768,
        mlp_only_layers=[],
        decoder_sparse_step=1,
    ),
    "gemma-7b": decoder("gemma", 28, 3072, 16, 16, 24576, 256000, head_dim=256),
    "gemma-2-9b": decoder("gemma2", 42, 3584, 16, 8, 14336, 256000, head_dim=256, sliding_window=4096),
    "gemma-3-1b": decoder("gemma3_text", 26, 1152, 4, 1, 6912, 262144, head_dim=256, sliding_window=512),
    "gemma-3-4b": {
        "model_type": "gemma3",
        "text_config": {
            "model_type": "gemma3_text",
            "hidden_size": 2560,
            "intermediate_size": 10240,
            "num_hidden_layers": 34,
            "sliding_window": 1024,
        },
        "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 1152},
    },
    "phi-2": decoder("phi", 32, 2560, 32, 32, 10240, 51200, tie_word_embeddings=False, partial_rotary_factor=0.4),
    "phi-3-mini": decoder("phi3", 32, 3072, 32, 32, 8192, 32064, sliding_window=2047),
    "gpt2-xl": {"model_type": "gpt2", "n_layer": 48, "n_embd": 1600, "n_head": 25, "n_positions": 1024, "vocab_size": 50257},
    "starcoder-15.5b": {
        "model_type": "gpt_bigcode",
        "n_layer": 40,
        "n_embd": 6144,
        "n_head": 48,
        "n_inner": 24576,
        "n_positions": 8192,
        "vocab_size": 49152,
        "multi_query": True,
    },
    "gpt-j-6b": {
        "model_type": "gptj",
        "n_layer": 28,
        "n_embd": 4096,
        "n_head": 16,
        "n_inner": None,
        "rotary_dim": 64,
        "vocab_size": 50400,
        "tie_word_embeddings": False,
    },
    "gpt-neox-20b": {
        "model_type": "gpt_neox",
        "num_hidden_layers": 44,
        "hidden_size": 6144,
        "num_attention_heads": 64,
        "intermediate_size": 24576,
        "vocab_size": 50432,
        "tie_word_embeddings": False,
    },
    "mpt-7b": {
        "model_type": "mpt",
        "n_layers": 32,
        "d_model": 4096,
        "n_heads": 32,
        "expansion_ratio": 4,
        "vocab_size": 50432,
        "no_bias": True,
        "max_seq_len": 2048,
        "attn_config": {"alibi": True, "attn_type": "multihead_attention"},
    },
    "falcon-7b": {
        "model_type": "falcon",
        "num_hidden_layers": 32,
        "hidden_size": 4544,
        "num_attention_heads": 71,
        "vocab_size": 65024,
        "multi_query": True,
        "parallel_attn": True,
        "new_decoder_architecture": False,
        "bias": False,
    },
    "falcon-40b": {
        "model_type": "falcon",
        "num_hidden_layers": 60,
        "hidden_size": 8192,
        "num_attention_heads": 128,
        "num_kv_heads": 8,
        "vocab_size": 65024,
        "new_decoder_architecture": True,
        "bias": False,
    },
    "bloom-7b1": {"model_type": "bloom", "n_layer": 30, "hidden_size": 4096, "num_attention_heads": 32, "vocab_size": 250880},
    "bloom-176b": {"model_type": "bloom", "n_layer": 70, "n_embed": 14336, "n_head": 112, "vocab_size": 250880},
    "opt-350m": {
        "model_type": "opt",
        "num_hidden_layers": 24,
        "hidden_size": 1024,
        "num_attention_heads": 16,
        "ffn_dim": 4096,
        "vocab_size": 50272,
        "max_position_embeddings": 2048,
        "word_embed_proj_dim": 512,
        "do_layer_norm_before": False,
    },
    "deepseek-v2-lite": decoder(
        *("deepseek_v2", 27, 2048, 16, 16, 10944, 102400),
        q_lora_rank=None,
        kv_lora_rank=512,
        qk_nope_head_dim=128,
        qk_rope_head_dim=64,
        v_head_dim=128,
        n_routed_experts=64,
        n_shared_experts=2,
        num_experts_per_tok=6,
        moe_intermediate_size=1408,
        first_k_dense_replace=1,
    ),
    "deepseek-v3": decoder(
        *("deepseek_v3", 61, 7168, 128, 128, 18432, 129280),
        q_lora_rank=1536,
        kv_lora_rank=512,
        qk_nope_head_dim=128,
        qk_rope_head_dim=64,
        v_head_dim=128,
        n_routed_experts=256,
        n_shared_experts=1,
        num_experts_per_tok=8,
        moe_intermediate_size=2048,
        first_k_dense_replace=3,
        num_nextn_predict_layers=1,
        quantization_config={"quant_method": "fp8"},
    ),
    "gpt-oss-20b": decoder(
        *("gpt_oss", 24, 2880, 64, 8, 2880, 201088),
        head_dim=64,
        num_local_experts=32,
        num_experts_per_tok=4,
        attention_bias=True,
        sliding_window=128,
        layer_types=WINDOWS * 12,
    ),
    "llama-4-maverick": {
        "model_type": "llama4",
        "text_config": decoder(
            *("llama4_text", 48, 5120, 40, 8, 8192, 202048),
            head_dim=128,
            intermediate_size_mlp=16384,
            num_local_experts=128,
            num_experts_per_tok=1,
            interleave_moe_layer_step=2,
            attention_chunk_size=8192,
        ),
    },
    "olmo-2-7b": decoder("olmo2", 32, 4096, 32, 32, 11008, 100352),
    "command-r-35b": decoder("cohere", 40, 8192, 64, 64, 22528, 256000, use_qk_norm=False),
    "starcoder2-15b": decoder(
        *("starcoder2", 40, 6144, 48, 4, 24576, 49152), use_bias=True, sliding_window=4096, tie_word_embeddings=False
    ),
    "bert-base": {
        "model_type": "bert",
        "num_hidden_layers": 12,
        "hidden_size": 768,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "vocab_size": 30522,
        "max_position_embeddings": 512,
        "type_vocab_size": 2,
    },
    "roberta-large": {
        "model_type": "roberta",
        "num_hidden_layers": 24,
        "hidden_size": 1024,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
        "vocab_size": 50265,
        "max_position_embeddings": 514,
        "type_vocab_size": 1,
    },
    "distilbert-base": {
        "model_type": "distilbert",
        "n_layers": 6,
        "dim": 768,
        "n_heads": 12,
        "hidden_dim": 3072,
        "vocab_size": 30522,
        "max_position_embeddings": 512,
    },
    "t5-11b": {
        "model_type": "t5",
        "num_layers": 24,
        "d_model": 1024,
        "num_heads": 128,
        "d_kv": 128,
        "d_ff": 65536,
        "vocab_size": 32128,
    },
    "flan-t5-base": {
        "model_type": "t5",
        "num_layers": 12,
        "num_decoder_layers": 12,
        "d_model": 768,
        "num_heads": 12,
        "d_kv": 64,
        "d_ff": 2048,
        "vocab_size": 32128,
        "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": False,
    },
    "whisper-large-v3": {
        "model_type": "whisper",
        "encoder_layers": 32,
        "decoder_layers": 32,
        "d_model": 1280,
        "encoder_attention_heads": 20,
        "encoder_ffn_dim": 5120,
        "vocab_size": 51866,
        "num_mel_bins": 128,
        "max_source_positions": 1500,
        "max_target_positions": 448,
    },
    "bart-large": {
        "model_type": "bart",
        "encoder_layers": 12,
        "decoder_layers": 12,
        "d_model": 1024,
        "encoder_attention_heads": 16,
        "encoder_ffn_dim": 4096,
        "vocab_size": 50265,
        "max_position_embeddings": 1024,
    },
    "vit-b-16": {
        "model_type": "vit",
        "num_hidden_layers": 12,
        "hidden_size": 768,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "image_size": 224,
        "patch_size": 16,
        "id2label": LABELS,
    },
    "clip-vit-b-32": {
        "model_type": "clip",
        "projection_dim": 512,
        "text_config": {"bos_token_id": 0},
        "vision_config": {"dropout": 0},
    },
    "clip-vit-l-14": {
        "model_type": "clip",
        "projection_dim": 768,
        "text_config": {"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12},
        "vision_config": {
            "hidden_size": 1024,
            "intermediate_size": 4096,
            "num_attention_heads": 16,
            "num_hidden_layers": 24,
            "patch_size": 14,
        },
    },
    "resnet-50": {
        "model_type": "resnet",
        "layer_type": "bottleneck",
        "depths": [3, 4, 6, 3],
        "hidden_sizes": [256, 512, 1024, 2048],
        "embedding_size": 64,
        "id2label": LABELS,
    },
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_gives_the_shape_of_the_registry(name: str) -> None:
    assert shape_from_config(CONFIGS[name]) == find(name).shape


def test_every_missing_field_is_named_at_once() -> None:
    with pytest.raises(InvalidFile) as caught:
        shape_from_config({"model_type": "llama"})

    named = {problem.field for problem in caught.value.problems}
    assert named == {"num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "vocab_size"}


def test_missing_fields_of_a_text_part_carry_its_name() -> None:
    with pytest.raises(InvalidFile, match=r"text_config\.num_hidden_layers"):
        shape_from_config({"model_type": "gemma3", "text_config": {"hidden_size": 2560}})


def test_an_unknown_architecture_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadInput, match=r"'mamba2' is not known.*qwen3_moe") as caught:
        shape_from_config({"model_type": "mamba2"})

    assert "inline shape" in str(caught.value)


@pytest.mark.parametrize("config", [{}, {"model_type": None}, {"model_type": 5}, {"model_type": ""}, {"hidden_size": 1}])
def test_a_config_without_a_type_is_refused(config: Config) -> None:
    with pytest.raises(BadInput, match="model_type"):
        shape_from_config(config)


@pytest.mark.parametrize("value", [-1, 0, 1.5, "4096", True, float("nan"), float("inf"), 10**9, 10**400, [], {}])
@pytest.mark.parametrize(
    "field", ["hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "intermediate_size"]
)
def test_a_number_that_makes_no_sense_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(BadInput, match=field):
        shape_from_config(LLAMA | {field: value})


def test_heads_that_do_not_divide_are_refused() -> None:
    with pytest.raises(BadInput, match="num_attention_heads: 33 do not divide hidden_size 4096"):
        shape_from_config(LLAMA | {"num_attention_heads": 33, "num_key_value_heads": 33})
    with pytest.raises(BadInput, match="num_key_value_heads: 5 do not divide 32"):
        shape_from_config(LLAMA | {"num_key_value_heads": 5})


def test_more_active_experts_than_experts_are_refused() -> None:
    with pytest.raises(BadInput, match="active_experts"):
        shape_from_config(CONFIGS["mixtral-8x7b"] | {"num_experts_per_tok": 9})


def test_layers_without_experts_are_told_from_those_with() -> None:
    shape = shape_from_config(CONFIGS["qwen3-30b-a3b"] | {"mlp_only_layers": [0, 1, 2], "decoder_sparse_step": 2})

    assert isinstance(shape, DecoderShape)
    assert shape.expert_layers == 23  # every second of 48, less layer 1


NOISE: st.SearchStrategy[object] = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "x", [], {}])


@given(st.sampled_from(sorted(CONFIGS)), st.data())
def test_a_damaged_config_gives_a_shape_or_a_refusal(name: str, data: st.DataObject) -> None:
    config = dict(CONFIGS[name])
    for field in data.draw(st.lists(st.sampled_from(sorted(config)), max_size=3)):
        config[field] = data.draw(NOISE)
    try:
        shape = shape_from_config(config)
    except BadInput:
        return
    assert shape.parameters > 0


def test_every_reader_refuses_an_empty_config_or_knows_its_defaults() -> None:
    for kind in READERS:
        with pytest.raises(BadInput):
            shape_from_config({"model_type": kind})


def test_a_config_is_read_from_a_file_or_its_folder(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8-sig")

    assert read_config(tmp_path) == read_config(tmp_path / "config.json") == LLAMA


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"  \n", "is empty"),
        (b"{", "is not JSON, line 1"),
        (b"hello", "is not JSON"),
        (b"[1, 2]", "holds a JSON list"),
        (b"5", "holds a JSON int"),
        (b"\x80\x02PK\xff", "is binary"),
        (b"[" * 100_000, "is not JSON"),
        (b"#" * 5_000_001, "more than 5 MB"),
    ],
)
def test_a_file_that_is_no_config_is_refused_with_a_remedy(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "config.json").write_bytes(content)

    with pytest.raises(BadInput, match=said) as caught:
        read_config(tmp_path)

    assert caught.value.remedy


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="There is no"):
        read_config(tmp_path)
