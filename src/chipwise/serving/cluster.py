"""A service in a cluster: what is seen of it there, and what is decided by that. The contract of whoever keeps services there.

The cluster's own controllers start, replace and scale replicas. What is decided here is only whether a change is done, goes on,
or has failed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol, runtime_checkable

from chipwise.serving.service import ServiceVersion
from chipwise.text import duration

IMAGE_PATIENCE_S = 60.0  # with an image that cannot be pulled: registries fail for a moment too
CRASHES = 3  # of one replica, after which nobody waits for it
Say = Callable[[str], None]


class Ailment(StrEnum):
    IMAGE = "image"
    CRASHES = "crashes"
    NOT_CREATED = "not created"  # its container, as where a secret is not there
    NO_VOLUME = "no volume"
    NO_NODE = "no node"
    REFUSED = "refused"  # its pods, by a quota or a rule of the cluster


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why replicas do not come, where waiting alone may not help."""

    ailment: Ailment
    text: str
    pod: str = ""
    crashes: int = 0


@dataclass(frozen=True, slots=True)
class ReplicaSight:
    """One replica: a pod, or the pod that answers for a group."""

    name: str
    version: int | None
    phase: str
    ready: bool
    ending: bool = False
    node: str = ""
    restarts: int = 0


@dataclass(frozen=True, slots=True)
class ClusterSight:
    """A service as the cluster shows it."""

    kind: str  # Deployment or LeaderWorkerSet; empty: there is none
    version: int | None = None  # that it is to have
    wanted: int = 0
    updated: int = 0  # replicas of that version
    available: int = 0  # replicas that serve, of any version
    total: int = 0
    fewest_replicas: int | None = None  # where the cluster scales it
    most_replicas: int | None = None
    waits: str = ""  # what its replicas wait for; empty: nothing
    trouble: Trouble | None = None
    is_stuck: bool = False  # the cluster itself gave up
    pool: str = ""  # the InferencePool that picks among its replicas
    replicas: tuple[ReplicaSight, ...] = ()

    @property
    def is_complete(self) -> bool:
        return self.updated >= self.wanted and self.total <= self.wanted and self.available >= self.wanted


class ChangeVerdict(StrEnum):
    GOES_ON = "goes on"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ClusterChange:
    """A start or a rollout that is followed: from one look to the next."""

    version: int
    deadline_s: float  # without any progress
    progressed: float  # when a replica came last; at first, when it began
    best: tuple[int, int] = (0, 0)
    ails: Trouble | None = None
    ails_since: float = 0.0
    verdict: ChangeVerdict = ChangeVerdict.GOES_ON
    reason: str = ""

    def after(self, sight: ClusterSight, now: float) -> ClusterChange:
        """With what a look showed."""
        reached = (min(sight.updated, sight.available), sight.updated) if sight.version == self.version else (0, 0)
        progressed = now if reached > self.best else self.progressed
        is_same = sight.trouble is not None and self.ails is not None and sight.trouble.ailment is self.ails.ailment
        seen = replace(
            self,
            progressed=progressed,
            best=max(reached, self.best),
            ails=sight.trouble,
            ails_since=self.ails_since if is_same else now,
        )
        if not sight.kind:
            return replace(seen, verdict=ChangeVerdict.FAILED, reason="it was deleted")
        if sight.version == self.version and sight.is_complete:
            return replace(seen, verdict=ChangeVerdict.READY)
        reason = seen._failure(sight, now)
        return replace(seen, verdict=ChangeVerdict.FAILED, reason=reason) if reason else seen

    def _failure(self, sight: ClusterSight, now: float) -> str:
        trouble = self.ails
        if trouble is not None:
            if trouble.ailment is Ailment.IMAGE and now - self.ails_since >= IMAGE_PATIENCE_S:
                return trouble.text
            if trouble.ailment is Ailment.CRASHES and trouble.crashes >= CRASHES:
                return trouble.text
        if now - self.progressed >= self.deadline_s or sight.is_stuck:
            after = duration(now - self.progressed)
            return f"nothing came for {after}: {trouble.text if trouble is not None else sight.waits or 'it is not ready'}"
        return ""


def progress_words(sight: ClusterSight) -> str:
    """Where a start or a rollout stands."""
    reason = f": {sight.trouble.text}" if sight.trouble is not None else f"; {sight.waits}" if sight.waits else ""
    if sight.total > sight.updated:
        return f"{sight.updated} of {sight.wanted} replicas have version {sight.version}, {sight.available} ready{reason}"
    return f"{sight.available} of {sight.wanted} replicas ready{reason}"


def remedy(trouble: Trouble | None, namespace: str) -> str:
    """What somebody can do about it."""
    pod = f" {trouble.pod}" if trouble is not None and trouble.pod else "s"
    match trouble.ailment if trouble is not None else None:
        case Ailment.IMAGE:
            return "Push the image, or change program.image; one that needs a login takes program.pull_secret."
        case Ailment.CRASHES:
            return f"kubectl -n {namespace} logs{pod if pod != 's' else ''} --previous shows what it printed."
        case Ailment.NOT_CREATED:
            return "Create what it names, such as its secret: kubectl create secret generic NAME --from-literal=KEY=..."
        case Ailment.NO_VOLUME:
            return (
                f"Give the cluster a default StorageClass, or create the volume: kubectl -n {namespace} get pvc,storageclass."
            )
        case Ailment.NO_NODE:
            return (
                "Add such a machine, or let the cluster get one (`chipwise render --to karpenter`); or allow another chip in"
                " the workload's limits."
            )
        case Ailment.REFUSED:
            return "Ask who runs the cluster for a larger quota, or serve with fewer --replicas."
    return f"`kubectl -n {namespace} describe pod{pod}` says more; --ready-within gives it longer."


@runtime_checkable
class KeepsServices(Protocol):
    """Of an engine that is connected: services live there, without a controller of ours."""

    def services(self) -> ServiceKeeper: ...


class ServiceKeeper(Protocol):
    @property
    def place(self) -> str: ...

    @property
    def namespace(self) -> str: ...

    def queue_for(self, team: str, asked: str) -> str:
        """In which its pods wait for room; empty: in none."""
        ...

    def start(self, name: str, version: ServiceVersion, within_s: float | None, say: Say) -> None:
        """`within_s`: None for as long as its plan predicts. Ready when it returns; what was made stays where it raises."""
        ...

    def check(self, name: str, version: ServiceVersion) -> None:
        """Raises what the cluster would refuse, and makes nothing."""
        ...

    def look(self, name: str) -> ClusterSight: ...

    def scale(self, name: str, version: ServiceVersion, fewest: int, most: int | None, say: Say) -> None: ...

    def replace(self, name: str, before: ServiceVersion, fresh: ServiceVersion, within_s: float | None, say: Say) -> None:
        """Raises NoResult where the fresh version was taken back."""
        ...

    def undo(self, name: str, before: ServiceVersion, say: Say) -> None: ...

    def stop(self, name: str, say: Say, *, now: bool) -> None: ...
