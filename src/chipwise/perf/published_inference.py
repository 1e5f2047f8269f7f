"""Rows of generation measurements (tasks llm-*), published or our own, as configurations the model can be asked about.

Only what was run is read: of `notes`, just the parallel mapping, the offered rate, the benchmark's name and scenario, the
tokens that speculation accepts and the power limit. `rate_rps` is the rate of an open loop, `inf` where all requests were sent
at once; `percentile` says which of the measured times is given; `compiled` whether steps were launched one by one. What a row
leaves blank is filled with what that engine's users run (tables below).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from chipwise.perf.part import Part
from chipwise.perf.rows import Row, layer_from_row, model_key
from chipwise.perf.transformer import Layer

METRICS = ("ttft_ms", "tpot_ms", "output_tokens_per_s", "total_tokens_per_s", "latency_ms", "requests_per_s", "samples_per_s")
# (bytes per weight of the layers, bytes per weight of the head, format of the arithmetic)
FORMATS = {
    "fp32": (4.0, 4.0, "fp32"),
    "fp32 weights, bf16 matmul": (4.0, 4.0, "bf16"),
    "fp16": (2.0, 2.0, "fp16"),
    "bf16": (2.0, 2.0, "bf16"),
    "fp16/bf16": (2.0, 2.0, "bf16"),
    "fp8": (1.0, 2.0, "fp8"),
    "int8": (1.0, 2.0, "bf16"),
    "nvfp4": (0.5625, 2.0, "fp4"),
    "fp4": (0.5625, 2.0, "fp4"),
    "mxfp4": (0.53, 2.0, "mxfp4"),
    "int4": (0.53, 2.0, "int4"),
    "q4_k_m": (0.606, 0.82, "int4"),
    "q8_0": (1.06, 1.06, "int8"),
    "f16": (2.0, 2.0, "fp16"),
}
# Mean lengths of the data sets that benchmarks use: (input, output, beams).
BENCHMARKS = {
    "llama2-70b": (294.0, 294.0, 1.0),
    "gptj": (880.0, 69.0, 4.0),
    "mixtral-8x7b": (420.0, 145.0, 1.0),
    "llama3.1-405b": (9400.0, 684.0, 1.0),
    "llama3.1-8b": (870.0, 73.0, 1.0),
    "deepseek-r1": (800.0, 3880.0, 1.0),
}
_SHAREGPT = (225.0, 235.0)
_CHAT = 200.0  # tokens of a short prompt whose length is not printed
EAGER = ("transformers", "accelerate", "deepspeed", "autoawq")  # engines that launch kernels one by one:
PLAIN = ("transformers", "accelerate")  # those that loop in Python over the layers of a library,
FUSED = ("deepspeed", "autoawq")  # and those that put kernels of their own in the place of layers
SCHEDULED = ("vllm", "sglang")  # engines whose scheduler is a program in Python
BARE = ("pytorch",)  # compiled layers in a loop, without a server
APART = ("tgi",)  # engines that compute every prompt in a pass of its own
# Bytes that eight bits of a weight cost in a step: written out in 16 bits and read again (DeepSpeed), or as slow as 16 bits,
# for rows are quantised and what is far out is multiplied in 16 bits (LLM.int8).
_UNFUSED_INT8 = {"deepspeed": 5.0, "transformers": 2.0, "accelerate": 2.0}
AT_ONCE = {"tensorrt-llm": 2048.0, "sglang": 1024.0}  # sequences that engines run together by default; 256 for others
MAX_LOAD = "max load"  # measured offline by who makes the engine or the chip
SERVED = "served"  # measured by clients of a server, whether they came at a rate, at once or one after the other's answer
_DRAFTED = 1.7  # tokens of a step with one drafted token, where nobody says how many were accepted:
_AGREED = _DRAFTED - 1.0  # a drafted token is accepted so often, if those before it were
_MOST_CHECKED = 8.0


@dataclass(frozen=True, slots=True)
class InferenceCase:
    model: str
    layer: Layer
    part: Part
    chips: float
    replicas: float
    tp: float
    dp: float
    pp: float
    ep: float  # ways over which whole experts are spread, where that is more than `dp`
    weights: str  # format of the weights
    cache: str
    scenario: str
    style: str  # how it was measured, where that moves results: static, max load, server, interactive, ...
    batch: float
    slots: float  # sequences that memory holds
    input_len: float
    output_len: float
    rate: float
    requests: float
    beams: float
    accepted: float  # tokens of one step, above 1 with speculation,
    checked: float  # and those that it computes
    late: float  # how deep in the tail of waits the row is: 1 for means and medians, 4.6 for a 99th percentile
    equal: bool  # all answers of a run have the same length
    graphs: float  # 0: kernels are launched one by one
    engine: str  # family
    version: str  # family and release
    source: str
    metric: str
    guessed: int


def weight_format(text: str) -> str:
    lowered = text.lower()
    for mark in ("nvfp4", "mxfp4", "q4_k_m", "q8_0"):
        if mark in lowered:
            return mark
    if "bf16 matmul" in lowered or "auto-cast bf16" in lowered:
        return "fp32 weights, bf16 matmul"
    for mark in ("int4", "fp4", "fp8", "int8", "bf16", "fp16", "fp32"):
        if mark in lowered:
            return mark
    if "float32" in lowered:
        return "fp32"
    return "fp16"


def read_bytes(engine: str, weights: str, stored: float) -> float:
    """Bytes of memory traffic for each weight that a step meets; `stored` are those it is kept in."""
    return _UNFUSED_INT8.get(engine, stored) if weights == "int8" else stored


def engine_family(text: str, part: Part) -> tuple[str, str]:
    lowered = text.lower()
    release = re.search(r"(\d+\.\d+)", text)
    for mark, name in (
        ("neuron", "neuron"),
        ("tensorrt-llm", "tensorrt-llm"),
        ("vllm", "vllm"),
        ("sglang", "sglang"),
        ("llama.cpp", "llama.cpp"),
        ("fastertransformer", "fastertransformer"),
        ("habana", "deepspeed-habana"),
        ("deepspeed", "deepspeed"),
        ("jetstream", "jetstream"),
        ("awq", "autoawq"),
        ("mlc", "mlc"),
        ("exllama", "exllama"),
        ("gpt-fast", "gpt-fast"),
        ("transformers", "transformers"),
        ("accelerate", "accelerate"),
        ("lmdeploy", "lmdeploy"),
        ("qserve", "qserve"),
        ("tensorrt", "tensorrt-llm"),
        ("tgi", "tgi"),
        ("ipex", "ipex"),
        ("openvino", "openvino"),
        ("pytorch", "pytorch"),
    ):
        if mark in lowered:
            return name, f"{name} {release[1]}" if release and name != "pytorch" else name
    return (lowered.split()[0] if lowered else usual_engine(part)), lowered or usual_engine(part)


def answer_kind(scenario: str, crowd: str, metric: str, software: str) -> str:
    """By which intervals are kept apart; `crowd` is "alone" where one request is served at a time."""
    if scenario in ("prefill", "decode"):
        name = scenario
    elif metric == "ttft_ms":
        name = "first token unloaded" if scenario in ("closed", "static") and crowd == "alone" else "first token"
    elif metric == "tpot_ms":
        name = "token"
    else:
        name = "at once" if crowd == "at once" else "throughput"
    if software == "pytorch" and scenario in ("prefill", "decode"):
        return f"{name} own"
    return f"{name} neuron" if software == "neuron" else name


def usual_engine(part: Part) -> str:
    return {"neuron": "neuron", "tpu": "jetstream", "cpu": "ipex", "edge": "llama.cpp"}.get(part.kind, "vllm")


def _batch_by_memory(layer: Layer, part: Part, ways: float, weight_bytes: float, kv_bytes: float, tokens: float) -> float:
    room = 0.9 * part.memory_bytes * ways - layer.parameters * weight_bytes
    token_bytes = (
        layer.layers * layer.kv_width * kv_bytes * ((1 - layer.windowed) + layer.windowed * min(1.0, layer.window / tokens))
    )
    return max(math.floor(room / (token_bytes * tokens)), 1.0)


def case_of(row: Row, part: Part) -> InferenceCase:
    notes = row.text("notes")
    layer, _ = layer_from_row(row)
    chips = row.number("chips", 0.0) or 1.0
    cores = 2.0 if part.kind == "neuron" and "neuroncore" in notes.lower() else 1.0
    family, version = engine_family(f"{row.text('engine')} {row.text('framework_version')}".strip(), part)
    weights = weight_format(row.text("precision_weights"))
    cache = (
        weight_format(row.text("precision_kv"))
        if row.text("precision_kv")
        else ("fp8" if family == "tensorrt-llm" and weights in ("fp8", "nvfp4") else "fp16")
    )
    benchmark = re.search(r"benchmark ([a-z0-9.-]+?)(?:-99(?:\.9)?)?;", notes)
    scenario = re.search(r"scenario (\w+);", notes)
    tp, dp, pp = _split(row, notes, chips, cores, layer, part, FORMATS[weights][0])
    replicas = max(chips / (tp * dp * pp), 1.0) if tp >= 1 else chips / (tp * dp * pp)
    length, output, beams = row.number("input_len", -1.0), row.number("output_len", -1.0), 1.0
    guessed = (length < 0) + (output < 0) + (not row.text("batch_or_concurrency")) + (not row.text("tp"))
    if benchmark and benchmark[1] in BENCHMARKS:
        usual = BENCHMARKS[benchmark[1]]
        length, output, beams = usual[0] if length < 0 else length, usual[1] if output < 0 else output, usual[2]
    elif "sharegpt" in notes.lower():
        length, output = (usual if stated < 0 else stated for usual, stated in zip(_SHAREGPT, (length, output), strict=True))
    elif "length not printed" in notes:
        length = length if length >= 0 else _CHAT
    task = row.text("task")
    length = length if length >= 0 else (32.0 if task == "llm-decode" else 1024.0)
    output = output if output >= 0 else (256.0 if task != "llm-prefill" else 1.0)
    batch = row.number("batch_or_concurrency", 0.0)
    offered = re.search(r"offered rate (\S+) req/s", notes)
    rate = float(offered[1]) if offered and offered[1].upper() != "INF" else row.number("rate_rps", 0.0)
    few = re.search(r"only (\d+) requests", notes)  # fewer than were allowed at once
    batch = min(batch, float(few[1])) if few else batch
    at_once = row.text("rate_rps").lower() in ("inf", "infinity")
    sent = batch if at_once and batch else 500.0 if offered or rate or at_once else math.inf
    batch = 0.0 if at_once else batch
    kind, style = _scenario(task, batch, notes, scenario[1] if scenario else "", sent < math.inf)
    if task == "llm-prefill" and row.text("unloaded") == "yes":  # asked of a server by a client
        kind, style = "closed", SERVED
    if style == MAX_LOAD and not row.text("source_repo"):  # a user's own run, on the server that predictions are about
        style = SERVED
    kv_bytes = 1.0 if cache in ("fp8", "int8") else 0.5 if cache in ("int4", "fp4") else 2.0
    if scenario and family == "tensorrt-llm" and weights in ("fp16", "bf16") and part.has("fp8"):
        weights = cache = "fp8"  # the results name the format of the inputs; the code quantises
        kv_bytes = 1.0
    tokens = max(length + output * 0.6, 1.0) * beams
    accepted = _accepted(notes)
    slots = _batch_by_memory(layer, part, tp * dp * pp, FORMATS[weights][0], kv_bytes, tokens)
    if kind == "full" and pp > 1:  # stages work on different batches at the same time
        replicas, slots = replicas * pp, max(slots / pp, 1.0)
    if kind in ("full", "open"):
        batch = batch or AT_ONCE.get(family, 256.0)
    if task == "llm-decode" and row.text("input_len") == "0":
        length = output / 2
    elif task == "llm-decode" and output > 1:
        length = length + output / 2
    return InferenceCase(
        model=model_key(row.text("model")),
        layer=layer,
        part=part,
        chips=chips,
        replicas=replicas,
        tp=tp,
        dp=dp,
        pp=pp,
        ep=_expert_ways(notes) if layer.experts else 1.0,
        weights=weights,
        cache=cache,
        scenario=kind,
        style=style,
        batch=max(batch, 1.0),
        slots=slots,
        input_len=max(length, 1.0),
        output_len=max(output, 1.0),
        rate=rate,
        requests=sent,
        beams=beams,
        accepted=accepted,
        checked=_checked(accepted),
        late=-math.log(0.01) if row.text("percentile") == "p99" else 1.0,
        equal="ignore-eos" in notes or re.match(r"random (?:\d+/\d+|prompts)", notes) is not None,
        graphs=0.0 if row.text("compiled").startswith("eager") or family in EAGER else 1.0,
        engine=family,
        version=f"{version} dated" if "measured 20" in notes else version,
        source=row.text("source_repo"),
        metric=row.text("metric_name"),
        guessed=int(guessed),
    )


def _accepted(notes: str) -> float:
    """Tokens that one step gives a sequence: one, or what speculation gets through."""
    stated = re.search(r"(?:accept length|mean acceptance) (\d+(?:\.\d+)?)", notes)
    if stated:
        return max(float(stated[1]), 1.0)
    return _DRAFTED if "MTP" in notes or "speculative" in notes else 1.0


def _checked(accepted: float) -> float:
    """Tokens that a step must compute for so many to be accepted, each as likely as the one before it."""
    refused = 1.0 - (1.0 - _AGREED) * accepted
    return min(math.log(refused) / math.log(_AGREED), _MOST_CHECKED) if refused > 0 else _MOST_CHECKED


def _expert_ways(notes: str) -> float:
    stated = re.search(r"(?:expert parallel |moe_ep=|EP)(\d+)", notes)
    return float(stated[1]) if stated else 1.0


def _scenario(task: str, batch: float, notes: str, scenario: str, offered: bool) -> tuple[str, str]:
    """What was done, and the name of how it was measured."""
    lowered = notes.lower()
    if task == "llm-prefill":
        return "prefill", "prefill"
    if task == "llm-decode":
        return "decode", "decode"
    if scenario:
        return "full", f"mlperf {scenario.lower()}"
    if offered:
        return "open", SERVED
    if task == "llm-offline":
        if batch and "maximum achievable" not in lowered:
            return "static", "generate" if "generate()" in lowered else "static"
        return "full", MAX_LOAD
    if batch and "all sent at once" not in lowered:
        return "closed", SERVED
    return "full", MAX_LOAD


def _split(
    row: Row, notes: str, chips: float, cores: float, layer: Layer, part: Part, weight_bytes: float
) -> tuple[float, float, float]:
    """Tensor, attention-data and pipeline ways."""
    mapping = re.search(r"parallel mapping (TP|DEP)(\d+)(?:,PP(\d+))?", notes)
    if mapping:
        ways, stages = float(mapping[2]), float(mapping[3] or 1)
        if mapping[1] == "DEP" or "attention DP enabled" in notes:
            return (1.0, ways, stages) if layer.experts else (ways, 1.0, stages)
        return ways, 1.0, stages
    pp = row.number("pp", 0.0) or 1.0
    tp = row.number("tp", 0.0)
    tp = tp / max(cores, tp / chips if part.kind == "neuron" else 1.0)
    apart = re.search(r"(?:attention DP|attention data parallel |expert parallel )(\d+)", notes)
    if apart and layer.experts and tp * float(apart[1]) <= chips:  # whole sequences on each chip, experts over all
        return max(tp, 1.0), float(apart[1]), pp
    if apart and layer.experts and "attention D" in notes and tp >= float(apart[1]):
        return tp / float(apart[1]), float(apart[1]), pp
    spread = re.search(r"attention_dp=(\d+)", notes)
    dp = float(spread[1]) if spread else 1.0
    if "layer split" in notes or "pipeline" in notes:
        return 1.0, 1.0, chips
    if tp:
        return max(tp, 0.5), dp if dp > 1 and tp * dp * pp <= chips else 1.0, pp
    if pp > 1:  # stages are stated and nothing else: each is one chip's
        return max(chips / pp, 1.0), 1.0, pp
    need = layer.parameters * weight_bytes / (0.75 * part.memory_bytes)
    ways = 2.0 ** max(math.ceil(math.log2(max(need, 1.0))), 0)
    return min(ways, max(chips, 1.0)), 1.0, pp
