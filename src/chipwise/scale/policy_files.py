"""Policies by their names, or from a Python file of the user."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chipwise import plugins
from chipwise.errors import BadInput, UnknownName
from chipwise.scale.own_policy import single_scenarios
from chipwise.scale.own_queue_policy import ranked
from chipwise.scale.queue import BeginQueue
from chipwise.scale.spot import Begin
from chipwise.spelling import nearest

_DECIDES = {  # by kind
    "spot": "spot machines in one zone",
    "zones": "spot machines in several zones",
    "serve": "the replicas of a service",
    "fleet": "the machines of a service",
    "queue": "the order of a queue",
}
PACKAGE, GROUP = "chipwise.scale.policies", "chipwise.policies"


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    name: str
    kind: str  # what it decides: spot, zones, serve, fleet, queue
    summary: str
    needs: str


def listed() -> list[PolicyEntry]:
    entries = []
    for name in plugins.names(PACKAGE, GROUP):
        module = plugins.load(PACKAGE, GROUP, name)
        entries.append(
            PolicyEntry(name, getattr(module, "KIND", ""), getattr(module, "SUMMARY", ""), getattr(module, "NEEDS", ""))
        )
    return entries


def spot_policy(name: str) -> Begin:
    """By its name, or from a Python file that defines `decide(state)` or `begin(job, count)`."""
    begin: Begin = _begin("spot", name, ("decide(state)", "begin(job, count)"), _decided)
    return begin


def policy_of(kind: str, name: str) -> Any:
    """The module of a policy that decides this."""
    module = plugins.load(PACKAGE, GROUP, name)
    if module is None or getattr(module, "KIND", "") != kind:
        names = [entry.name for entry in listed() if entry.kind == kind]
        if module is not None and getattr(module, "KIND", "") in _DECIDES:
            raise BadInput(
                f"{name} is a policy for {_DECIDES[module.KIND]}, not for {_DECIDES[kind]}.",
                remedy=f"For these there are {', '.join(names)}.",
            )
        raise UnknownName(f"{kind} policy", name, nearest(name, names), remedy="chipwise policies lists them.")
    return module


def names_of_file(path: Path, decide: str, begin: str) -> dict[str, Any]:
    """What a user's own policy defines: one of the two at least, as they are shown here with their arguments."""
    if not path.is_file():
        fault = "no file" if path.exists() else "not there"
        raise BadInput(f"{path} is {fault}.", remedy=f"Give a Python file that defines {decide}.")
    try:
        names = runpy.run_path(str(path))
    except (Exception, SystemExit) as error:
        raise BadInput(f"{path} could not be run: {type(error).__name__}: {str(error)[:200]}") from error
    if not any(callable(names.get(form.partition("(")[0])) for form in (decide, begin)):
        raise BadInput(f"{path} defines neither {decide} nor {begin}.")
    return names


def queue_policy(name: str) -> BeginQueue:
    """By its name, or from a Python file that defines `rank(job)` or `begin(settings)`."""
    begin: BeginQueue = _begin("queue", name, ("rank(job)", "begin(settings)"), _ranked)
    return begin


def _begin(kind: str, name: str, forms: tuple[str, str], wrapped: Callable[[str, dict[str, Any]], Any]) -> Any:
    """`wrapped`: makes a policy of a file that defines only the simpler of the two forms."""
    if not name.endswith(".py"):
        return policy_of(kind, name).begin
    path = Path(name).expanduser()
    names = names_of_file(path, *forms)
    return names["begin"] if callable(names.get("begin")) else wrapped(path.name, names)


def _decided(file: str, names: dict[str, Any]) -> Begin:
    return single_scenarios(file, names["decide"])


def _ranked(file: str, names: dict[str, Any]) -> BeginQueue:
    return ranked(file, names["rank"], names)
