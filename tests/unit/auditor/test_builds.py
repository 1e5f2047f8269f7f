"""Charts and overlays are audited as what they become, and findings stand where somebody wrote it."""

from __future__ import annotations

from pathlib import Path

import pytest

from chipwise.adapters import building
from chipwise.api.audit import audit as audit_path
from chipwise.auditor.auditing import audit
from chipwise.auditor.building import Build, charts
from chipwise.auditor.charts import aligned
from chipwise.auditor.finding import Finding
from chipwise.auditor.kustomize import tops
from chipwise.auditor.source import Manifest
from chipwise.auditor.yaml_files import read_yaml

CHART = "apiVersion: v2\nname: llm\nversion: 1.0.0\n"
VALUES = "image:\n  name: team/server\n  tag: latest\nhost: true\nextra:\n  - {name: a, value: b}\n"
TEMPLATE = """\
{{- define "llm.name" }}{{ .Release.Name }}{{ end }}
apiVersion: v1
kind: Pod
metadata:
  name: {{ include "llm.name" . }}
spec:
  {{- if .Values.host }}
  hostPID: true
  {{- end }}
  containers:
    - name: main
      image: "{{ .Values.image.name }}:{{ .Values.image.tag }}"
      {{- with .Values.extra }}
      env:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext: {privileged: true}
"""
RENDERED = """\
---
# Source: llm/templates/pod.yaml
apiVersion: v1
kind: Pod
metadata:
  name: release-name
spec:
  hostPID: true
  containers:
    - name: main
      image: "team/server:latest"
      env:
        - name: a
          value: b
      securityContext: {privileged: true}
"""
FILES = [("c/Chart.yaml", CHART), ("c/values.yaml", VALUES), ("c/templates/pod.yaml", TEMPLATE)]
BASE = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat}
spec:
  template:
    spec:
      containers:
        - name: main
          image: team/chat:1.0
          securityContext: {runAsNonRoot: true, allowPrivilegeEscalation: false}
"""
PATCH = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat}
spec:
  template:
    spec:
      containers:
        - name: main
          securityContext:
            privileged: true
"""
OVERLAY = """\
resources: [../base]
images:
  - name: team/chat
    newTag: latest
patches:
  - path: patch.yaml
  - target: {kind: Deployment}
    patch: |-
      - op: add
        path: /spec/template/spec/hostPID
        value: true
"""
BUILT = BASE.replace("{runAsNonRoot: true, ", "{runAsNonRoot: true, privileged: true, ").replace(":1.0", ":latest")
BUILT = BUILT.replace("    spec:\n", "    spec:\n      hostPID: true\n")
KUSTOMIZED = [
    ("base/deployment.yaml", BASE),
    ("base/kustomization.yaml", "resources: [deployment.yaml]\n"),
    ("dev/kustomization.yaml", OVERLAY),
    ("dev/patch.yaml", PATCH),
]


def places(findings: tuple[Finding, ...]) -> dict[str, tuple[str, int]]:
    known = {one.rule: (one.path, one.line) for one in findings if one.rule in ("host-access", "unpinned-image")}
    privileged = [(one.path, one.line) for one in findings if "is privileged" in one.what]
    return known | ({"privileged": privileged[0]} if privileged else {})


WANTED = {
    "host-access": ("c/templates/pod.yaml", 8),
    "unpinned-image": ("c/templates/pod.yaml", 12),
    "privileged": ("c/templates/pod.yaml", 17),
}


def test_what_helm_wrote_is_found_in_the_template_and_in_the_values() -> None:
    found = audit(FILES, {"c": Build(text=RENDERED)}).findings
    assert places(found) == WANTED
    [image] = [one for one in found if one.rule == "unpinned-image"]
    assert ("c/values.yaml", 3) in image.also
    assert "unreadable" not in {one.rule for one in found}


def test_without_helm_templates_are_filled_in_and_that_is_said() -> None:
    found = audit(FILES, {"c": Build(reason="helm is not installed", fix="Install helm.")}).findings
    assert places(found) == WANTED
    [said] = [one for one in found if one.rule == "unreadable"]
    assert (said.path, said.what) == ("c/Chart.yaml", "templates not rendered: helm is not installed")


def test_a_condition_that_does_not_hold_writes_nothing() -> None:
    off = [(path, text.replace("host: true", "host: false")) for path, text in FILES]
    assert "host-access" not in {one.rule for one in audit(off).findings}


def test_rows_of_a_loop_belong_to_the_lines_of_its_body() -> None:
    template = ["a:", "{{- range .Values.all }}", "  - name: {{ .name }}", "{{- end }}", "b: 1"]
    assert aligned(template, ["a:", "  - name: x", "  - name: y", "b: 1"]) == [1, 3, 3, 5]


def test_charts_inside_a_chart_are_parts_of_it() -> None:
    assert list(charts(["a/Chart.yaml", "a/charts/b/Chart.yaml", "c/Chart.yaml"])) == ["a", "c"]


def test_what_kustomize_built_is_found_in_patch_image_and_base() -> None:
    found = audit(KUSTOMIZED, {"dev": Build(text=BUILT)})
    assert places(found.findings) == {
        "host-access": ("dev/kustomization.yaml", 11),
        "unpinned-image": ("dev/kustomization.yaml", 4),
        "privileged": ("dev/patch.yaml", 10),
    }
    assert {path for one in found.findings for path in (one.path,)} >= {"base/deployment.yaml"}
    assert not [one for one in found.skipped if "patch" in one]


def test_patches_that_were_not_applied_are_named() -> None:
    reason = "neither kustomize nor kubectl is installed"
    found = audit(KUSTOMIZED, {"dev": Build(reason=reason, fix="Install it.")})
    [said] = [one for one in found.findings if one.rule == "unreadable"]
    assert (said.path, said.what) == ("dev/kustomization.yaml", f"patches not applied: {reason}")
    assert "privileged" not in places(found.findings)


def test_only_what_nobody_builds_upon_is_built() -> None:
    read = {path: one for path, text in KUSTOMIZED for one in read_yaml(path, text) if isinstance(one, Manifest)}
    assert tops({path: one for path, one in read.items() if path.endswith("kustomization.yaml")}) == ["dev"]


def test_missing_programs_are_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert building.helm_build(tmp_path).reason == "helm is not installed"
    assert building.kustomize_build(tmp_path).reason == "neither kustomize nor kubectl is installed"


def test_a_program_that_fails_is_a_reason_with_its_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    helm = tmp_path / "helm"
    helm.write_text("#!/bin/sh\necho 'missing in charts/ directory: redis' >&2\nexit 1\n")
    helm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert building.helm_build(tmp_path).reason == "helm says: missing in charts/ directory: redis"


def test_a_chart_on_disk_goes_to_helm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, text in FILES:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(building, "helm_build", lambda chart: Build(text=RENDERED if chart == tmp_path / "c" else ""))
    assert places(audit_path(str(tmp_path)).findings) == WANTED
