"""Rendered objects as those of one service: labels by which they are found again, selectors that take its own pods alone.

They keep the names that they were rendered with, so that a service is called what its workload is called.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from chipwise.errors import BadInput
from chipwise.renderer.quoting import label_value
from chipwise.serving.service import ReplicaNeeds, ServiceVersion

from .kinds import ACCOUNT, AUTOSCALER, CLAIM, DEPLOYMENT, GROUPS, OWNED, Object, ObjectKind
from .objects import RECORD, selecting

SERVICE_LABEL, VERSION_LABEL = "serve.chipwise.dev/service", "serve.chipwise.dev/version"
HOLDERS = (DEPLOYMENT, GROUPS)  # one of them holds the replicas
SHARED = (CLAIM, ACCOUNT)  # taken as they are where they are there already
# In this order they are made, and removed the other way round: an autoscaler would make replicas anew.
KINDS = (*SHARED, *(kind for kind in OWNED if kind is not AUTOSCALER), *HOLDERS, AUTOSCALER)
_BY_NAME = {kind.name: kind for kind in KINDS}


def own_labels(name: str, record: str) -> dict[str, str]:
    return {SERVICE_LABEL: name, **({RECORD: record} if record else {})}


def selector(labels: Mapping[str, str]) -> str:
    """Of a list."""
    return ",".join(f"{key}={value}" for key, value in labels.items())


def served_objects(name: str, version: ServiceVersion, namespace: str, record: str) -> list[tuple[ObjectKind, Object]]:
    """All of a version, in the order in which they are made."""
    assert version.in_cluster is not None
    own = own_labels(name, record)
    marked = {**_payers(version.needs), **own, VERSION_LABEL: str(version.number)}
    pairs = []
    for item in version.in_cluster.objects:
        kind = _BY_NAME.get(str(item.get("kind")))
        if kind is None:
            raise BadInput(
                f"{name} has a {item.get('kind')}, which `serve` does not apply.",
                remedy="Render it with --to kubernetes and kubectl apply the files.",
            )
        body = selecting(copy.deepcopy(dict(item)), own)
        lasts = kind is CLAIM and body["metadata"]["name"] in version.in_cluster.lasting
        body["metadata"] |= {"namespace": namespace}
        body["metadata"]["labels"] = {**body["metadata"].get("labels", {}), **({} if lasts else marked)}
        for template in templates(kind, body):
            meta = template.setdefault("metadata", {})
            meta["labels"] = {**meta.get("labels", {}), **marked}
        pairs.append((kind, body))
    return sorted(pairs, key=lambda pair: KINDS.index(pair[0]))


def templates(kind: ObjectKind, body: Object) -> list[dict[str, Any]]:
    """Of its pods."""
    if kind is DEPLOYMENT:
        return [body["spec"]["template"]]
    if kind is not GROUPS:
        return []
    group = body["spec"]["leaderWorkerTemplate"]
    return [group[name] for name in ("leaderTemplate", "workerTemplate") if name in group]


def begun_with(objects: list[tuple[ObjectKind, Object]]) -> list[tuple[ObjectKind, Object]]:
    """As they are made first: with as many replicas as the autoscaler would make of one a moment later."""
    fewest = next((body["spec"].get("minReplicas") for kind, body in objects if kind is AUTOSCALER), None)
    return [
        (kind, {**body, "spec": {"replicas": fewest, **body["spec"]}} if fewest and kind in HOLDERS else body)
        for kind, body in objects
    ]


def changed(kind: ObjectKind, former: Object, body: Object) -> Object:
    """The object that is there with what a version says of it. How many replicas there are stays."""
    meta, spec = former["metadata"], dict(body.get("spec") or {})
    before = former.get("spec") or {}
    own_fields = ("replicas",) if kind in HOLDERS else ("minReplicas", "maxReplicas") if kind is AUTOSCALER else ()
    spec |= {name: before[name] for name in own_fields if name in before}
    merged = {name: {**(meta.get(name) or {}), **(body["metadata"].get(name) or {})} for name in ("labels", "annotations")}
    replaced = {**body, "metadata": {**meta, **{name: value for name, value in merged.items() if value}}}
    return {**replaced, "spec": spec} if spec else replaced


def _payers(needs: ReplicaNeeds) -> dict[str, str]:
    pairs = {"team": needs.team, "project": needs.project, **dict(label.partition("=")[::2] for label in needs.labels)}
    values = {"app.kubernetes.io/managed-by": "chipwise"}
    return values | {
        f"chipwise.dev/{name}": text
        for key, value in pairs.items()
        if (name := label_value(key)) and (text := label_value(value))
    }
