"""From the rendered files of every environment to one tree of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module

from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.layouts.readme import readme
from chipwise.renderer.layouts.variants import NAMESPACE, own_namespace, variant
from chipwise.renderer.quoting import dns_name

LAYOUTS = ("kustomize", "helm")
Render = Callable[[Deployment], Sequence[File]]


def lay_out(
    layout: str,
    render: Render,
    defaults: Deployment,
    environments: Mapping[str, Deployment],
    target: str = "kubernetes",
    beside: Sequence[str] = (),
    noted: Callable[[Deployment], Deployment] | None = None,
) -> list[File]:
    """`render` is the target's; `defaults` is the workload without an environment, or in the one that stands for the rest.
    `beside`: the other targets of the same command, each of which has a folder of its name; `noted` adds what headings
    say of a deployment beside its files, as `render` does."""
    folders = {name: dns_name(name) for name in environments}
    if len(set(folders.values())) < len(folders):
        raise CannotRender(
            f"Environments would have one name in files and clusters: {', '.join(environments)}.",
            remedy="Give them names that differ in letters or digits.",
        )
    variants = [
        variant(
            folder,
            noted(deployment) if noted is not None else deployment,
            own_namespace(deployment, folder),
            render(_in_namespace(deployment)),
            target,
            beside,
        )
        for folder, deployment in (("", defaults), *((folders[name], one) for name, one in environments.items()))
    ]
    if not any(one.manifests for one in variants):
        raise CannotRender("There is no manifest in these files.", remedy="Leave --layout out.")
    files: list[File] = import_module(f"chipwise.renderer.layouts.{layout}").render(variants[0], variants[1:])
    return [File("README.md", readme(layout, variants[0], variants[1:], f"{target}/" if beside else "")), *files]


def _in_namespace(deployment: Deployment) -> Deployment:
    stages = tuple(_in_namespace(one) for one in deployment.stages)
    return replace(deployment, namespace=NAMESPACE, stages=stages)
