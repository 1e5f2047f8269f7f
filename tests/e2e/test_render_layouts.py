"""kustomize and Helm make of a layout what the target writes for each environment without one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chipwise.renderer.layouts.variants import own_namespace
from laid_out import TARGETS, cluster_texts, environments, lay, objects, without_layout
from render_checks import program, said

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("name", TARGETS)
def test_kustomize_builds_what_each_environment_has(name: str, tmp_path: Path) -> None:
    every = environments(name)
    lay("kustomize", name, every, tmp_path)
    for environment, what in every.items():
        code, text = said([program("kustomize"), "build", str(tmp_path / "overlays" / environment)])
        assert code == 0, text
        assert objects([text, *cluster_texts(tmp_path, environment)]) == without_layout(name, what, environment)


@pytest.mark.parametrize("name", TARGETS)
def test_without_environments_the_base_is_what_the_target_writes(name: str, tmp_path: Path) -> None:
    every = environments(name)
    lay("kustomize", name, every, tmp_path, alone=True)
    code, text = said([program("kustomize"), "build", str(tmp_path / "base")])
    assert code == 0, text
    assert objects([text, *cluster_texts(tmp_path, "base")]) == without_layout(name, next(iter(every.values())), "")


@pytest.mark.parametrize("name", TARGETS)
def test_helm_renders_what_each_environment_has(name: str, tmp_path: Path) -> None:
    every = environments(name)
    lay("helm", name, every, tmp_path)
    for environment, what in every.items():
        release = [what.name, str(tmp_path / "chart"), "--namespace", own_namespace(what, environment)]
        values = ["--values", str(tmp_path / "chart" / f"values-{environment}.yaml")]
        code, text = said([program("helm"), "template", *release, *values])
        assert code == 0, text
        namespace = tmp_path / "namespaces" / f"{environment}.yaml"
        texts = [text, *cluster_texts(tmp_path, environment), *([namespace.read_text()] if namespace.exists() else [])]
        assert objects(texts) == without_layout(name, what, environment)
        code, text = said([program("helm"), "lint", "--strict", str(tmp_path / "chart"), *values])
        assert code == 0, text


def test_a_value_that_no_object_has_is_refused(tmp_path: Path) -> None:
    every = environments("kubernetes")
    lay("helm", "kubernetes", every, tmp_path)
    code, text = said([program("helm"), "template", "x", str(tmp_path / "chart"), "--set", "job.unheard=1"])
    assert code != 0
    assert "unheard" in text


HOSTILE = '{{ fail "no" }} {{- .Values.x -}} ${HOME} $(id) "quoted" \'too\' # : | > \\ chipwiseHole0x\nline: two\n'


def test_text_of_a_user_is_no_template_and_no_yaml(tmp_path: Path) -> None:
    first, second = list(environments("kubernetes").values())[:2]
    software = replace(first.software, env=(("A", HOSTILE), ("B", "1e6")), command=("run", HOSTILE))
    other = replace(software, env=(("A", HOSTILE), ("B", f"{HOSTILE}{{")), command=("run", HOSTILE, "{{"))
    every = {"one": replace(first, software=software), "two": replace(first, software=other), "three": second}
    for layout in ("kustomize", "helm"):
        lay(layout, "kubernetes", every, tmp_path / layout)
    chart = tmp_path / "helm" / "chart"
    for environment, what in every.items():
        wanted = without_layout("kubernetes", what, environment)
        code, built = said([program("kustomize"), "build", str(tmp_path / "kustomize" / "overlays" / environment)])
        assert code == 0, built
        assert objects([built, *cluster_texts(tmp_path / "kustomize", environment)]) == wanted
        values = ["--values", str(chart / f"values-{environment}.yaml"), "--namespace", own_namespace(what, environment)]
        code, text = said([program("helm"), "template", what.name, str(chart), *values])
        assert code == 0, text
        namespace = (tmp_path / "helm" / "namespaces" / f"{environment}.yaml").read_text()
        assert objects([text, namespace, *cluster_texts(tmp_path / "helm", environment)]) == wanted
