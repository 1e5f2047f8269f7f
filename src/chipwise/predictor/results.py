"""From estimates in columns to the values of one configuration."""

from __future__ import annotations

from typing import Any

import numpy as np

from chipwise.perf.arrays import column
from chipwise.perf.fits import Fit
from chipwise.perf.memory import Memory
from chipwise.perf.model import Estimate
from chipwise.perf.power import Power, energy_per_token_j, kwh
from chipwise.perf.predict_serving import percentiles
from chipwise.perf.predict_training import scaling_efficiency, usual_framework
from chipwise.perf.setup import RECOMPUTE
from chipwise.predictor.transformer import Served, Trained
from chipwise.predictor.values import (
    ChipPower,
    FitResult,
    GenerationPrediction,
    Interval,
    MemoryUse,
    Metric,
    ServingRun,
    TrainingPrediction,
    TrainingRun,
    TriedChange,
)


def _at(values: Any, row: int = 0) -> float:
    column = np.atleast_1d(values)
    return float(column[row if len(column) > 1 else 0])


def metric(found: Estimate, unit: str, row: int = 0) -> Metric:
    total = _at(found.seconds, row)
    terms = {name: _at(values, row) for name, values in found.terms.items()}
    return Metric(
        value=_at(found.value, row),
        low=_at(found.low, row),
        high=_at(found.high, row),
        unit=unit,
        provenance=found.provenance.name_at(row),
        terms_s={name: seconds for name, seconds in terms.items() if seconds > 1e-6 * total},
    )


def memory_use(memory: Memory, row: int = 0) -> MemoryUse:
    lines = {name: _at(values, row) for name, values in memory.lines().items()}
    return MemoryUse(
        lines_bytes={name: value for name, value in lines.items() if value > 0},
        total_bytes=_at(memory.total, row),
        allocated_bytes=_at(memory.allocated, row),
    )


def fit_result(fit: Fit, row: int = 0) -> FitResult:
    fine = bool(np.atleast_1d(fit.fits)[row])
    return FitResult(
        fits=fine,
        capacity_bytes=fit.capacity,
        spare_bytes=_at(fit.spare, row),
        smallest_change=None if fine else fit.change.texts()[row],
        bytes_after_change=None if fine else _at(fit.changed_bytes, row),
        tried=tuple(
            TriedChange(one.name, _at(one.bytes_per_chip, row), bool(np.atleast_1d(one.fits)[row])) for one in fit.attempts
        ),
    )


def chip_power(drawn: Power, row: int = 0) -> ChipPower:
    return ChipPower(_at(drawn.chip, row), _at(drawn.host, row), _at(drawn.total, row))


def _million_tokens_kwh(drawn: Power, chips: float, tokens_per_s: float, row: int) -> float:
    return _at(kwh(1e6 * energy_per_token_j(drawn, column(chips), column(tokens_per_s))), row)


def training_prediction(found: Trained, row: int = 0, notes: tuple[str, ...] = ()) -> TrainingPrediction:
    """`notes` follow those of the estimate."""
    step, setup = found.step, found.ask.setup
    tokens = _at(setup.global_batch, row) * _at(setup.seq, row)
    chips = _at(setup.chips, row)
    rate = tokens / _at(step.value, row)
    drawn = found.found.power
    return TrainingPrediction(
        model=found.model,
        chip=found.ask.hardware.part.name_at(row),
        chips=chips,
        framework=(found.ask.framework or usual_framework(found.ask)).name_at(row),
        setup=TrainingRun(
            precision=setup.precision.texts()[0],
            method=setup.method.texts()[0],
            seq=_at(setup.seq, row),
            micro_batch=_at(setup.micro_batch, row),
            global_batch=_at(setup.global_batch, row),
            tp=_at(setup.tp, row),
            pp=_at(setup.pp, row),
            cp=_at(setup.cp, row),
            ep=_at(setup.ep, row),
            dp=_at(setup.dp, row),
            zero_stage=_at(setup.shard, row),
            recompute=list(RECOMPUTE)[int(_at(setup.recompute, row))],
        ),
        step_time=metric(step, "s", row),
        tokens_per_s=Interval(rate, tokens / _at(step.high, row), tokens / _at(step.low, row)),
        mfu=_at(found.found.mfu, row),
        scaling_efficiency=_at(scaling_efficiency(found.ask, found.found, found.fitted), row),
        memory=memory_use(found.memory, row),
        fit=None if found.fit is None else fit_result(found.fit, row),
        power=chip_power(drawn, row),
        energy_per_million_tokens_kwh=_million_tokens_kwh(drawn, chips, rate, row),
        notes=(*found.notes, *notes),
    )


_UNITS = {"ttft_ms": "ms", "tpot_ms": "ms", "latency_ms": "ms"}


def generation_prediction(found: Served, row: int = 0, shares: tuple[float, ...] = (0.5, 0.9, 0.99)) -> GenerationPrediction:
    setup, ask = found.ask.setup, found.ask
    chips = _at(setup.chips, row) * _at(ask.replicas, row)
    spread = None
    if "ttft_ms" in found.metrics and "tpot_ms" in found.metrics and ask.scenario.texts()[0] in ("closed", "open"):
        by = percentiles(found.metrics["ttft_ms"], found.metrics["tpot_ms"], ask, shares)
        spread = {name: {share: _at(values, row) for share, values in those.items()} for name, those in by.items()}
    rate = found.metrics.get("output_tokens_per_s")
    return GenerationPrediction(
        model=found.model,
        chip=ask.hardware.part.name_at(row),
        chips=chips,
        replicas=_at(ask.replicas, row),
        engine=setup.engine.texts()[0],
        scenario=ask.scenario.texts()[0],
        setup=ServingRun(
            weights=setup.precision_weights.texts()[0],
            kv_cache=setup.precision_kv.texts()[0],
            tp=_at(setup.tp, row),
            pp=_at(setup.pp, row),
            batch=_at(setup.batch, row),
            input_tokens=_at(setup.input_len, row),
            output_tokens=_at(setup.output_len, row),
            prefix_tokens=_at(setup.prefix_len, row),
            cuda_graphs=bool(_at(setup.cuda_graphs, row)),
        ),
        metrics={name: metric(one, _UNITS.get(name, "1/s"), row) for name, one in found.metrics.items()},
        percentiles=spread,
        most_sequences=_at(found.slots, row),
        memory=memory_use(found.memory, row),
        fit=None if found.fit is None else fit_result(found.fit, row),
        power=chip_power(found.power, row),
        energy_per_million_tokens_kwh=(
            None if rate is None else _million_tokens_kwh(found.power, chips, _at(rate.value, row), row)
        ),
        notes=found.notes,
    )
