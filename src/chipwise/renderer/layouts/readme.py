"""What stands beside the tree: where things are, how it is applied, and what a GitOps controller is given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chipwise.renderer.layouts import shared
from chipwise.renderer.layouts.variants import Key, Variant, keys
from chipwise.renderer.quoting import one_line
from chipwise.renderer.yaml_text import Noted, Yaml, document

REPOSITORY = "https://git.example.com/team/deployments.git"


def readme(layout: str, defaults: Variant, environments: Sequence[Variant], folder: str = "") -> str:
    """`folder`: that of the target, where several are rendered at once. Paths of a GitOps controller begin with it."""
    title = one_line(defaults.deployment.title)
    variants = (defaults, *environments)
    lines = [f"# {title}", "", "Written by chipwise from the plans of a workload, one for each of its environments.", ""]
    lines += ["| Environment | Namespace | Machines |", "|---|---|---|"]
    for variant in environments or (defaults,):
        node = variant.deployment.node
        machines = (
            f"{variant.deployment.machines} x {node.machine} ({node.provider} {node.region}, {variant.deployment.purchase})"
        )
        lines.append(f"| {variant.name or '(defaults)'} | `{variant.namespace}` | {machines} |")
    lines += ["", *_left_out(variants), *_stored(variants), *_cluster(layout, variants)]
    lines += _kustomize(variants, folder) if layout == "kustomize" else _helm(variants, folder)
    return "\n".join(lines).rstrip("\n") + "\n"


def _example(variants: Sequence[Variant]) -> Variant:
    return variants[1] if len(variants) > 1 else variants[0]


def _code(kind: str, text: str) -> list[str]:
    return [f"```{kind}", text.rstrip("\n"), "```", ""]


def _names(every: Iterable[Key]) -> str:
    return ", ".join(f"{key.kind} `{key.name.replace(shared.NAMESPACE, 'NAMESPACE')}`" for key in every)


def _left_out(variants: Sequence[Variant]) -> list[str]:
    """KEDA is the one target that takes something over."""
    left_out = tuple(dict.fromkeys(key for one in variants for key in one.taken))
    return [f"Left out, because the files of `keda` do the same: {_names(left_out)}.", ""] if left_out else []


def _stored(variants: Sequence[Variant]) -> list[str]:
    names = ", ".join(f"`{key.name}`" for key in keys(variants) if key.kind == "ExternalSecret")
    sentence = (
        f"All environments of one cloud and region read the same stored secrets ({names}). Where one must not have the values"
        " of another, store its own under other names (`prod-...`), and put those into `remoteRef.key` of its ExternalSecrets."
    )
    return [sentence, ""] if names and len(variants) > 2 else []


def _cluster(layout: str, variants: Sequence[Variant]) -> list[str]:
    if not shared.stands_apart(variants):
        sentence = (
            "All objects here belong to a whole cluster and have the same names in every environment"
            f" ({_names(keys(variants)[:6])}): give each environment a cluster of its own, or apply those of one environment"
            " for all, with limits that are enough for all."
        )
        return [sentence, ""] if len(variants) > 2 else []
    if all(key.own for key in keys(variants)):
        return []
    flag = "-k" if layout == "kustomize" else "-f"
    apart, cluster_keys = shared.not_common(variants), [key for key in keys(variants) if not key.own]
    lines = ["## Once per cluster", ""]
    places = ["cluster"] if len(apart) < len(cluster_keys) else []
    places += [f"cluster/{_example(variants).name or 'base'}"] if apart else []
    lines += _code("sh", "\n".join(f"kubectl apply --server-side {flag} {place}" for place in places))
    if conflicts := shared.conflicting(variants):
        sentence = (
            f"Environments differ in objects that a cluster has once ({_names(conflicts[:6])}): give each"
            " environment a cluster of its own, or merge these files where several share one."
        )
        lines += [sentence, ""]
    return lines


def _kustomize(variants: Sequence[Variant], folder: str) -> list[str]:
    variant = _example(variants)
    path = f"overlays/{variant.name}" if variant.name else "base"
    image = _main_image(variant)
    lines = ["## Apply and release", ""]
    pin = f"\n# a release: pin what runs there\n(cd {path} && kustomize edit set image {image}@sha256:DIGEST)"
    commands = f"kubectl diff -k {path}\nkubectl apply --server-side -k {path}"
    lines += _code("sh", commands + (pin if _names_image(variant, image) else ""))
    lines += ["## GitOps", "", "Argo CD:", "", *_code("yaml", _argo(variant, {"path": f"{folder}{path}"}))]
    flux: Yaml = {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": _release(variant), "namespace": "flux-system"},
        "spec": {
            "interval": "10m",
            "path": f"./{folder}{path}",
            "prune": True,
            "sourceRef": {"kind": "GitRepository", "name": "deployments"},
            "wait": True,
            "timeout": "1h",
        },
    }
    return [*lines, "Flux, with a GitRepository `deployments`:", "", *_code("yaml", document(flux))]


def _helm(variants: Sequence[Variant], folder: str) -> list[str]:
    variant = _example(variants)
    values = [] if not variant.name else [f"values-{variant.name}.yaml"]
    flags = "".join(f" -f chart/{name}" for name in values)
    name = variant.release
    namespace, created = "", " --create-namespace"
    if any(key.own and key.kind == "Namespace" for key in variant.manifests):
        namespace, created = f"kubectl apply --server-side -f namespaces/{variant.name or 'base'}.yaml\n", ""
    lines = ["## Apply and release", ""]
    lines += _code("sh", f"{namespace}helm upgrade --install {name} chart{flags} --namespace {variant.namespace}{created}")
    source: dict[str, Yaml] = {"path": f"{folder}chart"}
    source |= {"helm": {"releaseName": name} | ({"valueFiles": ["values.yaml", *values]} if values else {})}
    lines += ["## GitOps", "", "Argo CD:", "", *_code("yaml", _argo(variant, source, namespace=True))]
    paths: list[Yaml] = [f"./{folder}chart/{name}" for name in ("values.yaml", *values)]
    flux: Yaml = {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": name, "namespace": variant.namespace},
        "spec": {
            "interval": "10m",
            "timeout": "1h",
            "chart": {
                "spec": {
                    "chart": f"./{folder}chart",
                    "sourceRef": {"kind": "GitRepository", "name": "deployments", "namespace": "flux-system"},
                    **({"valuesFiles": paths} if values else {}),
                }
            },
        },
    }
    return [*lines, "Flux, with a GitRepository `deployments`:", "", *_code("yaml", document(flux))]


def _release(variant: Variant) -> str:
    return f"{variant.release}-{variant.name}" if variant.name else variant.release


def _argo(variant: Variant, source: dict[str, Yaml], namespace: bool = False) -> str:
    options: list[Yaml] = ["ServerSideApply=true"]
    policy: dict[str, Yaml] = {"automated": {"prune": True, "selfHeal": True}}
    if namespace:
        namespace_object = next(
            (one.value for key, one in variant.manifests.items() if key.kind == "Namespace" and key.own), None
        )
        if isinstance(namespace_object, dict):
            policy["managedNamespaceMetadata"] = {"labels": namespace_object["metadata"]["labels"]}
            options.append("CreateNamespace=true")
    spec: dict[str, Yaml] = {
        "project": "default",
        "source": {"repoURL": REPOSITORY, "targetRevision": "main", **source},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": variant.namespace},
    }
    if scaled := _scaled_by_clocks(variant):
        options.append("RespectIgnoreDifferences=true")
        ignored: list[Yaml] = [{"group": "apps", "kind": kind, "jsonPointers": ["/spec/replicas"]} for kind in scaled]
        spec["ignoreDifferences"] = Noted(ignored, "Its clocks change the number.")
    application: Yaml = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": _release(variant), "namespace": "argocd"},
        "spec": spec | {"syncPolicy": policy | {"syncOptions": options}},
    }
    return document(application)


def _scaled_by_clocks(variant: Variant) -> list[str]:
    """Kinds whose number a clock of these files sets, while they state one."""
    if not (variant.deployment.starts and variant.deployment.stops):
        return []
    stated = {key.kind for key, one in variant.manifests.items() if isinstance(_spec(one.value).get("replicas"), int)}
    return sorted(stated & {"Deployment", "StatefulSet"})


def _spec(manifest: Yaml) -> dict[str, Yaml]:
    spec = manifest.get("spec") if isinstance(manifest, dict) else None
    return spec if isinstance(spec, dict) else {}


def _names_image(variant: Variant, image: str) -> bool:
    return any(f"'image': '{image}" in str(one.value) for one in variant.manifests.values())


def _main_image(variant: Variant) -> str:
    return variant.deployment.software.image.partition("@")[0].rsplit(":", 1)[0] or "IMAGE"
