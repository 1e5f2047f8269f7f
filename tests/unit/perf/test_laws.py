"""Laws of the time model: what must hold whatever the fitted factors say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from chipwise.catalog.load import load
from chipwise.perf.arrays import Coded, column
from chipwise.perf.hardware import Hardware
from chipwise.perf.model import packaged
from chipwise.perf.part import Part, Parts
from chipwise.perf.predict_serving import Generation, slots
from chipwise.perf.predict_serving import predict as serve
from chipwise.perf.predict_training import Training
from chipwise.perf.predict_training import predict as train
from chipwise.perf.rows import known_layer
from chipwise.perf.serving import Load, unit
from chipwise.perf.setup import ServingSetup, TrainingSetup
from chipwise.perf.transformer import Transformers
from effort import cases

MODELS = ("llama-3.2-1b", "llama-3.1-8b", "llama-2-13b", "llama-3.1-70b", "mixtral-8x7b", "deepseek-v3", "gpt-oss-120b")
CHIPS = ("H100-SXM", "H200", "A100-80", "L40S", "MI300X", "TPU-v5e", "Trainium1", "RTX-4090", "B200", "T4")
POWERS = (1, 2, 4, 8)


@cache
def parts() -> Mapping[str, Part]:
    return Parts(load(prices=False).chips.values()).by_name


def training(model: str, chip: Part, dp: int = 1, **settings: float) -> Training:
    layer = known_layer(model)
    assert layer is not None
    setup = TrainingSetup.of(**{"seq": 2048.0, "micro_batch": 1.0, "dp": float(dp), **settings})
    hardware = Hardware.of(Coded.of(chip.name), {chip.name: chip})
    return Training(Transformers.of([layer]), Coded.of(model), hardware, setup, Coded.of("composer"))


def generation(model: str, chip: Part, scenario: str = "closed", **settings: float) -> Generation:
    layer = known_layer(model)
    assert layer is not None
    setup = ServingSetup.of(**{"batch": 8.0, "input_len": 512.0, "output_len": 128.0, "engine": "vllm", **settings})  # type: ignore[arg-type]
    hardware = Hardware.of(Coded.of(chip.name), {chip.name: chip})
    one = column(1.0)
    return Generation(Transformers.of([layer]), Coded.of(model), hardware, setup, Coded.of(scenario), column(1.0), one)


@given(
    st.sampled_from(MODELS),
    st.sampled_from(CHIPS),
    st.floats(1.01, 8),
    st.sampled_from(("bandwidth", "compute", "link", "fabric")),
)
@settings(max_examples=cases(60))
def test_more_of_anything_never_slows_training(model: str, chip: str, factor: float, what: str) -> None:
    before = parts()[chip]
    rates = {name: rate * factor for name, rate in before.rates.items()}
    after = replace(before, rates=rates) if what == "compute" else replace(before, **{what: getattr(before, what) * factor})
    slow, fast = (train(training(model, part, dp=8, shard=3.0), packaged()).step.seconds[0] for part in (before, after))
    assert fast <= slow * (1 + 1e-9)


@given(st.sampled_from(MODELS), st.sampled_from(CHIPS), st.floats(1.01, 8), st.sampled_from(("bandwidth", "compute", "link")))
@settings(max_examples=cases(60))
def test_more_of_anything_never_slows_serving(model: str, chip: str, factor: float, what: str) -> None:
    """More compute comes with the power that it takes: at one board power, a chip of a higher peak reaches less of it."""
    before = parts()[chip]
    rates = {name: rate * factor for name, rate in before.rates.items()}
    stronger = replace(before, rates=rates, power_w=before.power_w * factor)
    after = stronger if what == "compute" else replace(before, **{what: getattr(before, what) * factor})
    slow, fast = (serve(generation(model, part), packaged(), ("tpot_ms",))["tpot_ms"].seconds[0] for part in (before, after))
    assert fast <= slow * (1 + 1e-9)


@given(st.sampled_from(MODELS), st.sampled_from(CHIPS), st.sampled_from(POWERS), st.sampled_from(POWERS))
@settings(max_examples=cases(60))
def test_terms_sum_to_the_estimate_and_lie_within_its_interval(model: str, chip: str, dp: int, micro: int) -> None:
    found = train(training(model, parts()[chip], dp=dp, micro_batch=float(micro)), packaged()).step
    assert sum(float(values[0]) for values in found.terms.values()) == pytest.approx(float(found.seconds[0]))
    assert found.low[0] <= found.value[0] <= found.high[0]
    assert all(np.all(values >= 0) for values in found.terms.values())
    for one in serve(generation(model, parts()[chip]), packaged()).values():
        assert sum(float(np.broadcast_to(v, (1,))[0]) for v in one.terms.values()) == pytest.approx(float(one.seconds[0]))
        assert one.low[0] <= one.value[0] <= one.high[0]


@given(st.sampled_from(MODELS), st.sampled_from(CHIPS), st.sampled_from((2, 4, 8, 16, 32)))
@settings(max_examples=cases(40))
def test_halving_chips_never_raises_throughput(model: str, chip: str, dp: int) -> None:
    """Where fast links join them: sharded weights over PCIe or slow Ethernet can truly cost more than a chip brings."""
    part = parts()[chip]
    assume(part.link >= 80e9 and (dp <= part.domain or part.fabric >= 25e9))
    many, half = (
        train(training(model, part, dp=ways, shard=3.0, micro_batch=8.0), packaged()).tokens_per_s[0] for ways in (dp, dp // 2)
    )
    assert half <= many * 1.02


@given(st.sampled_from(MODELS), st.sampled_from(CHIPS), st.sampled_from(POWERS))
@settings(max_examples=cases(40))
def test_a_larger_batch_never_holds_less_and_never_decodes_faster(model: str, chip: str, batch: int) -> None:
    small, large = (training(model, parts()[chip], micro_batch=float(size)) for size in (batch, batch * 2))
    held = [train(ask, packaged()).memory for ask in (small, large)]
    assert held[0] is not None
    assert held[1] is not None
    assert held[0].total[0] <= held[1].total[0]
    step = [
        serve(generation(model, parts()[chip], "decode", batch=float(size)), packaged(), ("tpot_ms",))
        for size in (batch, batch * 2)
    ]
    assert step[0]["tpot_ms"].value[0] <= step[1]["tpot_ms"].value[0] * 1.05


@given(
    st.lists(
        st.tuples(st.sampled_from(CHIPS), st.sampled_from(POWERS), st.sampled_from((0.0, 1.0, 2.0))), min_size=2, max_size=12
    )
)
@settings(max_examples=cases(30))
def test_the_array_call_is_the_scalar_call_row_by_row(rows: list[tuple[str, int, float]]) -> None:
    layer = known_layer("llama-3.1-8b")
    assert layer is not None
    setup = TrainingSetup.of(
        seq=2048, micro_batch=[float(micro) for _, micro, _ in rows], dp=8, shard=3, recompute=[code for _, _, code in rows]
    )
    hardware = Hardware.of(Coded.of([chip for chip, _, _ in rows]), parts())
    together = train(Training(Transformers.of([layer]), Coded.of("llama-3-8b"), hardware, setup), packaged())
    for at, (chip, micro, code) in enumerate(rows):
        alone = Hardware.of(Coded.of(chip), parts())
        one = TrainingSetup.of(seq=2048, micro_batch=float(micro), dp=8, shard=3, recompute=code)
        single = train(Training(Transformers.of([layer]), Coded.of("llama-3-8b"), alone, one), packaged())
        assert together.step.value[at] == pytest.approx(single.step.value[0], rel=1e-9)
        assert together.step.low[at] == pytest.approx(single.step.low[0], rel=1e-9)


def test_chunks_join_without_a_seam() -> None:
    layer = known_layer("llama-3.1-8b")
    assert layer is not None
    count = 70_000
    micro = np.tile([1.0, 2.0, 4.0, 8.0, 16.0], count // 5)
    ask = Training(
        Transformers.of([layer]),
        Coded.of("llama-3-8b"),
        Hardware.of(Coded.of("H200"), parts()),
        TrainingSetup.of(seq=2048, micro_batch=micro, dp=1),
    )
    found = train(ask, packaged())
    assert len(found.step.value) == count
    assert np.allclose(found.step.value[:5], found.step.value[-5:])
    assert found.memory is not None
    assert len(found.memory.total) == count


def test_nothing_beats_the_hardware() -> None:
    """Weights of one decode step are never read faster than the nominal bandwidth allows."""
    for chip in ("H200", "A100-80", "L40S"):
        part = parts()[chip]
        found = serve(generation("llama-2-13b", part, "decode", batch=1.0), packaged(), ("tpot_ms",))["tpot_ms"]
        weights = 2.0 * (13.0e9 - 32000 * 5120)
        assert found.seconds[0] >= weights / part.bandwidth * 0.95


@pytest.mark.parametrize(
    ("metric", "amount"), [("output_tokens_per_s", 128), ("total_tokens_per_s", 640), ("requests_per_s", 1), ("ttft_ms", 1000)]
)
def test_a_rate_counts_the_tokens_of_a_request_over_its_seconds(metric: str, amount: float) -> None:
    counts = {"batch": 8.0, "slots": 8.0, "input_len": 512.0, "output_len": 128.0, "rate": 0.0, "requests": 8.0}
    columns = {name: column(value) for name, value in (counts | {"prefix": 0.0, "beams": 1.0}).items()}
    scale, power = unit(Load(Coded.of("closed"), Coded.of(metric), **columns))
    assert (scale[0], power[0]) == (amount, 1 if metric == "ttft_ms" else -1)


@given(st.sampled_from(MODELS), st.sampled_from(("H200", "B200", "MI300X")), st.floats(0.01, 200.0), st.integers(64, 16384))
@settings(max_examples=cases(40))
def test_a_rate_is_answered_at_most_as_it_comes_and_no_time_is_below_the_hardware(
    model: str, chip: str, rate: float, prompt: int
) -> None:
    asked = replace(generation(model, parts()[chip], "open", tp=8.0, input_len=float(prompt)), rate=column(rate))
    found = serve(asked, packaged(), ("ttft_ms", "tpot_ms", "requests_per_s", "output_tokens_per_s"))
    answered, tokens = found["requests_per_s"], found["output_tokens_per_s"]
    assert answered.low[0] <= answered.value[0] <= answered.high[0] <= rate * (1 + 1e-9)
    assert tokens.high[0] <= rate * 128.0 * (1 + 1e-9)
    for name in ("ttft_ms", "tpot_ms"):
        assert found[name].low[0] >= min(found[name].minimum[0] * 1e3, found[name].value[0]) * (1 - 1e-9)
    assert found["ttft_ms"].minimum[0] > 0


def large_run(**settings: float) -> Training:
    """Llama 3.1 405B as it was trained: 16,384 chips, 8 x 16 x 128, 16 sequences of 8,192 for each replica."""
    split = {"tp": 8.0, "pp": 16.0, "interleave": 8.0, "seq": 8192.0, "global_batch": 2048.0, "shard": 2.0, "recompute": 1.0}
    asked = training("llama-3.1-405b", parts()["H100-SXM"], dp=128, **{**split, **settings})
    return replace(asked, framework=None)


def test_the_largest_published_run_is_near_its_published_utilisation() -> None:
    assert 0.36 < train(large_run(), packaged()).mfu[0] < 0.43  # 38-41% (Llama 3, arXiv:2407.21783)


def test_selective_recomputation_repeats_no_product() -> None:
    none, selective, full = (train(large_run(recompute=code), packaged()).step.terms for code in (0.0, 1.0, 2.0))
    assert selective["matrix"][0] == pytest.approx(none["matrix"][0], rel=0.05)
    assert selective["elementwise"][0] > none["elementwise"][0]
    assert full["matrix"][0] > 1.2 * selective["matrix"][0]


@pytest.mark.parametrize("model", ["llama-3.1-8b", "llama-3.1-70b"])
def test_half_the_bytes_and_twice_the_peak_make_nothing_more_than_twice_as_fast(model: str) -> None:
    """Of weights in fp8 against bf16, with the same number of sequences in flight on the same chips, which were measured with
    the engine: whatever was measured of either format, by whom and with what version, both run on one chip."""
    measured = {chip for engine, chip in packaged().nearness["inference"].ranges if engine == "vllm"}
    able = [parts()[one] for one in sorted(measured) if parts()[one].has("fp8") and parts()[one].has("bf16")]
    assert {"MI300X", "MI325X", "H100-SXM"} <= {one.name for one in able}
    tp, batch, tokens = (
        np.array(one, dtype=np.float64) for one in zip(*product((1, 8), (1, 16, 64), (256, 2000)), strict=True)
    )
    found = 0
    for chip in able:
        common: dict[str, Any] = {"batch": batch, "tp": tp, "input_len": tokens, "output_len": 256.0}
        of = [generation(model, chip, **(common | {"precision_weights": one})) for one in ("bf16", "fp8")]
        wide, narrow = (serve(one, packaged(), ("output_tokens_per_s",))["output_tokens_per_s"].value for one in of)
        room = slots(of[0]) >= batch  # else memory counts, too
        assert np.all(narrow[room] <= 2.0 * wide[room]), chip.name
        found += int(room.sum())
    assert found > 50
