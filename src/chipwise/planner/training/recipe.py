"""What the fine-tuning program that comes with our images can run: plans without a program of their own are made for it.

It runs data parallel, each GPU with the whole model or with a shard of it; whoever cuts a model by tensors, layers, sequences
or experts brings a program. `renderer/launch/finetuning.py` writes it.
"""

from __future__ import annotations

from chipwise.workload.kinds import Finetune, Learning

SMALL_FORMATS = (
    "bitsandbytes"  # it has kernels for GPUs of AMD and lists them as supported; the program was not run with it there
)
LOADABLE = 0.85  # of a GPU, by weights that are not divided yet
FOUR_BITS = 0.29  # of 16-bit weights, with their scales, and with embeddings that stay as they are


def is_taken(work: Learning) -> bool:
    """Whether nothing else would run: an image or a command of the user's own has its own way."""
    program = work.program
    return isinstance(work, Finetune) and (program is None or (program.image is None and program.command is None))


def read_whole_bytes(method: str, weights_bytes: float) -> float:
    """What each GPU reads before ranks divide it, of weights in 16 bits: those of four bits, other ones come in parts."""
    return FOUR_BITS * weights_bytes if method == "qlora" else 0.0


def loads(method: str, weights_bytes: float, memory_bytes: float) -> bool:
    return read_whole_bytes(method, weights_bytes) < LOADABLE * memory_bytes


def untried_on_amd(work: Learning) -> str:
    """The library that weights of four bits and optimizers of eight bits need; empty: none."""
    return SMALL_FORMATS if work.needs_small_formats else ""
