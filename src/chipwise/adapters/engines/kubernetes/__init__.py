"""A Kubernetes cluster: a connection, a picture kept by watches, what is read from it, and the objects that are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from chipwise.runner.abilities import Home, Market, Traits

if TYPE_CHECKING:
    from chipwise.runner.job import Job, Spec

    from .engine import Config, Kubernetes
    from .settings import Settings

NAME = __name__.rpartition(".")[2].replace("_", "-")
TRAITS = Traits(turn_s=0.5, detail="context")  # a look reads what watches brought


def connect(config: Config) -> Kubernetes:
    """Reads the kubeconfig, and asks the cluster nothing yet."""
    from .engine import connect

    return connect(config)


def settings_model() -> type[Settings]:
    """What engines.yaml may say of it."""
    from .settings import Settings

    return Settings


def configured(settings: Settings, home: Home) -> Config:
    from pathlib import Path

    from .engine import Config

    return Config(
        kubeconfig=Path(settings.kubeconfig).expanduser() if settings.kubeconfig else None,
        context=settings.context,
        namespace=settings.namespace,
        # Objects carry it: an engine with another name takes none of these for left over.
        record=home.record if NAME == "kubernetes" else f"{home.record}-{NAME}",
        logs=home.folder / f"{NAME}-logs",
    )


def market(settings: Settings) -> Market:
    return Market(tuple(settings.clouds), tuple(settings.regions))


def plain_objects(spec: Spec, image: str, queue: str) -> Sequence[Mapping[str, Any]]:
    from .plain import command_objects

    return command_objects(spec, image, queue)


def cpus_of(objects: Sequence[Mapping[str, Any]]) -> int:
    """Of each pod, as rendered: so many are held, whatever a command line would ask for."""
    import math

    from .story import amount

    [main] = [one for one in objects if one["kind"] in ("Job", "Deployment")]
    containers = main["spec"]["template"]["spec"]["containers"]
    return max(math.ceil(sum(amount(one["resources"]["requests"].get("cpu", 0)) for one in containers)), 1)


def serves_at(job: Job, port: int) -> str:
    from .objects import key_of_job, name_of

    name, namespace = name_of(key_of_job(job)), job.spec.place.rpartition("/")[2]
    inside = f"http://{name}.{namespace}.svc{'' if port == 80 else f':{port}'} in the cluster"
    return f"{inside}; from here: kubectl -n {namespace} port-forward svc/{name} 8080:{port}"


def passing(spec: Spec) -> Sequence[str]:
    """Files that lie on no volume that outlives their pod."""
    from .hand_off import passing

    return passing(spec)


def check_rank(job: Job, number: int | None, rank: int) -> None:
    """Replicas of a service come and go, and are counted by age; a Job has as many pods as machines."""
    from chipwise.errors import BadInput

    if job.spec.service:
        return
    count = max((one.machines for one in job.attempts if number in (None, one.number)), default=job.spec.needs.machines)
    if rank >= count:
        numbered = "Leave --rank out." if count == 1 else f"They are numbered from 0 to {count - 1}."
        raise BadInput(f"{job.id} has {f'{count} pods' if count > 1 else 'one pod'}, and none is {rank}.", remedy=numbered)
