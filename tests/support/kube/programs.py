"""Where the cluster's programs and files are. A test that needs a missing one is skipped; it names it and the command."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cluster import build
from kube.api import documents


def program(name: str) -> Path:
    found = build.find(name, build.cache_folder(build.recipe()))
    if found is None:
        pytest.skip(f"{name}: run make cluster")
    return found


def is_own(name: str) -> bool:
    """Whether it is the person's (`KUBEBUILDER_ASSETS`), not what `make cluster` built."""
    return program(name).parent != build.cache_folder(build.recipe())


def version(component: str) -> str:
    return _component(build.recipe(), component).version


def _component(made: build.Recipe, name: str) -> build.Component:
    return next(one for one in made.components if one.name == name)


def files(component: str, purpose: str) -> list[Path]:
    made = build.recipe()
    folder = build.files_folder(_component(made, component), build.cache_folder(made)) / purpose
    if not folder.is_dir():
        pytest.skip(f"the {purpose} of {component}: run make cluster")
    return sorted(folder.glob("*.yaml"))


def manifests(component: str, purpose: str) -> list[Mapping[str, Any]]:
    return [one for path in files(component, purpose) for one, _ in documents(path.read_text(encoding="utf-8"))]
