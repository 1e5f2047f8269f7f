"""What a service is, here or in a cluster: its door, its versions and its replicas, as one value that is written to a file.

Commands change it and the gateway reads it, so that each may end and start again: whoever reads the file knows all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, TypeVar

from chipwise.errors import BadInput
from chipwise.serving.engine import ReplicaRequest
from chipwise.serving.replica import Address, Replica

FORMAT = 1
PARKED_STARTS, PARKED_S = 3.0, 30.0  # a parked request waits for so many cold starts, and so long besides
SettingsType = TypeVar("SettingsType")


@dataclass(frozen=True, slots=True)
class ServiceDoor:
    """Where clients come in, and who may."""

    host: str = "127.0.0.1"
    port: int = 0
    key_file: str = ""
    certificate: str = ""
    private_key: str = ""

    @property
    def url(self) -> str:
        return f"{'https' if self.certificate else 'http'}://{Address(self.host, self.port).text}"


@dataclass(frozen=True, slots=True)
class ReplicaNeeds:
    """What the jobs of a service hold and are called. Secrets are names, never values."""

    gpus: int = 0
    cpus: int = 0  # 0: they share the processors with all others
    team: str = ""
    project: str = ""
    labels: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()  # NAME=VALUE
    secrets: tuple[str, ...] = ()
    folder: str = ""


@dataclass(frozen=True, slots=True)
class ClusterVersion:
    """What a cluster is given of a version."""

    image: str
    objects: tuple[Mapping[str, Any], ...]
    starts_s: float  # in which a replica should be ready, machine, image and weights included
    environment: str = ""  # of the workload's file
    lasting: tuple[str, ...] = ()  # claims that somebody fills: they outlive the service


@dataclass(frozen=True, slots=True)
class ServiceVersion:
    number: int
    engine: str
    request: ReplicaRequest
    created: float  # seconds since 1970
    needs: ReplicaNeeds = ReplicaNeeds()
    in_cluster: ClusterVersion | None = None  # None: its replicas are jobs here


@dataclass(frozen=True, slots=True)
class ReplicaRecord:
    name: str
    job: str
    version: int
    port: int
    health: str = "/health"
    at_once: int = 256
    is_draining: bool = False


@dataclass(frozen=True, slots=True)
class ServiceScaling:
    """How a service with two numbers of replicas is scaled."""

    policy: str = ""  # of `scale/policies`, or a path; empty: the target on outstanding work
    every_s: float = 15.0  # between two questions to the policy
    idle_s: float = 300.0  # without a request, before the last replica goes


@dataclass(frozen=True, slots=True)
class ServiceRecord:
    name: str
    door: ServiceDoor
    versions: tuple[ServiceVersion, ...]
    replicas: tuple[ReplicaRecord, ...] = ()
    policy: str = "least-work"
    queue_s: float = 30.0
    gateway: str = ""  # its job; empty: not started yet
    scaler: str = ""  # the job that scales it; empty: its number of replicas is fixed
    most_replicas: int | None = None  # where it is scaled
    fewest_replicas: int = 1  # 0: without requests the last one goes, and the next request is parked until one is back
    scaling: ServiceScaling = ServiceScaling()
    cold_start_s: float | None = None  # of the last replicas that were started, from the order to the first token
    revision: int = 0  # grows with every change
    canary: int | None = None  # a version that is being tried
    canary_share: float = 0.0
    next_number: int = 1  # of a replica
    goals: Mapping[str, float] = field(default_factory=dict)  # seconds, by what: "ttft p95"
    workload: str = ""  # the file that it came from
    place: str = ""  # the cluster and namespace where it runs; empty: this machine

    @property
    def stable(self) -> int:
        """The version that serves: the newest one that is not being tried and has replicas."""
        numbers = [record.version for record in self.replicas if record.version != self.canary and not record.is_draining]
        untried = [version.number for version in self.versions if version.number != self.canary]
        return max(numbers, default=max(untried, default=self.versions[-1].number))

    @property
    def parks_s(self) -> float | None:
        """How long a request may wait for the first replica; None: the last one never goes."""
        if self.most_replicas is None or self.fewest_replicas > 0:
            return None
        return max(self.queue_s, PARKED_STARTS * (self.cold_start_s or 0.0) + PARKED_S)

    def version(self, number: int) -> ServiceVersion:
        return next(version for version in self.versions if version.number == number)

    def of_version(self, number: int) -> tuple[ReplicaRecord, ...]:
        return tuple(record for record in self.replicas if record.version == number)

    def with_replica(self, record: ReplicaRecord) -> ServiceRecord:
        return replace(self, replicas=(*self.replicas, record), next_number=self.next_number + 1)

    def without(self, names: set[str]) -> ServiceRecord:
        return replace(self, replicas=tuple(record for record in self.replicas if record.name not in names))

    def draining(self, names: set[str]) -> ServiceRecord:
        """These get no new requests from now on."""
        records = (replace(record, is_draining=True) if record.name in names else record for record in self.replicas)
        return replace(self, replicas=tuple(records))


def replicas_of(service: ServiceRecord, before: Mapping[str, Replica]) -> tuple[Replica, ...]:
    """As a gateway has them: those that it knows stay the same objects, with the requests that they have."""
    replicas = []
    for record in service.replicas:
        replica = before.get(record.name)
        if replica is None:
            address = Address("127.0.0.1", record.port)
            replica = Replica(record.name, address, most_requests=record.at_once, is_away=True)
        replica.is_draining = record.is_draining
        replica.is_canary = record.version == service.canary
        replicas.append(replica)
    return tuple(replicas)


def written(service: ServiceRecord) -> dict[str, object]:
    return {"format": FORMAT, **asdict(service)}


def read_service(document: Mapping[str, Any]) -> ServiceRecord:
    if document.get("format") != FORMAT:
        raise BadInput(
            f"The file of the service has format {document.get('format')!r}.", remedy="Use the chipwise that wrote it."
        )
    try:
        values = dict(document)
        values["door"] = _as(ServiceDoor, values["door"])
        values["scaling"] = _as(ServiceScaling, values.get("scaling", {}))
        values["replicas"] = tuple(_as(ReplicaRecord, item) for item in values["replicas"])
        values["versions"] = tuple(
            _as(
                ServiceVersion, {**item, "request": _request(item["request"]), "needs": _needs(item["needs"]), **_cluster(item)}
            )
            for item in values["versions"]
        )
        return _as(ServiceRecord, values)
    except (KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"The file of the service is damaged: {error}.", remedy="Delete its folder.") from error


def _request(item: Mapping[str, Any]) -> ReplicaRequest:
    return _as(ReplicaRequest, {**item, "command": tuple(item["command"]), "extra_words": tuple(item["extra_words"])})


def _needs(item: Mapping[str, Any]) -> ReplicaNeeds:
    return _as(ReplicaNeeds, {**item, **{name: tuple(item[name]) for name in ("labels", "settings", "secrets")}})


def _cluster(item: Mapping[str, Any]) -> dict[str, ClusterVersion | None]:
    part = item.get("in_cluster")
    lists = {name: tuple(part[name]) for name in ("objects", "lasting")} if part else {}
    return {"in_cluster": _as(ClusterVersion, {**part, **lists}) if part else None}


def _as(kind: type[SettingsType], item: Mapping[str, Any]) -> SettingsType:
    names = {entry.name for entry in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in item.items() if name in names})
