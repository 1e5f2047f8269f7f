"""Words that workloads choose from: how to fine-tune, optimise and recompute, how parts talk, how people share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from chipwise.workload.part import EnumChoice


class Method(StrEnum):
    FULL = "full"
    LORA = "lora"
    QLORA = "qlora"


class Optimizer(StrEnum):
    ADAMW = "adamw"
    ADAMW_16BIT = "adamw-16bit"
    ADAMW_8BIT = "adamw-8bit"
    ADAFACTOR = "adafactor"
    LION = "lion"
    MUON = "muon"
    SGD = "sgd"


class Recompute(StrEnum):
    NONE = "none"
    SELECTIVE = "selective"
    FULL = "full"


class Pattern(StrEnum):
    NONE = "none"
    HALO = "halo"
    ALLREDUCE = "allreduce"
    ALLTOALL = "alltoall"
    BROADCAST = "broadcast"


class Sharing(StrEnum):
    NONE = "none"
    SLICES = "slices"
    TIME = "time"


AnyRecompute = Annotated[Recompute, EnumChoice(Recompute, "a way to recompute")]
