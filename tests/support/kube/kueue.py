"""The real Kueue beside the test cluster, with its webhooks and conversions answered by itself.

The server finds Kueue through a Service of type ExternalName, for there is no pod network; the certificate is one that we sign
and put where a Secret would be mounted. All else is Kueue's own published configuration.
"""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kube import programs
from kube.control_plane import Cluster
from kube.credentials import Authority
from kube.process import Running, free_ports, wait_for

SYSTEM = "kueue-system"
SERVICE = "kueue-webhook-service"
SECRET = "kueue-webhook-server-cert"
WITHOUT = "without-kueue"  # a label of namespaces that Kueue leaves alone
VERSION = "kueue.x-k8s.io/v1beta2"
FRAMEWORKS = (
    "batch/job",
    "pod",
    "deployment",
    "statefulset",
    "jobset.x-k8s.io/jobset",
    "trainer.kubeflow.org/trainjob",
    "kubeflow.org/mpijob",
)
# Whose kinds it is to know. It looks for a kind that comes after it at longer and longer intervals, of up to two minutes.
DEFINED_BEFORE = ("jobset", "trainer", "mpi-operator")
READY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class _Address:
    """How the server reaches Kueue and knows it; Kueue would write the authority itself, but finds it there."""

    port: int
    authority: str

    def put(self, client: dict[str, Any]) -> None:
        client["service"].update(name=SERVICE, namespace=SYSTEM, port=self.port)
        client["caBundle"] = self.authority


def start(cluster: Cluster) -> Running:
    """Installs and starts Kueue; back when it admits workloads."""
    programs.program("kueue")
    webhook, health = free_ports(2)
    certificates = cluster.folder / "kueue-certificates"
    certificates.mkdir()
    authority = Authority("kueue-ca")
    pair = authority.issue([f"{SERVICE}.{SYSTEM}.svc"])
    content = {
        "ca.crt": authority.pair.certificate,
        "ca.key": authority.pair.key,
        "tls.crt": pair.certificate,
        "tls.key": pair.key,
    }
    for name, data in content.items():
        (certificates / name).write_bytes(data)
    cluster.must_apply(_foundation(content, webhook))
    found = _Address(webhook, base64.b64encode(authority.pair.certificate).decode())
    for component in DEFINED_BEFORE:
        cluster.install(component)
    cluster.install("kueue", _definitions(found))
    cluster.must_apply(_webhooks(found))
    settings = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": SYSTEM,
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": webhook, "certDir": str(certificates)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": True, "webhookServiceName": SERVICE, "webhookSecretName": SECRET},
        "integrations": {"frameworks": list(FRAMEWORKS)},
        "featureGates": {"VisibilityOnDemand": False},  # it would listen on a fixed port
    }
    path = cluster.folder / "kueue.yaml"
    path.write_text(json.dumps(settings), encoding="utf-8")
    running = cluster.run("kueue", [f"--config={path}"], {"KUBECONFIG": str(cluster.kubeconfig())})
    wait_for("Kueue's webhooks", lambda: _answers(cluster, running), READY_SECONDS)
    return running


def _answers(cluster: Cluster, running: Running) -> bool:
    """A flavor tried for nothing: accepted only once the server reaches Kueue's webhook and trusts it."""
    running.must_run()
    probe = {"apiVersion": VERSION, "kind": "ResourceFlavor", "metadata": {"name": "probe"}}
    [answer] = cluster.api.apply([probe], dry_run=True)
    answer.must()
    return True


def _foundation(content: Mapping[str, bytes], port: int) -> list[Mapping[str, Any]]:
    data = {name: base64.b64encode(one).decode() for name, one in content.items()}
    service = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "namespace": SYSTEM}, "data": data},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE, "namespace": SYSTEM}, "spec": service},
    ]


def _definitions(found: _Address) -> list[dict[str, Any]]:
    """Kueue's definitions with the conversions that its own installation adds."""
    conversions = {one["metadata"]["name"]: one["spec"]["conversion"] for one in programs.manifests("kueue", "conversions")}
    made = [copy.deepcopy(dict(one)) for one in programs.manifests("kueue", "definitions")]
    for definition in made:
        conversion = conversions.get(definition["metadata"]["name"])
        if conversion and len(definition["spec"]["versions"]) > 1:
            found.put(conversion["webhook"]["clientConfig"])
            definition["spec"]["conversion"] = conversion
    return made


def _webhooks(found: _Address) -> list[dict[str, Any]]:
    made = [copy.deepcopy(dict(one)) for one in programs.manifests("kueue", "webhooks")]
    elsewhere = {
        "matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", SYSTEM]},
            {"key": WITHOUT, "operator": "DoesNotExist"},
        ]
    }
    for configuration in made:
        configuration["metadata"]["name"] = f"kueue-{configuration['metadata']['name']}"
        for webhook in configuration["webhooks"]:
            found.put(webhook["clientConfig"])
            if all("kueue.x-k8s.io" not in rule["apiGroups"] for rule in webhook["rules"]):
                webhook["namespaceSelector"] = elsewhere
    return made
