"""What `bench` is asked: where the same work is to run, how often and for how long. Checked before anything is started."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from chipwise.api.catalog.check import check
from chipwise.errors import BadInput
from chipwise.runner.bench.values import BenchPlace as BenchPlace
from chipwise.runner.bench.values import BenchRequest as BenchRequest
from chipwise.runner.submission.workload import SERVES
from chipwise.workload.common import Common
from chipwise.workload.pipeline import Pipeline

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session


def place(session: Session, text: str) -> BenchPlace:
    """local, local:gpus=1,cpus=2; kubernetes, kubernetes:CONTEXT; ec2:INSTANCE_TYPE; simulated; or a name of engines.yaml."""
    name, colon, detail = text.partition(":")
    if not name.strip() or (colon and not detail):
        raise BadInput(f"--on {text[:60]!r} names no place.", remedy="Write local, local:gpus=1 or ec2:INSTANCE_TYPE.")
    from chipwise.api.running.engines import reach
    from chipwise.api.running.installed import traits

    if traits(name).plays:
        if detail:
            raise BadInput(f"--on {text[:60]}: a simulation takes the machines of the plan.", remedy="Write simulated.")
        return BenchPlace(text, name, simulated=True)
    takes = traits(reach(session, name).kind).detail
    if takes == "devices":
        devices = _devices(text, detail)
        return BenchPlace(text, name, devices.get("gpus"), devices.get("cpus"))
    if takes == "machine":
        if detail and session.names.machines_or_none(detail) is None:
            near = ", ".join(session.names.nearest_machines(detail))
            raise BadInput(f"--on {text[:60]}: no machine is called {detail[:60]!r}.", remedy=f"Near it: {near}.")
        return BenchPlace(text, name, machine=detail or None)
    if detail and not takes:
        raise BadInput(f"--on {text[:60]}: {name} takes nothing behind its name.", remedy=f"Write {name}.")
    return BenchPlace(text, name, context=detail or None)


def _devices(text: str, detail: str) -> dict[str, int]:
    devices: dict[str, int] = {}
    for item in filter(None, detail.split(",")):
        key, _, value = item.partition("=")
        minimum = {"gpus": 0, "cpus": 1}.get(key.strip())
        if minimum is None or not value.strip().isdecimal() or not minimum <= int(value) <= 4096:
            raise BadInput(f"--on {text[:60]}: {item[:40]!r} says no devices.", remedy="Write local:gpus=1 or local:cpus=2.")
        devices[key.strip()] = int(value)
    return devices


def checked(session: Session, path: str, environment: str | None) -> Common:
    """The work, if it can be timed at all."""
    work = check(session, path, environment).workload
    if isinstance(work, Pipeline):
        raise BadInput(f"{path} is a pipeline.", remedy="Put one of its stages into a separate workload file.")
    if getattr(work, "kind", "") in SERVES:
        raise BadInput(
            f"{path}: {work.name} runs until it is stopped, so there is nothing to time.",
            remedy="Give a batch of its requests as a workload of the kind batch.",
        )
    if work.program is None or work.program.command is None:
        raise BadInput(
            f"{path}: {work.name} does not say what to run.", remedy="Add program: {command: [python, train.py]} to it."
        )
    return work


def places(session: Session, texts: Sequence[str]) -> tuple[BenchPlace, ...]:
    if len(set(texts)) != len(texts):
        raise BadInput("A place is there twice.", remedy="Write --repeat 2 to run everywhere twice.")
    return tuple(place(session, one) for one in texts)
