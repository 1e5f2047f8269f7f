"""Whatever files are like, what can be read of them is looked at, and what cannot is told."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from chipwise.api.audit import audit as audit_path
from chipwise.auditor.auditing import MOST_TERRAFORM, audit
from chipwise.auditor.source import Unreadable

BAD = "kind: Pod\nmetadata: {name: p}\nspec: {hostPID: true, containers: []}\n"


def rules(*files: tuple[str, str]) -> list[tuple[str, str, int]]:
    return [(one.rule, one.path, one.line) for one in audit(files).findings]


def test_merge_keys_bring_what_they_name() -> None:
    text = """\
x-safe: &safe
  securityContext: {runAsNonRoot: true, allowPrivilegeEscalation: false}
  resources: {limits: {memory: 1Gi}, requests: {cpu: 1}}
kind: Job
metadata: {name: merged}
spec:
  template:
    spec:
      containers:
        - {<<: *safe, name: a, image: "b:1"}
        - <<: [{image: "c:1"}, *safe]
          name: c
      restartPolicy: Never
"""
    assert rules(("a.yaml", text)) == []
    over = text.replace("name: a,", "name: a, securityContext: {privileged: true},")
    assert ("root-container", "a.yaml", 10) in rules(("a.yaml", over)), "a key of its own goes over what is merged"
    worse = text.replace("{image: ", "{securityContext: {privileged: true}, image: ")
    assert ("root-container", "a.yaml", 11) in rules(("a.yaml", worse)), "the first of several goes over the next"


def test_merges_of_merges_are_bounded() -> None:
    many = ", ".join(f"k{at}: 1" for at in range(500))
    bomb = f"a0: &a0 {{{many}}}\n" + "".join(
        f"a{at}: &a{at} {{<<: [{', '.join([f'*a{at - 1}'] * 9)}]}}\n" for at in range(1, 9)
    )
    [found] = audit([("a.yaml", bomb)]).findings
    assert "200,000 values" in found.what


def test_a_broken_document_hides_no_other() -> None:
    found = rules(("a.yaml", f"{BAD}---\nkind: [\n---\n{BAD}"))
    assert [one for one in found if one[0] == "host-access"] == [("host-access", "a.yaml", 3), ("host-access", "a.yaml", 9)]
    assert [one for one in found if one[0] == "unreadable"] == [("unreadable", "a.yaml", 6)]


def test_a_template_is_told_and_its_secrets_are_found() -> None:
    text = "{{- if .Values.on }}\nkind: Pod\nmetadata:\n  name: {{ .Release.Name }}\n# AKIAABCDEFGHIJKLMNOP\n{{- end }}\n"
    found = audit([("templates/a.yaml", text)]).findings
    assert [(one.rule, one.weight) for one in found] == [("open-secrets", "high"), ("unreadable", "low")]
    assert "helm template" in found[1].fix
    assert [one[0] for one in rules(("a.yaml", "kind: Pod\nmetadata: {name: {{ .x }}}\nspec: {hostPID: true}\n"))] == [
        "unreadable"
    ]
    argo = BAD.replace("name: p", 'name: "{{inputs.parameters.x}}"')
    assert ("host-access", "a.yaml", 3) in rules(("a.yaml", argo)), "in quotes it is a text like any other"


def test_patches_of_a_kustomization_are_no_objects() -> None:
    patch = "kind: Deployment\nmetadata: {name: a}\nspec: {template: {spec: {containers: [{name: a, image: b}]}}}\n"
    files = [("over/kustomization.yaml", "kind: Kustomization\npatches: [{path: ../p.yaml}, {patch: x}]\n"), ("p.yaml", patch)]
    found = audit(files)
    assert found.findings == ()
    assert found.skipped == ("p.yaml: a patch of a kustomization",)
    assert rules(("p.yaml", patch))


def test_literals_of_a_secret_generator_are_in_the_open() -> None:
    text = "kind: Kustomization\nsecretGenerator:\n  - name: s\n    literals: [password=hunter2]\n"
    assert rules(("kustomization.yaml", text)) == [("open-secrets", "kustomization.yaml", 4)]
    assert rules(("kustomization.yaml", text.replace("hunter2", "CHANGE_ME"))) == []


def test_json_is_read_with_its_tabs_and_pairs_of_surrogates() -> None:
    body = {"kind": "Pod", "metadata": {"name": "j"}, "spec": {"hostPID": True, "containers": []}}
    assert rules(("a.json", json.dumps(body, indent="\t"))) == [("host-access", "a.json", 7)]
    body["metadata"] = {"name": "\U0001f600"}
    assert rules(("a.json", json.dumps(body, indent=1))) == [("host-access", "a.json", 1)]


def test_json_that_is_no_manifest_need_not_be_mended() -> None:
    assert rules(("tsconfig.json", '{ // why\n "x": 1,\n}'), ("data.json", "[1, 2")) == []
    assert [one[0] for one in rules(("a.json", '{"kind": "Pod",\n'))] == ["unreadable"]


@pytest.mark.parametrize("kind", ["List", "PodList"])
def test_lists_are_what_they_hold(kind: str) -> None:
    assert ("host-access", "a.yaml", 5) in rules(("a.yaml", f"kind: {kind}\nitems:\n  - " + BAD.replace("\n", "\n    ")))


def test_terraform_as_json_is_terraform() -> None:
    body = {
        "resource": {
            "aws_instance": {"gpu": {"instance_type": "m7i.large", "root_block_device": {"encrypted": True}}},
            "aws_security_group": {"sg": [{"ingress": [{"cidr_blocks": ["0.0.0.0/0"]}]}]},
        }
    }
    found = rules(("main.tf.json", json.dumps(body, indent=1)))
    assert found == [("metadata-v1", "main.tf.json", 4), ("open-network", "main.tf.json", 12)]
    assert [one[0] for one in rules(("main.tf.json", '{"resource": ['))] == ["unreadable"]


def test_heredocs_and_ends_of_lines_of_other_systems_are_read() -> None:
    text = 'resource "aws_instance" "a" {\n  user_data = <<-EOT\n    resource "b" {\n    echo "${var.x}" {{\n    EOT\n}\n'
    for one in (text, text.replace("\n", "\r\n")):
        assert {rule for rule, _, _ in rules(("main.tf", one))} == {"metadata-v1", "unencrypted-disk"}


def test_more_terraform_than_can_be_read_in_a_minute_is_told() -> None:
    pytest.importorskip("hcl2")
    found = audit([("a.tf", "x = 1\n"), ("b.tf", "#" * MOST_TERRAFORM), ("c.yaml", BAD)]).findings
    assert {(one.rule, one.path) for one in found} == {("unreadable", "b.tf"), ("host-access", "c.yaml")}
    assert "at a time" in found[0].fix or "at a time" in found[1].fix


def test_many_documents_are_refused() -> None:
    [found] = audit([("a.yaml", "---\n" * 100_000)]).findings
    assert "5,000 documents" in found.what


def test_a_file_without_text_stops_no_other() -> None:
    found = audit([("a.yaml", Unreadable("permission denied")), ("b.yaml", BAD)]).findings
    assert [(one.rule, one.path) for one in found] == [("unreadable", "a.yaml"), ("host-access", "b.yaml")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "bad.yaml").write_text(BAD)
    return tmp_path


def seen(folder: Path) -> list[tuple[str, str]]:
    return [(one.rule, one.path) for one in audit_path(str(folder)).findings]


def test_a_file_that_is_not_text_stops_no_other(folder: Path) -> None:
    (folder / "a.yaml").write_bytes(b"kind: Pod\nname: \xe9\xff\n")
    (folder / "Dockerfile").write_bytes(bytes(range(256)))
    assert seen(folder) == [("unreadable", "Dockerfile"), ("unreadable", "a.yaml"), ("host-access", "good/bad.yaml")]
    assert audit_path(str(folder)).findings[1].line == 2


def test_what_powershell_writes_is_read(folder: Path) -> None:
    (folder / "good" / "bad.yaml").write_text(BAD, encoding="utf-16")
    (folder / "half.yaml").write_bytes(b"\xff\xfe\x00")
    assert seen(folder) == [("host-access", "good/bad.yaml"), ("unreadable", "half.yaml")]


def test_a_file_that_is_too_large_is_passed_over(folder: Path) -> None:
    (folder / "data.json").write_text(" " * 5_000_001)
    found = audit_path(str(folder))
    assert [one.path for one in found.findings] == ["good/bad.yaml"]
    assert found.skipped == ("data.json: it is larger than 5 MB",)


def test_links_that_lead_round_or_nowhere_are_no_files(folder: Path) -> None:
    (folder / "up").symlink_to(folder)
    (folder / "self.yaml").symlink_to("self.yaml")
    (folder / "lost.yaml").symlink_to("nowhere")
    os.mkfifo(folder / "pipe.yaml")
    assert seen(folder) == [("host-access", "good/bad.yaml")]


def test_what_is_closed_to_us_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "closed.yaml").write_text(BAD)
    real = Path.open

    def denied(self: Path, *args: object, **more: object) -> object:
        if self.name == "closed.yaml":
            raise PermissionError(13, "Permission denied")
        return real(self, *args, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", denied)  # permissions do not hold back root, who may run these tests
    assert seen(folder) == [("unreadable", "closed.yaml"), ("host-access", "good/bad.yaml")]
