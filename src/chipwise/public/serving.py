"""Services as a program sees them: a handle that outlives the call, and the verbs that start, scale, replace and stop them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from chipwise.public.calling import verbs
from chipwise.public.opened import Opened
from chipwise.public.plans import NoPlan, Plan
from chipwise.public.records import Record, Table
from chipwise.public.workloads import is_file, is_text, read_workload, stated

if TYPE_CHECKING:
    from chipwise.workload.common import Common

_DURATIONS = ("queue", "scale_every", "idle", "ready_within", "judge_for")
_PAIRS = {"labels": "labels", "env": "settings", "secrets": "secrets"}
_OF_REQUEST = ("name", "engine", "weights", "environment", "context", "at_once", "gpus", "health")


class ReplicaOptions(TypedDict, total=False):
    """What a replica is, as the options of `chipwise serve` say it. Durations are seconds or texts such as 30s."""

    engine: str
    weights: str
    environment: str
    context: int
    at_once: int
    gpus: int
    cpus: int
    health: str
    components: Mapping[str, str]
    flags: str | Sequence[str]
    env: Mapping[str, str]
    secrets: Mapping[str, str]
    ready_within: str | float


class ServiceOptions(ReplicaOptions, total=False):
    """How a service runs."""

    name: str
    replicas: int | str
    port: int
    host: str
    key_file: str
    certificate: str
    private_key: str
    scaling: str
    scale_every: str | float
    idle: str | float
    policy: str
    queue: str | float
    team: str
    project: str
    labels: Mapping[str, str]
    namespace: str
    folder: str | Path


class ScaleOptions(TypedDict, total=False):
    """Of a service that is scaled between two numbers of replicas."""

    scaling: str
    scale_every: str | float
    idle: str | float


@dataclass(frozen=True, slots=True)
class RunningService:
    """A service by its name: asking it looks it up anew."""

    name: str
    url: str
    session: ServeVerbs = field(default_factory=lambda: ServeVerbs(), compare=False, repr=False)

    @property
    def status(self) -> Record:
        return self.session.serve_status(self.name)[0]

    def scale(self, replicas: int | str, **options: Unpack[ScaleOptions]) -> RunningService:
        """To a number, or between two from now on: "1-4"."""
        return self.session.serve_scale(self.name, replicas, **options)

    def stop(self, *, now: bool = False) -> None:
        """Requests end, then the gateway and the replicas; `now` cuts them."""
        self.session.serve_stop(self.name, now=now)


def _request_of(work: Any, options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """What is served, and how it runs."""
    from chipwise.api.serving.resolving import ServeRequest
    from chipwise.units import parse_seconds

    settings = stated(options)
    settings |= {name: parse_seconds(settings[name]) for name in _DURATIONS if name in settings}
    for name, field_name in _PAIRS.items():
        if name in settings:
            settings[field_name] = tuple(f"{key}={value}" if value else str(key) for key, value in settings.pop(name).items())
    flags = settings.pop("flags", ())
    is_command = isinstance(work, list | tuple)
    is_name = isinstance(work, str | Path) and not is_text(str(work)) and not is_file(str(work))
    request = ServeRequest(
        words=tuple(map(str, work)) if is_command else (str(work) if is_name or _is_weights(work) else read_workload(work),),
        is_command=is_command,
        components=settings.pop("components", {}),
        flags=tuple(shlex.split(flags)) if isinstance(flags, str) else tuple(flags),
        **{name: settings.pop(name) for name in _OF_REQUEST if name in settings},
    )
    if "folder" in settings:
        settings["folder"] = Path(settings["folder"])
    return request, settings


def _is_weights(work: Any) -> bool:
    return isinstance(work, str | Path) and str(work).lower().endswith(".gguf")


@verbs
class ServeVerbs(Opened):
    """Services on this machine."""

    __slots__ = ()

    def serve(
        self,
        work: str | Path | Mapping[str, Any] | Common | Plan | NoPlan | Sequence[str],
        **options: Unpack[ServiceOptions],
    ) -> RunningService:
        """Serve a model, a file of weights, a workload, a plan or a command (a list of words) on this machine; with
        `engine="kubernetes"` a workload or a plan in a cluster.

        It is ready when this returns, and outlives the call: replicas are jobs that are started again when they are lost, and
        pods in a cluster.

        >>> service = cw.serve("tiny.gguf", replicas=2, port=0)
        >>> service.url, service.stop()
        """
        from chipwise.api.serving.options import ServeOptions
        from chipwise.api.serving.starting import serve

        request, settings = _request_of(work, options)
        service = serve(self.api, request, ServeOptions(**settings))
        return RunningService(service.name, service.door.url, self)

    def serve_status(self, name: str | None = None) -> Table:
        """Services, or one of them: versions, replicas, requests at each.

        >>> cw.serve_status()
        """
        from chipwise.api.serving.standing import standing

        return Table(standing(self.api, name))

    def serve_scale(self, name: str, replicas: int | str, **options: Unpack[ScaleOptions]) -> RunningService:
        """Change the number of replicas, or scale between two from now on; removed replicas finish their requests first.

        >>> cw.serve_scale("tiny", 3)
        >>> cw.serve_scale("tiny", "0-4", scaling="knative", idle="5m")
        """
        from chipwise.api.serving.changing import scale
        from chipwise.api.serving.options import ScalingOptions
        from chipwise.units import parse_seconds

        settings = stated(options)
        settings |= {key: parse_seconds(settings[key]) for key in ("scale_every", "idle") if key in settings}
        rules = ScalingOptions(settings.get("scaling"), settings.get("scale_every"), settings.get("idle"))
        service = scale(self.api, name, replicas, scaling=rules)
        return RunningService(service.name, service.door.url, self)

    def serve_rollout(
        self,
        name: str,
        work: str | Path | Mapping[str, Any] | Common | Plan | NoPlan | Sequence[str] | None = None,
        *,
        share: str | float = "10%",
        judge_for: str | float = "5m",
        instant: bool = False,
        back: bool = False,
        **options: Unpack[ReplicaOptions],
    ) -> RunningService:
        """Replace the version of a service: tried on a share of the requests, judged, and taken back where it is worse, which
        raises `NoResult`. `back` takes back a rollout that was left in the middle.

        >>> cw.serve_rollout("tiny", "better.gguf", share="10%")
        """
        from chipwise.api.serving import changing
        from chipwise.api.serving.options import RolloutOptions, ServeOptions
        from chipwise.units import parse_seconds, parse_share

        if back:
            service = changing.back(self.api, name)
        else:
            request, settings = _request_of(work if work is not None else (), options)
            rules = RolloutOptions(share=parse_share(share), judge_for=parse_seconds(judge_for), instant=instant)
            service = changing.rollout(self.api, name, request, ServeOptions(**settings), rules)
        return RunningService(service.name, service.door.url, self)

    def serve_stop(self, name: str | None = None, *, now: bool = False) -> None:
        """Stop a service: requests end, then the gateway and the replicas.

        >>> cw.serve_stop("tiny")
        """
        from chipwise.api.serving import changing
        from chipwise.api.serving.folders import only_name

        changing.stop(self.api, only_name(self.api, name), now=now)

    def serve_key(self, name: str, key_file: str | Path, *, team: str = "") -> str:
        """Create an API key, add its digest to a file, and return the key, which is not stored anywhere.

        >>> cw.serve_key("alice", "keys.yaml")
        """
        from chipwise.api.serving.standing import new_key

        return new_key(str(key_file), name, team)
