"""What stages hand on: artifacts under keys that are known beforehand, so that a workflow in another place finds them too.

Programs see directories: `/hand-offs/in/SOURCE` and `/hand-offs/out/TARGET`. A stage of one pod gets them from Argo. Argo can
neither give files to a Job or a Deployment nor take files from it: there a claim holds them, and a small pod before or after
moves them.
"""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.catalog.region import UNSTATED, readable
from chipwise.renderer.cluster.pod import USER, Object, claim_name
from chipwise.renderer.deployment import Deployment, HandOff, Volume
from chipwise.renderer.launch.handing import ROOT as ROOT
from chipwise.renderer.launch.handing import arrives_at, leaves_from, written_by
from chipwise.renderer.launch.handing import key as key
from chipwise.renderer.launch.mounted import mounted_volumes
from chipwise.renderer.quoting import dns_name
from chipwise.renderer.yaml_text import Noted, Yaml
from chipwise.text import decimal_size
from chipwise.units import GB, GIB

STORES = {"gcp": "gcs", "azure": "azure"}  # whose keys artifacts have; all others speak S3


@dataclass(frozen=True, slots=True)
class Place:
    """Stages of one cluster: a provider's region."""

    provider: str
    region: str
    stages: tuple[Deployment, ...]

    @property
    def name(self) -> str:
        return dns_name(self.provider if readable(self.region) == UNSTATED else f"{self.provider}-{self.region}", 60)

    def has(self, title: str) -> bool:
        return any(stage.title == title for stage in self.stages)


@dataclass(frozen=True, slots=True)
class PlaceHandOffs:
    """All hand-offs of a pipeline, as one place sees them."""

    pipeline: str
    store: str  # gcs, azure or s3
    all: tuple[HandOff, ...]
    place: Place

    def inputs_of(self, stage: Deployment) -> tuple[HandOff, ...]:
        return tuple(one for one in self.all if one.target == stage.title)

    def out_of(self, stage: Deployment) -> tuple[HandOff, ...]:
        return tuple(one for one in self.all if one.source == stage.title)

    def comes_from_here(self, one: HandOff) -> bool:
        return self.place.has(one.source)


def room(stage: Deployment, hand_offs: PlaceHandOffs) -> float:
    """Bytes that the stage's hand-offs take, all of them."""
    moves = (*hand_offs.inputs_of(stage), *hand_offs.out_of(stage))
    return sum(one.size_bytes or GB for one in moves)


def arriving(stage: Deployment, passed: PlaceHandOffs) -> Object:
    """Inputs of a template: named by their source where Argo passes them on, under their key where they come from elsewhere."""
    return {"artifacts": [_artifact(passed, one, True, arrives_at(one.source)) for one in passed.inputs_of(stage)]}


def leaving(stage: Deployment, passed: PlaceHandOffs) -> Object:
    return {"artifacts": [_artifact(passed, one, False, leaves_from(stage, one)) for one in passed.out_of(stage)]}


def _artifact(hand_offs: PlaceHandOffs, hand_off: HandOff, inward: bool, path: str) -> Yaml:
    peer = hand_off.source if inward else hand_off.target
    fields: Object = {"name": f"from-{key(peer)}" if inward else f"to-{key(peer)}"}
    fields["path"] = path
    if not inward or not hand_offs.comes_from_here(hand_off):
        object_key = f"{hand_offs.pipeline}/{{{{workflow.parameters.run}}}}/{key(hand_off.source)}-{key(hand_off.target)}"
        fields[hand_offs.store] = {("blob" if hand_offs.store == "azure" else "key"): object_key}
    if not inward:
        fields["archive"] = {"none": {}}
    size = "" if hand_off.size_bytes is None else decimal_size(hand_off.size_bytes)
    summary = ", ".join(part for part in (hand_off.format, size) if part)
    return Noted(fields, f"{summary}{'; as it is, for packing takes longer than sending' if not inward else ''}.".strip("; "))


def task_arguments(stage: Deployment, hand_offs: PlaceHandOffs) -> Object:
    """Arguments of a task: artifacts that tasks of the same workflow made."""
    artifacts: list[Yaml] = [
        {"name": f"from-{key(hand_off.source)}", "from": f"{{{{tasks.{maker}.outputs.artifacts.to-{key(hand_off.target)}}}}}"}
        for hand_off in hand_offs.inputs_of(stage)
        if hand_offs.comes_from_here(hand_off)
        for maker in (publisher(hand_off.source, hand_offs),)
    ]
    return {"arguments": {"artifacts": artifacts}} if artifacts else {}


def publisher(title: str, hand_offs: PlaceHandOffs) -> str:
    """The task whose output it is: the stage, or the small pod after it."""
    stage = next(one for one in hand_offs.place.stages if one.title == title)
    return f"{key(title)}-publish" if stage.volume("hand-offs") is not None else key(title)


def mover(stage: Deployment, hand_offs: PlaceHandOffs, inward: bool, image: str) -> Object:
    """The small pod before or after a stage that is applied: it moves files between the store and the claim."""
    size = max(int(room(stage, hand_offs) / GIB / 10), 1)
    fields: Object = {"name": f"{key(stage.title)}-{'fetch' if inward else 'publish'}"}
    fields |= {"inputs": arriving(stage, hand_offs)} if inward else {"outputs": leaving(stage, hand_offs)}
    container: Object = {
        "image": image,
        "command": Noted(["true"], "Argo itself moves the files, before or after."),
        "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"memory": f"{min(1 + size, 8)}Gi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "hand-offs", "mountPath": ROOT}],
    }
    volumes: list[Yaml] = [{"name": "hand-offs", "persistentVolumeClaim": {"claimName": f"{stage.name}-hand-offs"}}]
    volume = _result_volume(stage) if not inward else None
    if volume is not None:
        mount: Object = {"name": volume.name, "mountPath": volume.path}
        container["volumeMounts"] = [{"name": "hand-offs", "mountPath": ROOT}, Noted(mount, "Where the command writes.")]
        volumes.append({"name": volume.name, "persistentVolumeClaim": {"claimName": claim_name(stage, volume)}})
    fields["retryStrategy"] = {"limit": "5", "retryPolicy": "Always", "backoff": {"duration": "30s", "factor": "2"}}
    fields["securityContext"] = {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    fields["container"] = container
    fields["volumes"] = volumes
    return fields


def _result_volume(stage: Deployment) -> Volume | None:
    """The volume in which a command of ours leaves what it hands on, beside that of the hand-offs."""
    path = written_by(stage)
    return next((one for one in mounted_volumes(stage) if path is not None and path.startswith(f"{one.path}/")), None)
