"""The verb behind `chipwise predict WORKLOAD.yaml`: each kind of work by its own model, with the file's goals held against it.

Options given beside the file win over it. A pipeline's stages may each have a chip: `train=h100,inspect=jetson-orin-nano`.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time
from pathlib import Path
from typing import Any

import numpy as np

from chipwise.api.estimate_views import View, served_view, trained_view
from chipwise.api.estimating import own_model, serve, train
from chipwise.api.predicting_samples import (
    ABLE,
    able_chip,
    by_samples,
    check_numbers,
    option,
    predict_samples,
    resolve,
    sample_curve,
    steadiness_view,
)
from chipwise.api.wiring import Session
from chipwise.api.workloads import check
from chipwise.catalog.chip import Chip
from chipwise.catalog.sharing import mig_profiles
from chipwise.catalog.tables import QuantumPrice
from chipwise.errors import BadInput, InvalidFile, Problem, UnknownName
from chipwise.perf.arrays import Coded, column
from chipwise.perf.feeding import Feeding, feed
from chipwise.perf.fits import fits
from chipwise.perf.kernels import edge, fpga, hpc, quantum, render, transcode
from chipwise.perf.kernels.chips import Chips
from chipwise.perf.kernels.work import Terms
from chipwise.perf.part import Part
from chipwise.perf.predict_serving import highest_rate
from chipwise.spelling import fold, nearest
from chipwise.units import GIB
from chipwise.workload.data import Access
from chipwise.workload.demand import Trace, TraceFormat
from chipwise.workload.kinds import (
    Batch,
    Common,
    Finetune,
    Hpc,
    Hybrid,
    Interactive,
    Learning,
    Render,
    Serve,
    Sharing,
    Stream,
    Train,
    Transcode,
)
from chipwise.workload.model.inline import shape_from_mapping
from chipwise.workload.model.registry import Model
from chipwise.workload.model.shape import ConvShape, DecoderShape, EncoderDecoderShape, RecommenderShape, Shape, VisionShape
from chipwise.workload.pipeline import Pipeline
from chipwise.workload.schedule import HOURS_PER_WEEK, BusinessHours, MarketHours

_LEARNING = {
    "seq": "seq", "micro_batch": "micro_batch", "zero": "shard", "interleave": "interleave", "method": "method",
    "optimizer": "optimizer", "tp": "tp", "pp": "pp", "cp": "cp", "ep": "ep", "precision": "precision",
}  # fmt: skip
_SERVING = {
    "tp": "tp", "pp": "pp", "ep": "ep", "precision": "precision_weights", "kv": "precision_kv", "input_tokens": "input_len",
    "output_tokens": "output_len", "prefix": "prefix_len",
}  # fmt: skip
_RECOMPUTE = {"none": 0.0, "selective": 1.0, "full": 2.0}
_LOADS = ("concurrency", "rate", "batch")
_OF_LEARNING = ("chips", "chips_per_node", *_LEARNING, "global_batch", "recompute", "framework")
_OF_SERVING = ("chips", "chips_per_node", *_SERVING, *_LOADS, "engine", "replicas")
_OPTIONS = {"train": _OF_LEARNING, "finetune": _OF_LEARNING, "serve": _OF_SERVING, "batch": _OF_SERVING}
_OF_OTHERS = ("chips",)
_SPLITS = ("tp", "pp", "cp", "ep")
SEQUENCE = 2048.0  # tokens, where neither the file nor an option says
WORKERS = 8.0  # vCPUs per chip that prepare data, and reads that each has under way
LOCAL_DISK = 2e12  # bytes per machine that hold data from one epoch to the next; rule of thumb
_MANY = 4096  # chips that are tried to meet a deadline
_LONGEST_TRACE = 5_000_000  # rows


@dataclass(frozen=True, slots=True)
class _Ask:
    session: Session
    path: str
    on: str
    given: Mapping[str, Any]  # options, by name

    @property
    def chips(self) -> float | None:
        return None if self.given.get("chips") is None else float(self.given["chips"])


@dataclass(frozen=True)
class _Described(Session):
    """A session that knows one model more: the one that a workload file describes by its shape."""

    described: Model

    def find_model(self, name: str, online: bool = True) -> Model:
        return self.described if name == self.described.name else super().find_model(name, online)


def predict_workload(session: Session, path: str, on: str, settings: Mapping[str, Any]) -> View:
    """`settings` are options by name, as `chipwise predict` has them."""
    check_numbers(settings)
    checked = check(session, path)
    given = {name: value for name, value in settings.items() if not (name in _SPLITS and value == 1)}
    work = checked.workload
    _refuse_foreign(work, given)
    ask = _Ask(session, path, on, given)
    view = _pipeline(ask, work) if isinstance(work, Pipeline) else _predict(ask, work)
    view["notes"] = [*view["notes"], *checked.notes]
    return view


def _refuse_foreign(work: Common, given: Mapping[str, Any]) -> None:
    kinds = [stage.kind for stage in work.stages] if isinstance(work, Pipeline) else [_kind(work)]
    known = {name for kind in kinds for name in _OPTIONS.get(kind, _OF_OTHERS)}
    foreign = [option(name) for name in given if name not in known]
    if foreign:
        whose = "any stage of this pipeline" if isinstance(work, Pipeline) else f"a workload of the kind {kinds[0]}"
        raise BadInput(f"{', '.join(foreign)} does not go with {whose}.", remedy="Leave it out.")


def _kind(work: Common) -> str:
    return str(getattr(work, "kind", ""))


def _predict(ask: _Ask, work: Common) -> View:
    view = _of_kind(ask, work)
    view["name"] = work.name
    view.setdefault("steadiness", _steadiness(ask, work, view))
    if "job_time_s" in view:
        view.setdefault("goals", []).extend(_deadlines(ask, work, view["job_time_s"]["value"]))
    if isinstance(work.schedule, BusinessHours | MarketHours) and (work.goals.deadline or work.goals.finish_by):
        view["notes"].append(f"It runs {work.schedule.hours_per_week:g} hours a week: counted in the deadline.")
    return view


def _of_kind(ask: _Ask, work: Common) -> View:
    match work:
        case Train() | Finetune():
            return _learn(ask, work)
        case Serve() | Batch():
            return _answer(ask, work)
        case Hpc():
            return _hpc(ask, work)
        case Render():
            return _render(ask, work)
        case Transcode():
            return _transcode(ask, work)
        case Stream():
            return _stream(ask, work)
        case Hybrid():
            return _hybrid(ask, work)
        case Interactive():
            return _interactive(ask, work)
    raise BadInput(f"{work.name}: work of the kind {_kind(work)} is not predicted yet.")


def _steadiness(ask: _Ask, work: Common, view: View) -> View:
    chip = view.get("chip")
    part = ask.session.parts.find(chip) if isinstance(chip, str) else None
    if part is not None and part.kind == "edge":
        return steadiness_view("edge")
    if isinstance(work, Interactive) and work.sharing is not Sharing.NONE:
        return steadiness_view("shared")
    if work.limits.interruptible:
        return steadiness_view("spot")
    wide = part is not None and isinstance(work, Learning | Hpc) and view.get("chips", 1) > part.domain
    return steadiness_view("multi-node" if wide else "dedicated")


# --- goals


def _goal(goal: str, limit: float, predicted: float | None, percentile: float | None = None) -> View:
    met = predicted is not None and predicted <= limit
    return {"goal": goal, "percentile": percentile, "limit_s": limit, "predicted_s": predicted, "met": met}


def _limits(ask: _Ask, work: Common) -> Iterator[tuple[str, float]]:
    """(goal, seconds) by which a job must be done; a date counts from the start of today."""
    if work.goals.deadline is not None:
        yield "deadline", work.goals.deadline
    if work.goals.finish_by is not None:
        yield "finish by", (work.goals.finish_by - datetime.combine(ask.session.today, time(), UTC)).total_seconds()


def _stretch(work: Common) -> float:
    """Seconds that pass for a second of running."""
    schedule = work.schedule
    return HOURS_PER_WEEK / schedule.hours_per_week if isinstance(schedule, BusinessHours | MarketHours) else 1.0


def _deadlines(ask: _Ask, work: Common, seconds: float) -> list[View]:
    return [_goal(name, limit, seconds * _stretch(work)) for name, limit in _limits(ask, work)]


def _fewest(ask: _Ask, work: Common, seconds_of: Callable[[np.ndarray[Any, np.dtype[np.float64]]], Terms]) -> float | None:
    """Chips with which the job is done in time; None: no deadline, or not with thousands."""
    limits = [limit / _stretch(work) for _, limit in _limits(ask, work)]
    if not limits:
        return None
    counts = np.arange(1.0, min(work.limits.chip_count.max or _MANY, _MANY) + 1)
    fine = np.flatnonzero(seconds_of(counts).total <= min(limits))
    return float(counts[fine[0]]) if len(fine) else None


# --- training


def _known(ask: _Ask, work: Learning | Serve | Batch) -> tuple[Session, str, Shape]:
    """The model, and a session that finds it: by name, by a file beside the workload, or by the shape in it."""
    session = ask.session
    if isinstance(work.model, str):
        beside = Path(ask.path).parent / work.model
        is_path = work.model.endswith(".json") or work.model.startswith(".") or ("/" in work.model and beside.exists())
        name = str(beside) if is_path else work.model
        return session, name, session.find_model(name).shape
    shape = shape_from_mapping(work.model, ask.path)
    described = Model(f"{work.name} (own shape)", (), "own", shape, None, None, ask.path, "read now")
    made = _Described(session.config, session.today, session.problems, described)
    for name in ("catalog", "names", "parts", "models", "stored"):
        if name in vars(session):  # what is loaded stays loaded
            vars(made)[name] = vars(session)[name]
    return made, described.name, shape


def _learn(ask: _Ask, work: Learning) -> View:
    session, model, shape = _known(ask, work)
    able_chip(session, ask.on, "train")
    if by_samples(shape, "train"):
        return _learn_samples(replace(ask, session=session), work, model, shape)
    given, notes = ask.given, []
    seq = float(given.get("seq") or work.sequence_length or 0.0)
    if not seq:
        seq = min(SEQUENCE, float(session.find_model(model).context or SEQUENCE))
        notes.append(f"sequence_length is not given: {seq:g} tokens are assumed.")
    chosen: dict[str, Any] = {"seq": seq, "precision": work.precision.value, "optimizer": work.optimizer.value}
    if isinstance(work, Finetune):
        chosen |= {"method": work.method.value, "rank": float(work.rank or 16)}
    chosen |= {name: given[key] for key, name in _LEARNING.items() if key in given}
    recompute = given.get("recompute") or (work.recompute.value if work.recompute is not None else None)
    if recompute is not None:
        chosen["recompute"] = _RECOMPUTE[recompute]
    ways = math.prod(float(given.get(name, 1)) for name in ("tp", "pp", "cp"))
    chips = ask.chips or ways
    asked = given.get("global_batch") or work.batch_samples or (work.batch_tokens or 0.0) / seq
    if asked:
        least = float(chosen.get("micro_batch", 1)) * max(chips // ways, 1.0)
        chosen["global_batch"] = max(round(asked / least), 1) * least
        if abs(chosen["global_batch"] / asked - 1) > 0.005:
            notes.append(
                f"Global batch: {chosen['global_batch']:g} sequences rather than {asked:g}, so that it divides evenly."
            )
    run: dict[str, Any] = {
        "on": ask.on,
        "chips": chips,
        "framework": given.get("framework"),
        "chips_per_node": given.get("chips_per_node"),
    }
    if "micro_batch" not in chosen and (micro := _micro_batch(session, model, run, chosen, max(chips // ways, 1.0))) > 1:
        chosen["micro_batch"] = micro
        notes.append(f"Micro-batch: {micro:g} sequences, the fastest that fits; --micro-batch for others.")
    found = train(session, model, **run, **chosen)
    view = trained_view(found)
    tokens = work.tokens if work.tokens is not None else (work.samples or 0.0) * seq
    fed = _fed(
        ask, work, found.part, view["step_time"]["value"], view["setup"]["global_batch"], chips, tokens / seq, 8.0 * seq, shape
    )
    view["notes"] += notes
    return view | _job(view, fed, tokens * work.epochs, view["tokens_per_s"])


def _micro_batch(session: Session, model: str, run: Mapping[str, Any], chosen: Mapping[str, Any], copies: float) -> float:
    """Sequences at once that are fastest and fit; 1 where nothing larger fits."""
    each = chosen.get("global_batch", copies) / copies
    sizes = [float(2**power) for power in range(9) if each % 2**power == 0]
    if len(sizes) < 2:
        return 1.0
    found = train(session, model, fit=False, micro_batch=sizes, **run, **chosen)
    room = fits(found.ask.model, found.part, found.ask.setup, changes=False).fits
    seconds = np.where(room, found.step.value, np.inf)
    return sizes[int(np.argmin(seconds))] if np.isfinite(seconds).any() else 1.0


def _learn_samples(ask: _Ask, work: Learning, model: str, shape: Shape) -> View:
    if work.samples is None:
        raise BadInput(f"tokens: {model} learns from samples.", remedy="Write samples: and their number instead of tokens:.")
    settings: dict[str, Any] = {"precision": work.precision.value, "task": "train"}
    if work.batch_samples is not None:
        settings["global_batch"] = work.batch_samples
    view = predict_samples(ask.session, model, ask.on, settings | dict(ask.given))
    part, side = ask.session.parts[view["chip"]], view["sample"].get("side", 0.0)
    step, many = view["latency_ms"]["value"] / 1e3, view["batch"] * view["copies"]
    moved = 6.0 * side * side or 4.0 * view["sample"].get("rows_read", 256.0)
    fed = _fed(ask, work, part, step, many, view["chips"], work.samples, moved, shape)
    return view | _job(view, fed, work.samples * work.epochs, view["samples_per_s"])


def _job(view: View, fed: View | None, amount: float, rate: View) -> View:
    """Time and energy of the whole job, waiting for data with it."""
    slower = 1.0 if fed is None else fed["job_step_s"] / fed["terms_s"]["compute"]
    times = {"value": amount / rate["value"], "low": amount / rate["high"], "high": amount / rate["low"]}
    times = {name: seconds * slower for name, seconds in times.items()}
    watts = view["power_per_chip"]["with_cooling_w"] * view["chips"]
    return {"job_time_s": times, "energy_kwh": watts * times["value"] / 3.6e6, "feeding": fed}


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
    ask: _Ask, work: Learning, part: Part, step_s: float, batch: float, chips: float, samples: float, moved: float, shape: Shape
) -> View | None:  # fmt: skip
    """Whether data comes as fast as it is taken; None where the file does not say where it lies."""
    data = work.data
    if data is None or data.place is None or samples <= 0:
        return None
    each = data.size / samples
    pictures = isinstance(shape, ConvShape | VisionShape)
    sound = isinstance(shape, EncoderDecoderShape) and bool(shape.mels)
    stored = each <= moved  # 8 bytes a token or fewer: token numbers rather than text
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
    node = float(ask.given.get("chips_per_node") or min(chips, part.domain, 8))
    objects = (data.files or 0.0) / samples
    again = data.access is Access.EPOCHS and work.epochs > 1
    asked = Feeding(
        compute_s=column(step_s), samples=column(batch * node / chips), sample_bytes=column(each), device_bytes=column(moved),
        kind=Coded.of(kind), tier=Coded.of(_tier(data.place)), workers=column(WORKERS * node), streams=column(WORKERS * node),
        objects=column(objects if objects > 0.1 else 0.0), chips=column(node), link=column(part.pcie),
        dataset_bytes=column(data.size), local_disk=column(LOCAL_DISK if again else 0.0),
    )  # fmt: skip
    first, later = feed(asked), feed(asked, later=True)
    most = later if again else first  # what most epochs are like
    steps = float(first.step_s[0]) + (max(work.epochs, 1.0) - 1.0) * float(most.step_s[0])
    return {
        "tier": _tier(data.place), "place_of_later_epochs": later.place.texts()[0] if again else None, "kind": kind,
        "sample_bytes": each, "bottleneck": most.bottleneck.texts()[0],
        "bottleneck_of_first_epoch": first.bottleneck.texts()[0],
        "terms_s": {name: float(values[0]) for name, values in most.terms.items()}, "step_s": float(most.step_s[0]),
        "first_epoch_step_s": float(first.step_s[0]), "job_step_s": steps / max(work.epochs, 1.0),
        "waiting_share": float(most.waiting_share[0]), "workers_per_machine": WORKERS * node,
        "workers_needed": float(most.workers_needed[0]), "read_needed_bytes_per_s": float(most.bandwidth_needed[0]),
    }  # fmt: skip


# --- serving


def _answer(ask: _Ask, work: Serve | Batch) -> View:
    session, model, shape = _known(ask, work)
    chip = able_chip(session, ask.on, "serve")
    asked = replace(ask, session=session)
    settings, notes = _load(ask, work)
    if chip.kind.value == "edge":
        _check_mode(asked, work, chip)
    if by_samples(shape, "serve"):
        view = _answer_samples(asked, work, model, settings)
    elif chip.kind.value == "edge" and isinstance(work, Serve):
        view = _on_device(asked, work, model, settings)
    else:
        view = _answer_tokens(asked, work, model, settings)
    view["notes"] += notes
    if isinstance(work, Batch):
        rate = view["samples_per_s"] if view["task"] == "samples" else view["requests_per_s"]
        view |= _job(view, None, work.items, rate)
        late = [view["job_time_s"]["value"] * _stretch(work) / limit for _, limit in _limits(ask, work) if limit > 0]
        view["needs"] = {"chips_for_deadline": math.ceil(max(late) - 1e-9) * view["chips"] if late else None}
    return view


def _load(ask: _Ask, work: Serve | Batch) -> tuple[dict[str, Any], list[str]]:
    """Options by name: the file's, then those of the command line over them."""
    settings: dict[str, Any] = {}
    notes: list[str] = []
    lengths = {"input_tokens": work.input_tokens, "output_tokens": work.output_tokens}
    settings |= {name: float(max(round(one.mean), 1)) for name, one in lengths.items() if one is not None}
    if work.shared_prefix_tokens is not None:
        settings["prefix"] = float(round(work.shared_prefix_tokens))
    if work.precision is not None:
        settings["precision"] = work.precision.value
    if isinstance(work, Serve):
        if work.kv_precision is not None:
            settings["kv"] = work.kv_precision.value
        if work.replicas.min is not None:
            settings["replicas"] = float(work.replicas.min)
        arrival = work.arrival
        if not any(name in ask.given for name in _LOADS):
            if arrival.concurrency is not None:
                settings["concurrency"] = float(arrival.concurrency)
            elif arrival.rate is not None:
                settings["rate"] = arrival.rate
            elif arrival.trace is not None:
                found = _recorded(arrival.trace, ask.path)
                settings |= found
                notes.append(f"The trace's means are used: {found['rate']:.3g} requests per second.")
    return settings | dict(ask.given), notes


def _recorded(trace: Trace, path: str) -> dict[str, float]:
    """Mean rate and lengths of recorded arrivals."""
    file = trace.beside(path)
    azure = trace.format is TraceFormat.AZURE_LLM
    names = ("TIMESTAMP", "ContextTokens", "GeneratedTokens") if azure else ("arrival", "input_tokens", "output_tokens")
    first, last, count, sums = math.inf, -math.inf, 0, [0.0, 0.0]
    with file.open(encoding="utf-8-sig", newline="") as lines:
        for row in csv.DictReader(lines):
            try:
                moment = _moment(row[names[0]])
                tokens = [float(row.get(name) or 0.0) for name in names[1:]]
            except (KeyError, TypeError, ValueError) as error:
                told = f"this row has no {', '.join(names)} that can be read"
                raise InvalidFile(str(file), [Problem("", told, count + 2)]) from error
            first, last, count = min(first, moment), max(last, moment), count + 1
            sums = [total + one for total, one in zip(sums, tokens, strict=True)]
            if count >= _LONGEST_TRACE:
                break
    if count < 2 or not math.isfinite(last - first) or last <= first:
        raise InvalidFile(str(file), [Problem("", "a trace needs two arrivals at different times")])
    means = {
        name: float(max(round(total / count), 1)) for name, total in zip(("input_tokens", "output_tokens"), sums, strict=True)
    }
    return {"rate": (count - 1) / (last - first)} | {name: mean for name, mean in means.items() if mean > 1}


def _moment(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return datetime.fromisoformat(text.strip()[:26]).replace(tzinfo=UTC).timestamp()


def _answer_tokens(ask: _Ask, work: Serve | Batch, model: str, settings: Mapping[str, Any]) -> View:
    each = float(settings.get("tp", 1)) * float(settings.get("pp", 1))
    if ask.chips is not None and ask.chips % each:
        raise BadInput(
            f"chips: {ask.chips:g} is not a multiple of tp x pp = {each:g}.", remedy="Give --tp and --pp that divide it."
        )
    chosen = {name: settings[key] for key, name in _SERVING.items() if key in settings}
    asked = {name: settings[name] for name in (*_LOADS, "engine", "chips_per_node") if name in settings}
    if "input_len" in chosen and "output_len" not in chosen:
        chosen["output_len"] = 1.0  # nothing is generated, as in embedding: the prompt is all
    copies = ask.chips / each if ask.chips is not None else settings.get("replicas", 1.0)
    found = serve(ask.session, model, on=ask.on, replicas=copies, **asked, **chosen)
    goals = work.goals
    wanted = {
        (name, min(percentile / 100, 0.9999)): limit
        for name, goal in (("ttft", goals.ttft), ("tpot", goals.tpot), ("latency", goals.latency))
        if goal is not None
        for percentile, limit in goal.limits
    }
    shares = tuple(sorted({0.5, 0.9, 0.99} | {share for _, share in wanted}))
    view = served_view(found, shares=shares)
    rate = settings.get("rate")
    overloaded = rate is not None and rate > 1.001 * view["requests_per_s"]["value"]
    held = view["percentiles"]
    if overloaded:
        most = view["requests_per_s"]["value"]
        view["notes"].append(
            f"Overloaded: {rate:g} requests per second come, {most:.3g} are answered. The queue grows without end."
        )
    if held and wanted:
        view["goals"] = [
            _goal(name, limit, None if overloaded else held[f"{name}_s"][f"p{share * 100:g}"], round(share * 100, 4))
            for (name, share), limit in wanted.items()
        ]
        view["highest_rate_per_s"] = float(highest_rate(found.ask, own_model(ask.session), wanted)[0])
        view["needs"] = _replicas(rate, view["highest_rate_per_s"], float(copies))
    return view


def _replicas(rate: float | None, highest: float, copies: float) -> View:
    needed = math.ceil(rate * copies / highest - 1e-9) if rate is not None and highest > 0 else None
    return {"replicas": None if needed is None else float(max(needed, 1))}


def _answer_samples(ask: _Ask, work: Serve | Batch, model: str, settings: Mapping[str, Any]) -> View:
    asked = {name: value for name, value in settings.items() if name not in ("prefix", "kv") or name in ask.given} | {
        "task": "serve"
    }
    burst = work.arrival.burstiness if isinstance(work, Serve) else 1.0
    asked |= {"burstiness": burst, "power_watts": work.limits.power_watts}
    view = predict_samples(ask.session, model, ask.on, asked)
    view["devices"] = work.devices if isinstance(work, Serve) else None
    goal = work.goals.latency or work.goals.ttft
    if isinstance(work, Serve) and goal is not None:
        curve = sample_curve(resolve(ask.session, model, ask.on, asked))
        limits = {min(percentile / 100, 0.9999): limit for percentile, limit in goal.limits}
        rate = settings.get("rate")

        def took(share: float) -> float | None:
            return view["latency_ms"]["value"] / 1e3 if rate is None else curve.latency(float(rate), share, burst)

        view["goals"] = [_goal("latency", limit, took(share), round(share * 100, 4)) for share, limit in limits.items()]
        view["highest_rate_per_s"] = curve.highest_rate(limits, burst)
        view["needs"] = _replicas(rate, view["highest_rate_per_s"], view["copies"])
    if view["devices"]:
        view["needs"] = {"devices": float(view["devices"]) * (view.get("needs", {}).get("replicas") or 1.0)}
    return view


def _check_mode(ask: _Ask, work: Common, chip: Chip) -> None:
    watts = work.limits.power_watts
    least = next((row.power_min_w for row in ask.session.catalog.rows("edge_devices") if row.chip == chip.name), None)
    if watts is not None and least is not None and watts < least:
        raise BadInput(
            f"limits.power_watts: the smallest mode of {chip.name} takes {least:g} W, and {watts:g} W are allowed.",
            remedy="Allow more, or take a smaller device.",
        )


def _on_device(ask: _Ask, work: Serve, model: str, settings: Mapping[str, Any]) -> View:
    """A language model on a small device: one answer at a time."""
    part = ask.session.parts[able_chip(ask.session, ask.on, "serve").name]
    known = ask.session.find_model(model)
    shape = known.shape
    assert isinstance(shape, DecoderShape)  # the others are asked about per sample
    device = edge.Devices.of([part], settings.get("precision", "int8"))
    at = edge.mode(device, work.limits.power_watts)
    read, written = float(settings.get("input_tokens", 512.0)), max(float(settings.get("output_tokens", 128.0)), 1.0)
    cache = shape.kv_bytes_per_token(2.0) * (read + written / 2)
    prompt = edge.frame(device, shape.matrix_flop_per_token() * read, shape.parameters, at=at)
    token = edge.token(device, shape.active_parameters, cache, at)
    terms = Terms.of(
        {"prompt": (prompt.total, prompt.relative)}
        | {name: (written * seconds, token.relative) for name, seconds in zip(token.names, token.seconds, strict=True)}
    )
    view = _kernel("edge", ask, 1.0, terms, "one answer") | {
        "model": known.name, "precision": device.precision, "input_tokens": read, "output_tokens": written,
        "first_token_s": float(prompt.total[0]), "tokens_per_s": 1.0 / float(token.total[0]), "devices": work.devices,
        "fits": bool(edge.fits(device, shape.parameters, cache)[0]), "needs": {"devices": float(work.devices or 1)},
    }  # fmt: skip
    if not view["fits"]:
        view["notes"].append(f"It does not fit: {known.name} in {device.precision} needs more than 70% of the device's memory.")
    seconds = {"latency": view["time_s"]["value"], "ttft": view["first_token_s"], "tpot": float(token.total[0])}
    view["goals"] = [
        _goal(name, limit, seconds[name], percentile)
        for name, goal in (("ttft", work.goals.ttft), ("tpot", work.goals.tpot), ("latency", work.goals.latency))
        if goal is not None
        for percentile, limit in goal.limits
    ]
    rate = settings.get("rate")
    if rate is not None and rate * view["time_s"]["value"] > 1:
        view["notes"].append("Requests come faster than one device answers them, one after the other.")
    return view


# --- kernels


def _kernel(task: str, ask: _Ask, chips: float, terms: Terms, of: str) -> View:
    seconds = {name: float(values[0]) for name, values in zip(terms.names, terms.seconds, strict=True)}
    total = sum(seconds.values())
    return {
        "task": task, "chip": ask.session.names.one_chip(ask.on).chip.name, "chips": chips,
        "time_s": {"value": float(terms.total[0]), "low": float(terms.low[0]), "high": float(terms.high[0])}, "time_of": of,
        "terms_s": {name: value for name, value in seconds.items() if value > 1e-6 * total},
        "bottleneck": terms.bottleneck().texts()[0], "needs": {}, "provenance": "formula", "notes": [],
    }  # fmt: skip


def _hpc(ask: _Ask, work: Hpc) -> View:
    part = ask.session.parts[able_chip(ask.session, ask.on, "hpc").name]
    held = float(math.ceil((work.working_set or 0.0) / (hpc.USABLE_MEMORY * part.memory_bytes))) or 1.0
    chips = ask.chips or max(held, float(work.limits.chip_count.min or 1))
    view = _kernel("hpc", ask, chips, hpc.job(work, [part], chips), "the whole job")
    in_time = _fewest(ask, work, lambda many: hpc.job(work, [part], many))
    view |= {
        "precision": work.precision.value, "steps": work.steps, "runs": float(work.runs), "working_set_bytes": work.working_set,
        "fits": chips >= held, "job_time_s": view["time_s"],
        "needs": {"chips_for_memory": held, "chips_for_deadline": None if in_time is None else max(in_time, held)},
    }  # fmt: skip
    if chips < held:
        view["notes"].append(f"It does not fit: the working set needs {held:g} chips.")
    elif ask.chips is None and chips > 1:
        view["notes"].append(f"Chips: {chips:g}, the fewest that the memory and the file's limits allow; --chips for others.")
    if work.communication.bytes_per_step:
        view["notes"].append("Each chip sends as much per step as the file says, whatever the number of chips.")
    return view


def _render(ask: _Ask, work: Render) -> View:
    chip, parts = able_chip(ask.session, ask.on, "render"), ask.session.parts
    on = render.Renderers.of([chip], [parts[chip.name]])
    timed = None
    if work.measured is not None:
        known = able_chip(ask.session, work.measured.on, "render")
        timed = render.Timed(render.Renderers.of([known], [parts[known.name]]), column(work.measured.takes))
    chips = ask.chips or 1.0
    view = _kernel("render", ask, chips, render.job(work, on, chips, timed), "the whole job")
    each = render.film(render.job(work, on, work.frames, timed), 1, 1)
    view |= {
        "frames": work.frames, "engine": render.engine_of(work), "frame_s": float(each.total[0]), "scene_bytes": work.scene,
        "measured_on": None if work.measured is None else work.measured.on, "job_time_s": view["time_s"],
        "fits": bool(render.fits(on, work.scene or 0.0, render.engine_of(work))[0]),
        "needs": {"chips_for_deadline": _fewest(ask, work, lambda many: render.job(work, on, many, timed))},
    }  # fmt: skip
    if not view["fits"]:
        least = (work.scene or 0.0) / render.USABLE_MEMORY / GIB
        view["notes"].append(f"It does not fit: this engine does not page, and the scene needs a chip of {least:.0f} GiB.")
    if timed is None:
        view["notes"].append("No frame was timed: the cost of a sample is a guess; give measured: {on: CHIP, takes: SECONDS}.")
    return view


def _transcode(ask: _Ask, work: Transcode) -> View:
    session = ask.session
    chip = session.names.one_chip(ask.on).chip
    source, outputs = transcode.ladder_of(work)

    def media(chips: list[Chip]) -> transcode.Media:
        cores = {row.name: float(row.cores) for row in session.catalog.rows("cpus") if row.cores}
        parts = [session.parts[one.name] for one in chips]
        return transcode.Media.of(chips, parts, np.array([cores.get(one.name, 48.0) for one in chips]))

    each = transcode.busy(media([chip]), source, outputs)
    if not np.isfinite(each.total[0]):
        all_chips = list(session.catalog.chips.values())
        able = np.isfinite(transcode.busy(media(all_chips), source, outputs).total)
        names = [one.name for one, fine in zip(all_chips, able, strict=True) if fine and one.kind.value != "cpu"]
        formats = f"{source.codec} to {', '.join(dict.fromkeys(out.codec for out in outputs))}"
        shown = f"{', '.join(names[:12])}{' and others' if len(names) > 12 else ''}"
        raise BadInput(
            f"{chip.name} has no engines for {formats}.", remedy=f"These have: {shown}; processors do it on their cores."
        )
    if work.duration is not None:
        chips = ask.chips or 1.0
        view = _kernel("transcode", ask, chips, transcode.job(work, media([chip]), chips), "the whole archive")
        needs = _fewest(ask, work, lambda many: transcode.archive(each, work.duration or 1.0, many))
        return view | {
            "job_time_s": view["time_s"],
            "duration_s": work.duration,
            "streams": None,
            "needs": {"chips_for_deadline": needs},
        }
    streams = float(work.streams or 1)
    needed = float(transcode.chips_needed(each, streams)[0])
    chips = ask.chips or needed
    view = _kernel("transcode", ask, chips, each, "a second of one stream") | {
        "streams": streams, "streams_per_chip": float(transcode.streams_per_chip(each)[0]), "duration_s": None,
        "busy_share": float(each.total[0]) * streams / chips,
        "needs": {"chips": needed, "encoders": float(transcode.encoders_needed(media([chip]), outputs, streams)[0])},
    }  # fmt: skip
    if chips < needed:
        view["notes"].append(f"{chips:g} chips are too few for {streams:g} live streams.")
    view["notes"].append(f"Live: engines are kept below {transcode.HEADROOM:.0%} busy, at the balanced preset.")
    return view


def _stream(ask: _Ask, work: Stream) -> View:
    session = ask.session
    chip = session.names.one_chip(ask.on).chip
    rows = {row.name: row for row in session.catalog.rows("fpgas")}
    if chip.name not in rows:
        raise BadInput(f"{chip.name} holds no chain of circuits.", remedy=f"FPGAs do: {', '.join(rows)}.")
    flow = fpga.flow(work, fpga.Fabric.of([rows[chip.name]]), session.catalog.rows("fpga_throughput"))
    needed = float(fpga.devices_needed(work, flow)[0])
    fit = {name: float(getattr(flow.fit, name)[0]) for name in ("luts", "dsps", "memory")}
    rate = {
        name: 1.0 / float(getattr(flow.message, end)[0]) for name, end in (("value", "total"), ("low", "high"), ("high", "low"))
    }
    view = _kernel("stream", ask, ask.chips or max(needed, 1.0), flow.latency, "one message, from wire to wire") | {
        "bottleneck": flow.message.bottleneck().texts()[0], "messages_per_s": rate, "fits": bool(flow.fit.ok[0]),
        "share_of_device": {name: share if math.isfinite(share) else None for name, share in fit.items()},
        "operations": [{"name": one.name, "published": one.known.workload if one.known else None} for one in flow.operations],
        "needs": {"devices": max(needed, 1.0)},
    }  # fmt: skip
    guessed = [one.name for one in flow.operations if one.known is None]
    if guessed:
        view["notes"].append(f"No published design for {', '.join(guessed)}: one beat of 64 bytes per clock is assumed.")
    if not view["fits"]:
        view["notes"].append("It does not fit: the design needs more than the shell leaves of the device.")
    if work.goals.latency is not None:
        took = view["time_s"]["value"]
        view["goals"] = [_goal("latency", limit, took, percentile) for percentile, limit in work.goals.latency.limits]
        view["notes"].append("A pipeline below its full rate has no queue: all percentiles are the same.")
    return view


def _device(ask: _Ask, work: Hybrid) -> QuantumPrice | None:
    """The row of the quantum device by part of its name; None where the file names none."""
    name = work.quantum.device
    if name is None:
        return None
    rows: list[QuantumPrice] = [row for row in ask.session.catalog.rows("quantum") if row.kind != "note"]
    exact = [row for row in rows if fold(row.device) == fold(name)]
    near = exact or [row for row in rows if fold(name) in fold(row.device)]
    if not near:
        raise UnknownName("quantum device", name, nearest(name, [row.device for row in rows]))
    if near[0].qubits is not None and work.quantum.qubits > near[0].qubits:
        told = f"quantum.qubits: {near[0].device} has {near[0].qubits:g}, and {work.quantum.qubits} are asked for."
        raise BadInput(told, remedy="Name a larger device.")
    return near[0]


def _hybrid(ask: _Ask, work: Hybrid) -> View:
    part = ask.session.parts[able_chip(ask.session, ask.on, "hybrid").name]
    chips, circuits = Chips.of([part], work.classical.precision.value), quantum.Circuits.from_quantum(work.quantum)
    row, count, measured = _device(ask, work), ask.chips or 1.0, work.classical.measured
    rate = None
    if measured is not None:
        known = ask.session.parts[able_chip(ask.session, measured.on, "hybrid").name]
        rate = float(Chips.of([known], work.classical.precision.value).rate[0])
    notes, needs, metered = [], {}, 0.0
    if row is None or row.kind == "simulator":
        needs["chips_for_state"] = held = _chips_for_state(work.quantum.qubits, part)
        each = quantum.simulate(chips, circuits, count)
        metered = float(each.total[0]) * work.iterations
        if count < held:
            notes.append(f"It does not fit: the state needs {held:g} chips.")
        notes.append("The circuits are simulated on the chip, state vector in double precision.")
    else:
        each = quantum.run(circuits, quantum.TIMINGS[quantum.technology(row)], batches=1.0 / work.iterations)
        notes.append("The queue counts once, as in a hybrid job with the device reserved; it lasts minutes to days.")
    view = _kernel("hybrid", ask, count, quantum.hybrid(work, each, chips, rate), "the whole job")
    price = None if row is None else quantum.price(row, circuits, work.iterations, metered)
    lines = {} if price is None else {name: float(usd[0]) for name, usd in zip(price.names, price.usd, strict=True) if usd[0]}
    return view | {
        "device": None if row is None else row.device, "technology": "simulator" if row is None else quantum.technology(row),
        "iterations": float(work.iterations), "circuits": float(work.quantum.circuits), "shots": float(work.quantum.shots),
        "price_usd": None if price is None else float(price.total[0]), "price_lines_usd": lines, "needs": needs,
        "job_time_s": view["time_s"], "notes": notes,
    }  # fmt: skip


def _chips_for_state(qubits: int, part: Part) -> float:
    if qubits > 60:
        raise BadInput(f"quantum.qubits: the state of {qubits} qubits fits no machine.", remedy="Name a quantum device.")
    chips = float(quantum.state_bytes(qubits)[0]) / (hpc.USABLE_MEMORY * part.memory_bytes)
    return 2.0 ** math.ceil(max(math.log2(chips), 0.0))


def _interactive(ask: _Ask, work: Interactive) -> View:
    chip = able_chip(ask.session, ask.on, "interactive")
    part = ask.session.parts[chip.name]
    people = float(work.at_once or work.people)
    alone = math.ceil(work.memory / part.memory_bytes)
    slices = [
        one for one in mig_profiles(ask.session.catalog.data)
        if one.chip == chip.name and (one.memory_gb or 0) * GIB >= work.memory and one.instances
    ]  # fmt: skip
    profile = None
    if work.sharing is Sharing.SLICES and alone == 1:
        if not slices:
            cut = sorted(
                {one.chip for one in mig_profiles(ask.session.catalog.data) if (one.memory_gb or 0) * GIB >= work.memory}
            )
            raise BadInput(
                f"{chip.name} cannot be cut into slices of {work.memory / GIB:.0f} GiB.", remedy=f"These can: {', '.join(cut)}."
            )
        profile = max(slices, key=lambda one: one.instances or 0)
    held = (
        float(profile.instances or 1)
        if profile
        else max(part.memory_bytes // work.memory, 1.0)
        if work.sharing is Sharing.TIME
        else 1.0
    )
    slower = 1.0 + (held - 1.0) * work.busy if work.sharing is Sharing.TIME else 1.0
    chips = math.ceil(people / held) * max(alone, 1)
    return {
        "task": "interactive", "chip": chip.name, "chips": float(chips), "time_s": None, "time_of": "", "terms_s": {},
        "bottleneck": "memory", "people": float(work.people), "at_once": people, "people_per_chip": held,
        "profile": profile.profile if profile else None, "sharing": work.sharing.value,
        "slower_by": slower, "busy_share": work.busy, "memory_bytes": work.memory,
        "needs": {"chips": float(chips)}, "provenance": "formula",
        "notes": ["Counted by memory; how fast a notebook is depends on what people run."],
    }  # fmt: skip


# --- pipelines


def _pipeline(ask: _Ask, work: Pipeline) -> View:
    chips = _chips_of_stages(ask.on, [stage.name for stage in work.stages])
    by_name = {stage.name: stage for stage in work.stages}
    views = {}
    for name in work.order:
        stage = by_name[name]
        known = _OPTIONS.get(stage.kind, _OF_OTHERS)
        given = {key: value for key, value in ask.given.items() if key in known}
        try:
            views[name] = _predict(replace(ask, on=chips[name], given=given), stage)
        except BadInput as error:
            hint = "Give a stage a chip of its own: --on CHIP,STAGE=CHIP."
            raise BadInput(f"Stage {name}: {error.message}", remedy=" ".join(filter(None, (error.remedy, hint)))) from error
    done: dict[str, dict[str, float]] = {}
    for name in work.order:
        own = views[name].get("job_time_s") or {}
        before = [done[giver] for giver, taker in work.edges if taker == name]
        done[name] = {
            end: own.get(end, 0.0) + max((one[end] for one in before), default=0.0) for end in ("value", "low", "high")
        }
    total = {end: max(one[end] for one in done.values()) for end in ("value", "low", "high")}
    view: View = {
        "task": "pipeline", "name": work.name, "stages": [views[name] for name in work.order], "job_time_s": total,
        "time_s": total, "goals": _deadlines(ask, work, total["value"]),
        "notes": ["Services count as no time; hand-offs are not timed."],
    }  # fmt: skip
    prices = [one["price_usd"] for one in views.values() if one.get("price_usd") is not None]
    return view | {"price_usd": sum(prices) if prices else None, "steadiness": steadiness_view()}


def _chips_of_stages(on: str, names: list[str]) -> dict[str, str]:
    """`h100,inspect=jetson-orin-nano`: one for all stages that have none of their own."""
    usual, own = None, {}
    for word in on.split(","):
        stage, equals, chip = (part.strip() for part in word.partition("="))
        if not equals:
            usual = stage
        elif stage in names:
            own[stage] = chip
        else:
            raise UnknownName("stage", stage, nearest(stage, names), remedy=f"Stages: {', '.join(names)}.")
    missing = [name for name in names if name not in own and not usual]
    if missing:
        raise BadInput(f"No chip is given for {', '.join(missing)}.", remedy="Write --on CHIP,STAGE=CHIP.")
    return {name: own.get(name) or usual or "" for name in names}


__all__ = ["ABLE", "predict_workload"]
