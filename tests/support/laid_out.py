"""Layouts of rendered files on disk, and what the tools make of them, to be held against the files without a layout."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender
from chipwise.renderer.layouts.laying import lay_out
from chipwise.renderer.layouts.variants import MERGED, own_namespace
from chipwise.renderer.named_targets import files, target, target_names
from fixed_deployments import CASES

_BROKEN = re.compile(r" \\\n +")
Objects = dict[tuple[str, str, str, str], Any]
TARGETS = tuple(name for name in target_names() if getattr(target(name), "MANIFESTS", False))
MOST = 4  # environments: each is one of the cases that the target can write


def environments(name: str) -> dict[str, Deployment]:
    """Cases that have little in common, as if they were environments of one workload. The first stands for the defaults."""
    found: dict[str, Deployment] = {}
    for case, what in CASES.items():
        if what.form is Form.PIPELINE:  # stages may stand in several clusters
            continue
        try:
            files(name, target(name), what)
        except CannotRender:
            continue
        found[case] = what
    called = next(iter(found.values())).name
    return {case: replace(one, name=called, namespace="") for case, one in list(found.items())[:MOST]}


def lay(layout: str, name: str, every: Mapping[str, Deployment], folder: Path, alone: bool = False) -> None:
    """The first are the defaults too; `alone`: there are only they, and no environment."""
    defaults = next(iter(every.values()))
    every = {} if alone else every
    for file in lay_out(layout, partial(files, name, target(name)), defaults, every):
        (folder / file.path).parent.mkdir(parents=True, exist_ok=True)
        (folder / file.path).write_text(file.text, encoding="utf-8")


def without_layout(name: str, what: Deployment, environment: str) -> Objects:
    spaced = _spaced(what, own_namespace(what, environment))
    texts = [file.text for file in files(name, target(name), spaced) if file.path.endswith(".yaml")]
    return objects(texts)


def _spaced(what: Deployment, namespace: str) -> Deployment:
    return replace(what, namespace=namespace, stages=tuple(_spaced(one, namespace) for one in what.stages))


def objects(texts: Iterable[str]) -> Objects:
    """By API, kind, namespace and name. Items of lists that Kubernetes tells apart by a key are in the order of that key, and
    a command is one line: where it breaks depends on the length of the names in it."""
    found: Objects = {}
    for text in texts:
        for one in yaml.safe_load_all(text):
            if isinstance(one, dict) and "apiVersion" in one and one["kind"] != "Kustomization":
                meta = one["metadata"]
                key = (one["apiVersion"], one["kind"], meta.get("namespace", ""), meta["name"])
                assert key not in found, f"twice: {key}"
                found[key] = _ordered(one)
    return found


def _ordered(value: Any, field: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _ordered(inner, key) for key, inner in value.items()}
    if isinstance(value, str):
        return _BROKEN.sub(" ", value)
    if not isinstance(value, list):
        return value
    items = [_ordered(inner) for inner in value]
    for key in MERGED.get(field, ()):
        if all(isinstance(item, dict) and key in item for item in items):
            return sorted(items, key=lambda item: str(item[key]))
    return items


def cluster_texts(folder: Path, environment: str) -> list[str]:
    """What stands once in a cluster, as files."""
    return [
        path.read_text() for place in ("cluster", f"cluster/{environment}") for path in sorted((folder / place).glob("*.yaml"))
    ]
