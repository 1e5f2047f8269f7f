"""Rendered objects as those of one attempt: names of its own, labels by which it is found, and what its program is told.

The same job and attempt always give the same names, so that an order given twice makes nothing twice. Selectors get the labels
of the attempt too, so that two jobs of one workload do not take each other's pods for their own.
"""

from __future__ import annotations

import copy
import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chipwise.errors import BadInput
from chipwise.renderer.quoting import dns_name, kubernetes, label_value
from chipwise.runner.hand_off import CODE, by_engine
from chipwise.runner.job import Job

from . import allowed, hand_off, sampled
from .kinds import (
    AUTOSCALER,
    DEPLOYMENT,
    JOB,
    JOB_LABEL,
    MAIN,
    NETWORK_POLICY,
    OWNED,
    PERSISTENT,
    SERVICE,
    Object,
    ObjectKind,
    each_alone,
)
from .picture import ATTEMPT, Key
from .progress_reports import MESSAGE, PATH

RECORD = "chipwise.dev/record"  # whose job it is, where several records lead jobs in one namespace
ID = "chipwise.dev/job-id"  # an annotation: the id as it is
BELONGING = "chipwise.dev/belonging"  # an annotation: what else was made for it
LONGEST_ID = 45  # of a name: -a<number>, and the index and suffix that a pod's name gets, must fit into 63
_DIGEST = 10  # letters of it that an id gets which is no name; ids that are end in seven of their own
_LIKE_A_DIGEST = re.compile(rf"-[0-9a-f]{{{_DIGEST}}}$")
_LIKE_AN_ATTEMPT = re.compile(r"-a[0-9]")
NAME = "app.kubernetes.io/name"
HANDLE = re.compile(r"([a-z](?:[a-z0-9-]*[a-z0-9])?)-(?:a([0-9]{1,6})|(gate))")
# What surrounds the work is for who runs the cluster (`kubectl apply -f namespace.yaml`), and takes rights that a job's owner
# should not have.
SURROUNDINGS = frozenset(
    {
        "Namespace",
        "PriorityClass",
        "StorageClass",
        "ResourceQuota",
        "LimitRange",
        "ResourceFlavor",
        "ClusterQueue",
        "LocalQueue",
        "WorkloadPriorityClass",
        "Cohort",
        "NodePool",
        "EC2NodeClass",
        "DaemonSet",
        "ClusterRole",
        "ClusterRoleBinding",
        "RuntimeClass",
    }
)
NO_USE = (126, 127)  # a command that is not there stays so


@dataclass(frozen=True, slots=True)
class AttemptObjects:
    """What an attempt applies: first what is kept, then the work itself, then what belongs to it."""

    main: tuple[ObjectKind, Object]
    owned: tuple[tuple[ObjectKind, Object], ...]
    persistent: tuple[tuple[ObjectKind, Object], ...]


def slug(id: str) -> str:
    """Of any id another: whoever chooses one must not get the names of another's job."""
    if dns_name(id, LONGEST_ID) == id and not _LIKE_A_DIGEST.search(id):
        return id
    digest = hashlib.sha256(id.encode(errors="surrogatepass")).hexdigest()[:_DIGEST]
    return f"{dns_name(id, LONGEST_ID - _DIGEST - 1)}-{digest}"


def name_of(key: Key) -> str:
    return f"{key[0]}-a{key[1]}"


def key_of_job(job: Job) -> Key:
    return slug(job.id), len(job.attempts)


def kind_of(job: Job) -> ObjectKind:
    """What the attempt is; a Job where that cannot be told, as of one whose objects are refused."""
    kinds = {str(one.get("kind")): one for one in job.spec.objects}
    return next((kind for kind in MAIN if kind.name in kinds), JOB)


def attempt_objects(job: Job, namespace: str, record: str) -> AttemptObjects:
    """Raises BadInput also where they make no sense: others may have written them into the record."""
    try:
        return _attempt_objects(job, namespace, record)
    except (TypeError, ValueError, LookupError, AttributeError, RecursionError) as error:
        raise BadInput(
            f"The objects of {job.spec.name} are not valid Kubernetes objects: {type(error).__name__}: {str(error)[:200]}.",
            remedy="Render the workload again.",
        ) from error


def _attempt_objects(job: Job, namespace: str, record: str) -> AttemptObjects:
    spec = job.spec
    if not spec.objects:
        raise BadInput(
            f"{spec.name} is a plain command, and a cluster needs an image to run it in.",
            remedy="Name one with --image, or in a workload file: program: {image: ..., command: [...]}.",
        )
    objects = [(_kind(item, spec.name), item) for item in spec.objects if not _surrounds(item)]
    for kind, item in objects:
        if fault := allowed.fault(kind, item):
            raise BadInput(
                f"The {kind.name} of {spec.name} has {fault}, which a job may not have.",
                remedy="Run the workload as chipwise renders it, or apply it with kubectl.",
            )
    mains = [(kind, one) for kind, one in objects if kind in MAIN]
    if len(mains) != 1:
        raise BadInput(
            f"{spec.name} has {len(mains)} Jobs and Deployments, and an attempt is one.",
            remedy="Run each stage by itself, or take --to argo.",
        )
    [(kind, main)] = mains
    key = key_of_job(job)
    work = _work(kind, main, job, key, namespace, record)
    owned = [
        (name, _confined(name, _renamed(manifest, _old(main), key, namespace, labels(job, record)), kind, key))
        for name, manifest in objects
        if name in OWNED
    ]
    if owned:
        work["metadata"]["annotations"][BELONGING] = ",".join(f"{other.name}/{one['metadata']['name']}" for other, one in owned)
    claims = [(other, _placed(one, namespace)) for other, one in objects if other in PERSISTENT]
    return AttemptObjects((kind, work), tuple(owned), tuple(claims))


def owned_by(body: Object, kind: ObjectKind, main: Object) -> Object:
    """Gone when its owner is: nothing of an attempt is left when its Job is deleted."""
    meta = main["metadata"]
    owner = {"apiVersion": kind.version, "kind": kind.name, "name": meta["name"], "uid": meta["uid"]}
    return {**body, "metadata": {**body["metadata"], "ownerReferences": [owner]}}


def owned_names(main: Object) -> list[tuple[ObjectKind, str]]:
    """What belongs to it, as it says itself."""
    text = str((main["metadata"].get("annotations") or {}).get(BELONGING, ""))
    pairs = (one.partition("/") for one in text.split(",") if one)
    return [(kind, name) for which, _, name in pairs for kind in OWNED if kind.name == which]


def labels(job: Job, record: str) -> dict[str, str]:
    """Who pays is cut to what a label may hold; the whole is in the record."""
    spec = job.spec
    wanted = {"owner": spec.owner, "team": spec.team, "project": spec.project, **spec.labels}
    values = {"app.kubernetes.io/managed-by": "chipwise"}
    values |= {
        f"chipwise.dev/{name}": text
        for key, value in wanted.items()
        if (name := label_value(key)) and (text := label_value(value))
    }
    return {**values, **_own(key_of_job(job)), **({RECORD: record} if record else {})}


def _own(key: Key) -> dict[str, str]:
    return {JOB_LABEL: key[0], ATTEMPT: str(key[1])}


def _surrounds(one: Object) -> bool:
    return one.get("kind") in SURROUNDINGS or (one.get("metadata") or {}).get("namespace") == "kube-system"


def _kind(body: Object, name: str) -> ObjectKind:
    for kind in (*MAIN, *OWNED, *PERSISTENT):
        if kind.name == body.get("kind"):
            return kind
    if body.get("kind") in ("CronJob", "Role", "RoleBinding"):
        raise BadInput(
            f"{name} has a schedule, which needs CronJobs in the cluster.",
            remedy="Render it and kubectl apply the files, or take the schedule out of the workload.",
        )
    raise BadInput(
        f"{name} has a {str(body.get('kind'))[:40]!r}, which this engine does not apply.",
        remedy="Apply it with kubectl, and run the rest.",
    )


def _old(main: Object) -> str:
    return str((main.get("metadata") or {}).get("name", ""))


def _placed(body: Object, namespace: str) -> dict[str, Any]:
    copied = copy.deepcopy(dict(body))
    copied["metadata"] = {**copied.get("metadata", {}), "namespace": namespace}
    return copied


def _renamed(body: Object, old: str, key: Key, namespace: str, marked: Mapping[str, str]) -> dict[str, Any]:
    """What was called after the work is called after the attempt, and what follows its name keeps following it."""
    renamed: dict[str, Any] = selecting(_placed(body, namespace), _own(key))
    meta = renamed["metadata"]
    own = str(meta.get("name", ""))
    meta["name"] = name_of(key) + _ending(own.removeprefix(old) if old and own.startswith(old) else f"-{own}" if own else "")
    meta["labels"] = {**(meta.get("labels") or {}), **marked}
    return renamed


def _confined(kind: ObjectKind, body: dict[str, Any], main: ObjectKind, key: Key) -> dict[str, Any]:
    """To the attempt, whatever pods it would select, and whatever it would scale."""
    spec, own = {**(body.get("spec") or {})}, _own(key)
    if kind is SERVICE:
        if spec.get("selector"):  # one without selects nothing
            spec["selector"] = {**spec["selector"], **own}
    elif kind is AUTOSCALER:
        spec["scaleTargetRef"] = {"apiVersion": main.version, "kind": main.name, "name": name_of(key)}
    else:
        field = "podSelector" if kind is NETWORK_POLICY else "selector"
        selector = spec.get(field) or {}
        spec[field] = {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), **own}}
    return {**body, "spec": spec}


def _ending(text: str) -> str:
    """Of a name, behind that of the attempt: none that makes it the name of what belongs to another attempt."""
    if not text or (text.startswith("-") and not _LIKE_AN_ATTEMPT.search(text)):
        return text
    return f"-x{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:8]}"


def selecting(node: Any, own: Mapping[str, str]) -> Any:
    """Selectors of pods by name, wherever they stand, narrowed to those of the attempt."""
    if isinstance(node, list):
        return [selecting(each, own) for each in node]
    if not isinstance(node, dict):
        return node
    narrowed = {name: selecting(value, own) for name, value in node.items()}
    for name in ("matchLabels", "selector"):
        if isinstance(narrowed.get(name), dict) and NAME in narrowed[name]:
            narrowed[name] = {**narrowed[name], **own}
    return narrowed


def _work(kind: ObjectKind, main: Object, job: Job, key: Key, namespace: str, record: str) -> dict[str, Any]:
    old, spec = _old(main), job.spec
    former = str((main.get("metadata") or {}).get("namespace", ""))
    marked = labels(job, record)
    work = _renamed(main, old, key, namespace, marked)
    work["metadata"]["name"] = name_of(key)
    work["metadata"]["annotations"] = {
        **(work["metadata"].get("annotations") or {}),
        ID: job.id,
    }
    body = work.get("spec") or {}
    template = body.get("template") or {}
    template["metadata"] = {**(template.get("metadata") or {})}
    template["metadata"]["labels"] = {**(template["metadata"].get("labels") or {}), **marked}
    template["metadata"]["annotations"] = {**(template["metadata"].get("annotations") or {}), ID: job.id}
    pod = template.get("spec")
    if not isinstance(pod, dict) or not pod.get("containers"):
        raise BadInput(f"The {kind.name} of {spec.name} has no container.", remedy="Render the workload again.")
    if kind is DEPLOYMENT:
        body["selector"] = {"matchLabels": {**((body.get("selector") or {}).get("matchLabels") or {}), **_own(key)}}
    pod["terminationGracePeriodSeconds"] = max(int(pod.get("terminationGracePeriodSeconds") or 30), math.ceil(spec.grace_s))
    if pod.get("subdomain") == old:
        pod["subdomain"] = name_of(key)
    pod["containers"] = [_container(one, job, pod, (old, former), (name_of(key), namespace)) for one in pod["containers"]]
    if kind is JOB:
        first, *sidecars = pod["containers"]
        pod["containers"] = [sampled.sampling(hand_off.looking(first, spec, body)), *sidecars]
        _as_job(body, pod, [CODE] if by_engine(spec) and not each_alone(body) else [])
        if job.machines != spec.needs.machines:
            _resize(body, pod, spec.needs.machines, job.machines)
    return work


def _resize(body: dict[str, Any], pod: dict[str, Any], wanted: int, count: int) -> None:
    """Rendered for as many pods as were wanted; an attempt with fewer has as many, and its program is told so. Pods that each
    do a part by themselves stay as many, and fewer of them run at a time."""
    if each_alone(body):
        body["parallelism"] = max(int(body.get("parallelism") or wanted) * count // wanted, 1)
        return
    body |= {"completions": count, "parallelism": count}
    for container in pod["containers"]:
        for words in ("command", "args"):
            if container.get(words):
                container[words] = [
                    re.sub(rf"(--nnodes[= ]){wanted}(?!\d)", rf"\g<1>{count}", word) for word in container[words]
                ]
        for setting in container.get("env") or ():
            if setting["name"] == "WORLD_SIZE" and str(setting.get("value", "")).isdigit():
                setting["value"] = str(int(setting["value"]) // wanted * count)


def _as_job(body: dict[str, Any], pod: Mapping[str, Any], final: Sequence[int]) -> None:
    """Kept until it is cleared: one that removes itself would look like one that never was. `final`: exit codes of the first of
    several pods that work together, after which the others have nobody to work with."""
    body.pop("ttlSecondsAfterFinished", None)
    if pod.get("restartPolicy") == "Never":
        rules = (body.get("podFailurePolicy") or {}).get("rules") or []
        failed = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": sorted([*NO_USE, *final])}}
        body["podFailurePolicy"] = {"rules": [*rules, failed]}


def _container(
    source: Mapping[str, Any], job: Job, pod: Mapping[str, Any], old: tuple[str, str], new: tuple[str, str]
) -> dict[str, Any]:
    container = dict(source)
    for words in ("command", "args"):
        if container.get(words):
            container[words] = [_meeting(word, old, new) for word in container[words]]
    settings = {setting["name"]: dict(setting) for setting in container.get("env") or ()}
    for setting in settings.values():
        if "value" in setting:
            setting["value"] = _meeting(str(setting["value"]), old, new)
    for name, value in _settings(job, source, pod, settings):
        settings[name] = {"name": name, "value": kubernetes(value)}
    for name, reference in job.spec.secrets.items():
        if name in settings:  # rendered with the Secret that holds it
            continue
        secret, _, field = reference.partition("/")
        if not field:
            raise BadInput(
                f"The secret {name} is not stored where the cluster can read it.",
                remedy=f"kubectl create secret generic NAME --from-literal=KEY=..., and --secret {name}=NAME/KEY.",
            )
        settings[name] = {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": field}}}
    container["env"] = list(settings.values())
    return container


def _meeting(word: str, old: tuple[str, str], new: tuple[str, str]) -> str:
    """The address of a pod by the names of its Job and Service, where a rendered command or setting has it."""
    if not all(old):
        return word
    pattern = rf"(?<![A-Za-z0-9.-]){re.escape(old[0])}-(\d+)\.{re.escape(old[0])}\.{re.escape(old[1])}\.svc"
    return re.sub(pattern, lambda found: f"{new[0]}-{found[1]}.{new[0]}.{new[1]}.svc", word)


def _settings(
    job: Job, container: Mapping[str, Any], pod: Mapping[str, Any], present: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    spec = job.spec
    yield from spec.env.items()
    yield "CHIPWISE_JOB", job.id
    yield "CHIPWISE_ATTEMPT", str(len(job.attempts))
    checkpoints = spec.checkpoints or ("" if "CHIPWISE_CHECKPOINTS" in present else _checkpoints(job, container, pod))
    if checkpoints:
        yield "CHIPWISE_CHECKPOINTS", checkpoints
    if spec.interruptions_per_hour is not None:
        yield "CHIPWISE_INTERRUPTIONS_PER_HOUR", f"{spec.interruptions_per_hour:g}"
    if kind_of(job) is JOB:  # a service has no steps
        yield MESSAGE, str(container.get("terminationMessagePath") or PATH)


def _checkpoints(job: Job, container: Mapping[str, Any], pod: Mapping[str, Any]) -> str:
    """A folder of the job on the volume for checkpoints, where there is one that outlives a pod."""
    lasting = {one["name"] for one in pod.get("volumes") or () if "persistentVolumeClaim" in one}
    for mount in container.get("volumeMounts") or ():
        if mount["name"] in lasting and "checkpoint" in mount["name"]:
            return f"{str(mount['mountPath']).rstrip('/')}/{job.id}"
    return ""
