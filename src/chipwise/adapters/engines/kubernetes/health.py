"""Sick nodes: judged by what the cluster says of them (`observe/health/nodes`), and acted on once that has lasted.

What is done is what `decide` says: nothing new is placed there (a taint, where the rights allow it; else new attempts keep away
from the node by themselves), and jobs move from their last checkpoint. The taint is for people to remove, with the reason in
its value: a node that comes and goes would take jobs with it each time. What Kubernetes itself acts on, such as a node that is
not ready, is left to it.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from chipwise.errors import NotAllowed, NotFound
from chipwise.observe.health.decide import Cordon, MachineUse, Move, decide
from chipwise.observe.health.nodes import devices_left, judged_apart
from chipwise.observe.health.verdict import Condition, Verdict, rank

from .connection import Connection, Exists
from .kinds import NODE, Object
from .picture import Picture

LASTS_S = 60.0  # before anything is done: a device plugin that starts again takes devices away for some seconds
TAINT = "chipwise.dev/unhealthy"
MOST_AVOIDED = 50  # nodes that one attempt names
_HOST = "kubernetes.io/hostname"
_NO_VALUE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class SickNode:
    name: str
    host: str  # as pods name it
    reason: str
    cordons: bool  # nothing new is to be placed there
    moves: bool  # and what runs there is to leave
    devices_left: int | None  # where some are out of service: only a job that needs more must leave
    is_tainted: bool

    def concerns(self, gpus: int) -> bool:
        return self.moves and (self.devices_left is None or gpus > self.devices_left)

    @property
    def words(self) -> str:
        return f"node {self.name} is unhealthy: {self.reason}"


@dataclass(slots=True)
class NodeHealth:
    may_cordon: bool = True  # until the cluster says otherwise
    _judged: dict[str, tuple[str, SickNode | None]] = field(default_factory=dict)  # by name: the version that was judged
    _since: dict[str, float] = field(default_factory=dict)

    def sick(self, picture: Picture, now: float) -> dict[str, SickNode]:
        """Those that have been so for long enough, by name."""
        present: dict[str, SickNode] = {}
        for node in picture.all(NODE):
            name, version = str(node["metadata"]["name"]), str(node["metadata"].get("resourceVersion", ""))
            known = self._judged.get(name)
            if known is None or known[0] != version or not version:
                known = self._judged[name] = (version, _judged(node))
            if known[1] is not None:
                present[name] = known[1]
        self._since = {name: min(self._since.get(name, now), now) for name in present}
        return {name: node for name, node in present.items() if now - self._since[name] >= LASTS_S}

    def cordons(self, sick: Iterable[SickNode]) -> tuple[Cordon, ...]:
        """Still to be done."""
        if not self.may_cordon:
            return ()
        return tuple(Cordon(node.name, node.reason) for node in sick if node.cordons and not node.is_tainted)

    def cordon(self, connection: Connection, picture: Picture, name: str, reason: str) -> None:
        """Where it is not allowed, attempts keep away from the node by themselves from then on."""
        with picture.reading():
            node = picture.by_name(NODE, name)
        if node is None:
            return
        try:
            with suppress(Exists, NotFound):  # somebody changed or removed it meanwhile: the next look sees it
                picture.put(NODE, connection.merge(NODE, name, tainted(node, reason)))
        except NotAllowed:
            self.may_cordon = False


def _judged(node: Object) -> SickNode | None:
    by_conditions, by_devices = judged_apart(node)
    verdict = max((by_conditions, by_devices), key=lambda verdict: rank(verdict.state))
    if rank(verdict.state) < rank(Condition.DRAIN):
        return None
    name, taints = str(node["metadata"]["name"]), (node.get("spec") or {}).get("taints") or ()
    actions = decide([verdict], MachineUse(name=name, is_node=True, jobs={"": ()}))
    return SickNode(
        name=name,
        host=str((node["metadata"].get("labels") or {}).get(_HOST, "")),
        reason=verdict.reason,
        # A scheduler that knows of the devices that are left places there what they are enough for.
        cordons=verdict is by_conditions and any(isinstance(action, Cordon) for action in actions),
        moves=any(isinstance(action, Move) for action in actions),
        devices_left=None if _is_sick(by_conditions) else devices_left(node),
        is_tainted=any(taint.get("key") == TAINT for taint in taints),
    )


def _is_sick(verdict: Verdict) -> bool:
    return rank(verdict.state) >= rank(Condition.DRAIN)


def tainted(node: Object, reason: str) -> dict[str, Any]:
    """The change to a node; only if it is still as it was read, since a list of taints is replaced whole."""
    taints = [taint for taint in (node.get("spec") or {}).get("taints") or () if taint.get("key") != TAINT]
    value = _NO_VALUE.sub("-", reason)[:63].strip("-._")
    return {
        "metadata": {"resourceVersion": node["metadata"]["resourceVersion"]},
        "spec": {"taints": [*taints, {"key": TAINT, "value": value, "effect": "NoSchedule"}]},
    }


def avoiding(main: Object, nodes: Iterable[SickNode]) -> Object:
    """The Job or Deployment, whose pods keep away from these nodes."""
    hosts = sorted({node.host for node in nodes if node.host and node.cordons})[:MOST_AVOIDED]
    if not hosts:
        return main
    changed = copy.deepcopy(dict(main))
    pod: dict[str, Any] = changed["spec"]["template"]["spec"]
    affinity = pod.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    required = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {"nodeSelectorTerms": [{}]})
    for term in required["nodeSelectorTerms"]:
        rules: list[Mapping[str, Any]] = term.setdefault("matchExpressions", [])
        rules.append({"key": _HOST, "operator": "NotIn", "values": hosts})
    return changed
