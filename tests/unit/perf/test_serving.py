"""Requests in flight share one replica: what a prompt waits for does not stretch steps as well, and rows are asked as run."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.api.session.wiring import open_session
from chipwise.api.verbs import predict
from chipwise.catalog.load import load
from chipwise.perf.family_inference import question_of
from chipwise.perf.inference import BLOCKS, COPIES, EAGER_LAYER_S, FUSED_LAYER_S, LAYER_HOST_S, PLAIN_EXPERT_S, PLAIN_LAYER_S
from chipwise.perf.part import Parts
from chipwise.perf.published_inference import InferenceCase, case_of
from chipwise.perf.rows import Row
from chipwise.perf.serving import CHUNK

PARTS = Parts(load(prices=False).chips.values())
CELLS = {
    "model": "Llama-3.1-8B",
    "task": "llm-online",
    "chip": "H100-SXM",
    "engine": "vllm",
    "precision_weights": "bf16",
    "chips": "1",
    "tp": "1",
    "batch_or_concurrency": "16",
    "input_len": "2000",
    "output_len": "200",
    "metric_name": "ttft_ms",
}


def case(**cells: str) -> InferenceCase:
    row = Row({**CELLS, **cells})
    part = PARTS.find(row.text("chip"))
    assert part is not None
    return case_of(row, part)


def terms(**cells: str) -> dict[str, float]:
    question = question_of([case(**cells)])
    return {name: float(np.ravel(values)[0]) for name, values in question.terms({}).items()}


def prompts(seconds: dict[str, float]) -> float:
    return sum(values for name, values in seconds.items() if name.startswith("prefill"))


def test_a_rate_at_which_requests_are_alone_is_as_sure_as_one_caller() -> None:
    """What loaded servers were off by is not what a lone request is off by."""

    def slowest(**load: float) -> float:
        settings = {"input": 500, "output": 100, **load}
        return float(predict(open_session(), "llama-3.1-8b", "a10g", "serve", settings)["ttft_ms"]["high"])

    alone = slowest(concurrency=1)
    assert slowest(rate=0.01) == pytest.approx(alone, rel=0.02)
    assert slowest(rate=2.0) > 1.5 * alone


@pytest.mark.parametrize("concurrency", [2, 16, 200])
@pytest.mark.parametrize("length", [200, 2000, 20000])
def test_an_answer_takes_the_work_of_all_in_flight_once(concurrency: int, length: int) -> None:
    cells = {"batch_or_concurrency": str(concurrency), "input_len": str(length), "chips": "8", "tp": "8"}
    output = float(CELLS["output_len"])
    first, token, alone = (terms(**cells, metric_name=name) for name in ("ttft_ms", "tpot_ms", "total_tokens_per_s"))
    step = sum(token[name] for name in ("weights", "cache", "communication", "launches", "engine", "sequences"))
    prompt = prompts(first) - prompts(token)  # the first token takes a step, too
    whole = sum(first.values()) - first["slots"] + (output - 1.0) * sum(token.values())
    work = concurrency * prompt + output * step + first["fixed"]
    assert whole == pytest.approx(work, rel=2.0 / output)
    assert concurrency * sum(alone.values()) == pytest.approx(whole, rel=2.0 / output)


def test_a_step_takes_no_more_prompt_tokens_than_the_engine_puts_into_one() -> None:
    cells = {"batch_or_concurrency": "400", "input_len": "20000", "output_len": "8", "chips": "8", "tp": "8"}
    stretch = prompts(terms(**cells, metric_name="tpot_ms"))
    prompt = prompts(terms(**cells)) - stretch
    assert 0 < stretch <= prompt * CHUNK / 20000 * 1.05  # smaller steps take somewhat more for each token


def test_layers_split_over_chips_are_not_split_twice() -> None:
    staged = case(model="BLOOM-176B", chip="A100-80", engine="accelerate", chips="8", tp="", pp="8", task="llm-decode")
    assert (staged.tp, staged.pp, staged.replicas) == (1.0, 8.0, 1.0)


def test_engines_without_graphs_wait_for_their_launches() -> None:
    cells = {"model": "Qwen2.5-0.5B", "batch_or_concurrency": "1", "metric_name": "tpot_ms"}
    eager, replayed = (terms(**cells, engine=name)["launches"] for name in ("transformers", "vllm"))
    assert replayed < 24.5 * LAYER_HOST_S
    assert 0.5 * PLAIN_LAYER_S * 24 < eager < PLAIN_LAYER_S * 24
    for name, seconds in (("deepspeed", FUSED_LAYER_S), ("tgi", EAGER_LAYER_S)):
        launches = terms(**cells, engine=name, compiled="eager, flash attention")["launches"]
        assert 0.5 * seconds * 24 < launches < seconds * 24


def test_a_plain_loop_launches_every_expert_by_itself() -> None:
    cells = {"model": "Mixtral-8x7B", "chips": "2", "tp": "1", "pp": "2", "batch_or_concurrency": "1", "metric_name": "tpot_ms"}
    asked = question_of([case(**cells, engine="transformers")])
    assert asked.bases["launch_host"] == pytest.approx(32 * (PLAIN_LAYER_S + 8 * PLAIN_EXPERT_S))


def test_a_plain_loop_reads_its_cache_once_for_every_head_and_copies_it() -> None:
    """Eight key heads for 32, whose attention fills 32 of a chip's blocks; with four sequences it fills all of them."""
    cells = {"task": "llm-decode", "metric_name": "tpot_ms", "input_len": "30000", "output_len": "1"}
    for sequences, times in (("1", 4 * BLOCKS / 32 + COPIES), ("4", 4 + COPIES)):
        plain, paged = (
            terms(**cells, batch_or_concurrency=sequences, engine=name)["cache"] for name in ("transformers", "vllm")
        )
        assert plain == pytest.approx(times * paged, rel=0.01)


@pytest.mark.parametrize(("engine", "times"), [("vllm", 0.5), ("accelerate", 1.0), ("deepspeed", 2.5)])
def test_eight_bits_are_faster_only_where_kernels_read_them(engine: str, times: float) -> None:
    cells = {"task": "llm-decode", "metric_name": "tpot_ms", "engine": engine, "batch_or_concurrency": "1"}
    narrow, wide = (terms(**cells, precision_weights=name)["weights"] for name in ("int8", "fp16"))
    assert narrow == pytest.approx(times * wide, rel=0.1)


def test_prompts_in_passes_of_their_own_stretch_steps_more() -> None:
    cells = {"input_len": "11", "output_len": "50", "metric_name": "tpot_ms"}
    apart, together = (prompts(terms(**cells, engine=name)) for name in ("tgi", "vllm"))
    assert apart > 5 * together


def test_no_more_requests_are_in_flight_than_were_sent() -> None:
    assert case(batch_or_concurrency="1024", notes="random 2048/512; only 400 requests").batch == 400.0


def test_a_prompt_that_a_client_timed_has_what_a_server_adds() -> None:
    bare = {"task": "llm-prefill", "batch_or_concurrency": "1", "output_len": "1"}
    assert terms(**bare)["fixed"] == 0.0
    assert terms(**bare, unloaded="yes")["fixed"] > 0.0


def test_requests_of_one_length_come_in_waves() -> None:
    """Those that start together end together, so that a first token waits for more of the others."""
    cells = {"output_len": "500"}
    apart, together = (terms(**cells, notes=notes)["waiting"] for notes in ("ShareGPT prompts", "random prompts, ignore-eos"))
    assert together > 3 * apart


def test_a_prompt_is_on_one_of_the_chips_that_have_sequences_of_their_own() -> None:
    cells = {"model": "DeepSeek-V3", "chip": "H200", "precision_weights": "fp8", "chips": "8", "batch_or_concurrency": "1"}
    spread = terms(**cells, tp="1", notes="attention DP8")
    shared = terms(**cells, tp="8")
    assert spread["prefill attention"] == pytest.approx(8 * shared["prefill attention"], rel=0.2)


def test_launches_never_make_a_longer_step_shorter() -> None:
    """A factor on launches is one on the launches themselves, not on what is seen of them."""
    lengths = ("1000", "4000", "16000", "64000", "120000")
    cells = {"engine": "transformers", "metric_name": "tpot_ms", "batch_or_concurrency": "1"}
    question = question_of([case(**cells, input_len=length) for length in lengths])
    seconds = question.log_time({"launch_host": np.array([1.5])})
    assert np.all(np.diff(seconds) > 0)
