"""A kind of object that no rule reads: that nothing is said of it does not mean that it is right."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import pods_in
from chipwise.auditor.source import Sources, line_of

ABOUT = "kinds that are not understood are named"
_NO_GROUP = ("v1", "")
_KNOWN_GROUPS = (  # of Kubernetes itself, and of operators whose objects without pods rules read or need not read
    "apps", "batch", "policy", "autoscaling", "networking.k8s.io", "rbac.authorization.k8s.io", "storage.k8s.io",
    "scheduling.k8s.io", "apiextensions.k8s.io", "resource.k8s.io", "coordination.k8s.io", "admissionregistration.k8s.io",
    "node.k8s.io", "discovery.k8s.io", "apiregistration.k8s.io", "certificates.k8s.io", "snapshot.storage.k8s.io",
    "kustomize.config.k8s.io", "karpenter.sh", "karpenter.k8s.aws", "eksctl.io", "keda.sh", "kueue.x-k8s.io",
    "gateway.networking.k8s.io", "inference.networking.k8s.io", "inference.networking.x-k8s.io", "monitoring.coreos.com",
    "cert-manager.io", "external-secrets.io", "argoproj.io", "trainer.kubeflow.org",
)  # fmt: skip


def check(sources: Sources) -> Iterator[Finding]:
    for manifest in sources.manifests:
        group, slash, _ = str(manifest.body.get("apiVersion", "")).rpartition("/")
        if not manifest.kind or not slash or group in _NO_GROUP or group in _KNOWN_GROUPS:
            continue
        if not any(True for _ in pods_in(manifest)):
            yield Finding(
                rule="unknown-kind",
                weight=Weight.LOW,
                path=manifest.path,
                line=line_of(manifest.body, "kind"),
                what=f"{manifest.title} ({group}) is not understood: only its secrets were looked for",
                fix="Read it by hand; audit what its operator makes of it: kubectl get pods -o yaml | chipwise audit -",
            )
