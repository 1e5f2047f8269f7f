"""What stands once in a cluster and not once in an environment: classes, quotas of the cluster, device plugins; and files that
are no objects. Where environments say different things of one name, each needs a cluster of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from chipwise.renderer.file import File
from chipwise.renderer.heading import heading
from chipwise.renderer.layouts.variants import NAMESPACE as NAMESPACE
from chipwise.renderer.layouts.variants import ClusterObject, Key, Variant, keys, placed
from chipwise.renderer.yaml_text import Yaml, document, plain

List = Callable[[Iterable[str], str], str]  # the kustomization of these files


def stands_apart(variants: Sequence[Variant]) -> bool:
    """A target all of whose objects belong to the cluster (Karpenter's) has nothing else to be kept apart from."""
    return any(key.own for key in keys(variants))


def not_common(variants: Sequence[Variant]) -> tuple[Key, ...]:
    """Objects of the cluster that not every environment has, or that are not the same in all."""
    return tuple(key for key in keys(variants) if not key.own and not _everywhere(key, variants))


def conflicting(variants: Sequence[Variant]) -> tuple[Key, ...]:
    """Of those, what has one name and two forms: environments in one cluster would take it from each other."""
    return tuple(key for key in not_common(variants) if len(_forms(key, variants)) > 1)


def _everywhere(key: Key, variants: Sequence[Variant]) -> bool:
    return len(_forms(key, variants)) == 1 and all(key in one.manifests for one in variants)


def _forms(key: Key, variants: Sequence[Variant]) -> list[Yaml]:
    forms: list[Yaml] = []
    for variant in variants:
        if key in variant.manifests and (value := plain(placed(variant.manifests[key].body, variant.namespace))) not in forms:
            forms.append(value)
    return forms


def files(variants: Sequence[Variant], listed: List | None) -> list[File]:
    """`cluster/` holds what is the same in all; `cluster/ENVIRONMENT/` what is not. `listed` writes a kustomization."""
    apart = stands_apart(variants)
    cluster_keys = [key for key in keys(variants) if not key.own] if apart else []
    different = set(not_common(variants))
    written = _written(variants, [key for key in cluster_keys if key not in different], "cluster", listed)
    environments = [variant for variant in variants if variant.name] or list(variants[:1])
    for variant in environments:
        folder = f"cluster/{variant.name}" if variant.name else "cluster/base"
        own = [key for key in cluster_keys if key in different and key in variant.manifests]
        written += _written([variant], own, folder, listed)
    return written + _other_files(variants)


def _written(variants: Sequence[Variant], wanted: Sequence[Key], folder: str, listed: List | None) -> list[File]:
    holders = {key: next(one for one in variants if key in one.manifests) for key in wanted}
    by_file: dict[str, list[ClusterObject]] = {}
    for key, holder in holders.items():
        by_file.setdefault(holder.manifests[key].file, []).append(holder.manifests[key])
    if not by_file:
        return []
    about = "For the whole cluster: apply this once, before the environments."
    files = []
    for name, manifests in by_file.items():
        holder = holders[manifests[0].key]
        bodies = [placed(one.body, holder.namespace) for one in manifests]
        title = holder.titles[name] if all(key.own is False for key in holder.manifests if _is_in(holder, key, name)) else about
        files.append(File(f"{folder}/{name}", document(*bodies, title=title.replace(NAMESPACE, holder.namespace))))
    if listed is not None:
        files.insert(
            0, File(f"{folder}/kustomization.yaml", listed(by_file, heading(next(iter(holders.values())).deployment, about)))
        )
    return files


def _is_in(holder: Variant, key: Key, name: str) -> bool:
    return holder.manifests[key].file == name


def _other_files(variants: Sequence[Variant]) -> list[File]:
    """Files that are no objects: once where they are the same everywhere."""
    first = variants[0]
    alike = all(_texts(variant) == _texts(first) for variant in variants)
    holders = [first] if alike else [variant for variant in variants if variant.name]
    return [
        File(
            f"other/{file.path}" if alike else f"other/{variant.name}/{file.path}",
            file.text.replace(NAMESPACE, variant.namespace),
            file.executable,
        )
        for variant in holders
        for file in variant.other_files
    ]


def _texts(variant: Variant) -> list[tuple[str, str]]:
    return [(file.path, file.text.replace(NAMESPACE, variant.namespace)) for file in variant.other_files]
