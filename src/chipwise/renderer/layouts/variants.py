"""The objects of every environment side by side: which are its own, and which stand once for a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from chipwise.renderer.cluster.pod import namespace_of
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.layouts.commented import read
from chipwise.renderer.quoting import dns_name
from chipwise.renderer.yaml_text import Noted, Yaml, plain

# Stands for the namespace while files are compared: no workload has such a name, and what holds it is found again in any text.
NAMESPACE = "chipwise-namespace-of-the-environment"
# Fields whose lists Kubernetes merges by a key of their items; other lists are replaced as a whole.
MERGED = {
    "containers": ("name",),
    "initContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "ports": ("containerPort", "port"),
    "imagePullSecrets": ("name",),
    "topologySpreadConstraints": ("topologyKey",),
}
ABSENT = object()
LONGEST_RELEASE = 53  # characters, as Helm takes it


@dataclass(frozen=True, slots=True)
class Key:
    api: str
    kind: str
    name: str
    namespace: str

    @property
    def own(self) -> bool:
        """Of the workload's namespace, which every environment has one of."""
        return self.namespace == NAMESPACE or (self.kind == "Namespace" and self.name == NAMESPACE)

    @property
    def file(self) -> str:
        return f"{self.kind.lower()}.yaml" if self.name == NAMESPACE else f"{self.kind.lower()}-{self.name}.yaml"


@dataclass(frozen=True, slots=True)
class ClusterObject:
    key: Key
    file: str  # in which the target writes it
    body: Yaml  # with its comments

    @property
    def value(self) -> Yaml:
        return plain(self.body)


@dataclass(frozen=True, slots=True)
class Variant:
    """One environment: what is deployed there, and the objects of it. An empty name is that of the defaults."""

    name: str
    deployment: Deployment
    namespace: str
    manifests: Mapping[Key, ClusterObject]
    other_files: tuple[File, ...]  # no objects: values of a chart, scripts
    titles: Mapping[str, str]  # of the target's files
    target: str = "kubernetes"
    taken: tuple[Key, ...] = ()  # objects that are left out, because another target of the same command has them

    @property
    def release(self) -> str:
        """The name of all that is installed together: that of no other target's, which would take its place."""
        name = self.deployment.name
        if self.target == "kubernetes":
            return name
        return f"{dns_name(name, LONGEST_RELEASE - len(self.target) - 1)}-{self.target}"


def variant(
    name: str,
    deployment: Deployment,
    namespace: str,
    files: Sequence[File],
    target: str = "kubernetes",
    beside: Sequence[str] = (),
) -> Variant:
    """`files` were rendered in the namespace `NAMESPACE`; `beside`: the other targets that are rendered with this one."""
    manifests: dict[Key, ClusterObject] = {}
    other_files, titles = [], {}
    for file in files:
        manifests_here = _manifests(file)
        if not manifests_here:
            other_files.append(file)
            continue
        if twice := next((one.key for one in manifests_here if one.key in manifests), None):
            raise CannotRender(
                f"{twice.kind} {twice.name} is in several of the files, which are for several clusters.",
                remedy="Leave --layout out, or take one stage with --stage.",
            )
        manifests |= {one.key: one for one in manifests_here}
        titles[file.path] = read(file.text).title
    taken = tuple(key for key, one in manifests.items() if target == "kubernetes" and _is_taken(one, deployment, beside))
    return Variant(
        name=name,
        deployment=deployment,
        namespace=namespace,
        manifests={key: one for key, one in manifests.items() if key not in taken},
        other_files=tuple(other_files),
        titles=titles,
        target=target,
        taken=taken,
    )


def _is_taken(manifest: ClusterObject, deployment: Deployment, beside: Sequence[str]) -> bool:
    """KEDA scales a service, by its hours too, and starts jobs itself."""
    if "keda" not in beside:
        return False
    if deployment.form is not Form.SERVICE:
        return manifest.file == "workload.yaml"
    clocks = {f"{deployment.name}-{word}" for word in ("open", "close", "hours")}
    return manifest.key.kind == "HorizontalPodAutoscaler" or manifest.key.name in clocks


def _manifests(file: File) -> list[ClusterObject]:
    """None where anything in it is no object."""
    if not file.path.endswith(".yaml"):
        return []
    manifests_here = []
    for body in read(file.text).values:
        value = plain(body)
        metadata = value.get("metadata") if isinstance(value, Mapping) else None
        if not isinstance(value, Mapping) or not isinstance(metadata, Mapping) or not {"apiVersion", "kind"} <= value.keys():
            return []
        words = (value["apiVersion"], value["kind"], metadata.get("name", ""), metadata.get("namespace", ""))
        manifests_here.append(ClusterObject(Key(*map(str, words)), file.path, body))
    return manifests_here


def own_namespace(deployment: Deployment, environment: str) -> str:
    """One for each environment, so that several can stand in one cluster."""
    space = namespace_of(deployment)
    return dns_name(f"{space}-{environment}") if environment else space


def keys(variants: Iterable[Variant]) -> tuple[Key, ...]:
    """Of all of them, in the order in which they are written."""
    return tuple(dict.fromkeys(key for one in variants for key in one.manifests))


def placed(value: Yaml, namespace: str) -> Yaml:
    """The value with the environment's namespace where it belongs."""
    match value:
        case Noted():
            return Noted(placed(value.value, namespace), value.comment.replace(NAMESPACE, namespace))
        case Mapping():
            return {key: placed(one, namespace) for key, one in value.items()}
        case str():
            return value.replace(NAMESPACE, namespace)
        case Sequence():
            return [placed(one, namespace) for one in value]
    return value


def item_key(field: str, items: Sequence[Yaml]) -> str | None:
    """By what items of this list are told apart, where Kubernetes does so."""
    for key in MERGED.get(field, ()):
        if items and all(isinstance(item, Mapping) and key in item for item in items):
            return key
    return None
