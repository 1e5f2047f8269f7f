"""What is special to PyTorch. Modules, optimizers, schedulers and tensors can stand in any state as they are:

    state = {"model": model, "optimizer": optimizer, "losses": []}

`State` adds the random generators, so that a run goes on with the numbers it would have drawn. `agree` lets the ranks of a job
decide together. `save_sharded` and `load_sharded` leave the writing of sharded tensors (FSDP, tensor parallelism) to
`torch.distributed.checkpoint`, and add what it lacks: checksums, a commit, and the search for the newest whole one.
"""

from __future__ import annotations

import random
import sys
from importlib import import_module
from typing import Any

from chipwise.errors import MissingExtra
from chipwise.job import tensors
from chipwise.job.checkpoints import Checkpoints
from chipwise.job.writer import fresh_mark


def _torch() -> Any:
    try:
        return import_module("torch")
    except ImportError as error:
        raise MissingExtra("chipwise.job.torch", "torch") from error


class State:
    """Named objects with state_dict(), and the random generators of Python, NumPy, torch and its CUDA devices."""

    def __init__(self, *, random_generators: bool = True, **parts: Any) -> None:
        self._torch = _torch()
        self._random = random_generators
        self._parts = parts

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_parts"][name]
        except KeyError:
            raise AttributeError(f"this State has no part {name!r}") from None

    def state_dict(self) -> dict[str, Any]:
        state = {"parts": {name: part.state_dict() for name, part in self._parts.items()}}
        if self._random:
            state["random"] = self._generators()
        return state

    def check_state_dict(self, state: dict[str, Any], field: str) -> str | None:
        """What does not fit, before anything is changed."""
        for name in self._parts:
            if name not in state["parts"]:
                return f"{field}.{name} is not in the checkpoint"
        for name, saved in state["parts"].items():
            if name not in self._parts:
                return f"{field}.{name} is in the checkpoint, and not here"
            if tensors.is_module(self._parts[name]) and (
                unlike := tensors.unlike_module(self._parts[name], saved, f"{field}.{name}")
            ):
                return unlike
        return None

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, part in self._parts.items():
            part.load_state_dict(state["parts"][name])
        if self._random and "random" in state:
            self._set_generators(state["random"])

    def _generators(self) -> dict[str, Any]:
        version, numbers, spare = random.getstate()
        generators: dict[str, Any] = {"python": [version, list(numbers), spare], "torch": self._torch.get_rng_state()}
        if self._torch.cuda.is_available():
            generators["cuda"] = self._torch.cuda.get_rng_state_all()
        if numpy := sys.modules.get("numpy"):
            kind, keys, position, has_spare, spare_normal = numpy.random.get_state()
            generators["numpy"] = [kind, [int(key) for key in keys], int(position), int(has_spare), float(spare_normal)]
        return generators

    def _set_generators(self, state: dict[str, Any]) -> None:
        version, numbers, spare = state["python"]
        random.setstate((version, tuple(numbers), spare))
        self._torch.set_rng_state(state["torch"])
        if "cuda" in state and self._torch.cuda.is_available():
            for device, generator in enumerate(state["cuda"][: self._torch.cuda.device_count()]):
                self._torch.cuda.set_rng_state(generator, device)
        if "numpy" in state:
            import numpy

            kind, keys, *rest = state["numpy"]
            numpy.random.set_state((kind, numpy.asarray(keys, dtype=numpy.uint32), *rest))


def agree(number: int) -> int:
    """The greatest over all ranks; the number itself where torch.distributed does not run. For `steps(agree=...)`."""
    torch = _torch()
    together = torch.distributed
    if not (together.is_available() and together.is_initialized()):
        return number
    device = "cuda" if together.get_backend() == "nccl" else "cpu"
    greatest = torch.tensor([number], device=device)
    together.all_reduce(greatest, op=together.ReduceOp.MAX)
    return int(greatest.item())


def save_sharded(checkpoints: Checkpoints, step: int, state_dict: dict[str, Any]) -> None:
    """Every rank calls it; `torch.distributed.checkpoint` writes each rank's part. Returns when it is committed."""
    torch = _torch()
    dcp = import_module("torch.distributed.checkpoint")
    distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
    marks = [fresh_mark()]
    if distributed:
        torch.distributed.broadcast_object_list(marks, src=0)
    checkpoints.save_folder(
        step,
        lambda path: dcp.save(state_dict, checkpoint_id=str(path)),
        mark=marks[0],
        together=torch.distributed.barrier if distributed else None,
    )


def load_sharded(checkpoints: Checkpoints, state_dict: dict[str, Any]) -> int | None:
    """The newest whole one into `state_dict`, in place, also for another number of ranks; its step, None if there is none."""
    folder = checkpoints.load_folder()
    if folder is None:
        return None
    _torch()
    import_module("torch.distributed.checkpoint").load(state_dict, checkpoint_id=str(folder.path))
    return folder.step
