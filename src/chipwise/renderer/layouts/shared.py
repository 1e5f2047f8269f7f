"""What stands once in a cluster and not once in an environment: classes, quotas of the cluster, device plugins; and files that
are no objects. Where environments say different things of one name, each needs a cluster of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from chipwise.renderer.file import File
from chipwise.renderer.heading import heading
from chipwise.renderer.layouts.variants import NAMESPACE as NAMESPACE
from chipwise.renderer.layouts.variants import Key, Manifest, Variant, keys, placed
from chipwise.renderer.yaml_text import Yaml, document, plain

List = Callable[[Iterable[str], str], str]  # the kustomization of these files


def stands_apart(variants: Sequence[Variant]) -> bool:
    """A target all of whose objects belong to the cluster (Karpenter's) has nothing else to be kept apart from."""
    return any(key.own for key in keys(variants))


def of_one(variants: Sequence[Variant]) -> tuple[Key, ...]:
    """Objects of the cluster that not every environment has, or that are not the same in all."""
    return tuple(key for key in keys(variants) if not key.own and not _everywhere(key, variants))


def conflicting(variants: Sequence[Variant]) -> tuple[Key, ...]:
    """Of those, what has one name and two forms: environments in one cluster would take it from each other."""
    return tuple(key for key in of_one(variants) if len(_forms(key, variants)) > 1)


def _everywhere(key: Key, variants: Sequence[Variant]) -> bool:
    return len(_forms(key, variants)) == 1 and all(key in one.manifests for one in variants)


def _forms(key: Key, variants: Sequence[Variant]) -> list[Yaml]:
    forms: list[Yaml] = []
    for one in variants:
        if key in one.manifests and (value := plain(placed(one.manifests[key].body, one.namespace))) not in forms:
            forms.append(value)
    return forms


def files(variants: Sequence[Variant], listed: List | None) -> list[File]:
    """`cluster/` holds what is the same in all; `cluster/ENVIRONMENT/` what is not. `listed` writes a kustomization."""
    apart = stands_apart(variants)
    every = [key for key in keys(variants) if not key.own] if apart else []
    different = set(of_one(variants))
    made = _written(variants, [key for key in every if key not in different], "cluster", listed)
    environments = [one for one in variants if one.name] or list(variants[:1])
    for one in environments:
        folder = f"cluster/{one.name}" if one.name else "cluster/base"
        own = [key for key in every if key in different and key in one.manifests]
        made += _written([one], own, folder, listed)
    return made + _others(variants)


def _written(variants: Sequence[Variant], wanted: Sequence[Key], folder: str, listed: List | None) -> list[File]:
    holders = {key: next(one for one in variants if key in one.manifests) for key in wanted}
    by_file: dict[str, list[Manifest]] = {}
    for key, holder in holders.items():
        by_file.setdefault(holder.manifests[key].file, []).append(holder.manifests[key])
    if not by_file:
        return []
    about = "For the whole cluster: apply this once, before the environments."
    made = []
    for name, found in by_file.items():
        holder = holders[found[0].key]
        bodies = [placed(one.body, holder.namespace) for one in found]
        title = holder.titles[name] if all(key.own is False for key in holder.manifests if _in(holder, key, name)) else about
        made.append(File(f"{folder}/{name}", document(*bodies, title=title.replace(NAMESPACE, holder.namespace))))
    if listed is not None:
        made.insert(
            0, File(f"{folder}/kustomization.yaml", listed(by_file, heading(next(iter(holders.values())).deployment, about)))
        )
    return made


def _in(holder: Variant, key: Key, name: str) -> bool:
    return holder.manifests[key].file == name


def _others(variants: Sequence[Variant]) -> list[File]:
    """Files that are no objects: once where they are the same everywhere."""
    first = variants[0]
    alike = all(_texts(one) == _texts(first) for one in variants)
    shown = [first] if alike else [one for one in variants if one.name]
    return [
        File(
            f"other/{file.path}" if alike else f"other/{one.name}/{file.path}",
            file.text.replace(NAMESPACE, one.namespace),
            file.executable,
        )
        for one in shown
        for file in one.others
    ]


def _texts(variant: Variant) -> list[tuple[str, str]]:
    return [(file.path, file.text.replace(NAMESPACE, variant.namespace)) for file in variant.others]
