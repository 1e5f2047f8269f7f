"""Serving engines by name, and whether one can run a model here: all that is refused is refused before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from chipwise import plugins
from chipwise.api.running import place
from chipwise.api.running.installed import choices, package
from chipwise.api.running.predicting import local_allocation
from chipwise.catalog.compatibility import CompatibilityAnswer, check
from chipwise.errors import BadInput, UnknownName
from chipwise.renderer.served import LLAMA
from chipwise.runner.abilities import AppliesObjects
from chipwise.runner.job import Needs
from chipwise.runner.submission.predicted import Allocation
from chipwise.serving.engine import ReplicaRequest, ServingEngine, ServingMachine
from chipwise.spelling import nearest

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session

FOLDER, GROUP = "chipwise.adapters.serving_engines", "chipwise.serving_engines"
_FILES = {LLAMA: "llama-cpp"}  # a file cannot have a dot in its name
_TYPED = {file: typed for typed, file in _FILES.items()}
_RATES = ("bf16", "fp8", "nvfp4")  # precisions that the table of compatibility speaks of


def names() -> tuple[str, ...]:
    """As the user types them."""
    return tuple(sorted(_TYPED.get(name, name) for name in plugins.names(FOLDER, GROUP)))


def with_clusters() -> tuple[str, ...]:
    """What `--engine` may say: what serves, or where."""
    return (*names(), *(name for name in choices() if isinstance(package(name), AppliesObjects)))


def engine_named(name: str) -> ServingEngine:
    if name not in names():
        raise UnknownName("serving engine", name, nearest(name, with_clusters()), known=with_clusters())
    return cast("ServingEngine", plugins.load(FOLDER, GROUP, _FILES.get(name, name)))


def machine_here(session: Session) -> ServingMachine:
    gpus, cpus = place.devices(session)
    allocation = local_allocation(session, Needs(gpus=1)) if gpus else None
    chip = allocation.chip if isinstance(allocation, Allocation) else ""
    return ServingMachine(len(gpus), len(cpus), chip)


def check_here(session: Session, name: str, request: ReplicaRequest, needs: Mapping[str, str]) -> ServingEngine:
    """The engine, if it can serve this here. `needs`: components, and their versions, that the program needs besides."""
    engine, machine = engine_named(name), machine_here(session)
    _check_chip(session, name, engine, machine, request, needs)
    engine.check(request, machine)
    return engine


def _check_chip(
    session: Session,
    name: str,
    engine: ServingEngine,
    machine: ServingMachine,
    request: ReplicaRequest,
    needs: Mapping[str, str],
) -> None:
    """By the catalog's table: a chip that nobody knows is not refused."""
    components = dict.fromkeys(engine.COMPONENTS, "") | dict(needs)
    if engine.COMPONENTS and request.precision in _RATES:
        components[request.precision] = ""
    if not machine.gpu_name or not components:
        return
    chip = session.names.one_chip(machine.gpu_name).chip
    for finding in check(chip, components, session.catalog.data):
        if finding.answer is CompatibilityAnswer.REFUSED:
            raise BadInput(
                f"{name} cannot run {request.served} on {chip.name}: {finding.reason}",
                remedy=f"`chipwise explain {chip.name} --with {finding.component}` shows what it can run.",
            )
