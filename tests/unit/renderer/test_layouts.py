"""Layouts: all environments of a workload in one tree, each with what its own plan says and nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import yaml

from chipwise.api import render as rendering
from chipwise.api.render import RenderRequest
from chipwise.auditor.auditing import audit
from chipwise.errors import UnknownName
from chipwise.renderer.deployment import Deployment, Scaling
from chipwise.renderer.file import CannotRender
from chipwise.renderer.layouts.commented import read
from chipwise.renderer.layouts.helm import difference
from chipwise.renderer.layouts.holes import differing
from chipwise.renderer.layouts.kustomize import patch
from chipwise.renderer.layouts.laying import LAYOUTS, lay_out
from chipwise.renderer.layouts.variants import ABSENT
from chipwise.renderer.named_targets import files, target
from chipwise.renderer.yaml_text import document, plain
from deployments import EXAMPLES
from deployments import few_session as session
from fixed_deployments import CASES
from golden_files import FOLDER
from laid_out import TARGETS, environments

PROD = CASES["serve"]
DEV = replace(PROD, machines=1, scaling=Scaling(1, 1, 1, 6.9, 32), purchase="spot")
LARGE = replace(PROD, scaling=Scaling(4, 4, 24, 6.9, 128, concurrency=61.4))


def made(
    layout: str,
    every: dict[str, Deployment],
    name: str = "kubernetes",
    defaults: Deployment = PROD,
    beside: tuple[str, ...] = (),
) -> dict[str, str]:
    render = partial(files, name, target(name))
    return {file.path: file.text for file in lay_out(layout, render, defaults, every, name, beside)}


def loaded(tree: dict[str, str], path: str) -> Any:
    return yaml.safe_load(tree[path])


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_read_back_is_written_the_same(name: str) -> None:
    for path in sorted((FOLDER / name).rglob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        found = read(text)
        assert document(*found.values, title=found.title) == text, path


def test_lines_of_a_script_are_no_comments() -> None:
    text = "run: |\n  # not a comment\n  exec it\n# why\nnext: 1\n"
    [value] = read(text).values
    assert plain(value) == {"run": "# not a comment\nexec it\n", "next": 1}
    assert document(value) == text


def test_each_environment_has_a_namespace_of_its_own() -> None:
    tree = made("kustomize", {"dev": DEV, "prod": PROD})
    assert loaded(tree, "overlays/dev/kustomization.yaml")["namespace"] == "chat-api-dev"
    assert loaded(tree, "overlays/prod/kustomization.yaml")["namespace"] == "chat-api-prod"
    assert "chat-api-dev" not in tree["base/workload.yaml"]


def test_an_overlay_holds_only_what_differs() -> None:
    tree = made("kustomize", {"large": LARGE})
    scaler = loaded(tree, "overlays/large/horizontalpodautoscaler-chat-api.yaml")
    assert scaler["spec"] == {"minReplicas": 4, "maxReplicas": 24}
    assert "# base: 12" in tree["overlays/large/horizontalpodautoscaler-chat-api.yaml"]
    assert "overlays/large/service-chat-api.yaml" not in tree


def test_an_object_that_an_environment_has_not_is_deleted_there() -> None:
    tree = made("kustomize", {"dev": DEV})
    assert loaded(tree, "overlays/dev/horizontalpodautoscaler-chat-api.yaml")["$patch"] == "delete"
    other_way = made("kustomize", {"prod": PROD}, defaults=DEV)
    assert "HorizontalPodAutoscaler" in other_way["overlays/prod/added.yaml"]


def test_numbers_of_copies_and_images_stand_where_people_look_for_them() -> None:
    fixed = replace(PROD, scaling=Scaling(3, 3, 3, 6.9, 32))
    other = replace(
        fixed, scaling=Scaling(5, 5, 5, 6.9, 32), software=replace(fixed.software, image="vllm/vllm-openai:v0.33.0")
    )
    overlay = loaded(made("kustomize", {"test": other}, defaults=fixed), "overlays/test/kustomization.yaml")
    assert overlay["replicas"] == [{"name": "chat-api", "count": 5}]
    assert overlay["images"] == [{"name": "vllm/vllm-openai", "newTag": "v0.33.0"}]


def test_a_registry_with_a_port_and_a_digest_are_told_apart() -> None:
    before = replace(PROD, software=replace(PROD.software, image="registry.local:5000/vllm:1"))
    after = replace(PROD, software=replace(PROD.software, image="registry.local:5000/other@sha256:" + "a" * 64))
    overlay = loaded(made("kustomize", {"prod": after}, defaults=before), "overlays/prod/kustomization.yaml")
    assert overlay["images"] == [
        {"name": "registry.local:5000/vllm", "newName": "registry.local:5000/other", "digest": "sha256:" + "a" * 64}
    ]


def test_what_a_cluster_has_once_stands_apart() -> None:
    tree = made("kustomize", {"dev": replace(DEV, alternatives=()), "prod": PROD})
    assert "PriorityClass" in tree["cluster/namespace.yaml"]
    assert "PriorityClass" not in tree["base/namespace.yaml"]
    assert loaded(tree, "cluster/kustomization.yaml")["resources"] == ["namespace.yaml", "devices.yaml"]


def test_an_object_of_the_cluster_that_differs_is_one_of_each_environment() -> None:
    other = replace(PROD, node=replace(PROD.node, machine="g6e.2xlarge"))
    tree = made("kustomize", {"dev": other, "prod": PROD})
    assert "g6e.2xlarge" in tree["cluster/dev/devices.yaml"]
    assert "a cluster of its own" in tree["README.md"]


def test_a_patch_says_what_goes_and_what_comes() -> None:
    was = {"keep": 1, "gone": 2, "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}], "list": [1, 2]}
    wanted = {"keep": 1, "new": 3, "env": [{"name": "A", "value": "9"}, {"name": "C", "value": "3"}], "list": [2]}
    assert plain(patch(was, wanted, merges=True)) == {
        "gone": None,
        "new": 3,
        "env": [{"name": "A", "value": "9"}, {"name": "C", "value": "3"}, {"name": "B", "$patch": "delete"}],
        "list": [2],
    }
    assert patch(was, dict(was), merges=True) is ABSENT
    assert plain(patch(was, wanted, merges=False))["env"] == wanted["env"], "of other kinds kustomize replaces lists"  # type: ignore[index]


def test_a_chart_has_values_for_what_differs_and_for_images() -> None:
    tree = made("helm", {"large": LARGE, "prod": PROD})
    values = loaded(tree, "chart/values.yaml")
    assert values["horizontalPodAutoscaler"] == {"minReplicas": 2, "maxReplicas": 12}
    assert values["deployment"] == {"image": "vllm/vllm-openai:v0.32.0"}
    assert loaded(tree, "chart/values-large.yaml")["horizontalPodAutoscaler"] == {"minReplicas": 4, "maxReplicas": 24}
    assert loaded(tree, "chart/values-prod.yaml") == {}
    assert "minReplicas: {{ toJson .Values.horizontalPodAutoscaler.minReplicas }}" in tree["chart/templates/workload.yaml"]
    assert "chipwiseHole" not in "".join(tree.values())


def test_a_chart_knows_the_form_of_its_values() -> None:
    schema = json.loads(made("helm", {"dev": DEV})["chart/values.schema.json"])
    assert schema["properties"]["deployment"]["properties"]["image"] == {"type": "string"}
    assert schema["additionalProperties"] is schema["properties"]["deployment"]["additionalProperties"] is False


def test_text_that_looks_like_a_template_stays_text() -> None:
    odd = replace(PROD, software=replace(PROD.software, env=(("PATTERN", "{{ .Values.x }}"),)))
    tree = made("helm", {"dev": odd}, defaults=odd)
    assert '{{ "{{" }} .Values.x }}' in tree["chart/templates/workload.yaml"]


def test_comments_on_one_environment_alone_are_not_in_a_template() -> None:
    tree = made("helm", {"dev": DEV, "prod": PROD})
    assert "Drains take one replica at a time." in tree["chart/templates/workload.yaml"]
    own = next(line for line in made("kustomize", {})["base/workload.yaml"].splitlines() if "needs no chip" in line)
    assert own not in tree["chart/templates/workload.yaml"], "of a rollout in place, which dev has not"


def test_values_laid_over_each_other_give_the_environment() -> None:
    assert difference({"a": {"x": 1, "y": 2}, "b": 1}, {"a": {"x": 1, "z": 3}, "c": [1]}) == {
        "a": {"y": None, "z": 3},
        "b": None,
        "c": [1],
    }


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_page_beside_it_has_what_a_gitops_controller_takes(layout: str) -> None:
    page = made(layout, {"dev": DEV, "prod": PROD})["README.md"]
    [argo, flux] = [yaml.safe_load(one.split("```")[0]) for one in page.split("```yaml\n")[1:]]
    assert argo["kind"] == "Application"
    assert layout == "helm" or "kustomize edit set image vllm/vllm-openai@sha256" in page
    assert argo["spec"]["destination"]["namespace"] == "chat-api-dev"
    assert argo["spec"]["ignoreDifferences"][0]["jsonPointers"] == ["/spec/replicas"], "clocks change it"
    assert flux["apiVersion"].endswith("toolkit.fluxcd.io/v1" if layout == "kustomize" else "toolkit.fluxcd.io/v2")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", TARGETS)
def test_every_target_of_manifests_is_laid_out_alike_each_time(layout: str, name: str) -> None:
    every = environments(name)
    first = next(iter(every.values()))
    tree = made(layout, every, name, first)
    assert tree == made(layout, every, name, first)
    assert all("chipwise-namespace" not in text and "chipwiseHole" not in text for text in tree.values())


def test_the_audit_reads_the_base_and_objects_to_no_patch() -> None:
    tree = made("kustomize", {"dev": DEV, "prod": PROD})
    found = audit((path, text) for path, text in tree.items() if path.endswith(".yaml")).findings
    assert not [one for one in found if str(one.weight) in ("high", "medium")]


def test_two_environments_with_one_name_in_files_are_refused() -> None:
    with pytest.raises(CannotRender, match="one name"):
        made("kustomize", {"Dev": DEV, "dev": DEV})


def test_a_target_without_manifests_has_no_layout() -> None:
    request = RenderRequest(layout="kustomize")
    with pytest.raises(CannotRender, match="no manifests"):
        rendering.render(session(), str(EXAMPLES / "serve" / "workload.yaml"), ["terraform"], request)
    with pytest.raises(UnknownName):
        rendering.render(
            session(), str(EXAMPLES / "serve" / "workload.yaml"), ["kubernetes"], replace(request, layout="helmfile")
        )


def test_every_environment_of_a_file_is_planned_by_itself() -> None:
    request = RenderRequest(layout="kustomize")
    tree = rendering.render(session(), str(EXAMPLES / "serve" / "workload.yaml"), ["kubernetes"], request)["kubernetes"]
    assert {file.path.split("/")[1] for file in tree if file.path.startswith("overlays/")} == {"dev", "test", "prod"}


def test_a_mapping_that_one_environment_has_empty_is_one_value() -> None:
    volume = {"kind": "X", "metadata": {"name": "x"}, "spec": {"kept": 1, "params": {}}}
    other = {"kind": "X", "metadata": {"name": "x"}, "spec": {"kept": 1, "params": {"a": 1}}}
    assert list(differing([volume, other], ())) == [("spec", "params")]


def test_files_for_several_clusters_are_no_layout() -> None:
    with pytest.raises(CannotRender, match="several clusters"):
        made("kustomize", {}, "external-secrets", CASES["pipeline"])


def _named(page: str) -> list[tuple[str, str]]:
    """What a reader of a page would apply: the name and the path of each object in it."""
    found = []
    for one in page.split("```yaml\n")[1:]:
        body = yaml.safe_load(one.split("```")[0])
        spec = body["spec"]
        chart = spec["chart"]["spec"]["chart"] if "chart" in spec else None
        found.append((body["metadata"]["name"], chart or spec.get("path") or spec["source"]["path"]))
    return found


@pytest.mark.parametrize("layout", LAYOUTS)
def test_trees_of_several_targets_share_no_name_and_no_path(layout: str) -> None:
    every = {"dev": DEV, "prod": PROD}
    one = made(layout, every, beside=("karpenter",))
    two = made(layout, every, "karpenter", beside=("kubernetes",))
    assert not set(_named(one["README.md"])) & set(_named(two["README.md"]))
    assert all("karpenter" in name and "karpenter/" in path for name, path in _named(two["README.md"]))
    assert all("kubernetes/" in path for _, path in _named(one["README.md"]))
    if layout == "helm":
        assert loaded(two, "chart/Chart.yaml")["name"] == "chat-api-karpenter"
        assert "helm upgrade --install chat-api-karpenter chart" in two["README.md"]
        assert "helm upgrade --install chat-api chart" in one["README.md"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_machines_of_a_cluster_that_environments_share_are_not_taken_from_each_other(layout: str) -> None:
    page = made(layout, {"stage": DEV, "prod": PROD}, "karpenter")["README.md"]
    assert "NodePool `chat-api`" in page
    assert "a cluster of its own" in page


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_keda_does_is_not_done_by_a_second_autoscaler(layout: str) -> None:
    by_hours = replace(PROD, starts="0 8 * * 1-5", stops="0 18 * * 1-5")
    every = {"dev": DEV, "prod": by_hours}
    tree = made(layout, every, beside=("keda",), defaults=by_hours)
    written = "".join(text for path, text in tree.items() if path.endswith(".yaml"))
    assert "HorizontalPodAutoscaler" not in written
    assert "chat-api-close" not in written
    assert "HorizontalPodAutoscaler `chat-api`" in tree["README.md"]
    assert "HorizontalPodAutoscaler" in "".join(made(layout, every, defaults=by_hours).values())


@pytest.mark.parametrize("name", ["kubernetes", "keda", "karpenter"])
def test_the_page_of_a_chart_names_files_that_are_there(name: str) -> None:
    tree = made("helm", {"dev": DEV}, name)
    page = tree["README.md"]
    assert ("namespaces/dev.yaml" in page) == ("namespaces/dev.yaml" in tree)
    assert ("--create-namespace" in page) == ("namespaces/dev.yaml" not in tree)
