"""Ray's processes speak only with their own version: an operator that expects another one starts a cluster that fails."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import pods_in
from chipwise.auditor.source import Located, Manifest, Sources, line_of, walk

ABOUT = "images of Ray have the version that the cluster states, and those of one group have one"
_IMAGE = re.compile(r"(?:^|/)ray(?:-llm|-ml)?:(?:nightly-)?(\d+\.\d+\.\d+)")


def check(sources: Sources) -> Iterator[Finding]:
    for manifest in sources.manifests:
        if manifest.kind == "LeaderWorkerSet":
            yield from _group(manifest)
        if manifest.kind not in ("RayCluster", "RayService", "RayJob"):
            continue
        for spec in (one for one in walk(manifest.body) if "rayVersion" in one):
            for container in (container for pod in pods_in(manifest) for container in pod.mains):
                yield from _other(manifest.path, manifest.title, spec, container)


def _group(manifest: Manifest) -> Iterator[Finding]:
    """Leader and workers of one program, with releases that were never tried with each other."""
    mains = [container for pod in pods_in(manifest) for container in pod.mains]
    first = str(mains[0].get("image") or "") if mains else ""
    for container in mains[1:]:
        image = str(container.get("image") or "")
        name, _, tag = image.rpartition(":")
        if name and name == first.rpartition(":")[0] and tag != first.rpartition(":")[2]:
            yield Finding(
                rule="ray-version",
                weight=Weight.MEDIUM,
                path=manifest.path,
                line=line_of(container, "image"),
                what=f"{manifest.title} joins {first} and {image}: machines of a group have to run one release",
                fix=f"Set {first} in both.",
                also=((manifest.path, line_of(mains[0], "image")),),
            )


def _other(path: str, title: str, spec: Located, container: Located) -> Iterator[Finding]:
    version = _IMAGE.search(str(container.get("image") or ""))
    stated = str(spec["rayVersion"])
    if version and version[1] != stated:
        yield Finding(
            rule="ray-version",
            weight=Weight.MEDIUM,
            path=path,
            line=line_of(spec, "rayVersion"),
            what=f"{title} states Ray {stated}, and an image has {version[1]}",
            fix=f"Set rayVersion: {version[1]}, and one version in all images.",
            also=((path, line_of(container, "image")),),
        )
