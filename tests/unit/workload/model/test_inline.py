"""Shapes written as plain fields: defaults, and every mistake told at once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import BadInput, InvalidFile
from chipwise.workload.model.inline import KINDS, shape_from_mapping
from chipwise.workload.model.shape import DecoderShape, DiffusionShape

LLAMA = {"layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "ffn": 14336, "vocab": 128256}


def problems(mapping: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidFile) as caught:
        shape_from_mapping(mapping)
    return {problem.field: str(problem) for problem in caught.value.problems}


def test_a_short_description_gives_the_exact_count() -> None:
    assert shape_from_mapping(LLAMA).parameters == 8_030_261_248


def test_every_missing_field_is_named_at_once() -> None:
    assert set(problems({})) == {"layers", "hidden", "heads", "ffn", "vocab"}


def test_an_unknown_field_comes_with_the_nearest_known_one() -> None:
    assert "Did you mean vocab" in problems(LLAMA | {"vocabulary": 5})["vocabulary"]
    assert "kv_heads" in problems(LLAMA | {"kvheads": 8})["kvheads"]


@pytest.mark.parametrize("value", [0, -1, 1.5, "4096", True, float("nan"), float("inf"), 10**30, [], {}, 10**8])
def test_a_width_that_makes_no_sense_is_refused(value: object) -> None:
    assert "hidden" in problems(LLAMA | {"hidden": value})


@pytest.mark.parametrize("value", ["yes", 1, 0, "true"])
def test_a_flag_is_true_or_false(value: object) -> None:
    assert "tied_embeddings" in problems(LLAMA | {"tied_embeddings": value})


def test_heads_that_do_not_divide_are_refused_with_the_numbers() -> None:
    assert "33 do not divide hidden 4096" in problems(LLAMA | {"heads": 33, "kv_heads": 33})["heads"]
    assert "7 do not divide 32 heads" in problems(LLAMA | {"kv_heads": 7})["kv_heads"]


def test_heads_need_not_divide_beside_a_head_dim() -> None:
    shape = shape_from_mapping(LLAMA | {"heads": 33, "kv_heads": 3, "head_dim": 128})

    assert isinstance(shape, DecoderShape)
    assert shape.heads == 33


def test_a_choice_is_refused_with_what_is_allowed() -> None:
    assert "rmsnorm" in problems(LLAMA | {"norm": "rmsnrm"})["norm"]
    assert "qkvo" in problems(LLAMA | {"attention_bias": "xyz"})["attention_bias"]


def test_experts_need_a_number_of_active_ones_and_no_more_than_there_are() -> None:
    assert "active_experts" in problems(LLAMA | {"experts": 8})
    assert "active_experts" in problems(LLAMA | {"experts": 8, "active_experts": 9})
    assert shape_from_mapping(LLAMA | {"experts": 8, "active_experts": 2}).active_parameters < 15e9


def test_fields_about_experts_without_experts_are_refused() -> None:
    assert "active_experts" in problems(LLAMA | {"active_experts": 2})


def test_an_unknown_kind_lists_the_known_ones() -> None:
    assert "decoder" in problems({"kind": "decodr"})["kind"]
    assert "encoder-decoder" in problems({"kind": 5})["kind"] or "text" in problems({"kind": 5})["kind"]


def test_underscores_and_hyphens_in_a_kind_are_the_same() -> None:
    t5 = {"layers": 6, "hidden": 512, "heads": 8, "ffn": 2048, "vocab": 32128}

    assert shape_from_mapping({"kind": "encoder_decoder", **t5}) == shape_from_mapping({"kind": "encoder-decoder", **t5})


def test_problems_inside_a_part_carry_its_name() -> None:
    found = problems({"kind": "diffusion", "denoiser": {"widths": [320, 640], "depths": [1]}, "text_encoders": [{"layers": 0}]})

    assert {"denoiser.depths", "denoiser.text_width", "text_encoders[0].layers", "text_encoders[0].vocab"} <= set(found)


def test_a_pipeline_may_be_described_in_one_place() -> None:
    shape = shape_from_mapping(
        {
            "kind": "diffusion",
            "denoiser": {"widths": [320, 640, 1280, 1280], "depths": [1, 1, 1, 0], "text_width": 768},
            "text_encoders": [{"layers": 12, "hidden": 768, "heads": 12, "ffn": 3072, "vocab": 49408, "positions": 77}],
        }
    )

    assert isinstance(shape, DiffusionShape)
    assert shape.parameters == 859_520_964 + 123_060_480 + 83_653_863
    assert shape.step_flop() == 2 * shape.denoiser.forward_flop(512)


def test_a_recommender_whose_widths_do_not_meet_is_refused() -> None:
    mapping = {"kind": "recommender", "tables": [10], "embedding_width": 64, "dense_inputs": 13, "bottom": [128], "top": [1]}

    assert "128" in problems(mapping)["bottom"]


def test_stages_and_widths_of_a_convnet_are_as_many() -> None:
    assert "blocks" in problems({"kind": "convnet", "block": "basic", "blocks": [2, 2]})
    assert "block" in problems({"kind": "convnet", "blocks": [2, 2, 2, 2]})


WORDS = st.sampled_from(["", "x", "4096", *KINDS])
VALUES = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.lists(st.integers(), max_size=3)
KNOWN = sorted({*LLAMA, "kind", "experts", "norm", "tables", "denoiser", "text", "window", "kv_lora", "blocks", "widths"})


@given(st.dictionaries(st.sampled_from(KNOWN), VALUES))
def test_whatever_is_written_gives_a_shape_or_a_refusal(mapping: dict[str, object]) -> None:
    try:
        shape = shape_from_mapping(mapping)
    except BadInput:
        return
    assert shape.parameters > 0


def test_a_missing_field_is_not_blamed_on_another() -> None:
    assert set(problems({key: value for key, value in LLAMA.items() if key != "hidden"})) == {"hidden"}
