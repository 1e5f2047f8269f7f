"""A small data-parallel training in NumPy whose result is the same to the last bit for any number of workers.

Gradients are reckoned for each of a fixed number of pieces of the batch, exchanged, and summed in the order of the pieces. The
weights are the same everywhere; the momentum is split over the ranks. Run as a program by every rank, with the variables that
torchrun sets. Rank 0 is where the others meet.

    elastic_training.py DIRECTORY RESULT STEPS PAUSE_S
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

import numpy as np

import chipwise.job as job
from chipwise.job import resharding
from patience import deadline

RANK, WORLD = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
WEIGHTS, PIECES, ROWS = 11, 12, 4


class Meeting:
    """Everybody's values, in the order of the ranks, for everybody."""

    def __init__(self) -> None:
        self.others: list[Connection] = []
        if WORLD == 1:
            return
        address = (os.environ.get("MASTER_ADDR", "127.0.0.1"), int(os.environ["MASTER_PORT"]))
        if RANK == 0:
            with Listener(address, backlog=WORLD) as door:
                came = [door.accept() for _ in range(WORLD - 1)]
            self.others = [one for _, one in sorted(((one.recv(), one) for one in came), key=lambda pair: pair[0])]
            return
        until = deadline(30)
        while not self.others:
            with suppress(OSError):
                self.others = [Client(address)]
            if not self.others and time.monotonic() > until:
                raise SystemExit("rank 0 did not come")
            time.sleep(0.0 if self.others else 0.02)
        self.others[0].send(RANK)

    def gather(self, own: Any) -> list[Any]:
        if WORLD == 1:
            return [own]
        if RANK:
            self.others[0].send(own)
            return list(self.others[0].recv())
        everything = [own, *(one.recv() for one in self.others)]
        for one in self.others:
            one.send(everything)
        return everything


def gradient(weights: Any, step: int, piece: int) -> tuple[Any, float]:
    rng = np.random.default_rng([step, piece])
    rows = rng.normal(size=(ROWS, WEIGHTS))
    error = (rows * weights).sum(axis=1) - (rows * np.arange(WEIGHTS)).sum(axis=1)
    return (rows * error[:, None]).sum(axis=0), float((error * error).sum())


def main(directory: str, result: str, total: int, pause_s: float) -> None:
    own, pieces = job.part(WEIGHTS), job.part(PIECES)
    state: dict[str, Any] = {"weights": np.zeros(WEIGHTS), "momentum": np.zeros(own.stop - own.start), "losses": []}
    if os.environ.get("DIES_WHILE_JOINING") == str(RANK):
        resharding._Joining._cut = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]
    steps = job.steps(state, total, every=4, directory=directory, split={"momentum": 0})
    meeting = Meeting()
    if RANK == 0:  # for whoever wants to know with how many, and on what, it ran
        with open(f"{result}.worlds", "a") as file:
            file.write(f"{WORLD} {os.environ.get('CUDA_VISIBLE_DEVICES', '-')}\n")
    for step in steps:
        made = [gradient(state["weights"], step, piece) for piece in range(pieces.start, pieces.stop)]
        every = [one for part in meeting.gather(made) for one in part]
        whole, loss = np.zeros(WEIGHTS), 0.0
        for part, error in every:
            whole += part
            loss += error
        state["momentum"] *= 0.9
        state["momentum"] += whole[own]
        state["weights"][...] = np.concatenate(meeting.gather(state["weights"][own] - 0.002 * state["momentum"]))
        state["losses"].append(loss)
        time.sleep(pause_s)
    momentum = np.concatenate(meeting.gather(state["momentum"]))
    if RANK == 0:
        with open(f"{result}.new", "w") as file:
            told = {"weights": state["weights"], "momentum": momentum, "losses": state["losses"]}
            json.dump({name: [float(one).hex() for one in values] for name, values in told.items()}, file)
        os.replace(f"{result}.new", result)
    meeting.gather(None)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
