"""What `chipwise serve` gives to a cluster: a version of a service, with the objects that `render --to kubernetes` writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

from chipwise.errors import BadInput
from chipwise.files.source import NamedText
from chipwise.renderer.cluster.pod import claim_name, claimed_volumes
from chipwise.renderer.cluster.work import work
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender
from chipwise.renderer.launch.timing import STEADY_S, ready_seconds
from chipwise.renderer.served import COMMAND, ServeRequest
from chipwise.serving.engine import ReplicaRequest
from chipwise.serving.service import ClusterVersion, ReplicaNeeds, ServiceVersion

PORT = 80  # of the rendered Service
# What of the options a plan decides, or the workload says, once it is for a cluster; by their field.
_BESIDES = frozenset({"words", "is_command", "name", "environment"})
_TYPED = {"settings": "env", "secrets": "secret", "components": "with"}


def check_request(request: ServeRequest, options: Mapping[str, object]) -> None:
    """Refuses what would be passed over. `options`: those that say how a service runs and differ from what they are unasked."""
    if request.is_command or len(request.words) > 1 or not _is_file(request.words):
        raise BadInput(
            f"A cluster serves a planned workload, and {' '.join(request.words)[:60] or 'nothing'} is none.",
            remedy="chipwise init serve > workload.yaml; program.command and program.image are for a program of your own.",
        )
    refused = {name: value for name, value in _stated(request).items() if name not in _BESIDES} | dict(options)
    if name := next(iter(refused), ""):
        typed = _TYPED.get(name, name).replace("_", "-")
        raise BadInput(
            f"In a cluster the plan and the workload say what --{typed} says on one machine.",
            remedy="Leave it out, and write it in the workload (program, replicas, goals).",
        )


def _stated(request: ServeRequest) -> dict[str, object]:
    return {entry.name: value for entry in fields(request) if (value := getattr(request, entry.name)) not in (None, "", (), {})}


def _is_file(words: tuple[str, ...]) -> bool:
    return bool(words) and (isinstance(words[0], NamedText) or words[0].endswith((".yaml", ".yml")))


def lasting_path(word: str) -> str:
    """By which the workload is found from another folder too, where it is a file."""
    return word if isinstance(word, NamedText) else str(Path(word).absolute())


def in_cluster(deployment: Deployment, name: str, replicas: tuple[int, int | None] | None) -> Deployment:
    """Under that name, and between those numbers of replicas where some are asked for."""
    scaling = deployment.scaling
    if deployment.form is not Form.SERVICE or deployment.software.port is None or scaling is None:
        raise CannotRender(
            f"{deployment.title} answers at no port, so it is no service.",
            remedy="`chipwise run --engine kubernetes` runs it; program.port says where a program of your own listens.",
        )
    if replicas is not None:
        fewest, maximum = replicas[0], replicas[1] or replicas[0]
        if fewest < 1:
            raise BadInput(
                "In a cluster one replica stays at least.",
                remedy="`chipwise render --to keda` writes scaling to zero; start it here with 1 or more.",
            )
        usual = min(max(scaling.usual, fewest), maximum)
        scaling = replace(scaling, minimum=fewest, usual=usual, maximum=maximum, reason="As asked for")
    return replace(deployment, name=name, namespace="", scaling=scaling)


def version_of(
    deployment: Deployment, number: int, created: float, queue: str, needs: ReplicaNeeds, environment: str
) -> ServiceVersion:
    """`deployment`: by `in_cluster`. `queue`: of Kueue; empty: none. `environment`: of the workload's file."""
    model, software, scaling = deployment.model, deployment.software, deployment.scaling
    image = software.image
    replica = ReplicaRequest(
        model=model.source if model is not None and not software.is_custom else image,
        served=model.served if model is not None else deployment.name,
        context=model.context if model is not None else None,
        at_once=scaling.slots if scaling is not None else None,
    )
    claims = [volume for volume in claimed_volumes(deployment) if volume.url is not None]
    return ServiceVersion(
        number=number,
        engine=COMMAND if software.is_custom else software.engine or software.purpose,
        request=replica,
        created=created,
        needs=needs,
        in_cluster=ClusterVersion(
            image=image,
            objects=work(deployment, queue, with_groups=True),
            starts_s=float(ready_seconds(deployment) + STEADY_S),
            environment=environment,
            lasting=tuple(claim_name(deployment, volume) for volume in claims),
        ),
    )
