"""From estimates in columns to the values of one configuration."""

from __future__ import annotations

from typing import Any

import numpy as np

from chipwise.perf.arrays import column
from chipwise.perf.fits import Fit
from chipwise.perf.memory import Memory
from chipwise.perf.model import Estimate
from chipwise.perf.power import Power, energy_per_token_j, kwh
from chipwise.perf.predict_training import scaling_efficiency, usual_framework
from chipwise.perf.setup import RECOMPUTE, TrainingSetup
from chipwise.perf.under_load import percentiles
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


def _cell(values: Any, row: int = 0) -> float:
    column = np.atleast_1d(values)
    return float(column[row if len(column) > 1 else 0])


def metric(estimate: Estimate, unit: str, row: int = 0) -> Metric:
    total = _cell(estimate.seconds, row)
    terms = {name: _cell(values, row) for name, values in estimate.terms.items()}
    return Metric(
        value=_cell(estimate.value, row),
        low=_cell(estimate.low, row),
        high=_cell(estimate.high, row),
        unit=unit,
        provenance=estimate.provenance.name_at(row),
        terms_s={name: seconds for name, seconds in terms.items() if seconds > 1e-6 * total},
    )


def memory_use(memory: Memory, row: int = 0) -> MemoryUse:
    lines = {name: _cell(values, row) for name, values in memory.lines().items()}
    return MemoryUse(
        lines_bytes={name: value for name, value in lines.items() if value > 0},
        total_bytes=_cell(memory.total, row),
        allocated_bytes=_cell(memory.allocated, row),
    )


def fit_result(fit: Fit, row: int = 0) -> FitResult:
    fine = bool(np.atleast_1d(fit.fits)[row])
    return FitResult(
        fits=fine,
        capacity_bytes=fit.capacity,
        spare_bytes=_cell(fit.spare, row),
        smallest_change=None if fine else fit.change.texts()[row],
        bytes_after_change=None if fine else _cell(fit.changed_bytes, row),
        tried=tuple(
            TriedChange(one.name, _cell(one.bytes_per_chip, row), bool(np.atleast_1d(one.fits)[row])) for one in fit.attempts
        ),
    )


def chip_power(drawn: Power, row: int = 0) -> ChipPower:
    return ChipPower(_cell(drawn.chip, row), _cell(drawn.host, row), _cell(drawn.total, row))


def _million_tokens_kwh(drawn: Power, chips: float, tokens_per_s: float, row: int) -> float:
    return _cell(kwh(1e6 * energy_per_token_j(drawn, column(chips), column(tokens_per_s))), row)


def training_prediction(trained: Trained, row: int = 0, notes: tuple[str, ...] = ()) -> TrainingPrediction:
    """`notes` follow those of the estimate."""
    step, setup = trained.step, trained.ask.setup
    tokens = _cell(setup.global_batch, row) * _cell(setup.seq, row)
    chips = _cell(setup.chips, row)
    rate = tokens / _cell(step.value, row)
    drawn = trained.estimate.power
    scaling, reasons = _scaling(_cell(scaling_efficiency(trained.ask, trained.estimate, trained.fitted), row), setup, row)
    return TrainingPrediction(
        model=trained.model,
        chip=trained.ask.hardware.part.name_at(row),
        chips=chips,
        framework=(trained.ask.framework or usual_framework(trained.ask)).name_at(row),
        setup=TrainingRun(
            precision=setup.precision.texts()[0],
            method=setup.method.texts()[0],
            seq=_cell(setup.seq, row),
            micro_batch=_cell(setup.micro_batch, row),
            global_batch=_cell(setup.global_batch, row),
            tp=_cell(setup.tp, row),
            pp=_cell(setup.pp, row),
            cp=_cell(setup.cp, row),
            ep=_cell(setup.ep, row),
            dp=_cell(setup.dp, row),
            zero_stage=_cell(setup.shard, row),
            recompute=list(RECOMPUTE)[int(_cell(setup.recompute, row))],
        ),
        step_time=metric(step, "s", row),
        tokens_per_s=Interval(rate, tokens / _cell(step.high, row), tokens / _cell(step.low, row)),
        mfu=_cell(trained.estimate.mfu, row),
        scaling_efficiency=scaling,
        memory=memory_use(trained.memory, row),
        fit=None if trained.fit is None else fit_result(trained.fit, row),
        power=chip_power(drawn, row),
        energy_per_million_tokens_kwh=_million_tokens_kwh(drawn, chips, rate, row),
        notes=(*trained.notes, *notes, *reasons),
    )


MORE_THAN_LINEAR = 1.005


def _scaling(share: float, setup: TrainingSetup, row: int) -> tuple[float, tuple[str, ...]]:
    """Above 100% there must be a reason: replicas that share the optimiser's state have less of it each."""
    ways = _cell(setup.dp, row)
    if share > MORE_THAN_LINEAR and ways > 1 and _cell(setup.shard, row) >= 1:
        return share, (f"Scaling above 100%: each of the {ways:g} replicas updates its share of the optimiser's state only.",)
    return min(share, 1.0), ()


_UNITS = {"ttft_ms": "ms", "tpot_ms": "ms", "latency_ms": "ms"}


def generation_prediction(served: Served, row: int = 0, shares: tuple[float, ...] = (0.5, 0.9, 0.99)) -> GenerationPrediction:
    setup, ask = served.ask.setup, served.ask
    chips = _cell(setup.chips, row) * _cell(ask.replicas, row)
    spread = None
    if "ttft_ms" in served.metrics and "tpot_ms" in served.metrics and ask.scenario.texts()[0] in ("closed", "open"):
        by_metric = percentiles(ask, served.fitted, served.metrics, shares)
        spread = {name: {share: _cell(values, row) for share, values in those.items()} for name, those in by_metric.items()}
    rate = served.metrics.get("output_tokens_per_s")
    return GenerationPrediction(
        model=served.model,
        chip=ask.hardware.part.name_at(row),
        chips=chips,
        replicas=_cell(ask.replicas, row),
        engine=setup.engine.texts()[0],
        scenario=ask.scenario.texts()[0],
        setup=ServingRun(
            weights=setup.precision_weights.texts()[0],
            kv_cache=setup.precision_kv.texts()[0],
            tp=_cell(setup.tp, row),
            pp=_cell(setup.pp, row),
            attention_dp=_cell(setup.attention_dp, row),
            batch=_cell(setup.batch, row),
            input_tokens=_cell(setup.input_len, row),
            output_tokens=_cell(setup.output_len, row),
            prefix_tokens=_cell(setup.prefix_len, row),
            cuda_graphs=bool(_cell(setup.cuda_graphs, row)),
        ),
        metrics={name: metric(one, _UNITS.get(name, "1/s"), row) for name, one in served.metrics.items()},
        percentiles=spread,
        most_sequences=_cell(served.slots, row),
        memory=memory_use(served.memory, row),
        fit=None if served.fit is None else fit_result(served.fit, row),
        power=chip_power(served.power, row),
        energy_per_million_tokens_kwh=(
            None if rate is None else _million_tokens_kwh(served.power, chips, _cell(rate.value, row), row)
        ),
        notes=served.notes,
    )
