"""An object that another names and that is not there: a route without a service, machines that are never made."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import pods_of
from chipwise.auditor.source import Located, Manifest, Sources, line_of, listed, look, walk

ABOUT = "objects that are named are there"
_Reference = tuple[str, str, int]  # kind, name and line


def check(sources: Sources) -> Iterator[Finding]:
    names = defaultdict[tuple[str, str, str], set[str]](set)
    names_by_kind = defaultdict[str, set[str]](set)
    for manifest in sources.manifests:
        names[(posixpath.dirname(manifest.path), manifest.namespace, manifest.kind)].add(manifest.name)
        names_by_kind[manifest.kind].add(manifest.name)
    for manifest in sources.manifests:
        for kind, name, line in _references(manifest):
            near = names.get((posixpath.dirname(manifest.path), manifest.namespace, kind))
            if near and name not in names_by_kind[kind] and "{{" not in name and "$" not in name:
                yield Finding(
                    rule="missing-object",
                    weight=Weight.HIGH,
                    path=manifest.path,
                    line=line,
                    what=f"{manifest.title} names {kind} {name}, and here is {', '.join(sorted(near)[:3])}",
                    fix=f"Name the {kind} that is there, or add the one that is named.",
                )
    yield from _settings(sources)


def _references(manifest: Manifest) -> Iterator[_Reference]:
    if manifest.kind == "Ingress":
        for mapping in walk(manifest.body):
            name = look(mapping.get("service"), "name")
            if name and "port" in mapping["service"]:
                yield "Service", str(name), line_of(mapping["service"], "name")
    if manifest.kind == "NodePool":
        place = look(manifest.body, "spec", "template", "spec", "nodeClassRef")
        if look(place, "kind") == "EC2NodeClass" and look(place, "name"):
            yield "EC2NodeClass", str(look(place, "name")), line_of(place, "name")


def _settings(sources: Sources) -> Iterator[Finding]:
    """A trigger of KEDA that takes an address from a setting of the container which scales."""
    pods = {(pod.owner.kind, pod.owner.namespace, pod.owner.name): pod for pod in pods_of(sources)}
    for manifest in sources.manifests:
        target = look(manifest.body, "spec", "scaleTargetRef")
        place = (str(look(target, "kind") or "Deployment"), manifest.namespace, str(look(target, "name")))
        if manifest.kind == "ScaledJob":
            place = (manifest.kind, manifest.namespace, manifest.name)
        if manifest.kind not in ("ScaledObject", "ScaledJob") or place not in pods:
            continue
        containers = pods[place].mains
        setting_names = {str(look(one, "name")) for main in containers for one in listed(main.get("env"))}
        if any(main.get("envFrom") for main in containers):
            continue
        for trigger in listed(look(manifest.body, "spec", "triggers")):
            yield from _unset(manifest, look(trigger, "metadata"), setting_names)


def _unset(manifest: Manifest, settings: Any, setting_names: set[str]) -> Iterator[Finding]:
    for key, value in settings.items() if isinstance(settings, Located) else ():
        if str(key).endswith("FromEnv") and str(value) not in setting_names:
            yield Finding(
                rule="missing-object",
                weight=Weight.HIGH,
                path=manifest.path,
                line=line_of(settings, key),
                what=f"{manifest.title}: {key} reads the setting {value}, which its workload does not have",
                fix=f"Name one of {', '.join(sorted(setting_names)) or 'its settings'}, or use authenticationRef.",
            )
