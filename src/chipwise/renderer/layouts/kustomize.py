"""A base and an overlay for each environment, as `kustomize build` and `kubectl apply -k` take them.

The base is what the plan of the defaults says, with all its comments. An overlay names its namespace and holds what its own
plan says otherwise: a patch for each object that differs, objects that only it has, and objects that it does not have. Objects
that belong to a whole cluster stand apart: overlays in one cluster would take them from each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from chipwise.renderer.file import File
from chipwise.renderer.heading import heading
from chipwise.renderer.layouts import shared
from chipwise.renderer.layouts.variants import ABSENT, ClusterObject, Key, Variant, item_key, placed
from chipwise.renderer.yaml_text import Noted, Yaml, document, plain

KUSTOMIZATION: dict[str, Yaml] = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
COUNTED = ("Deployment", "StatefulSet")  # what `replicas` of a kustomization knows
# Groups whose lists kustomize merges by key; of other kinds it knows no schema, and replaces lists.
_BUILT_IN = ("v1", "apps/v1", "batch/v1", "policy/v1")
LONGEST_SHOWN = 60  # characters of a value of the base beside one that replaces it


def render(defaults: Variant, environments: Sequence[Variant]) -> list[File]:
    files = [*_base(defaults, environments), *shared.files((defaults, *environments), _listed)]
    for environment in environments:
        files += _overlay(defaults, environment, (defaults, *environments))
    return files


def _own(variant: Variant, every: Sequence[Variant]) -> dict[Key, ClusterObject]:
    apart = shared.stands_apart(every)
    return {key: one for key, one in variant.manifests.items() if key.own or not apart}


def _base(defaults: Variant, environments: Sequence[Variant]) -> list[File]:
    own = _own(defaults, (defaults, *environments))
    names = tuple(dict.fromkeys(one.file for one in own.values()))
    about = "What every environment starts from: the workload as it is without one."
    files = [File("base/kustomization.yaml", _listed(names, heading(defaults.deployment, about)))]
    for name in names:
        bodies = [placed(one.body, defaults.namespace) for one in own.values() if one.file == name]
        title = defaults.titles[name].replace(shared.NAMESPACE, defaults.namespace)
        files.append(File(f"base/{name}", document(*bodies, title=title)))
    return files


def _listed(names: Iterable[str], title: str) -> str:
    return document(KUSTOMIZATION | {"resources": list(names)}, title=title)


def _overlay(defaults: Variant, environment: Variant, variants: Sequence[Variant]) -> list[File]:
    below, above = _own(defaults, variants), _own(environment, variants)
    folder = f"overlays/{environment.name}"
    files: list[File] = []
    patches: list[Yaml] = []
    replicas: list[Yaml] = []
    images: dict[str, str] = {}
    for key, base in below.items():
        identity = _identity(key, defaults.namespace)
        if key not in above:
            deletion = identity | {"$patch": "delete"}
            patches.append({"path": key.file})
            files.append(File(f"{folder}/{key.file}", document(deletion, title=f"{environment.name} has no such object.")))
            continue
        was, wanted = placed(base.body, defaults.namespace), placed(above[key].body, environment.namespace)
        was, wanted = _renamed(was, wanted, key, environment.namespace)
        if key.kind in COUNTED and (count := _count(was, wanted)) is not None:
            replicas.append({"name": key.name, "count": count})
            was = _replaced(was, count, "spec", "replicas")
        images |= _images(was, wanted)
        difference = patch(_with_images(was, images), wanted, key.api in _BUILT_IN)
        if difference is not ABSENT:
            assert isinstance(difference, dict)
            changed = f"What {environment.name} has otherwise than the base, whose values stand in the comments."
            patches.append({"path": key.file})
            files.append(File(f"{folder}/{key.file}", document(_identified(identity, difference), title=changed)))
    added = [placed(one.body, environment.namespace) for key, one in above.items() if key not in below]
    if added:
        files.append(File(f"{folder}/added.yaml", document(*added, title=f"Objects that only {environment.name} has.")))
    body = dict(KUSTOMIZATION)
    if any(key.own for key in above):
        body["namespace"] = environment.namespace
    body["resources"] = ["../../base", *(["added.yaml"] if added else [])]
    body |= {"replicas": replicas} if replicas else {}
    body |= {"images": [_image(*pair) for pair in images.items()]} if images else {}
    body |= {"patches": patches} if patches else {}
    about = f"The environment {environment.name}: the base with what its own plan says otherwise."
    title = heading(environment.deployment, about)
    return [File(f"{folder}/kustomization.yaml", document(body, title=title)), *files]


def _identity(key: Key, namespace: str) -> dict[str, Yaml]:
    metadata = {"name": namespace if key.name == shared.NAMESPACE else key.name}
    if key.own and key.kind != "Namespace":
        metadata["namespace"] = namespace
    return {"apiVersion": key.api, "kind": key.kind, "metadata": metadata}


def _identified(identity: dict[str, Yaml], difference: dict[str, Yaml]) -> Yaml:
    metadata = _fields(identity["metadata"]) | _fields(difference.get("metadata", {}))
    return identity | difference | {"metadata": metadata}


def _renamed(was: Yaml, wanted: Yaml, key: Key, namespace: str) -> tuple[Yaml, Yaml]:
    """What the kustomization's `namespace` changes by itself counts as changed already."""
    field = "name" if key.kind == "Namespace" else "namespace"
    return (_replaced(was, namespace, "metadata", field) if key.own else was), wanted


def _count(was: Yaml, wanted: Yaml) -> int | None:
    first, second = (_field(plain(one), "spec", "replicas") for one in (was, wanted))
    return second if isinstance(first, int) and isinstance(second, int) and first != second else None


def _replaced(value: Yaml, wanted: Yaml, *names: str) -> Yaml:
    """The value with another one at the place of these names."""
    if not names:
        return wanted
    fields = _fields(value)
    return {**fields, names[0]: _replaced(fields[names[0]], wanted, *names[1:])}


def _field(value: Yaml, *names: str) -> Yaml:
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _images(was: Yaml, wanted: Yaml) -> dict[str, str]:
    """Names of images by those that stand in their place, container by container."""
    before, after = dict(_containers(plain(was))), dict(_containers(plain(wanted)))
    changed = {before[name]: after[name] for name in before if name in after and before[name] != after[name]}
    unchanged = {before[name] for name in before if name in after and before[name] == after[name]}
    return {old: new for old, new in changed.items() if old not in unchanged}


def _containers(value: Yaml) -> Iterable[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key in ("containers", "initContainers") and isinstance(inner, Sequence):
                for item in inner:
                    if isinstance(item, Mapping) and isinstance(item.get("image"), str):
                        yield f"{key}/{item.get('name')}", item["image"]
            else:
                yield from _containers(inner)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inner in value:
            yield from _containers(inner)


def _with_images(value: Yaml, images: Mapping[str, str]) -> Yaml:
    match value:
        case Noted():
            return Noted(_with_images(value.value, images), value.comment)
        case Mapping():
            return {
                key: images.get(inner, inner) if key == "image" and isinstance(inner, str) else _with_images(inner, images)
                for key, inner in value.items()
            }
        case str():
            return value
        case Sequence():
            return [_with_images(inner, images) for inner in value]
    return value


def _image(old: str, new: str) -> Yaml:
    (name, _), (new_name, tag) = _apart(old), _apart(new)
    entry: dict[str, Yaml] = {"name": name}
    if new_name != name:
        entry["newName"] = new_name
    return entry | ({"digest": tag} if ":" in tag else {"newTag": tag} if tag else {})


def _apart(image: str) -> tuple[str, str]:
    """Name, and tag or digest: a port of a registry is no tag."""
    name, _, digest = image.partition("@")
    if digest:
        return name, digest
    head, colon, tag = name.rpartition(":")
    return (head, tag) if colon and "/" not in tag else (name, "")


def patch(was: Yaml, wanted: Yaml, merges: bool, field: str = "") -> Yaml:
    """What must be said to turn one into the other; ABSENT where nothing must. Comments tell what the base has."""
    before, after = plain(was), plain(wanted)
    if before == after:
        return ABSENT
    if isinstance(after, Mapping) and isinstance(before, Mapping):
        inner_was, inner_wanted = _fields(was), _fields(wanted)
        changes: dict[str, Yaml] = {}
        for key in dict.fromkeys([*inner_was, *inner_wanted]):
            if key not in inner_wanted:
                changes[key] = Noted(None, "Not here.")
            elif key not in inner_was:
                changes[key] = inner_wanted[key]
            elif (change := patch(inner_was[key], inner_wanted[key], merges, key)) is not ABSENT:
                changes[key] = change
        return changes
    if merges and isinstance(before, list) and isinstance(after, list):
        merge_key = item_key(field, [*before, *after])
        if merge_key is not None:
            return _items(was, wanted, merge_key)
    if isinstance(before, str | int | float) and len(base_text := str(before)) <= LONGEST_SHOWN:
        return Noted(after, f"base: {base_text}")
    return wanted


def _items(was: Yaml, wanted: Yaml, merge_key: str) -> Yaml:
    before, after = ({_fields(item)[merge_key]: item for item in _list(one)} for one in (was, wanted))
    changes: list[Yaml] = []
    for name, item in after.items():
        change = patch(before[name], item, merges=True) if name in before else item
        if change is not ABSENT:
            changes.append({merge_key: name} | change if isinstance(change, dict) and name in before else change)
    changes += [{merge_key: name, "$patch": "delete"} for name in before if name not in after]
    return changes


def _fields(value: Yaml) -> dict[str, Yaml]:
    inner = value.value if isinstance(value, Noted) else value
    assert isinstance(inner, Mapping)
    return {str(key): one for key, one in inner.items()}


def _list(value: Yaml) -> list[Yaml]:
    inner = value.value if isinstance(value, Noted) else value
    assert isinstance(inner, list)
    return inner
