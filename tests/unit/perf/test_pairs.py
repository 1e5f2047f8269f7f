"""Encoder-decoders trained on pairs: parameters and FLOP by hand, memory by its lines, laws, and published runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import plan
from chipwise.api.verbs import predict as predict_file
from chipwise.errors import BadInput
from chipwise.perf.arrays import column
from chipwise.perf.memory_training import training_memory
from chipwise.perf.setup import TrainingSetup
from chipwise.perf.training import flop_per_token
from chipwise.perf.transformer import Transformers, layer_of, pair_layer
from chipwise.planner.values.split import model_ways
from chipwise.predictor.transformer import Trained, train
from chipwise.workload.model import registry
from chipwise.workload.model.shape import EncoderDecoderShape

NAMES = (
    "t5-small",
    "t5-large",
    "t5-11b",
    "flan-t5-xl",
    "whisper-tiny",
    "whisper-large-v3",
    "whisper-large-v3-turbo",
    "bart-base",
)
names = st.sampled_from(NAMES)
lengths = st.integers(1, 2048)
# NVIDIA/JAX-Toolbox, T5X at 512 and 128 tokens: model, chip, chips, precision, tp, pairs a replica takes, pairs a second.
PUBLISHED = (
    ("flan-t5-small", "A100-80", 8, "bf16", 1, 256, 5712),
    ("flan-t5-large", "A100-80", 64, "bf16", 1, 32, 4853),
    ("flan-t5-large", "H100-SXM", 64, "fp8", 1, 32, 11139),
    ("flan-t5-xl", "H100-SXM", 144, "fp8", 1, 14, 7257),
    ("flan-t5-xl", "H100-SXM", 256, "fp8", 1, 8, 9688),
    ("flan-t5-xxl", "A100-80", 512, "bf16", 8, 36, 1887),
)


@pytest.fixture(scope="module")
def session() -> Session:
    return open_session()


def shape_of(name: str) -> EncoderDecoderShape:
    shape = registry.find(name).shape
    assert isinstance(shape, EncoderDecoderShape)
    return shape


def model_of(name: str, inputs: float, targets: float) -> Transformers:
    return Transformers.of([pair_layer(shape_of(name), float(inputs), float(targets))])


def flop_of_a_pair(name: str, inputs: int, targets: int) -> float:
    """Model FLOP of one step over one pair."""
    model = model_of(name, inputs, targets)
    each = flop_per_token(model, column(float(inputs + targets)), np.zeros(1), np.zeros(1))
    return float(each[0]) * (inputs + targets)


# --- by hand


def test_a_step_of_t5_small_over_512_and_128_tokens_by_hand() -> None:
    """h = 512, 8 heads of 64, f = 2048, 6 layers a side, V = 32128."""
    square, mlp = 512 * 512, 2 * 512 * 2048
    encoder = 512 * 6 * (4 * square + mlp)
    decoder = 128 * 6 * (4 * square + mlp)
    across = 6 * (128 * 2 * square + 512 * 2 * square)  # queries and outputs of the target, keys and values of the input
    head = 128 * 32128 * 512
    scores = 6 * 1024 * (512 * 512 + 128 * 128 / 2 + 128 * 512)  # q k and the weighted sum: 2 x 512 a pair of tokens
    assert flop_of_a_pair("t5-small", 512, 128) == pytest.approx(6.0 * (encoder + decoder + across + head + scores), rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_what_the_model_states(name: str) -> None:
    known = registry.find(name)
    layer = pair_layer(shape_of(name), 512.0, 128.0)
    assert layer.parameters == known.shape.parameters == known.published_parameters
    stored = layer.layers * (layer.attention_weights + layer.mlp_stored) + layer.table + layer.head
    assert stored == pytest.approx(layer.parameters, rel=1e-9)


@given(names, lengths, lengths)
@settings(deadline=None)
def test_a_step_is_three_forward_passes_of_the_shape(name: str, inputs: int, targets: int) -> None:
    assert flop_of_a_pair(name, inputs, targets) == pytest.approx(3.0 * shape_of(name).forward_flop(inputs, targets), rel=1e-9)


def test_weights_states_and_logits_are_counted_once() -> None:
    known = shape_of("t5-base")
    setup = TrainingSetup.of(seq=640.0, micro_batch=4.0)
    found = training_memory(model_of("t5-base", 512, 128), setup)
    assert found.weights[0] == pytest.approx(4.0 * known.parameters, rel=1e-9)  # fp32 under autocast
    assert found.optimizer[0] == pytest.approx(8.0 * known.parameters, rel=1e-9)  # two moments
    assert found.logits[0] == pytest.approx(10.0 * 4 * 128 * 32128)  # of the target alone; log-softmax, its gradient, theirs


def test_activations_of_both_stacks_by_hand() -> None:
    """T5-base in bf16 under autocast: r = 4, c = 2, h = w = 768, k = 1536, f = 6144; 12 layers a side, 12 heads."""
    own = 4 * 768 + 2 * (3 * 768 + 4 * 768 + 1.5 * 1536 + 6144) + 4 * 12
    across = 128 * (4 * 768 + 2 * (768 + 3 * 768) + 4 * 12) + 512 * 2 * 1536
    by_hand = 12 * (512 * own + 128 * own + across) + 128 * (4 + 2) * 768  # and the last block's output with its norm
    found = training_memory(model_of("t5-base", 512, 128), TrainingSetup.of(seq=640.0, micro_batch=64.0))
    assert found.activations[0] == pytest.approx(64 * by_hand, rel=1e-9)  # the loss, when most is held


# --- laws


def test_without_pairs_every_layer_sees_every_token() -> None:
    for name in ("llama-3.1-8b", "bert-base", "t5-base"):
        shape: Any = registry.find(name).shape
        model = Transformers.of([layer_of(shape)])
        assert not model.paired
        assert (model.token_share[0], model.headed[0], model.fullest[0], model.sublayers[0]) == (1, 1, 1, 1)
        assert (model.crossing[0], model.crossed[0]) == (0, 0)


@given(names, lengths, lengths, st.integers(1, 512), st.booleans())
@example("whisper-large-v3", 1185, 1, 1, False)
@settings(deadline=None)
def test_longer_pairs_take_more_work_and_no_less_memory(name: str, inputs: int, targets: int, more: int, read: bool) -> None:
    longer = (inputs + more, targets) if read else (inputs, targets + more)
    assert flop_of_a_pair(name, *longer) > flop_of_a_pair(name, inputs, targets)
    few, many = (
        training_memory(model_of(name, *pair), TrainingSetup.of(seq=float(sum(pair)))).total[0]
        for pair in ((inputs, targets), longer)
    )
    # Parameters outside of layers are spread over an average layer, which follows the lengths: by a hundred-millionth of all.
    assert many >= few * (1 - 1e-7)


@given(names, st.integers(64, 1024), st.sampled_from(["lora", "qlora", "full"]), st.sampled_from([0.0, 1.0, 2.0]))
@settings(deadline=None)
def test_recomputing_more_keeps_less(name: str, inputs: int, method: str, recompute: float) -> None:
    pair = model_of(name, inputs, inputs // 4)
    setup = TrainingSetup.of(seq=float(inputs + inputs // 4), micro_batch=2.0, method=method, recompute=recompute)
    plain = training_memory(pair, setup.change(recompute=0.0)).total[0]
    assert 0 < training_memory(pair, setup).total[0] <= plain * (1 + 1e-9)


# --- predictions


@pytest.mark.parametrize(("name", "chip", "chips", "precision", "tp", "micro", "measured"), PUBLISHED)
def test_against_published_t5x_runs(
    session: Session, name: str, chip: str, chips: int, precision: str, tp: int, micro: int, measured: float
) -> None:
    """None of them is fitted in this form: each lies within the interval, and the formula within a factor of two."""
    found = train(
        session.known,
        name,
        on=chip,
        chips=chips,
        chips_per_node=8,
        precision=precision,
        tp=tp,
        micro_batch=micro,
        accumulate=1,
        seq=512,
        target=128,
        fit=False,
    )
    pairs = found.ask.setup.global_batch[0]
    assert pairs / found.step.high[0] <= measured <= pairs / found.step.low[0]
    assert 0.5 < pairs / found.step.value[0] / measured < 2.0


def one(session: Session, name: str = "t5-large", **other: Any) -> Trained:
    return train(session.known, name, on="h100", **({"seq": 512, "target": 128, "micro_batch": 8} | other))


def test_the_interval_is_wide_and_says_that_it_is_a_formula(session: Session) -> None:
    pairs, plain = one(session), train(session.known, "llama-3.2-1b", on="h100", seq=512, micro_batch=8)
    spans = [found.step.high[0] / found.step.low[0] for found in (pairs, plain)]
    assert spans[0] > spans[1]
    assert pairs.step.provenance.name_at(0) == "formula"
    assert any("512 tokens of input and 128 tokens of target" in note for note in pairs.notes)


def test_many_lengths_at_once_are_as_one_at_a_time(session: Session) -> None:
    together = one(session, seq=[256, 512], target=[64, 128])
    singles = [one(session, seq=s, target=u).step.value[0] for s, u in ((256, 64), (512, 128))]
    assert together.step.value == pytest.approx(singles)


def test_lengths_that_nobody_states_are_told(session: Session) -> None:
    text, sound = (train(session.known, name, on="h100") for name in ("t5-base", "whisper-small"))
    assert text.ask.setup.seq[0] == 512 + 128
    assert sound.ask.setup.seq[0] == 1500 + 448
    for found in (text, sound):
        assert sum("is not given" in note for note in found.notes) == 2
        assert not any("stated for" in note for note in found.notes)


def test_a_target_of_its_own_is_for_encoder_decoders(session: Session) -> None:
    with pytest.raises(BadInput, match="target_length"):
        train(session.known, "llama-3.1-8b", on="h100", target=128)
    with pytest.raises(BadInput, match="target_length"):
        plan(session, "w.yaml", text="kind: train\nname: a\nmodel: resnet-50\nsamples: 1M\ntarget_length: 5\n")


# --- plans and workload files

T5 = "kind: train\nname: a\nmodel: flan-t5-large\nsequence_length: 512\ntarget_length: 128\nbatch_samples: 2048\n"


def test_training_on_pairs_is_planned(session: Session) -> None:
    found = plan(session, "w.yaml", text=f"{T5}samples: 10M\nlimits: {{chips: [a100-80, h100-sxm]}}\n")
    best = found.winner
    assert best is not None
    assert best.unit == "million pairs"
    assert best.usd_per_unit == pytest.approx(best.usd / 10)
    assert best.provenance == "formula"
    assert model_ways(best.split)[1] == 1
    assert any("by formula alone" in note for note in found.notes)
    tokens = plan(session, "w.yaml", text=f"{T5}tokens: {640 * 10}M\nlimits: {{chips: [a100-80, h100-sxm]}}\n").winner
    assert tokens is not None
    assert tokens.seconds == pytest.approx(best.seconds)


@pytest.mark.parametrize("method", ["full", "lora", "qlora"])
def test_fine_tuning_of_whisper_is_planned(session: Session, method: str) -> None:
    text = f"kind: finetune\nname: a\nmodel: whisper-large-v3\nmethod: {method}\nsamples: 100k\nlimits: {{chips: [l4, l40s]}}\n"
    found = plan(session, "w.yaml", text=text)
    assert found.winner is not None
    assert found.winner.memory_share is not None
    assert found.winner.memory_share <= 1
    assert sum("is not given" in note for note in found.notes) == 2


def test_a_file_is_predicted_as_its_options_are(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(f"{T5}samples: 10M\n", encoding="utf-8")
    view = predict_file(session, str(path), "h100", None, {"chips": 8, "micro_batch": 32})
    plain = train(
        session.known,
        "flan-t5-large",
        on="h100",
        chips=8,
        micro_batch=32,
        global_batch=2048,
        seq=512,
        target=128,
        precision="bf16",
    )
    assert view["setup"]["seq"] == 640
    assert view["step_time"]["value"] == pytest.approx(plain.step.value[0])
    assert view["job_time_s"]["value"] == pytest.approx(plain.step.value[0] * 10e6 / 2048)
