"""Language models on small devices: one answer at a time, within the watts that the file allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chipwise.catalog.chip import Chip
from chipwise.errors import BadInput
from chipwise.perf.kernels import edge
from chipwise.perf.kernels.work import Terms
from chipwise.perf.part import Part
from chipwise.predictor.ability import able_chip
from chipwise.predictor.formats import usual_precision
from chipwise.predictor.kinds.ask import Ask
from chipwise.predictor.kinds.kernels import kernel
from chipwise.predictor.kinds.latencies import wanted_goals
from chipwise.predictor.values import DevicePrediction, Goal
from chipwise.text import decimal_size
from chipwise.workload.common import Common
from chipwise.workload.kinds import Serve
from chipwise.workload.model.shape import DecoderShape

_AS_WIDE = {"fp8": "int8", "fp4": "int4"}  # devices have no floating point that narrow


def check_mode(ask: Ask, work: Common, chip: Chip) -> None:
    watts = work.limits.power_watts
    lowest = next((row.power_min_w for row in ask.known.catalog.rows("edge_devices") if row.chip == chip.name), None)
    if watts is not None and lowest is not None and watts < lowest:
        raise BadInput(
            f"limits.power_watts: the smallest mode of {chip.name} takes {lowest:g} W, and {watts:g} W are allowed.",
            remedy="Allow more, or take a smaller device.",
        )


def published_on(part: Part, published: str) -> str:
    """The format of weights whose format nobody stated: as wide as they are published, where the device has it."""
    return _AS_WIDE.get(published) or usual_precision(None, part, "serve")


def answer_on_device(ask: Ask, work: Serve, model: str, settings: Mapping[str, Any]) -> DevicePrediction:
    """A language model on a small device: one answer at a time."""
    part = ask.known.parts[able_chip(ask.known, ask.hardware, "serve").name]
    entry = ask.known.find_model(model)
    shape = entry.shape
    assert isinstance(shape, DecoderShape)  # the others are asked about per sample
    if (chip := edge.ON_CHIP.get(part.name)) is not None:
        raise BadInput(
            f"{part.name} runs no language models: it has {decimal_size(chip.bytes)} on the chip and no memory of its own.",
            remedy="Take a device with memory, such as a Jetson.",
        )
    device = edge.Devices.of([part], settings.get("precision") or published_on(part, entry.published_precision))
    mode = edge.mode(device, work.limits.power_watts)
    read, written = float(settings.get("input_tokens", 512.0)), max(float(settings.get("output_tokens", 128.0)), 1.0)
    cache = shape.kv_bytes_per_token(2.0) * (read + written / 2)
    prompt = edge.frame(device, shape.matrix_flop_per_token() * read, shape.parameters, power_mode=mode)
    token = edge.token(device, shape.active_parameters, cache, mode)
    terms = Terms.of(
        {"prompt": (prompt.total, prompt.relative)}
        | {name: (written * seconds, token.relative) for name, seconds in zip(token.names, token.seconds, strict=True)}
    )
    total_s, first, token_s = float(terms.total[0]), float(prompt.total[0]), float(token.total[0])
    misfit = ""
    if not edge.fits(device, shape.parameters, cache)[0]:
        misfit = f"{entry.name} in {device.precision} needs more than 70% of the device's memory"
    notes = [f"It does not fit: {misfit}."] if misfit else []
    if (rate := settings.get("rate")) is not None and rate * total_s > 1:
        notes.append("Requests come faster than one device answers them, one after the other.")
    seconds = {"latency": total_s, "ttft": first, "tpot": token_s}
    wanted = wanted_goals(work.goals, ask.options)
    return DevicePrediction(
        **kernel(ask, 1.0, terms, "one answer"),
        model=entry.name,
        precision=device.precision,
        input_tokens=read,
        output_tokens=written,
        first_token_s=first,
        tokens_per_s=1.0 / token_s,
        devices=work.devices,
        fits=not misfit,
        misfit=misfit,
        needs={"devices": float(work.devices or 1)},
        goals=tuple(Goal(name, limit, seconds[name], percentile) for name, percentile, limit in wanted),
        notes=tuple(notes),
    )
