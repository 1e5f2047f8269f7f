"""How a model is run: batch, lengths, splits, number formats. Columns, so that one value holds many candidates.

`TrainingSetup.of(seq=4096, micro_batch=[1, 2, 4], dp=8)` fills in the rest; every column has one row or as many as the
longest. `check` refuses what cannot be run and names the field; `valid` says the same of every row, for who makes
candidates by the thousand. Time and memory models read the same setups.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from chipwise.errors import BadInput, InvalidSettings, Problem
from chipwise.perf.arrays import Array, Coded, Index, column, cut
from chipwise.perf.setup_rules import Rows, Rule, all_true, are_known, is_among, is_whole, model_rules
from chipwise.perf.transformer import Transformers
from chipwise.spelling import nearest

Values = float | Sequence[float] | Array | str | Sequence[str] | Coded

NONE, SELECTIVE, FULL = 0, 1, 2  # recompute
RECOMPUTE = {"none": NONE, "selective": SELECTIVE, "full": FULL}
METHODS = ("full", "lora", "qlora")
ATTENTION_ONLY, ALL_LINEAR = 1, 2  # matrices with adapters
TARGETS = {"attention": ATTENTION_ONLY, "all-linear": ALL_LINEAR}
TRAINING_PRECISIONS = ("bf16", "fp16", "fp8", "mxfp8", "fp4", "fp32", "tf32")
# How weights and states are kept: fp32 weights that autocast copies to 16 bits at each use; 16-bit weights beside an
# fp32 master copy and fp32 moments; everything in 16 bits.
STATES = ("autocast", "master", "pure")
OPTIMIZERS = ("adamw", "adamw-16bit", "adamw-8bit", "adafactor", "lion", "muon", "sgd")
# Bits of a stored weight, scales included (groups of 128 for int4 and AWQ, of 64 twice quantised for nf4).
WEIGHT_BITS = {
    "fp32": 32.0,
    "bf16": 16.0,
    "fp16": 16.0,
    "fp8": 8.0,
    "int8": 8.0,
    "mxfp8": 8.25,
    "q8_0": 8.5,
    "q6_k": 6.5625,
    "q5_k_m": 5.69,
    "q4_k_m": 4.85,
    "nvfp4": 4.5,
    "fp4": 4.5,
    "mxfp4": 4.25,
    "int4": 4.25,
    "awq": 4.25,
    "gptq": 4.25,
    "nf4": 4.127,
}
KV_BITS = {"fp32": 32.0, "bf16": 16.0, "fp16": 16.0, "fp8": 8.0, "int8": 8.25, "q8_0": 8.5, "fp4": 4.5, "int4": 4.5}
ENGINES = (
    "vllm",
    "sglang",
    "tensorrt-llm",
    "llama.cpp",
    "transformers",
    "pytorch",
    "neuron",
    "jetstream",
    "ipex",
    "openvino",
    "tgi",
    "other",
)


def _fields(setup: type[_Columns]) -> tuple[str, ...]:
    """Names of the columns, as dataclasses keeps them; `fields` would make the list anew."""
    return cast("tuple[str, ...]", setup.__match_args__)


@dataclass(frozen=True, slots=True)
class _Columns:
    """What both setups do as tables."""

    whole_numbers: ClassVar[tuple[str, ...]] = ()
    names: ClassVar[dict[str, tuple[str, ...]]] = {}

    @classmethod
    def of(cls, **columns: Values) -> Self:
        """Columns from numbers, names or sequences of them; what is left out has its default."""
        known = _fields(cls)
        for name in columns:
            if name not in known:
                raise InvalidSettings(
                    Problem(
                        field=name, message="no such column", line=None, allowed=", ".join(known), nearest=nearest(name, known)
                    )
                )
        setup = cls(**{name: cls._column(name, values) for name, values in columns.items()})
        setup._check_lengths()
        return setup

    @classmethod
    def _column(cls, name: str, values: Values) -> Array | Coded:
        if isinstance(values, Coded):
            return values
        if name in cls.names:
            items = list(values) if isinstance(values, Iterable) else [values]
            if isinstance(values, str) or (items and all(isinstance(value, str) for value in items)):
                return Coded.of(values).map(canonical)  # type: ignore[arg-type]
            raise InvalidSettings(Problem(name, "takes names", None, ", ".join(cls.names[name])))
        try:
            numbers = column(values)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidSettings(Problem(name, f"{values!r:.60} is not a number", None, "numbers")) from error
        if numbers.ndim > 1 or not len(numbers):
            raise InvalidSettings(Problem(name, "is empty or a table", None, "one number, or a list of them"))
        return numbers

    def columns(self) -> dict[str, Array | Coded]:
        return {name: getattr(self, name) for name in _fields(type(self))}

    def __len__(self) -> int:
        return max([len(getattr(self, name)) for name in _fields(type(self))])

    def rows(self, selection: slice | Index) -> Self:
        """Some of the rows; columns of one row stay as they are."""
        picked: dict[str, Array | Coded] = {}
        for name, values in self.columns().items():
            if isinstance(values, Coded):
                picked[name] = values if len(values) == 1 else Coded(values.names, values.index[selection])
            else:
                picked[name] = cut(values, selection)
        return type(self)(**picked)

    def change(self, **columns: Values) -> Self:
        """The same setup with some columns replaced."""
        return type(self)(**self.columns() | {name: self._column(name, values) for name, values in columns.items()})

    def _rules(self, model: Transformers | None) -> list[Rule]:
        rules = [
            Rule(name, is_whole(getattr(self, name)), getattr(self, name), "whole numbers from 1 on")
            for name in self.whole_numbers
        ]
        for name, allowed in self.names.items():
            rules.append(Rule(name, are_known(getattr(self, name), allowed), None, ", ".join(allowed)))
        return rules

    def valid(self, model: Transformers | None = None) -> Rows:
        """Which rows `check` would let pass."""
        flags = [rule.valid for rule in self._rules(model)]
        return np.asarray(np.logical_and.reduce(np.broadcast_arrays(*flags)))

    def check(self, model: Transformers | None = None) -> None:
        """Raises BadInput with every column that cannot be, its first bad value and what is allowed."""
        self._check_lengths()
        problems = [self._problem(rule) for rule in self._rules(model) if not all_true(rule.valid)]
        if problems:
            raise InvalidSettings(*problems)

    def _check_lengths(self) -> None:
        if len({1, *[len(getattr(self, name)) for name in _fields(type(self))]}) > 2:
            counts = ", ".join(f"{name} {len(values)}" for name, values in self.columns().items() if len(values) > 1)
            raise BadInput(f"Columns differ in length: {counts}.", remedy="Give each one row, or as many as the others.")

    def _problem(self, rule: Rule) -> Problem:
        index = int(np.argmin(np.atleast_1d(rule.valid)))
        row = f" in row {index}" if len(rule.valid) > 1 else ""
        near: tuple[str, ...] = ()
        if rule.values is None:
            names: Coded = getattr(self, rule.field)
            text = repr(names.names[names.index[index if len(names) > 1 else 0]])
            near = nearest(text.strip("'"), self.names[rule.field])
        else:
            text = f"{rule.values[index if len(rule.values) > 1 else 0]:g}"
        allowed = rule.allowed if isinstance(rule.allowed, str) else rule.allowed(index)
        return Problem(field=rule.field, message=f"{text}{row} is not possible", line=None, allowed=allowed, nearest=near)


@dataclass(frozen=True, slots=True)
class TrainingSetup(_Columns):
    """One way to train: world = tp x pp x cp x dp chips; expert groups of `ep` chips lie within tp x cp x dp."""

    seq: Array = field(default_factory=partial(column, 2048))  # tokens per sequence
    micro_batch: Array = field(default_factory=partial(column, 1))  # sequences that go through a replica at once
    global_batch: Array = field(default_factory=partial(column, 1))  # sequences per optimiser step over all replicas
    tp: Array = field(default_factory=partial(column, 1))
    pp: Array = field(default_factory=partial(column, 1))
    cp: Array = field(default_factory=partial(column, 1))
    ep: Array = field(default_factory=partial(column, 1))
    dp: Array = field(default_factory=partial(column, 1))
    shard: Array = field(
        default_factory=partial(column, 0)
    )  # ZeRO stage over dp x cp: 1 optimiser state, 2 gradients too, 3 weights too (FSDP)
    interleave: Array = field(default_factory=partial(column, 1))  # pieces of the model that one stage holds
    recompute: Array = field(default_factory=partial(column, NONE))
    sequence_parallel: Array = field(default_factory=partial(column, 0))  # norms and residuals split over tp too
    method: Coded = field(default_factory=partial(Coded.of, "full"))
    rank: Array = field(default_factory=partial(column, 16))  # of adapters
    targets: Array = field(default_factory=partial(column, ALL_LINEAR))  # matrices with adapters: 1 those of attention, 2 all
    precision: Coded = field(default_factory=partial(Coded.of, "bf16"))  # of matrix products
    states: Coded = field(default_factory=partial(Coded.of, "autocast"))
    optimizer: Coded = field(default_factory=partial(Coded.of, "adamw"))
    flash: Array = field(default_factory=partial(column, 1))  # attention fused: scores are not kept
    compiled: Array = field(default_factory=partial(column, 1))  # element-wise work fused: its inputs are not kept

    whole_numbers: ClassVar[tuple[str, ...]] = (
        "seq",
        "micro_batch",
        "global_batch",
        "tp",
        "pp",
        "cp",
        "ep",
        "dp",
        "interleave",
        "rank",
    )
    names: ClassVar[dict[str, tuple[str, ...]]] = {
        "method": METHODS,
        "precision": TRAINING_PRECISIONS,
        "states": STATES,
        "optimizer": OPTIMIZERS,
    }
    codes: ClassVar[dict[str, tuple[int, ...]]] = {
        "shard": (0, 1, 2, 3),
        "recompute": (NONE, SELECTIVE, FULL),
        "sequence_parallel": (0, 1),
        "targets": (ATTENTION_ONLY, ALL_LINEAR),
        "flash": (0, 1),
        "compiled": (0, 1),
    }

    @classmethod
    def of(cls, **columns: Values) -> Self:
        """As `_Columns.of`; without `global_batch` every replica takes one micro-batch per step."""
        setup = super(TrainingSetup, cls).of(**columns)
        return setup if "global_batch" in columns else setup.change(global_batch=setup.micro_batch * setup.dp)

    @property
    def chips(self) -> Array:
        return self.tp * self.pp * self.cp * self.dp

    @property
    def by_megatron(self) -> NDArray[np.bool_]:
        """Splits that Megatron makes: of layers, of experts, or of nothing but the optimiser's state."""
        full = self.method.look_up(lambda name: float(name == "full"))
        return np.asarray((self.tp * self.pp * self.ep > 1) | ((self.shard == 1) & (full > 0)))

    @property
    def micro_batches(self) -> Array:
        """Micro-batches that one replica runs per optimiser step."""
        return np.maximum(np.ceil(self.global_batch / (self.micro_batch * self.dp)), 1.0)

    @property
    def tokens(self) -> Array:
        """Tokens of one micro-batch that one chip of a context group holds."""
        return self.micro_batch * self.seq / self.cp

    def _rules(self, model: Transformers | None) -> list[Rule]:
        rules = super(TrainingSetup, self)._rules(model)
        for name, codes in self.codes.items():
            rules.append(Rule(name, is_among(getattr(self, name), codes), getattr(self, name), ", ".join(map(str, codes))))
        smallest = self.micro_batch * self.dp
        with np.errstate(divide="ignore", invalid="ignore"):
            rules.append(Rule("global_batch", self.global_batch >= smallest, self.global_batch, "at least micro_batch x dp"))
            rules.append(Rule("cp", self.cp <= self.seq, self.cp, "at most seq"))
            group = self.tp * self.cp * self.dp
            rules.append(Rule("ep", np.mod(group, self.ep) == 0, self.ep, "divisors of tp x cp x dp"))
            if model is not None:
                rules += model_rules(model, self.tp, self.pp, self.pp * self.interleave, self.ep)
        return rules


@dataclass(frozen=True, slots=True)
class ServingSetup(_Columns):
    """One replica of tp x pp chips answering `batch` sequences at once."""

    batch: Array = field(default_factory=partial(column, 1))  # sequences in flight
    input_len: Array = field(default_factory=partial(column, 1024))
    output_len: Array = field(default_factory=partial(column, 128))
    prefix_len: Array = field(
        default_factory=partial(column, 0)
    )  # tokens at the start of every prompt that are the same, kept once
    tp: Array = field(default_factory=partial(column, 1))
    pp: Array = field(default_factory=partial(column, 1))
    ep: Array = field(
        default_factory=partial(column, 1)
    )  # 1: experts are split like other matrices; tp: whole experts per chip
    attention_dp: Array = field(
        default_factory=partial(column, 1)
    )  # ways that attention is split by sequence while experts lie over all tp chips (wide expert parallelism)
    precision_weights: Coded = field(default_factory=partial(Coded.of, "bf16"))
    precision_kv: Coded = field(default_factory=partial(Coded.of, "bf16"))
    engine: Coded = field(default_factory=partial(Coded.of, "vllm"))
    batched_tokens: Array = field(
        default_factory=partial(column, np.nan)
    )  # most tokens of one forward pass; NaN: as the engine has it
    memory_share: Array = field(
        default_factory=partial(column, np.nan)
    )  # of the chip that the engine may take; NaN: as the engine has it
    cuda_graphs: Array = field(default_factory=partial(column, 1))  # 1: decode steps are replayed, 0: launched kernel by kernel

    whole_numbers: ClassVar[tuple[str, ...]] = ("batch", "input_len", "tp", "pp", "ep", "attention_dp")
    names: ClassVar[dict[str, tuple[str, ...]]] = {
        "precision_weights": tuple(WEIGHT_BITS),
        "precision_kv": tuple(KV_BITS),
        "engine": ENGINES,
    }

    @property
    def chips(self) -> Array:
        return self.tp * self.pp

    @property
    def attention_ways(self) -> Array:
        """Chips that share the attention of a sequence."""
        return self.tp / self.attention_dp

    @property
    def local_batch(self) -> Array:
        """Sequences of a group of chips that shares their attention."""
        return np.ceil(self.batch / self.attention_dp)

    @property
    def context(self) -> Array:
        """Tokens of one sequence when it ends."""
        return self.input_len + self.output_len

    def _rules(self, model: Transformers | None) -> list[Rule]:
        rules = super(ServingSetup, self)._rules(model)
        rules.append(Rule("output_len", is_whole(self.output_len, 0), self.output_len, "whole numbers from 0 on"))
        inside = is_whole(self.prefix_len, 0) & (self.prefix_len <= self.input_len)
        rules.append(Rule("prefix_len", inside, self.prefix_len, "whole numbers from 0 to input_len"))
        batched, share = self.batched_tokens, self.memory_share
        rules.append(Rule("batched_tokens", np.isnan(batched) | is_whole(batched), batched, "whole numbers from 1 on"))
        rules.append(Rule("cuda_graphs", is_among(self.cuda_graphs, (0, 1)), self.cuda_graphs, "0 or 1"))
        rules.append(Rule("memory_share", np.isnan(share) | ((share > 0) & (share <= 1)), share, "above 0, at most 1"))
        with np.errstate(divide="ignore", invalid="ignore"):
            rules.append(Rule("ep", np.mod(self.tp * self.pp, self.ep) == 0, self.ep, "divisors of tp x pp"))
            whole = np.mod(self.tp, self.attention_dp) == 0
            rules.append(Rule("attention_dp", whole, self.attention_dp, "divisors of tp"))
            if model is not None:
                shared = (self.attention_dp == 1) | (model.experts > 0)
                rules.append(Rule("attention_dp", shared, self.attention_dp, "1: the model has no experts"))
                rules += model_rules(model, self.attention_ways, self.pp, self.pp, self.ep)
        return rules


_SPELLINGS = (
    (r"tensorrt-?llm.*|trt-?llm.*", "tensorrt-llm"),
    (r"vllm.*", "vllm"),
    (r"sglang.*", "sglang"),
    (r"hf transformers.*|transformers(?! neuronx).*", "transformers"),
    (r".*neuron.*", "neuron"),
    (r"pytorch.*", "pytorch"),
    (r"llama\.?cpp.*", "llama.cpp"),
    (r"jetstream.*", "jetstream"),
    (r"bfloat16|fp16/bf16|bf16.*", "bf16"),
    (r"float16|half|fp16 .*", "fp16"),
    (r"float32|fp32 .*", "fp32"),
    (r"fp8[ /(_-].*|e4m3|w8a8-fp8", "fp8"),
    (r"w8a8|int8 .*", "int8"),
    (r".*awq.*", "awq"),
    (r".*gptq.*", "gptq"),
    (r"w4a16|int4[ -].*", "int4"),
    (r"nf4 .*", "nf4"),
    (r"adam|paged-adamw-8bit|adamw8bit", "adamw"),
)


@cache
def canonical(name: str) -> str:
    """The name we use for what published tables spell in several ways: `vLLM 0.12.0` -> vllm, `int4-g128 (AWQ)` -> awq."""
    folded = name.strip().casefold()
    known = (*METHODS, *STATES, *TRAINING_PRECISIONS, *OPTIMIZERS, *WEIGHT_BITS, *KV_BITS, *ENGINES)
    if folded in known:
        return folded
    for pattern, known_name in _SPELLINGS:
        if re.fullmatch(pattern, folded):
            return "adamw-8bit" if known_name == "adamw" and "8bit" in folded else known_name
    return folded
