from __future__ import annotations

import doctest
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.perf.arrays import Array, Coded, column
from chipwise.perf.collective import Network
from chipwise.perf.listed_networks import listed_net
from chipwise.perf.net import DIFFUSION, OWN, TABLE, Net, Product, Size, joined, merged, repeated
from chipwise.perf.networks import net_of
from chipwise.perf.vision import BASES, TERMS, Pass, PassQuery, answer, bases, compose
from chipwise.workload.model import registry

NAMES = (
    "resnet-50",
    "resnet-18",
    "vit-b-16",
    "bert-large",
    "stable-diffusion-xl",
    "flux.1-dev",
    "stable-diffusion-3-medium",
    "dlrm-v2",
    "whisper-large-v3",
    "t5-base",
    "clip-vit-b-32",
)
LISTED = ("VGG-11", "VGG-16", "RetinaNet-ResNeXt50", "SSD-ResNet34-1200", "PixArt-alpha", "Vision-Perceiver-Conv")
PAGE = Path(__file__).resolve().parents[3] / "docs" / "models" / "vision.md"
nets = st.sampled_from((*NAMES, *LISTED))
batches = st.integers(1, 512).map(float)


@cache
def net(name: str) -> Net:
    return listed_net(name) if name in LISTED else net_of(registry.find(name).shape)


def one_pass(name: str = "resnet-50", **other: Any) -> Pass:
    """On a chip like an H100 in 16 bits, under an engine that fuses most."""
    plain = {
        "batch": 64.0,
        "peak": 990e12,
        "half_peak": 990e12,
        "bandwidth": 3.35e12,
        "pcie": 48e9,
        "value_bytes": 2.0,
        "weight_bytes": 2.0,
        "unfused": 0.5,
        "unfused_scores": 0.5,
        "kernels": 2.0,
        "start_s": 5e-6,
        "launch_s": 5e-6,
        "fixed_s": 25e-6,
        "kept_bytes": 0.0,
        "tensor": 1.0,
        "stages": 1.0,
        "training": 0.0,
        "data_ways": 1.0,
        "decoded": 0.0,
        "input_width": 2.0,
        "overlapped": 1.0,
    }
    network = Network(column(400e9), column(8.0), column(50e9))
    columns = {key: column(value) for key, value in (plain | other).items()}
    return Pass(nets=(net(name),), net_index=np.zeros(1, dtype=np.intp), network=network, **columns)


def seconds(run: Pass) -> Array:
    return np.asarray(sum(compose(run, bases(run)).values(), np.zeros(1)))


@given(nets, batches, st.floats(1.0, 10.0), st.sampled_from(["peak", "bandwidth", "pcie"]), st.booleans())
@settings(deadline=None)
def test_more_compute_or_bandwidth_is_never_slower(name: str, batch: float, more: float, what: str, training: bool) -> None:
    run = one_pass(name, batch=batch, training=float(training), data_ways=8.0)
    faster = replace(run, **{what: getattr(run, what) * more})
    assert seconds(faster)[0] <= seconds(run)[0] * (1 + 1e-9)


@given(nets, batches, st.booleans())
@settings(deadline=None)
def test_a_larger_batch_takes_longer_and_gives_no_less(name: str, batch: float, training: bool) -> None:
    small, large = (one_pass(name, batch=b, training=float(training), data_ways=8.0) for b in (batch, 2 * batch))
    assert seconds(small)[0] <= seconds(large)[0] <= 2 * seconds(small)[0] * (1 + 1e-9)


@given(nets, batches, st.booleans(), st.booleans())
@settings(deadline=None)
def test_terms_are_named_non_negative_and_sum_to_the_time(name: str, batch: float, training: bool, overlapped: bool) -> None:
    run = one_pass(name, batch=batch, training=float(training), overlapped=float(overlapped), data_ways=16.0)
    made = bases(run)
    terms = compose(run, made)
    assert set(made) == set(BASES)
    assert tuple(terms) == TERMS
    assert all(values[0] >= 0 for values in terms.values())
    assert seconds(run)[0] >= max(made["matrix"][0], made["stream"][0], made["launch"][0])


@given(st.lists(st.tuples(st.integers(0, 2), batches, st.floats(1e13, 1e15), st.booleans()), min_size=2, max_size=6))
@settings(deadline=None)
def test_many_rows_at_once_are_as_one_at_a_time(rows: list[tuple[int, float, float, bool]]) -> None:
    names = ("resnet-50", "bert-large", "PixArt-alpha")
    singles = [one_pass(names[which], batch=b, peak=p, training=float(t), data_ways=4.0) for which, b, p, t in rows]
    together = replace(
        singles[0],
        nets=tuple(net(name) for name in names),
        net_index=np.array([which for which, *_ in rows], dtype=np.intp),
        batch=column([b for _, b, _, _ in rows]),
        peak=column([p for _, _, p, _ in rows]),
        training=column([float(t) for *_, t in rows]),
    )
    assert len(together) == len(rows)
    assert seconds(together) == pytest.approx([seconds(one)[0] for one in singles])


@given(batches, st.sampled_from([2.0, 4.0, 8.0]))
def test_chips_that_share_a_network_split_its_products_and_pay_for_sums(batch: float, ways: float) -> None:
    alone, shared = (bases(one_pass("bert-large", batch=batch, tensor=t)) for t in (1.0, ways))
    assert alone["matrix"][0] / ways <= shared["matrix"][0] < alone["matrix"][0]
    assert alone["link"][0] == 0 < shared["link"][0]


def test_a_pipeline_is_slower_than_its_share_and_faster_than_one_chip_on_large_batches() -> None:
    alone, piped = (seconds(one_pass("bert-large", batch=512.0, stages=stages))[0] for stages in (1.0, 4.0))
    assert alone / 4 < piped < alone


def test_a_step_of_training_is_at_least_three_forward_passes_and_sends_gradients() -> None:
    run, step = one_pass("vit-b-16"), one_pass("vit-b-16", training=1.0, data_ways=64.0)
    assert seconds(step)[0] > 3 * (seconds(run) - bases(run)["fixed"])[0] * 0.99
    terms = compose(step, bases(step))
    assert terms["optimizer"][0] > 0
    assert 0 < terms["communication"][0] < bases(step)["link"][0]


def test_launches_are_hidden_while_kernels_are_long() -> None:
    runs = (one_pass(batch=batch, launch_s=20e-6, kernels=6.0) for batch in (1.0, 512.0))
    small, large = (compose(run, bases(run)) for run in runs)
    assert small["launches"][0] > 0.5 * sum(values[0] for values in small.values())
    assert large["launches"][0] < 0.05 * sum(values[0] for values in large.values())


def test_a_slow_input_pipeline_sets_the_pace() -> None:
    run = one_pass(batch=256.0, training=1.0, decoded=1e-3)
    assert seconds(run)[0] == pytest.approx(0.256, rel=0.05)


def test_narrower_formats_are_faster_where_the_chip_has_them() -> None:
    half, narrow = (
        one_pass("stable-diffusion-xl", batch=8.0),
        one_pass("stable-diffusion-xl", batch=8.0, peak=1979e12, value_bytes=1.0, weight_bytes=1.0),
    )
    assert 0.5 < seconds(narrow)[0] / seconds(half)[0] < 0.8  # attention, text and decoder stay in 16 bits


def test_rates_count_all_copies_and_latency_one() -> None:
    asked = PassQuery(Coded.of(["samples_per_s", "latency_ms"]), column([8.0, 8.0]), column([1.0, 2.0]))
    scale, power = answer(asked, column([32.0, 32.0]))
    assert (scale * np.array([0.1, 0.1]) ** power).tolist() == pytest.approx([2560.0, 200.0])


@pytest.mark.parametrize(
    ("name", "flop", "parameters"),
    [
        ("VGG-11", 15.2e9, 132.9e6),
        ("VGG-16", 30.9e9, 138.4e6),
        ("SSD-ResNet34-1200", 433e9, None),
        ("RetinaNet-ResNeXt50", 402e9, 38e6),
        ("Vision-Perceiver-Conv", 0.37e12, None),
    ],
)
def test_listed_networks_add_up_to_their_public_counts(name: str, flop: float, parameters: float | None) -> None:
    found = listed_net(name)
    assert found.flop == pytest.approx(flop, rel=0.03)
    if parameters:
        assert found.parameters == pytest.approx(parameters, rel=0.03)


@pytest.mark.parametrize("name", ["resnet-50", "resnet-18", "vit-b-16", "clip-vit-b-32", "resnext-50-32x4d"])
def test_networks_multiply_as_much_as_their_shapes_say(name: str) -> None:
    shape: Any = registry.find(name).shape
    assert net_of(shape).flop == pytest.approx(shape.forward_flop(), rel=1e-3)


def test_diffusion_is_text_and_steps_and_decoder() -> None:
    for name in ("stable-diffusion-1.5", "stable-diffusion-xl", "flux.1-dev", "stable-diffusion-3-medium"):
        shape: Any = registry.find(name).shape
        for steps in (1, 20):
            assert net_of(shape, Size(steps=float(steps))).flop == pytest.approx(shape.forward_flop(steps=steps), rel=0.01)
        assert net_of(shape).kind == DIFFUSION


def test_readers_count_what_they_write() -> None:
    shape: Any = registry.find("whisper-large-v3").shape
    for written in (16, 128):
        assert net_of(shape, Size(generated=float(written))).flop == pytest.approx(shape.forward_flop(1500, written), rel=1e-2)


def test_recommenders_read_rows_of_their_tables() -> None:
    shape: Any = registry.find("dlrm-v2").shape
    found = net_of(shape)
    assert found.kind == TABLE
    assert found.lookups == shape.rows_read * shape.embedding_width
    assert found.flop == pytest.approx(shape.forward_flop(), rel=0.02)


@given(st.floats(64, 1024), st.floats(64, 1024))
def test_larger_pictures_and_longer_texts_cost_more(a: float, b: float) -> None:
    small, large = sorted((a, b))
    for name in ("PixArt-sigma", "ALBERT-base-v2"):
        assert listed_net(name, Size(small)).flop <= listed_net(name, Size(large)).flop


def test_joining_adds_and_repeating_multiplies() -> None:
    one = Net("convolution", (Product(49.0, 512.0, 4608.0, window=9.0),), 100.0, touched=7.0, inputs=3.0)
    both = joined((one, one))
    assert (both.flop, both.parameters, both.touched, both.kernels) == (2 * one.flop, 200.0, 14.0, 2.0)
    assert len(merged(both.products)) == 1
    often = repeated(one, 20.0, 2.0)
    assert (often.flop, often.parameters, often.kernels) == (40 * one.flop, 100.0, 20.0)


def test_the_size_that_nobody_states_is_the_models_own() -> None:
    shape = registry.find("resnet-50").shape
    assert net_of(shape, OWN) == net_of(shape, Size(224.0))


def test_the_example_on_the_page_prints_what_it_shows() -> None:
    # A block ends with its fence, which is no output.
    text = PAGE.read_text(encoding="utf-8").replace("\n```", "\n\n```")
    found = doctest.DocTestParser().get_doctest(text, {}, "vision", "vision.md", 0)
    assert found.examples
    printed: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(found, out=printed.append)
    assert printed == []
