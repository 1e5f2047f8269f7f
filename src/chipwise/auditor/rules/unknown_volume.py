"""A mount of a volume that the pod does not have: Kubernetes rejects it."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import pods_in, title_of
from chipwise.auditor.source import Located, Manifest, Sources, line_of, listed, look, walk

ABOUT = "what is mounted is a volume of the pod"


def check(sources: Sources) -> Iterator[Finding]:
    for manifest in sources.manifests:
        pods = [pod for pod in pods_in(manifest) if not pod.partial]
        volumes = _volumes(manifest) if pods else set()
        for pod, container in ((one, container) for one in pods for container in one.containers):
            for mount in listed(container.get("volumeMounts")):
                name = str(look(mount, "name"))
                if isinstance(mount, Located) and mount.get("name") and name not in volumes:
                    yield Finding(
                        rule="unknown-volume",
                        weight=Weight.HIGH,
                        path=manifest.path,
                        line=line_of(mount, "name"),
                        what=f"{title_of(pod, container)} mounts {name}, which is none of the volumes; Kubernetes rejects it",
                        fix="Declare the volume, or correct the name.",
                    )


def _jobset(manifest: Manifest) -> object:
    """A JobSet makes claims for its pods; a runtime of Kubeflow holds one."""
    spec = manifest.body.get("spec")
    return look(spec, "template", "spec") if manifest.kind.endswith("TrainingRuntime") else spec


def _volumes(manifest: Manifest) -> set[str]:
    """Those of a workflow or a claim stand elsewhere in the object than those of its pods."""
    policies = (look(one, "templates") for one in listed(look(_jobset(manifest), "volumeClaimPolicies")))
    claims = {str(look(claim, "metadata", "name")) for claims in policies for claim in listed(claims)}
    return claims | {
        str(look(volume, "name") or look(volume, "metadata", "name"))
        for mapping in walk(manifest.body)
        for key in ("volumes", "volumeClaimTemplates", "pvcs")
        for volume in listed(mapping.get(key))
    }
