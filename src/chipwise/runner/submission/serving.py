"""Options of `chipwise serve` that say how a service runs, at its start and at later changes."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path

from chipwise.errors import BadInput
from chipwise.runner.submission.ranges import workers
from chipwise.serving.service import ServiceScaling, ServiceVersion

PORT = 8080
POLICY = "least-work"
QUEUE_S = 30.0
STARTS_WITHIN_S = 1800.0  # large models take long to load
MOST_REPLICAS = 256
SHARE, JUDGES_FOR_S, DRAINS_WITHIN_S = 0.1, 300.0, 120.0
IN_CLUSTER = frozenset({"replicas", "ready_within", "team", "project", "labels", "namespace"})  # options that hold there


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Options of `chipwise serve` that say how it runs."""

    replicas: int | str | None = None  # 2, or 1-4 to scale between; None: as the plan says, else one
    port: int = PORT
    host: str = "127.0.0.1"
    key_file: str | None = None
    certificate: str | None = None
    private_key: str | None = None
    scaling: str | None = None  # a policy of `chipwise policies`, or a file; where it is scaled between two numbers
    scale_every: float | None = None
    idle: float | None = None  # without a request, before the last replica of 0-N goes
    policy: str = POLICY
    queue: float = QUEUE_S
    ready_within: float | None = None  # None: as the plan predicts it for a cluster, else STARTS_WITHIN_S
    cpus: int = 0
    team: str | None = None
    project: str | None = None
    labels: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    folder: Path | None = None
    namespace: str | None = None  # of a cluster; None: as it is configured

    @property
    def within_s(self) -> float:
        """Of a replica on this machine."""
        return STARTS_WITHIN_S if self.ready_within is None else self.ready_within

    @property
    def of_this_machine(self) -> dict[str, object]:
        """Those that were given and mean nothing in a cluster."""
        values = ((entry, getattr(self, entry.name)) for entry in fields(self) if entry.name not in IN_CLUSTER)
        return {entry.name: value for entry, value in values if value != entry.default}


@dataclass(frozen=True, slots=True)
class ScalingOptions:
    """None: not given."""

    policy: str | None = None
    every_s: float | None = None
    idle_s: float | None = None


@dataclass(frozen=True, slots=True)
class RolloutOptions:
    share: float = SHARE  # of the requests, while it is judged
    judge_for: float = JUDGES_FOR_S
    instant: bool = False  # all requests at once, without judgement
    drain: float = DRAINS_WITHIN_S


def check_in_cluster(options: ScalingOptions | RolloutOptions) -> None:
    """Refuses what the cluster itself decides."""
    if isinstance(options, ScalingOptions) and options != ScalingOptions():
        raise BadInput(
            "The cluster scales by its own autoscaler.",
            remedy="Give one or two numbers alone; `chipwise render --to keda` writes other rules.",
        )
    if isinstance(options, RolloutOptions) and options != RolloutOptions():
        raise BadInput(
            "A cluster replaces one replica after the other, without a share of the requests.",
            remedy="Leave --share, --judge-for and --instant out; `chipwise render --to argo-rollouts` writes a canary.",
        )


def replica_counts(replicas: int | str) -> tuple[int, int | None]:
    """How many there are at first, and between that and which number they are scaled; None: they are not."""
    most_replicas, fewest = workers(str(replicas), "--replicas")
    if not (1 if fewest is None else 0) <= (most_replicas if fewest is None else fewest) <= most_replicas <= MOST_REPLICAS:
        zero = " Write 0-4 to let the last one go while nobody asks." if most_replicas == 0 else ""
        raise BadInput(f"{replicas} replicas cannot be started.", remedy=f"Start 1 to {MOST_REPLICAS}, as 2 or 1-4.{zero}")
    return (most_replicas, None) if fewest is None else (fewest, most_replicas)


def checked_scaling(options: ScalingOptions, most_replicas: int | None, before: ServiceScaling | None = None) -> ServiceScaling:
    """As the service's file has it; a policy that does not exist, or a file that cannot be read, is refused here."""
    from chipwise.scale.questions.scaling import scaling_policy

    if most_replicas is None:
        if any(value is not None for value in (options.policy, options.every_s, options.idle_s)):
            raise BadInput("A fixed number of replicas is not scaled.", remedy="Give two numbers: 1-4, or 0-4.")
        return ServiceScaling()
    before = before or ServiceScaling()
    name = before.policy if options.policy is None else options.policy
    if name:
        scaling_policy(name)
    if name.endswith(".py"):
        name = str(Path(name).expanduser().absolute())
    idle_s = before.idle_s if options.idle_s is None else options.idle_s
    return ServiceScaling(policy=name, every_s=options.every_s or before.every_s, idle_s=idle_s)


def as_options(options: ServeOptions, version: ServiceVersion) -> ServeOptions:
    """Those of a version that runs, where none are given for the next."""
    needs = version.needs
    return replace(
        options,
        cpus=options.cpus or needs.cpus,
        team=options.team or needs.team,
        project=options.project or needs.project,
        settings=options.settings or needs.settings,
        secrets=options.secrets or needs.secrets,
        folder=options.folder or Path(needs.folder),
    )
