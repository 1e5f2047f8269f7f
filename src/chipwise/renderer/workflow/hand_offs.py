"""What stages hand on: artifacts under keys that are known beforehand, so that a workflow in another place finds them too.

Programs see directories: `/hand-offs/in/SOURCE` and `/hand-offs/out/TARGET`. A stage of one pod gets them from Argo. Argo can
neither give files to a Job or a Deployment nor take files from it: there a claim holds them, and a small pod before or after
moves them.
"""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.renderer.cluster.pod import USER, Object
from chipwise.renderer.deployment import Deployment, HandOff
from chipwise.renderer.quoting import dns_name
from chipwise.renderer.yaml_text import Noted, Yaml
from chipwise.units import GB, GIB

ROOT = "/hand-offs"
STORES = {"gcp": "gcs", "azure": "azure"}  # whose keys artifacts have; all others speak S3


@dataclass(frozen=True, slots=True)
class Place:
    """Stages of one cluster: a provider's region."""

    provider: str
    region: str
    stages: tuple[Deployment, ...]

    @property
    def name(self) -> str:
        return dns_name(f"{self.provider}-{self.region}", 60)

    def has(self, title: str) -> bool:
        return any(stage.title == title for stage in self.stages)


@dataclass(frozen=True, slots=True)
class Passed:
    """All hand-offs of a pipeline, as one place sees them."""

    pipeline: str
    store: str  # gcs, azure or s3
    all: tuple[HandOff, ...]
    place: Place

    def into(self, stage: Deployment) -> tuple[HandOff, ...]:
        return tuple(one for one in self.all if one.target == stage.title)

    def out_of(self, stage: Deployment) -> tuple[HandOff, ...]:
        return tuple(one for one in self.all if one.source == stage.title)

    def comes_from_here(self, one: HandOff) -> bool:
        return self.place.has(one.source)


def key(text: str) -> str:
    """Of a stage, as tasks, templates and artifacts are named."""
    return dns_name(text, 30)


def room(stage: Deployment, passed: Passed) -> float:
    """Bytes that the stage's hand-offs take, all of them."""
    every = (*passed.into(stage), *passed.out_of(stage))
    return sum(one.size_bytes or GB for one in every)


def arriving(stage: Deployment, passed: Passed) -> Object:
    """Inputs of a template: named by their source where Argo passes them on, under their key where they come from elsewhere."""
    return {"artifacts": [_artifact(passed, one, True) for one in passed.into(stage)]}


def leaving(stage: Deployment, passed: Passed) -> Object:
    return {"artifacts": [_artifact(passed, one, False) for one in passed.out_of(stage)]}


def _artifact(passed: Passed, one: HandOff, inward: bool) -> Yaml:
    other = one.source if inward else one.target
    made: Object = {"name": f"from-{key(other)}" if inward else f"to-{key(other)}"}
    made["path"] = f"{ROOT}/{'in' if inward else 'out'}/{key(other)}"
    if not inward or not passed.comes_from_here(one):
        where = f"{passed.pipeline}/{{{{workflow.parameters.run}}}}/{key(one.source)}-{key(one.target)}"
        made[passed.store] = {("blob" if passed.store == "azure" else "key"): where}
    if not inward:
        made["archive"] = {"none": {}}
    size = "" if one.size_bytes is None else f"{one.size_bytes / GB:,.3g} GB"
    told = ", ".join(part for part in (one.format, size) if part)
    return Noted(made, f"{told}{'; as it is, for packing takes longer than sending' if not inward else ''}.".strip("; "))


def given(stage: Deployment, passed: Passed) -> Object:
    """Arguments of a task: artifacts that tasks of the same workflow made."""
    found: list[Yaml] = [
        {"name": f"from-{key(one.source)}", "from": f"{{{{tasks.{maker}.outputs.artifacts.to-{key(one.target)}}}}}"}
        for one in passed.into(stage)
        if passed.comes_from_here(one)
        for maker in (publisher(one.source, passed),)
    ]
    return {"arguments": {"artifacts": found}} if found else {}


def publisher(title: str, passed: Passed) -> str:
    """The task whose output it is: the stage, or the small pod after it."""
    stage = next(one for one in passed.place.stages if one.title == title)
    return f"{key(title)}-publish" if stage.volume("hand-offs") is not None else key(title)


def mover(stage: Deployment, passed: Passed, inward: bool, image: str) -> Object:
    """The small pod before or after a stage that is applied: it moves files between the store and the claim."""
    size = max(int(room(stage, passed) / GIB / 10), 1)
    made: Object = {"name": f"{key(stage.title)}-{'fetch' if inward else 'publish'}"}
    made |= {"inputs": arriving(stage, passed)} if inward else {"outputs": leaving(stage, passed)}
    container: Object = {
        "image": image,
        "command": Noted(["true"], "Argo itself moves the files, before or after."),
        "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"memory": f"{min(1 + size, 8)}Gi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "hand-offs", "mountPath": ROOT}],
    }
    made["retryStrategy"] = {"limit": "5", "retryPolicy": "Always", "backoff": {"duration": "30s", "factor": "2"}}
    made["securityContext"] = {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    made["container"] = container
    made["volumes"] = [{"name": "hand-offs", "persistentVolumeClaim": {"claimName": f"{stage.name}-hand-offs"}}]
    return made
