"""What starts a replica: the contract of every serving engine. Engines are in `adapters/serving_engines`, one a file.

An engine says with which words a replica is started, how one sees that it is ready and where its metrics are. It starts nothing
itself: a replica is a job like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from chipwise.errors import BadInput, NotFound

PORT = "{port}"  # in a user's own command: where the replica is to listen


@dataclass(frozen=True, slots=True)
class ReplicaRequest:
    """What a replica is to serve. None and empty: the engine's own default."""

    model: str  # an id of the hub, a path of weights, or a name for what a command serves
    served: str  # what clients call it
    port: int = 0
    host: str = "127.0.0.1"
    gpus: int = 0
    cpus: int = 0  # 0: as many as there are
    context: int | None = None
    at_once: int | None = None  # requests that one replica works on together
    precision: str = ""
    tensor_ways: int = 1
    stages: int = 1
    command: tuple[str, ...] = ()  # of the engine `command`, or as a plan renders it for the others
    health: str = ""
    extra_words: tuple[str, ...] = ()  # flags that the user adds


@dataclass(frozen=True, slots=True)
class ServingMachine:
    """What an engine may know of the machine before anything starts."""

    gpus: int
    cpus: int
    gpu_name: str = ""  # of the catalog; empty: unknown, or there is none


@dataclass(frozen=True, slots=True)
class FirstRequest:
    """By which the time to the first token of a cold replica is measured."""

    path: str
    body: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ReplicaStart:
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    health: str = "/health"
    metrics: str = "/metrics"  # empty: it publishes none
    at_once: int = 256  # requests beyond which more wait in the gateway
    first: FirstRequest | None = None


class ServingEngine(Protocol):
    """A module with these names."""

    ABOUT: str
    COMPONENTS: tuple[str, ...]  # of the catalog's compatibility table, each judged on the machine's chip

    def check(self, request: ReplicaRequest, machine: ServingMachine) -> None:
        """Raises BadInput or MissingExtra where it cannot run this here."""
        ...

    def start(self, request: ReplicaRequest) -> ReplicaStart: ...


def openai_first(served: str) -> FirstRequest:
    body: dict[str, object] = {"model": served, "prompt": "Hello", "max_tokens": 1, "stream": True}
    return FirstRequest("/v1/completions", body)


def check_installed(title: str, is_installed: bool, lack: str, remedy: str) -> None:
    if not is_installed:
        raise NotFound(f"{title} is not installed here: {lack}.", remedy=remedy)


def check_gpus(title: str, request: ReplicaRequest, machine: ServingMachine) -> None:
    """Of an engine that runs on GPUs only: each replica needs as many as its model is split over."""
    needed = request.tensor_ways * request.stages
    if not machine.gpus:
        raise BadInput(
            f"{title} needs a GPU, and this machine has none.",
            remedy="llama.cpp serves GGUF files on CPUs: --engine llama.cpp --weights FILE.gguf",
        )
    if needed > machine.gpus:
        raise BadInput(
            f"The plan splits {request.served} over {needed} GPUs, and this machine has {machine.gpus}.",
            remedy="Plan within this machine: --limit chip_count=N in `chipwise plan`, or a smaller model.",
        )
