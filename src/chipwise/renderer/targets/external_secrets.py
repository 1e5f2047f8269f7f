"""External Secrets: what keeps the secrets that a workload names in step with the store of its cloud.

A stored secret has the name that the workload gives it, and its value is JSON with the workload's keys: as the start scripts of
`--to terraform` and `--to ec2` read it. The login of a registry is stored as Docker writes it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from chipwise.renderer.cluster.pod import Object, meta, namespace_of
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.quoting import shell
from chipwise.renderer.yaml_text import Noted, document

FITS = "secrets that a workload names, kept in the store of its cloud: SecretStore and ExternalSecrets for a cluster"
EXPRESSES = frozenset({"layers", "regions", "streams", "groups", "no run"})  # it runs nothing
WRITES = ("secrets.yaml",)
MANIFESTS = True

Wanted = Mapping[str, tuple[str, ...]]  # keys by the name of a secret
API = "external-secrets.io/v1"
_ABOUT = "Secrets of the workload from the store of its cloud: apply this after the namespace. Their values are not here."
DOCKER_KEY = ".dockerconfigjson"  # what Kubernetes and Docker call the login of a registry


def render(deployment: Deployment) -> list[File]:
    stages = [one for one in deployment.stages or (deployment,) if _wanted(one)]
    if not stages:
        raise CannotRender(
            f"{deployment.title} names no secret.",
            remedy="Add `program: {secrets: {HF_TOKEN: hub-token/token}}` to the workload, or `pull_secret: registry-login`.",
        )
    if any(one.form is Form.DEVICES for one in stages):
        raise CannotRender(
            f"{deployment.node.chip} is an edge device, where no operator runs.", remedy="Use --to compose, which reads files."
        )
    files, places = [], _by_place(stages)
    for (provider, region, _), together in places.items():
        first, wanted = together[0], _wanted(*together)
        _check(first, wanted)
        objects = [store(first, wanted), *(external(first, name, keys) for name, keys in wanted.items())]
        place = f"{provider}-{region}/" if len(places) > 1 else ""
        files.append(File(f"{place}secrets.yaml", document(*objects, title=heading(deployment, _ABOUT))))
    return files


def _by_place(stages: list[Deployment]) -> dict[tuple[str, str, str], list[Deployment]]:
    """Stages that share a namespace share their secrets too."""
    places: dict[tuple[str, str, str], list[Deployment]] = {}
    for stage in stages:
        places.setdefault((stage.node.provider, stage.node.region, namespace_of(stage)), []).append(stage)
    return places


def _wanted(*deployments: Deployment) -> dict[str, tuple[str, ...]]:
    """Keys by the name of the secret."""
    names: dict[str, list[str]] = {}
    for deployment in deployments:
        for _, name, key in deployment.software.secrets:
            names.setdefault(name, []).append(key)
        if deployment.software.pull_secret:
            names.setdefault(deployment.software.pull_secret, []).append(DOCKER_KEY)
    return {name: tuple(dict.fromkeys(keys)) for name, keys in names.items()}


def _check(deployment: Deployment, wanted: Wanted) -> None:
    provider = deployment.node.provider
    if provider not in ("aws", "gcp", "azure"):
        raise CannotRender(
            f"The plan is on {provider}, of whose store of secrets we know nothing.",
            remedy="kubectl create secret generic NAME --from-literal=KEY=VALUE, or a SecretStore of your own.",
        )
    odd = [name for name in wanted if provider == "azure" and not re.fullmatch(r"[0-9A-Za-z-]{1,127}", name)]
    if odd:
        raise CannotRender(
            f"Key Vault takes letters, digits and dashes for a name, and the workload names {odd[0]}.",
            remedy="Give the secret a name without dots.",
        )


def store(deployment: Deployment, wanted: Wanted) -> Object:
    provider, reason = _provider(deployment, wanted)
    return {
        "apiVersion": API,
        "kind": Noted("SecretStore", reason),
        "metadata": meta(deployment),
        "spec": {"provider": provider},
    }


def _provider(deployment: Deployment, wanted: Wanted) -> tuple[Object, str]:
    """The store, and what may read it: on AWS the operator itself, elsewhere the workload's own service account."""
    account: Object = {"name": deployment.name}
    match deployment.node.provider:
        case "aws":
            reason = (
                "Read with the rights of the operator's own service account (Pod Identity or IRSA). Give it\n"
                "secretsmanager:GetSecretValue and DescribeSecret for these names alone. Store each once, as JSON:\n"
                + "\n".join(_stored(deployment, name, keys) for name, keys in wanted.items())
            )
            return {"aws": {"service": "SecretsManager", "region": deployment.node.region}}, reason
        case "gcp":
            reason = (
                "Read as the workload's service account, which needs roles/secretmanager.secretAccessor on these secrets\n"
                "(Workload Identity Federation for GKE). Each holds JSON with the keys below."
            )
            identity: Object = {"workloadIdentity": {"serviceAccountRef": account}}
            return {"gcpsm": {"projectID": Noted("PUT-YOUR-PROJECT", "That has the secrets."), "auth": identity}}, reason
    reason = (
        "Read as the workload's service account: annotate it with azure.workload.identity/client-id of an identity that has\n"
        "the role Key Vault Secrets User and trusts this account. Each secret holds JSON with the keys below."
    )
    vault: Object = {
        "authType": "WorkloadIdentity",
        "vaultUrl": Noted("https://PUT-YOURS.vault.azure.net", "The vault that has the secrets."),
        "serviceAccountRef": account,
    }
    return {"azurekv": vault}, reason


def _stored(deployment: Deployment, name: str, keys: tuple[str, ...]) -> str:
    words = ["aws", "secretsmanager", "create-secret", "--region", deployment.node.region, "--name", name]
    if DOCKER_KEY in keys:
        return f"{shell(words)} --secret-string file://config.json  # of docker login"
    return f"{shell(words)} --secret-string file://{name}.json  # keys: {', '.join(keys)}"


def external(deployment: Deployment, name: str, keys: tuple[str, ...]) -> Object:
    """One of the cluster's secrets."""
    target: Object = {"name": name, "creationPolicy": Noted("Owner", "It goes with this object.")}
    if DOCKER_KEY in keys:
        target["template"] = {"type": Noted("kubernetes.io/dockerconfigjson", "So that it pulls images.")}
    return {
        "apiVersion": API,
        "kind": "ExternalSecret",
        "metadata": meta(deployment, name),
        "spec": {
            "refreshInterval": Noted("1h", "Pods take a new value when they start again."),
            "secretStoreRef": {"kind": "SecretStore", "name": deployment.name},
            "target": target,
            "data": [{"secretKey": key, "remoteRef": _remote(name, key)} for key in keys],
        },
    }


def _remote(name: str, key: str) -> Object:
    """A part of the stored JSON. The operator looks for a key with dots before it takes them for a path, unless it begins
    with one."""
    if key == DOCKER_KEY:
        return {"key": Noted(name, "The whole of it: what docker login wrote.")}
    return {"key": name, "property": key.replace(".", "\\.") if key.startswith(".") else key}
