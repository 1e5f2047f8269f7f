"""What the planner takes where a workload does not say, each with its reason; a field in the workload file replaces it.

Defaults of the fields themselves (epochs, optimiser, objective) stand with the fields, in `workload/kinds.py` and `goals.py`.
"""

from __future__ import annotations

import math
from dataclasses import replace

from chipwise.planner.limits import Rules
from chipwise.units import HOUR, YEAR
from chipwise.workload.kinds import Common, Finetune, Interactive, Learning, Serve, Stream, Transcode

TOP = 10  # choices of a plan: what somebody reads

# Training
SEQUENCE_TOKENS = 2048  # of a training sequence: usual before contexts grew long
FINETUNING_BATCH = 64  # sequences a step: small, since the data of a fine-tuning is
LORA_RANK = 16  # of adapters: common in published fine-tunings
STEP_SAMPLES = 256.0  # a chip and step, of models over pictures and other samples: as published runs of vision models have it

# Services
# Of the weights: as models are published, in fp16 where a chip has no bf16, and half of that at hardly any loss.
SERVING_PRECISIONS = ("bf16", "fp16", "fp8")
UTILISATION = 0.8  # of what can be answered at most, where no latency goal says when a chip is full: above it queues grow fast
DEVICE_UTILISATION = 0.9  # of a device's time: one answer comes after the other, and nobody shares it
HOURS_PER_WEEK = 168.0  # in which a service is on: always
NOTEBOOK_IDLE_S = HOUR / 2  # after which a notebook could be stopped; what stopping would save is told, not assumed
DEVICE_LIFETIME_S = 3 * YEAR  # over which an edge device is written off


def training_batch(work: Learning, parameters: float, sequence_tokens: int) -> int:
    """Sequences a step: half a million tokens below a billion parameters, two up to thirteen, four above, as published runs
    have it; a fine-tuning takes few."""
    if isinstance(work, Finetune):
        return FINETUNING_BATCH
    tokens = 0.5e6 if parameters < 1.5e9 else 2e6 if parameters < 14e9 else 4e6
    return int(2 ** round(math.log2(tokens / sequence_tokens)))


def takes_spot(work: Common) -> bool:
    """Whether spot machines are used unasked: by jobs, which start again from a checkpoint; not by services, where people and
    viewers wait while a machine is replaced."""
    live_video = isinstance(work, Transcode) and work.duration is None
    return not (isinstance(work, Serve | Interactive | Stream) or live_video)


def with_spot_default(rules: Rules, work: Common) -> Rules:
    """`limits.interruptible`, where the file has none."""
    return rules if rules.interruptible is not None or takes_spot(work) else replace(rules, interruptible=False)
