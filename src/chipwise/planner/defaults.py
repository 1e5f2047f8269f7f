"""What the planner takes where a workload does not say, each with its reason; a field in the workload file replaces it.

Defaults of the fields themselves (epochs, optimiser, objective) stand with the fields, in `workload/kinds.py` and `goals.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from chipwise.perf.arrays import Array
from chipwise.perf.queueing import UTILISATION
from chipwise.planner.limits import Rules
from chipwise.units import DAY, HOUR, YEAR
from chipwise.workload.common import Common
from chipwise.workload.kinds import Finetune, Hpc, Interactive, Learning, Render, Serve, Stream, Transcode
from chipwise.workload.limits import need_of

NEARLY = 0.03  # of the cost: what is nearer than that costs the same
# Nobody rents what may be five times as slow as it may be fast, by a formula that was never held against such chips, to save a
# third.
UNKNOWN_TIMES = 5.0  # from the lower end of a speed's interval to the upper
UNKNOWN_COST = 0.5  # of the cost, more, that a better known speed may cost
# Moving a program for CUDA to other software (TPU, Trainium, Inferentia, Gaudi, FPGA) takes somebody days to weeks and must be
# kept up: it is done for a fifth of the bill, and for no bill that is smaller than the work.
PORTING_SAVES = 0.20  # of the cost, at least
OLD_GPU = "old gpu"  # kind of chips: GPUs of AMD that the present ROCm does not support
OTHER_GPU = "other gpu"  # of another maker than NVIDIA
PORTING_USD = 1000.0  # of a job, or of a year of a service: a day or two of an engineer
FULL_MEMORY = 0.95  # of a chip: above it little is left for fragments and other versions, so it is planned only where all is
SCARCE = 256  # chips of one kind in one region above which somebody must be asked
TOP = 10  # choices of a plan: what somebody reads

# Training
SEQUENCE_TOKENS = 2048  # of a training sequence: usual before contexts grew long
FINETUNING_BATCH = 64  # sequences a step: small, since the data of a fine-tuning is
SIMPLER = 0.02  # of the time of the fastest split: within it the one is taken that cuts the model least
LORA_RANK = 16  # of adapters: common in published fine-tunings
STEP_SAMPLES = 256.0  # a chip and step, of models over pictures and other samples: as published runs of vision models have it

# Jobs
HORIZON_S = 30 * DAY  # within which a job without a deadline is done, where anything does it in that time
LONGER_THAN_FASTEST = 1.5  # at most, of a job that nothing does within the horizon
MOST_MACHINES = 64  # that a plan takes where neither a goal nor limits.large asks for more
MACHINE_CHIPS = 8  # of a usual machine: a pod or a rack counts as so many of them as its chips make

# Services
READING_S = 0.25  # a token: what takes longer is slower than people read
WAITING_S = 30.0  # until the first word or the result: longer than people wait
# Weights in a narrower format than they are published in cost quality, which is for whoever asks to accept: shown beside, with
# what they save.
NARROWER = {"": ("fp8",)}
DEVICE_UTILISATION = 0.9  # of a device's time: one answer comes after the other, and nobody shares it
# Nobody doubles a bill for a hair of headroom: of one that nobody stated, so much may be missing where the machines that would
# fill it cost so much more, and the answer says so.
SPARED_HEADROOM = 0.02  # points of it
SPARED_COST = 0.20  # of the cost, more
# Nobody leaves it to chance whether a service carries its load, to save less than a tenth of the bill.
UNSURE_LOAD = 0.05  # probability that is missing of what is asked, from which a surer row may cost more
CARRIED_COST = 0.10  # of the cost, more
HOURS_PER_WEEK = 168.0  # in which a service is on: always
NOTEBOOK_IDLE_S = HOUR / 2  # after which a notebook could be stopped; what stopping would save is told, not assumed
DEVICE_LIFETIME_S = 3 * YEAR  # over which an edge device is written off


def serving_formats(allowed: Sequence[str]) -> tuple[str, ...]:
    """Of formats that may be used: nf4 only where it is the only one. It is made for fine-tuning, and slow to serve."""
    return tuple(one for one in allowed if one != "nf4") or tuple(allowed)


def within_headroom(at_once: Array, headroom: float, goals: bool) -> Array:
    """Of the callers that a replica answers at once those it is planned for. Where no goal is stretched by more of them its
    slots count, and `UTILISATION` of them is room already."""
    return at_once / ((1.0 + headroom) if goals else max((1.0 + headroom) * UTILISATION, 1.0))


def spared_headroom(work: Serve) -> float:
    """Points of the headroom that may be missing: of one that the workload states, and of a load that must be carried with a
    stated confidence, none."""
    return 0.0 if "headroom" in work.model_fields_set or work.goals.confidence is not None else SPARED_HEADROOM


def training_batch(work: Learning, parameters: float, sequence_tokens: int) -> int:
    """Sequences a step: half a million tokens below a billion parameters, two up to thirteen, four above, and eight from two
    hundred on, as published runs have it (MLPerf's of 405 billion: 9 to 13 million); a fine-tuning takes few."""
    if isinstance(work, Finetune):
        return FINETUNING_BATCH
    tokens = 0.5e6 if parameters < 1.5e9 else 2e6 if parameters < 14e9 else 4e6 if parameters < 200e9 else 8e6
    return int(2 ** round(math.log2(tokens / sequence_tokens)))


def most_machines(work: Common, monthly: bool) -> float:
    """That are taken unasked; where a goal needs more, nothing smaller keeps it."""
    asks = work.limits.large or (work.limits.chip_count.min or 0) > MOST_MACHINES
    return math.inf if monthly or asks else MOST_MACHINES


def takes_spot(work: Common) -> bool:
    """Whether spot machines are used unasked: by jobs, which start again from a checkpoint; not by services, where people and
    viewers wait while a machine is replaced."""
    live_video = isinstance(work, Transcode) and work.duration is None
    return not (isinstance(work, Serve | Interactive | Stream) or live_video)


def ported_kinds(work: Common, processors: Callable[[str], bool]) -> frozenset[str]:
    """Kinds of chips that the workload has software for: GPUs, unless it is a program that was measured on processors alone,
    and what it names by its chips, its framework or what must run there. What draws or encodes does so on old GPUs, too;
    weights of four bits and optimizers of eight need kernels that were tried on GPUs of NVIDIA alone.
    `processors`: whether a name is that of one."""
    if work.limits.chips:
        return frozenset({"gpu", OTHER_GPU, OLD_GPU, "tpu", "neuron", "gaudi", "fpga"})
    of_processors = isinstance(work, Hpc) and bool(work.measured) and all(processors(line.on) for line in work.measured or ())
    graphics = isinstance(work, Render | Transcode | Interactive)
    untried = isinstance(work, Learning) and work.needs_small_formats
    gpus = set() if of_processors else {"gpu"} if untried else {"gpu", OTHER_GPU}
    return frozenset(gpus | ({OLD_GPU} if graphics else set()) | _named_kinds(work))


def _named_kinds(work: Common) -> frozenset[str]:
    framework = work.program.framework if work.program is not None else None
    names = {str(framework)} | {need.name.lower() for text in work.limits.requires if (need := need_of(text)) is not None}
    return frozenset(kind for name, kind in (("jax", "tpu"), ("neuron-sdk", "neuron")) if name in names)


def with_spot_default(rules: Rules, work: Common) -> Rules:
    """`limits.interruptible`, where the file has none."""
    return rules if rules.interruptible is not None or takes_spot(work) else replace(rules, interruptible=False)
