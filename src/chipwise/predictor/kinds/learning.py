"""Training and fine-tuning from a workload file: the whole job, and whether its data comes as fast as it is taken."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from chipwise.errors import BadInput
from chipwise.perf.arrays import Coded, column
from chipwise.perf.feeding import Feeding, feed
from chipwise.perf.fits import fits
from chipwise.perf.part import Part
from chipwise.perf.setup import RECOMPUTE, TARGETS
from chipwise.predictor.ability import able_chip
from chipwise.predictor.kinds.ask import Ask, by_samples, known_model
from chipwise.predictor.kinds.goals import whole_job
from chipwise.predictor.known import Known
from chipwise.predictor.options import LEARNING_OPTIONS
from chipwise.predictor.pairs import pairs_of
from chipwise.predictor.results import training_prediction
from chipwise.predictor.samples import predict_samples
from chipwise.predictor.sizes import check_sizes, sizes_of
from chipwise.predictor.transformer import train
from chipwise.predictor.values import DataFeed, SamplePrediction, TrainingPrediction
from chipwise.workload.data import Access
from chipwise.workload.kinds import Finetune, Learning
from chipwise.workload.model.shape import ConvShape, CountedShape, EncoderDecoderShape, RecommenderShape, Shape, VisionShape
from chipwise.workload.volume import sized

SEQUENCE = 2048.0  # tokens, where neither the file nor an option says
LARGEST_MICRO_BATCH = 64
WORKERS = 8.0  # vCPUs per chip that prepare data, and reads that each has under way
LOCAL_DISK = 2e12  # bytes per machine that hold data from one epoch to the next; rule of thumb


def predict_learning(ask: Ask, work: Learning) -> TrainingPrediction | SamplePrediction:
    known, model, shape = known_model(ask, work)
    part = known.parts[able_chip(known, ask.hardware, "train").name]
    precision = work.precision.value if "precision" in work.model_fields_set or part.has("bf16") else "fp16"
    if by_samples(shape, "train"):
        return _learn_samples(replace(ask, known=known), work, model, shape, precision)
    options, notes = ask.options, []
    entry, asked_seq, asked_target = known.find_model(model), options.get("seq") or work.sequence_length, work.target_length
    pairs = pairs_of(entry, asked_seq, options.get("target") or asked_target)
    seq = float(asked_seq or 0.0) if pairs is None else float(pairs.tokens[0])
    if not seq:
        seq = min(SEQUENCE, float(entry.context or SEQUENCE))
        notes.append(f"sequence_length is not given: {seq:g} tokens are assumed.")
    chosen: dict[str, Any] = {"precision": precision, "optimizer": work.optimizer.value}
    lengths = {"seq": seq} if pairs is None else {"seq": float(pairs.inputs[0]), "target": float(pairs.targets[0])}
    if isinstance(work, Finetune):
        chosen |= {"method": work.method.value, "rank": float(work.rank or 16), "targets": float(TARGETS[work.targets])}
    chosen |= {name: options[key] for key, name in LEARNING_OPTIONS.items() if key in options} | lengths
    recompute = options.get("recompute") or (work.recompute.value if work.recompute is not None else None)
    if recompute is not None:
        chosen["recompute"] = float(RECOMPUTE[recompute])
    ways = math.prod(float(options.get(name, 1)) for name in ("tp", "pp", "cp"))
    chips = ask.chips or ways
    samples = options.get("global_batch") or work.batch_samples or (work.batch_tokens or 0.0) / seq
    if samples:
        divisor = float(chosen.get("micro_batch", 1)) * max(chips // ways, 1.0)
        chosen["global_batch"] = max(round(samples / divisor), 1) * divisor
        if abs(chosen["global_batch"] / samples - 1) > 0.005:
            notes.append(
                f"Global batch: {chosen['global_batch']:g} sequences rather than {samples:g}, so that it divides evenly."
            )
    run: dict[str, Any] = {
        "on": ask.hardware,
        "chips": chips,
        "framework": options.get("framework"),
        "chips_per_node": options.get("chips_per_node"),
        "network": options.get("network"),
    }
    if "micro_batch" not in chosen and (micro := _micro_batch(known, model, run, chosen, max(chips // ways, 1.0))) > 1:
        chosen["micro_batch"] = micro
        notes.append(f"Micro-batch: {micro:g} sequences, the fastest that fits; --micro-batch for others.")
    trained = train(known, model, **run, **chosen)
    predicted = training_prediction(trained, notes=(*notes, *(pairs.assumed if pairs is not None else ())))
    tokens = work.tokens if work.tokens is not None else (work.samples or 0.0) * seq
    fed = _fed(
        ask, work, trained.part, predicted.step_time.value, predicted.setup.global_batch, chips, tokens / seq, 8.0 * seq, shape
    )
    job = whole_job(predicted.power, predicted.chips, fed, tokens * work.epochs, predicted.tokens_per_s)
    return replace(predicted, job=job)


def _micro_batch(known: Known, model: str, run: Mapping[str, Any], chosen: Mapping[str, Any], copies: float) -> float:
    """Sequences at once that are fastest and fit; 1 where nothing larger fits."""
    copy_batch = chosen["global_batch"] / copies if "global_batch" in chosen else float(LARGEST_MICRO_BATCH)
    sizes = [float(2**power) for power in range(9) if copy_batch % 2**power == 0 and 2**power <= LARGEST_MICRO_BATCH]
    if len(sizes) < 2:
        return 1.0
    trained = train(known, model, fit=False, micro_batch=sizes, **run, **chosen)
    room = fits(trained.ask.model, trained.part, trained.ask.setup, changes=False).fits
    each_s = np.where(room, trained.step.value / trained.ask.setup.global_batch, np.inf)
    return sizes[int(np.argmin(each_s))] if np.isfinite(each_s).any() else 1.0


def _learn_samples(ask: Ask, work: Learning, model: str, shape: Shape, precision: str) -> SamplePrediction:
    if work.samples is None:
        raise BadInput(f"tokens: {model} learns from samples.", remedy="Write samples: and their number instead of tokens:.")
    pairs_of(ask.known.find_model(model), None, work.target_length)  # refuses a length that would change nothing
    settings: dict[str, Any] = {"precision": precision, "task": "train"} | sizes_of(work)
    check_sizes(ask.known.find_model(model), settings | dict(ask.options))
    if work.batch_samples is not None:
        settings["global_batch"] = work.batch_samples
    predicted = predict_samples(ask.known, model, ask.hardware, settings | dict(ask.options))
    part, side = ask.known.parts[predicted.chip], predicted.sample.get("side", 0.0)
    step, batch = predicted.latency_ms.value / 1e3, predicted.batch * predicted.copies
    moved = 6.0 * side * side or 4.0 * predicted.sample.get("rows_read", 256.0)
    fed = _fed(ask, work, part, step, batch, predicted.chips, work.samples, moved, shape)
    job = whole_job(predicted.power, predicted.chips, fed, work.samples * work.epochs, predicted.samples_per_s)
    return replace(predicted, job=job)


def _tier(place: str) -> str:
    """The storage that a place is, as far as its name tells."""
    lowered = place.lower()
    if "://" in lowered and not lowered.startswith(("file://", "nfs://")):
        return "object-store"
    if lowered.startswith(("fsx", "lustre")) or "lustre" in lowered:
        return "parallel-file-system"
    if lowered.startswith(("nfs://", "//")) or ":/" in lowered:
        return "nfs"
    return "object-store" if ":" in lowered else "local-nvme"


def _fed(
    ask: Ask, work: Learning, part: Part, step_s: float, batch: float, chips: float, samples: float, moved: float, shape: Shape
) -> DataFeed | None:
    """Whether data comes as fast as it is taken; None where the file does not say where it lies."""
    data = sized(work, shape).data
    if data is None or data.place is None or samples <= 0:
        return None
    sample_bytes = data.read_bytes / samples
    pictures = isinstance(shape, ConvShape | VisionShape | CountedShape)
    sound = isinstance(shape, EncoderDecoderShape) and bool(shape.mels)
    stored = sample_bytes <= moved  # 8 bytes a token or fewer: token numbers rather than text
    kind = (
        "jpeg"
        if pictures
        else "audio"
        if sound
        else "table"
        if isinstance(shape, RecommenderShape)
        else "tokens"
        if stored
        else "text"
    )
    node = float(ask.options.get("chips_per_node") or min(chips, part.domain, 8))
    objects = (data.files or 0.0) / samples
    again = data.access is Access.EPOCHS and work.epochs > 1
    feeding = Feeding(
        compute_s=column(step_s),
        samples=column(batch * node / chips),
        sample_bytes=column(sample_bytes),
        device_bytes=column(moved),
        kind=Coded.of(kind),
        tier=Coded.of(_tier(data.place)),
        workers=column(WORKERS * node),
        streams=column(WORKERS * node),
        objects=column(objects if objects > 0.1 else 0.0),
        chips=column(node),
        link=column(part.pcie),
        dataset_bytes=column(data.read_bytes),
        local_disk=column(LOCAL_DISK if again else 0.0),
    )
    first, later = feed(feeding), feed(feeding, later=True)
    usual = later if again else first  # what most epochs are like
    steps = float(first.step_s[0]) + (max(work.epochs, 1.0) - 1.0) * float(usual.step_s[0])
    return DataFeed(
        tier=_tier(data.place),
        place_of_later_epochs=later.place.texts()[0] if again else None,
        kind=kind,
        sample_bytes=sample_bytes,
        bottleneck=usual.bottleneck.texts()[0],
        bottleneck_of_first_epoch=first.bottleneck.texts()[0],
        terms_s={name: float(values[0]) for name, values in usual.terms.items()},
        step_s=float(usual.step_s[0]),
        first_epoch_step_s=float(first.step_s[0]),
        job_step_s=steps / max(work.epochs, 1.0),
        waiting_share=float(usual.waiting_share[0]),
        workers_per_machine=WORKERS * node,
        workers_needed=float(usual.workers_needed[0]),
        read_needed_bytes_per_s=float(usual.bandwidth_needed[0]),
    )
