"""What a workload will take on this machine, before it runs: recorded with the job, and held against what it took.

The machine's chips are found by the names that its driver and kernel give them; CHIPWISE_CHIP (names of the catalog, with
commas) says what they are where those names tell nothing. A job that holds some of a processor's cores is given their share of
its arithmetic and of its memory's bandwidth: a rule of thumb, since few cores draw more of the bandwidth than their share. A
prediction that cannot be made is a reason and no error: no job waits or fails for it.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from chipwise.api.running.place import host_name
from chipwise.api.session.wiring import Session
from chipwise.catalog.chip import ChipKind
from chipwise.catalog.offer import Purchase
from chipwise.errors import ChipwiseError
from chipwise.runner.job import MachinePlace, Needs, Spec, Work
from chipwise.workload.kinds import Batch, Common, Hpc, Learning, Render, Transcode

if TYPE_CHECKING:
    from chipwise.predictor.known import Known, Models
    from chipwise.predictor.values import FitResult, MemoryUse, Prediction
from chipwise.workload.model.registry import Model, Registry

CHIP = "CHIPWISE_CHIP"
ACCELERATORS = ("gpu", "tpu", "neuron", "gaudi", "npu", "edge")
PROCESSORS = ("cpu",)
THREADS = 2.0
Figures = dict[str, object]
_AS_TRAINED = ("tp", "pp", "cp", "ep", "micro_batch", "global_batch", "seq", "recompute", "zero_stage")


@dataclass(frozen=True, slots=True)
class Allocation:
    """What a job holds: so many chips of the catalog, or a share of one processor."""

    chip: str
    chips: float = 1.0
    share: float = 1.0  # of each chip
    usd_per_hour: float | None = None  # of what it holds; None: nobody says what it costs


@dataclass(frozen=True, slots=True)
class Unknown:
    reason: str


@dataclass(frozen=True, slots=True)
class _Offline:
    """Models that are at hand: none is fetched for a prediction that nobody waits for."""

    models: Models

    @property
    def registry(self) -> Registry:
        return self.models.registry

    def find(self, name: str, online: bool = True) -> Model:
        return self.models.find(name, online=False)


def with_prediction(session: Session, path: str, work: Common, spec: Spec) -> Spec:
    """The job with what it will take on this machine, and with what its hour costs where the user's catalog says so."""
    allocation = local_allocation(session, spec.needs)
    predicted = predict(session, path, work, allocation)
    seconds = predicted.get("seconds")
    expected = seconds if isinstance(seconds, float) and not spec.service else None
    cost = allocation.usd_per_hour if isinstance(allocation, Allocation) else None
    places = (MachinePlace(Purchase.OWNED, usd_per_hour=cost),) if cost and not spec.places else spec.places
    return replace(
        spec,
        predicted=predicted,
        expected_s=spec.expected_s if spec.expected_s is not None else expected,
        places=places,
    )


def work_of(work: Common) -> Work:
    """What is counted of it, how much there is in all, and in one of its steps."""
    match work:
        case Learning(tokens=None):
            return Work("samples", (work.samples or 0.0) * work.epochs or None, work.batch_samples)
        case Learning():
            by_length = (work.batch_samples or 0.0) * (work.sequence_length or 0.0)
            return Work("tokens", (work.tokens or 0.0) * work.epochs, work.batch_tokens or by_length or None)
        case Hpc():
            return Work("steps", work.steps * work.runs, 1.0)
        case Batch():
            return Work("items", work.items)
        case Render():
            return Work("frames", work.frames)
        case Transcode(duration=float()):
            return Work("seconds of video", work.duration)
    return Work()


# What this machine is


def local_allocation(session: Session, needs: Needs) -> Allocation | Unknown:
    try:
        return _of_gpus(session, needs) if needs.gpus else _of_processor(session, needs)
    except ChipwiseError as error:
        return Unknown(str(error))


def on_machine(session: Session, name: str, machines: int = 1, usd_per_hour: float | None = None) -> Allocation | Unknown:
    """Machines that a cloud rents, by the catalog's name."""
    matches = session.names.machines_or_none(name)
    if not matches or not matches[0].chip:
        return Unknown(f"the machine {name} is not in the catalog, or its chip is not")
    machine, cost = matches[0], None if usd_per_hour is None else usd_per_hour * machines
    if machine.chips:
        return Allocation(str(machine.chip), max(machine.chips, 1.0) * machines, usd_per_hour=cost)
    cores = next((row.cores for row in session.catalog.rows("cpus") if row.name == machine.chip and row.cores), None)
    used_cores = (machine.vcpus or 2.0) / THREADS  # a vCPU is a thread, and two of them share a core on most machines
    return Allocation(str(machine.chip), float(machines), min(used_cores / cores, 1.0) if cores else 1.0, cost)


def _of_gpus(session: Session, needs: Needs) -> Allocation | Unknown:
    from chipwise.adapters.this_machine import gpu_names

    chip = _stated_chip(session, ACCELERATORS)
    if chip is None:
        names = sorted(set(gpu_names().values()))
        if not names:
            return Unknown(f"no driver says what its GPUs are; {CHIP} may name the chip")
        if len(names) > 1:
            return Unknown(f"its GPUs differ ({', '.join(names)}); {CHIP} may name the one that is meant")
        chip = session.names.chip_within(names[0])
        if chip is None or session.catalog.chips[chip].kind.value not in ACCELERATORS:
            return Unknown(f"the GPU {names[0]} is not in the catalog; {CHIP} may name one that is like it")
    return Allocation(chip, float(needs.gpus), usd_per_hour=_cost(session, chip, needs))


def _of_processor(session: Session, needs: Needs) -> Allocation | Unknown:
    from chipwise.adapters.this_machine import processor

    chip = _stated_chip(session, PROCESSORS)
    if chip is None:
        detected = processor()
        chips = session.names.chips_or_none(detected.known_as or detected.name) or ()
        if len(chips) != 1 or chips[0].kind is not ChipKind.CPU:  # "Intel Xeon" is a line of many, and says nothing
            return Unknown(f"the processor {detected.name} is not in the catalog; {CHIP} may name one that is like it")
        chip = chips[0].name
    cores = next((row.cores for row in session.catalog.rows("cpus") if row.name == chip and row.cores), None)
    cores = cores or os.cpu_count() or 1  # a chip of the user's own is this machine's
    sockets = max(math.ceil(needs.cpus / cores), 1)
    return Allocation(chip, float(sockets), min(needs.cpus / (cores * sockets), 1.0), _cost(session, chip, needs))


def _stated_chip(session: Session, kinds: tuple[str, ...]) -> str | None:
    """Of the chips that the user says this machine has, the first of such a kind."""
    for name in filter(None, map(str.strip, os.environ.get(CHIP, "").split(","))):
        chip = session.names.one_chip(name).chip
        if chip.kind.value in kinds:
            return chip.name
    return None


def own_price(session: Session, needs: Needs) -> float | None:
    """An hour of what it holds of this machine, by the user's catalog; by its name alone, where nobody knows its chip."""
    allocation = local_allocation(session, needs)
    price = allocation.usd_per_hour if isinstance(allocation, Allocation) else None
    return price if price is not None else _cost(session, "", needs)


def _cost(session: Session, chip: str, needs: Needs) -> float | None:
    """Of the devices that it holds: their share of a machine that the user owns, by this machine's name, or by its chip where
    there is only one such."""
    config = session.config
    if not any(config.catalog_dir.glob("*.y*ml")) and not any(config.feeds_dir.glob("*")):
        return None
    from chipwise.catalog.query import OfferQuery, find_offers

    catalog = session.catalog
    own: dict[str, tuple[Any, float]] = {}
    for i in find_offers(catalog, OfferQuery(purchases={Purchase.OWNED})):
        machine = catalog.machines[catalog.offers.machine[i]]
        own.setdefault(machine.name, (machine, float(catalog.offers.price[i])))
    alike = [one for one in own.values() if one[0].chip == chip]
    owned = own.get(host_name()) or (alike[0] if len(alike) == 1 else None)
    if owned is None:
        return None
    machine, price = owned
    needed, total = (needs.gpus, machine.chips) if needs.gpus else (needs.cpus, machine.vcpus or os.cpu_count())
    return price * min(needed / total, 1.0) if total else price


# What that takes


def predict(session: Session, path: str, work: Common, allocation: Allocation | Unknown) -> Figures:
    """Figures by name, each with its interval where it has one; only `why_not` where nothing can be predicted."""
    if isinstance(allocation, Unknown):
        return {"why_not": allocation.reason}
    from chipwise.predictor.kinds.ask import Ask, kind_of
    from chipwise.predictor.work import predict_work

    try:
        options = {"chips": allocation.chips} if allocation.chips > 1 else {}
        predicted = predict_work(Ask(_apart(session.known, allocation), path, allocation.chip, options), work)
        values = figures(predicted, work_of(work), allocation)
        if "seconds" not in values and "throughput" not in values:
            return {"why_not": f"a workload of the kind {kind_of(work)} has neither an end nor a speed"}
        return values
    except ChipwiseError as error:
        return {"why_not": str(error)}
    except Exception as error:  # our own mistake, and no reason to keep somebody's job from running
        return {"why_not": f"our own mistake: {type(error).__name__}: {str(error)[:200]}"}


def figures(predicted: Prediction, work: Work, allocation: Allocation) -> Figures:
    values: Figures = {"chip": allocation.chip, "chips": allocation.chips}
    if allocation.share < 1.0:
        values["share"] = allocation.share
    if predicted.job is not None:
        time = predicted.job.time
        values |= {"seconds": time.value, "seconds_low": time.low, "seconds_high": time.high}
        if work.amount:
            rate = time.of(work.amount)
            values |= {"throughput": rate.value, "throughput_low": rate.low, "throughput_high": rate.high, "unit": work.unit}
        if work.amount and work.per_step:
            values["steps"] = math.ceil(work.amount / work.per_step)
        values["usd"] = (allocation.usd_per_hour or 0.0) * time.value / 3600.0
    values |= _of_model(predicted)
    return {name: value for name, value in values.items() if not isinstance(value, float) or math.isfinite(value)}


def _of_model(predicted: Prediction) -> Figures:
    """Speed without an end, memory, how near to measurements, and what was assumed where the file leaves it open."""
    from chipwise.predictor.values import GenerationPrediction, RenderPrediction, SamplePrediction, TrainingPrediction

    match predicted:
        case TrainingPrediction():
            setup = predicted.setup
            run_as = {name: getattr(setup, name) for name in _AS_TRAINED} | {"framework": predicted.framework}
            return _memory(predicted.memory, predicted.fit) | {
                "provenance": predicted.step_time.provenance,
                "as_run": run_as,
            }
        case GenerationPrediction():
            values: Figures = {}
            if predicted.job is None and (rate := predicted.metrics.get("requests_per_s")) is not None:
                values = {"throughput": rate.value, "throughput_low": rate.low, "throughput_high": rate.high}
                values["unit"] = "requests"
            tokens = predicted.metrics.get("output_tokens_per_s")
            return (
                values
                | _memory(predicted.memory, predicted.fit)
                | {
                    "provenance": tokens.provenance if tokens is not None else "formula",
                    "as_run": {"tp": predicted.setup.tp, "pp": predicted.setup.pp, "engine": predicted.engine},
                }
            )
        case SamplePrediction():
            return _memory(predicted.memory, predicted.fit) | {
                "provenance": predicted.samples_per_s.provenance,
                "as_run": {"engine": predicted.engine, "batch": predicted.batch},
            }
        case RenderPrediction():
            return {"provenance": predicted.provenance, "as_run": {"engine": predicted.engine}}
    return {"provenance": "formula"}


def _memory(memory: MemoryUse, fit: FitResult | None) -> Figures:
    found: Figures = {"memory_bytes": memory.total_bytes}
    return found if fit is None or fit.fits else found | {"fits": False}


def _apart(known: Known, allocation: Allocation) -> Known:
    """Without a hub and, where the job holds a share of a processor, with that share as the part."""
    models = _Offline(known.models)
    if allocation.share < 1.0 and known.catalog.chips[allocation.chip].kind is ChipKind.CPU:
        part = known.parts[allocation.chip]
        rates = {name: rate * allocation.share for name, rate in part.rates.items()}
        less = replace(part, rates=rates, bandwidth=part.bandwidth * allocation.share, power_w=part.power_w * allocation.share)
        return known.changed(models=models, parts=known.parts.joined([less]))
    return known.changed(models=models)
