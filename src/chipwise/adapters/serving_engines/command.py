"""Any program that listens where it is told: {port} in its words, or the setting PORT."""

from __future__ import annotations

from chipwise.errors import BadInput
from chipwise.serving.engine import PORT, ReplicaRequest, ReplicaStart, ServingMachine

ABOUT = "a program of your own that listens on {port}"
COMPONENTS: tuple[str, ...] = ()


def check(request: ReplicaRequest, machine: ServingMachine) -> None:
    if not request.command:
        raise BadInput("The engine command needs a command.", remedy="Write it behind --: chipwise serve -- ./server {port}")


def start(request: ReplicaRequest) -> ReplicaStart:
    words = tuple(word.replace(PORT, str(request.port)) for word in request.command)
    return ReplicaStart(
        command=(*words, *request.extra_words),
        env={"PORT": str(request.port)},
        health=request.health or "/health",
        metrics="",
        at_once=request.at_once or 256,
    )
