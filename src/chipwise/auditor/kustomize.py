"""Kustomizations: which files are their patches, and what a build of them becomes, each value at the line that wrote it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from chipwise.auditor.pods import pods_in
from chipwise.auditor.source import At, Located, LocatedList, Manifest, Unreadable, line_of, listed, look
from chipwise.auditor.yaml_files import read_value, read_yaml

NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_PATCHES = ("patches", "patchesStrategicMerge", "patchesJson6902", "transformers")
_PARTS = ("resources", "bases", "components")
_KEYS = ("name", "mountPath", "containerPort", "key", "port", "topologyKey", "ip")  # by which items of a list are the same
Sourced = tuple[str, Any]  # a file, and a value in it


def patched(kustomizations: Mapping[str, Manifest]) -> set[str]:
    """`kustomizations` are by path. Paths of the patches that they name, relative to where the audit began."""
    return {
        path
        for path_of_file, kustomization in kustomizations.items()
        for path in _named_paths(path_of_file, kustomization, (*_PATCHES, "components"))
    }


def tops(kustomizations: Mapping[str, Manifest]) -> list[str]:
    """Directories that no other kustomization builds upon: what is applied."""
    used = {path for at, one in kustomizations.items() for path in _named_paths(at, one, _PARTS)}
    tops = [posixpath.dirname(at) for at in kustomizations if posixpath.dirname(at) not in used]
    components = [posixpath.dirname(at) for at, one in kustomizations.items() if one.kind == "Component"]
    return sorted(set(tops) - set(components))


def is_remote(kustomization: Manifest) -> bool:
    """Whether it builds upon something that must be fetched first."""
    names = [str(name) for key in _PARTS for name in listed(kustomization.body.get(key))]
    return any("://" in name or name.startswith(("github.com/", "git@")) or "?ref=" in name for name in names)


def parts(top: str, kustomizations: Mapping[str, Manifest]) -> list[str]:
    """Kustomizations that the one of a directory is made from, itself first."""
    by_directory = {posixpath.dirname(path): path for path in kustomizations}
    ordered, waiting = list[str](), [by_directory[top]] if top in by_directory else []
    while waiting:
        path = waiting.pop(0)
        if path not in ordered:
            ordered.append(path)
            names = _named_paths(path, kustomizations[path], _PARTS)
            waiting += [by_directory[name] for name in names if name in by_directory]
    return ordered


def files_of(paths: Sequence[str], kustomizations: Mapping[str, Manifest]) -> list[str]:
    """Files that these kustomizations name: patches before what they change."""
    patches = [name for path in paths for name in _named_paths(path, kustomizations[path], _PATCHES)]
    return [*patches, *(name for path in paths for name in _named_paths(path, kustomizations[path], _PARTS))]


def _named_paths(position: str, kustomization: Manifest, keys: Sequence[str]) -> Iterator[str]:
    for key in keys:
        for item in listed(kustomization.body.get(key)):
            name = item if isinstance(item, str) else look(item, "path")
            if isinstance(name, str) and "\n" not in name and "://" not in name:
                yield posixpath.normpath(posixpath.join(posixpath.dirname(position), name))


def built(
    text: str, paths: Sequence[str], kustomizations: Mapping[str, Manifest], manifests: Sequence[Manifest]
) -> Iterator[Manifest | Unreadable]:
    """What a tool built, with the lines of the files that it was built from."""
    order = {path: at for at, path in enumerate(files_of(paths, kustomizations))}
    files = sorted((one for one in manifests if one.path in order), key=lambda one: order[one.path])
    for document in read_yaml(paths[0], text):
        if isinstance(document, Unreadable):
            yield document
            continue
        sources = [one for one in files if one.kind == document.kind and _same_name(document.name, one.name)]
        home = sources[-1].path if sources else paths[0]
        inline = [(path, value) for path in paths for value in _inline(kustomizations[path], document)]
        _locate(document.body, [*inline, *((one.path, one.body) for one in sources)], At(1, home))
        manifest = Manifest(home, document.body)
        _images(manifest, [(path, kustomizations[path]) for path in paths])
        yield manifest


def _inline(kustomization: Manifest, document: Manifest) -> Iterator[Located]:
    """Patches that stand in a kustomization itself, as what they write: by merging, or operation by operation."""
    for entry in listed(kustomization.body.get("patches")):
        text, kind = look(entry, "patch"), look(entry, "target", "kind")
        if not isinstance(text, str) or kind not in (None, document.kind):
            continue
        value = read_value(text, line_of(entry, "patch") + 1)
        if isinstance(value, Located) and value.get("kind") == document.kind:
            yield value
        for operation in listed(value):
            if isinstance(operation, Located) and operation.get("op") in ("add", "replace"):
                yield _written(operation)


def _written(operation: Located) -> Located:
    """What an operation writes, in mappings that lead to it; places in a list are numbers."""
    inside, line, mapping = operation.get("value"), line_of(operation, "value"), Located()
    for key in reversed(str(operation.get("path")).strip("/").split("/")):
        mapping = Located()
        name = key.replace("~1", "/").replace("~0", "~")
        mapping[name], mapping.lines[name], mapping.line = inside, line, line
        inside = mapping
    return mapping


def _same_name(name: str, original: str) -> bool:
    """A build may put something before or after the name."""
    return name == original or name.startswith(f"{original}-") or name.endswith(f"-{original}") or f"-{original}-" in name


def _locate(value: Any, sources: Sequence[Sourced], parent: At) -> None:
    """Every key at the line of the first source that says the same; what none says, where its parent stands."""
    if isinstance(value, Located):
        value.line = parent
        for key, item in value.items():
            having = [(path, node) for path, node in sources if isinstance(node, Located) and key in node]
            saying = [one for one in having if one[1][key] == item] or having[-1:]
            first = saying[-1] if isinstance(item, Located | LocatedList) and saying else next(iter(saying), None)
            place = At(line_of(first[1], key), first[0]) if first else parent
            value.lines[key] = place
            _locate(item, [(path, node[key]) for path, node in having], place)
    elif isinstance(value, LocatedList):
        value.lines = []
        for index, item in enumerate(value):
            counterparts = [counterpart for source in sources if (counterpart := _item(source, index, item)) is not None]
            place = At(counterparts[-1][2], counterparts[-1][0]) if counterparts else parent
            value.lines.append(place)
            _locate(item, [(path, node) for path, node, _ in counterparts], place)


def _item(source: Sourced, index: int, item: Any) -> tuple[str, Any, int] | None:
    """The same item of a list in a source: by its name, by its value, else by where it stands."""
    path, nodes = source
    if isinstance(nodes, Located) and str(index) in nodes:  # of an operation
        return path, nodes[str(index)], line_of(nodes, str(index))
    if not isinstance(nodes, LocatedList):
        return None
    key = next((one for one in _KEYS if isinstance(item, Located) and one in item), None)
    for position, node in enumerate(nodes):
        is_same = look(node, key) == item[key] if key and isinstance(item, Located) else node == item
        if is_same:
            return path, node, nodes.lines[position] if position < len(nodes.lines) else 1
    if key is None and index < len(nodes) and isinstance(item, Located):
        return path, nodes[index], nodes.lines[index]
    return None


def _images(manifest: Manifest, kustomizations: Sequence[tuple[str, Manifest]]) -> None:
    """Tags that a kustomization gives stand there."""
    for container in (one for pod in pods_in(manifest) for one in pod.containers):
        image = str(container.get("image") or "")
        for path, kustomization in kustomizations:
            for entry in listed(kustomization.body.get("images")):
                name = str(look(entry, "newName") or look(entry, "name") or "?")
                tag = next((one for one in ("digest", "newTag", "newName") if look(entry, one)), None)
                if tag and image.startswith((f"{name}:", f"{name}@")):
                    container.lines["image"] = At(line_of(entry, tag), path)
                    break
            else:
                continue
            break
