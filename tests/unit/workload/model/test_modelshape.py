"""Parameter counts, caches and FLOP of shapes: exact cases from papers and libraries, and laws that always hold."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.workload.model.shape import (
    Attention,
    Block,
    ConvShape,
    DecoderShape,
    EncoderDecoderShape,
    EncoderShape,
    Experts,
    FeedForward,
    JointTransformerShape,
    LatentAttention,
    Norm,
    QkNorm,
    RecommenderShape,
    Stack,
    UNetShape,
    VaeShape,
    VisionShape,
)

SIZES = st.integers(1, 8)


@st.composite
def decoders(draw: st.DrawFn) -> DecoderShape:
    groups, per_group, head_dim = draw(SIZES), draw(SIZES), draw(st.sampled_from([8, 16, 64]))
    hidden = groups * per_group * head_dim
    bias = draw(st.sampled_from(["", "qkv", "qkvo"]))
    mlp = FeedForward(hidden, draw(st.integers(1, 4096)), draw(st.booleans()), draw(st.booleans()))
    count = draw(st.integers(1, 16))
    return DecoderShape(
        layers=draw(st.integers(1, 40)),
        hidden=hidden,
        vocab=draw(st.integers(1, 50_000)),
        attention=Attention(hidden, groups * per_group, groups, head_dim, bias, draw(st.sampled_from(QkNorm))),
        mlp=mlp,
        experts=draw(st.none() | st.just(Experts(mlp, count, draw(st.integers(1, count))))),
        norm=draw(st.sampled_from(Norm)),
        tied_embeddings=draw(st.booleans()),
        positions=draw(st.integers(0, 2048)),
    )


def llama_8b() -> DecoderShape:
    return DecoderShape(32, 4096, 128256, Attention(4096, 32, 8, 128), FeedForward(4096, 14336))


def test_llama_3_1_8b_has_8_030_261_248_parameters() -> None:
    assert llama_8b().parameters == 8_030_261_248


def test_the_cache_of_llama_3_1_8b_is_128_kib_per_token_in_16_bits() -> None:
    assert llama_8b().kv_bytes_per_token(2) == 128 * 1024


def test_the_latent_cache_of_deepseek_v3_is_70_kb_per_token() -> None:
    attention = LatentAttention(7168, 128, 512, 128, 64, 128, 1536)
    shape = DecoderShape(61, 7168, 129280, attention, FeedForward(7168, 18432))

    assert shape.kv_bytes_per_token(2) == 61 * 576 * 2  # DeepSeek-V3 report: 70.272 kB
    assert shape.kv_bytes_per_token(2) / 1e3 == pytest.approx(70.272)


def test_a_token_costs_two_flop_for_each_weight_outside_the_table() -> None:
    shape = llama_8b()
    weights = shape.parameters - shape.vocab * shape.hidden - (2 * shape.layers + 1) * shape.hidden

    assert shape.matrix_flop_per_token() == 2 * weights
    assert shape.matrix_flop_per_token(head=False) == 2 * (weights - shape.vocab * shape.hidden)


def test_a_full_window_stops_the_cache_from_growing() -> None:
    shape = replace(llama_8b(), window=4096, windowed_layers=32)

    assert shape.kv_bytes(4096, 2) == shape.kv_bytes(100_000, 2) == 4096 * shape.kv_bytes_per_token(2)


def test_half_windowed_layers_keep_their_window_and_the_others_everything() -> None:
    shape = replace(llama_8b(), window=1000, windowed_layers=16)

    assert shape.kv_bytes(10_000, 2) == (10_000 + 1000) * 16 * 2048 * 2


@given(decoders())
def test_one_more_layer_is_more_parameters_cache_and_work(shape: DecoderShape) -> None:
    taller = replace(shape, layers=shape.layers + 1)

    assert taller.parameters > shape.parameters
    assert taller.kv_bytes_per_token(2) > shape.kv_bytes_per_token(2)
    assert taller.matrix_flop_per_token() > shape.matrix_flop_per_token()


@given(decoders())
def test_tied_embeddings_are_never_more_than_untied(shape: DecoderShape) -> None:
    tied, untied = replace(shape, tied_embeddings=True), replace(shape, tied_embeddings=False)

    assert untied.parameters - tied.parameters == shape.vocab * shape.hidden
    assert tied.matrix_flop_per_token() == untied.matrix_flop_per_token()


@given(decoders(), st.sampled_from([0.5, 1, 2, 4]))
def test_the_cache_scales_with_kv_heads_and_bytes(shape: DecoderShape, size: float) -> None:
    attention = shape.attention
    assert isinstance(attention, Attention)
    every = replace(shape, attention=replace(attention, kv_heads=attention.heads))
    ratio = attention.heads / attention.kv_heads

    assert every.kv_bytes_per_token(size) == pytest.approx(ratio * shape.kv_bytes_per_token(size))
    assert shape.kv_bytes_per_token(2 * size) == 2 * shape.kv_bytes_per_token(size)


@given(decoders())
def test_active_parameters_equal_all_only_when_every_expert_works(shape: DecoderShape) -> None:
    idle = shape.experts is not None and shape.experts.active < shape.experts.count

    assert (shape.active_parameters < shape.parameters) == idle


@given(decoders(), st.integers(1, 10_000))
def test_the_cache_of_a_sequence_is_its_tokens_times_the_rate(shape: DecoderShape, tokens: int) -> None:
    assert shape.kv_bytes(tokens, 2) == tokens * shape.kv_bytes_per_token(2)


def test_bert_base_has_109_482_240_parameters() -> None:
    attention = Attention(768, 12, 12, 64, "qkvo")
    stack = Stack(12, attention, FeedForward(768, 3072, gated=False, bias=True), final_norm=False)
    shape = EncoderShape(stack, 30522, 512, 2, embedding_norm=True, pooler=True)

    assert shape.parameters == 109_482_240
    assert shape.kv_bytes_per_token(2) == 0


def test_bert_base_on_384_tokens_needs_what_its_matrices_and_scores_add_up_to() -> None:
    attention = Attention(768, 12, 12, 64, "qkvo")
    shape = EncoderShape(Stack(12, attention, FeedForward(768, 3072, gated=False)), 30522)

    matrices, scores = 12 * 12 * 768**2, 12 * 2 * 768 * 384
    assert shape.forward_flop(384) == 2 * 384 * (matrices + scores)


def test_t5_small_has_60_506_624_parameters() -> None:
    stack = Stack(6, Attention(512, 8, 8, 64), FeedForward(512, 2048, gated=False), Norm.RMS, relative_buckets=32)
    shape = EncoderDecoderShape(stack, replace(stack, cross=True), 32128)

    assert shape.parameters == 60_506_624
    assert shape.kv_bytes_per_token(2) == 6 * 2 * 512 * 2


def test_reading_more_or_writing_more_costs_an_encoder_decoder_more() -> None:
    stack = Stack(6, Attention(512, 8, 8, 64), FeedForward(512, 2048, gated=False), Norm.RMS)
    shape = EncoderDecoderShape(stack, replace(stack, cross=True), 32128)

    assert shape.forward_flop(100, 10) < shape.forward_flop(200, 10) < shape.forward_flop(200, 20)


def test_vit_b_16_sees_197_tokens_and_costs_17_6_gmac() -> None:
    attention = Attention(768, 12, 12, 64, "qkvo")
    stack = Stack(12, attention, FeedForward(768, 3072, gated=False, bias=True))
    shape = VisionShape(stack, 224, 16, classes=1000)

    assert shape.tokens() == 197
    assert shape.parameters == 86_567_656
    assert shape.forward_flop() / 2e9 == pytest.approx(17.56, rel=0.01)  # torchvision: 17.56 GFLOPS, one per multiply-add
    assert shape.forward_flop(384) > shape.forward_flop(224)


@pytest.mark.parametrize(
    ("block", "blocks", "parameters", "gmac"),
    [  # torchvision's table of classification weights
        (Block.BASIC, (2, 2, 2, 2), 11_689_512, 1.81),
        (Block.BASIC, (3, 4, 6, 3), 21_797_672, 3.66),
        (Block.BOTTLENECK, (3, 4, 6, 3), 25_557_032, 4.09),
        (Block.BOTTLENECK, (3, 4, 23, 3), 44_549_160, 7.80),
        (Block.BOTTLENECK, (3, 8, 36, 3), 60_192_808, 11.51),
    ],
)
def test_resnets_have_the_parameters_and_work_that_torchvision_lists(
    block: Block, blocks: tuple[int, ...], parameters: int, gmac: float
) -> None:
    shape = ConvShape(block, blocks)

    assert shape.parameters == parameters
    assert shape.forward_flop() / 2e9 == pytest.approx(gmac, abs=0.01)


@given(st.integers(32, 512))
def test_a_larger_picture_is_never_less_work_for_a_convnet(side: int) -> None:
    shape = ConvShape(Block.BASIC, (1, 1, 1, 1))

    assert shape.forward_flop(side) <= shape.forward_flop(side + 1)


def test_the_unets_of_stable_diffusion_have_their_published_counts() -> None:
    assert UNetShape((320, 640, 1280, 1280), (1, 1, 1, 0), 1, 768).parameters == 859_520_964
    assert UNetShape((320, 640, 1280), (0, 2, 10), 10, 2048, added_width=2816).parameters == 2_567_463_684


def test_the_autoencoders_have_their_published_counts() -> None:
    assert VaeShape().parameters == 83_653_863
    assert VaeShape(16, latent_projections=False).parameters == 83_819_683


def test_flux_spends_60_tflop_in_matrices_on_a_megapixel_with_512_tokens() -> None:
    shape = JointTransformerShape(3072, 24, 19, 4096, 768, 38, qk_norm=True, guidance=True)
    tokens = 4096 + 512

    assert shape.parameters == 11_901_408_320
    assert shape.forward_flop(1024, 512) == 2 * 57 * tokens * (12 * 3072**2 + 2 * 3072 * tokens)


def test_a_smaller_picture_is_a_cheaper_step() -> None:
    unet = UNetShape((320, 640, 1280, 1280), (1, 1, 1, 0), 1, 768)

    assert unet.forward_flop(256) < unet.forward_flop(512) / 3
    assert VaeShape().decode_flop(256) < VaeShape().decode_flop(512) / 3


def test_the_top_network_of_dlrm_takes_479_numbers() -> None:
    shape = RecommenderShape((1000,) * 26, 128, 13, (512, 256, 128), (1024, 1024, 512, 256, 1))

    assert shape.joined_width == 479  # 27 * 26 / 2 pairs and the 128 of the dense vector
    assert shape.active_parameters == shape.dense_parameters + 26 * 128


@given(st.lists(st.integers(1, 10**7), min_size=1, max_size=30), st.integers(1, 10**6))
def test_rows_cost_memory_and_no_work(tables: list[int], more: int) -> None:
    shape = RecommenderShape(tuple(tables), 64, 13, (64,), (256, 1))
    larger = replace(shape, tables=(tables[0] + more, *tables[1:]))

    assert larger.parameters - shape.parameters == 64 * more
    assert larger.forward_flop() == shape.forward_flop()
