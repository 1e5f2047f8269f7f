"""Rows of training measurements, published or our own, as configurations the model can be asked about.

A row says what was run and what came out. Only the first half reaches a prediction: `metric_value` and `other_reported`
are never read here, and of `notes` only what the patterns below name (pipeline interleaving, software, what is counted).
What a row leaves blank is filled with what a competent user of that stack would have run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from chipwise.perf.part import Part, Parts
from chipwise.perf.rows import Row, layer_from_row, model_key
from chipwise.perf.tables import rows
from chipwise.perf.transformer import Layer

TRAINING_TASKS = ("pretrain", "sft", "finetune", "lora", "qlora", "train")
METRICS = ("tokens_per_s_per_chip", "step_time_s", "samples_per_s", "model_tflops_per_chip", "mfu")
_RECOMPUTE = {"none": 0.0, "selective": 0.3, "full": 1.0, "minimal": 0.3, "qkv_proj_offloaded": 0.7}
# Stacks that run blocks kernel by kernel, so that every operation keeps its inputs.
EAGER_STACKS = frozenset({"hf-trainer", "llama-factory", "deepspeed", "fsdp-qlora"})
# Words in notes that tell which software or setting was used; the first that is found names the variant.
_VARIANTS = (
    "unsloth",
    "hf+fa2",
    "flashattention",
    "mxnet",
    "paddlepaddle",
    "tf2",
    "tensorflow",
    "paxml",
    "t5x",
    "async tp rowwise",
    "vanilla tp rowwise",
    "async tp tensorwise",
    "vanilla tp tensorwise",
    "async tp",
    "vanilla tp",
    "float8 + asynctp",
    "float8",
    "offloaded to cpu",
    "cpu optimizer offload",
    "eval-to-eval",
    "early, untuned",
    "280 w cap",
    "interleaved",
    "large scale",
    "long-context table",
    "v2 run",
    "capacity factor 1.5",
    "dropless",
    "one steady step",
    "deepspeed;",
)


@dataclass(frozen=True, slots=True)
class TrainingCase:
    """One configuration in full. Counts of `tp` may be halves where a source counts the cores of a two-core chip."""

    model: str
    layer: Layer
    part: Part
    chips: float
    node: float  # chips per machine
    precision: str
    seq: float
    micro_batch: float
    global_batch: float
    tp: float
    pp: float
    cp: float
    ep: float
    shard: float  # ZeRO stage
    interleave: float
    recompute: float  # share of the forward pass done again
    method: str  # full, lora, qlora
    adapted: float  # adapters beside no matrices (0), those of attention (1), all (2)
    loose: float  # 1: kernel by kernel
    dropout: float  # 1: of adapters
    stack: str
    variant: str
    metric: str
    convention: str  # what a reported FLOP count counts
    filled: float  # share of the positions that hold tokens, where shorter samples are packed or cut
    unfused: float  # 1: attention writes its scores to memory
    offload: float  # 1: optimiser state in host memory
    guessed: int  # settings the row left open


@cache
def stacks() -> Mapping[str, Mapping[str, str]]:
    return {row["source"]: row for row in rows("stacks.csv")}


def _stack(row: Row) -> Mapping[str, str]:
    """The software; where one source runs several programs, each is a stack of its own."""
    source, model = row.text("source_repo"), row.text("model").lower()
    known = stacks()
    if source.startswith("mlcommons/training_results"):
        task = "lora" if row.text("task") == "lora" else "bert" if "bert" in model else "gpt3" if "gpt" in model else "llama"
        return {"stack": f"mlperf-{task}", "recompute": "none", "shard": "1"}
    if source in known and not row.text("framework"):
        stack = known[source]
        return {**stack, "stack": f"{stack['stack']}-xl"} if model.startswith("transformer-xl") else stack
    software = (row.text("framework") or row.text("engine")).lower()
    if software.startswith("pytorch") or (not software and row.number("chips", 1.0) == 1):
        return {"stack": "pytorch", "recompute": "none", "shard": "0"}
    return {"stack": software or "other", "recompute": "", "shard": ""}


def _variant(row: Row, notes: str) -> str:
    """What else tells runs of one stack apart: a word of the notes, or the round of a benchmark."""
    word = next((word for word in _VARIANTS if word in notes), "")
    container = re.search(r"container (\d\d\.\d\d)", notes)
    if container:
        return f"{container[1]} {word}".strip()
    word = word or ("fused" if row.text("compiled").startswith("fused") else "")
    edition = re.match(r"mlcommons/training_results_(v\d\.\d)", row.text("source_repo"))
    return f"{edition[1]} {word}".strip() if edition else word


def _precision(row: Row, part: Part) -> str:
    text = row.text("precision").lower()
    for mark, name in (
        ("nf4", "nf4"),
        ("int4", "int4"),
        ("fp8 or nvfp4", "fp8 or fp4"),
        ("nvfp4", "fp4"),
        ("fp4", "fp4"),
        ("fp8", "fp8"),
        ("bf16", "bf16"),
        ("fp16", "fp16"),
        ("tf32", "tf32"),
        ("fp32", "fp32"),
        ("int8", "int8"),
    ):
        if mark in text:
            return name
    source = row.text("source_repo")
    if source.startswith("mlcommons/"):
        if part.kind == "tpu":
            return "int8" if "GPT" in row.text("model") else "bf16"
        large = row.number("params_b", 0.0) > 0.1
        if part.has("fp8") and large and part.vendor == "NVIDIA":
            return "fp8"
    return "bf16" if part.has("bf16") and not source.startswith("VIA-Research") else "fp16"


def _recompute(row: Row, default: str) -> tuple[float, bool]:
    text = row.text("activation_checkpointing").lower()
    for mark, share in _RECOMPUTE.items():
        if text.startswith(mark):
            return share, False
    return _RECOMPUTE.get(default, 0.0), True


def _shard(row: Row, default: str, method: str) -> float:
    text, notes = row.text("dp_or_fsdp").upper(), row.text("notes")
    stage = re.search(r"ZeRO stage (\d)", notes)
    if stage:
        return float(stage[1])
    if re.search(r"; FSDP;|^FSDP full shard", notes):
        return 3.0
    if "FULL_SHARD" in text or text.startswith("FSDP") or "ZERO-3" in text:
        return 3.0
    if "SHARD_GRAD_OP" in text or "ZERO-2" in text:
        return 2.0
    if text.startswith(("DDP", "1")) or method != "full":
        return 0.0
    return float(default or 0)


def case_of(row: Row, parts: Parts, part: Part) -> TrainingCase:
    stack = _stack(row)
    notes = row.text("notes").lower()
    method = row.text("task") if row.text("task") in ("lora", "qlora") else "full"
    layer, seq_default = layer_from_row(row)
    chips = row.number("chips", 1.0)
    cores = 2.0 if part.kind == "neuron" else 1.0
    tp, pp, cp = row.number("tp", 0.0) / cores, row.number("pp", 0.0), row.number("cp", 0.0) or 1.0
    guessed = sum(1 for name in ("micro_batch", "precision", "tp", "seq_len") if not row.text(name))
    if not row.text("tp") or not pp:
        tp, pp = _usual_split(layer, part, chips, method, stack["stack"], tp, pp)
    tp = max(tp, 0.5)
    dp = max(chips / (tp * pp * cp), 0.5)
    seq = row.number("seq_len", 0.0) or seq_default
    micro, total = row.number("micro_batch", 0.0), row.number("global_batch_sequences", 0.0)
    if not micro:
        usual = max(65536.0 / seq, 1.0) if layer.parameters < 3e9 else 1.0
        micro = min(usual, total / dp) if total else usual
        if micro < 1 and not row.text("cp"):  # fewer sequences than replicas: they share each sequence
            cp, dp, micro = cp / micro, dp * micro, 1.0
    total = total or micro * dp * (8.0 if pp > 1 else 1.0)
    if pp > 1 and total / (dp * micro) < pp and micro > 1:  # a batch per chip that the pipeline cuts up itself
        micro = max(micro / pp, 1.0)
    recompute, assumed = _recompute(row, stack["recompute"])
    match = re.search(r"virtual pipeline (\d+)", notes) or re.search(r"(?:interleave|virtual stages) (\d+)", notes)
    interleave = float(match[1]) if match else 1.0
    if not match and stack["stack"].startswith("mlperf"):
        interleave = min(max(layer.layers / pp, 1.0), 6.0)
    ep = row.number("ep", 0.0)
    if not ep:
        ep = min(layer.experts, chips) if layer.experts and not row.text("tp") else 1.0
    variant = _variant(row, notes)
    return TrainingCase(
        model=model_key(row.text("model")),
        layer=layer,
        part=part,
        chips=chips,
        node=row.number("chips_per_node", 0.0) or min(chips, part.domain),
        precision=_precision(row, part),
        seq=seq,
        micro_batch=micro,
        global_batch=max(total, micro * dp),
        tp=tp,
        pp=pp,
        cp=cp,
        ep=ep,
        shard=_shard(row, stack["shard"], method),
        interleave=interleave if pp > 1 else 1.0,
        recompute=recompute,
        method=method,
        adapted=0.0 if method == "full" else 1.0 if _attention_only(row, notes, stack) else 2.0,
        loose=float(is_loose(stack["stack"], variant, row.text("compiled"))),
        dropout=float(stack.get("dropout", "") == "yes" or re.search(r"dropout 0\.\d", notes) is not None),
        stack=stack["stack"],
        variant=variant,
        metric=row.text("metric_name"),
        convention=_convention(row, notes),
        filled=_filled(row, notes, seq),
        unfused=float(stack.get("unfused", "") == "yes"),
        offload=float("offload" in row.text("dp_or_fsdp").lower()),
        guessed=guessed + (1 if assumed else 0),
    )


def _attention_only(row: Row, notes: str, stack: Mapping[str, str]) -> bool:
    """Whether adapters are beside the matrices of attention alone, as in MLPerf's benchmark."""
    stated = "adapters on attention" in notes or stack.get("adapters", "") == "attention"
    return stated or row.text("source_repo").startswith("mlcommons/")


@cache
def unfused_stacks() -> frozenset[str]:
    """Those of `stacks.csv` whose attention writes its scores to memory."""
    return frozenset(stack["stack"] for stack in stacks().values() if stack["unfused"] == "yes")


def is_loose(stack: str, variant: str = "", compiled: str = "") -> bool:
    """Whether a stack runs its blocks kernel by kernel."""
    return (stack in EAGER_STACKS and variant not in ("fused", "unsloth")) or compiled.startswith("eager")


def _usual_split(layer: Layer, part: Part, chips: float, method: str, stack: str, tp: float, pp: float) -> tuple[float, float]:
    """Tensor and pipeline split of a row that states none: the narrowest that holds weights and optimiser state."""
    if part.kind == "tpu" or stack.startswith("maxtext"):
        return max(tp, 1.0), max(pp, 1.0)
    need = layer.parameters * (2.2 if method != "full" else 9.0)
    ways = 2.0 ** max(math.ceil(math.log2(max(need / (0.6 * part.memory_bytes), 1.0))), 0)
    ways = min(ways, chips)
    tp = tp or min(ways, 8.0)
    return tp, pp or max(ways / tp, 1.0)


def _filled(row: Row, notes: str, seq: float) -> float:
    """Share of the positions that hold tokens: text cut into sequences for BERT fills 512 positions by half or less, and
    programs that remove the padding do not compute the rest."""
    if "unpad" in notes:
        return 0.42
    bert = "bert" in row.text("model").lower() and row.text("task") == "pretrain" and seq >= 512
    return 0.55 if bert and row.text("source_repo") == "NVIDIA/DeepLearningExamples" and "tf2" not in notes else 1.0


def _convention(row: Row, notes: str) -> str:
    if "full attention" in notes or "non-causal" in notes or row.text("source_repo") in ("google/maxtext",):
        return "full"
    return "full" if "long-context table" in notes else "causal"
