"""`chipwise render` and `chipwise audit` as a user types them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import yaml

from chipwise.cli.main import main

FILE = """kind: serve
name: chat
model: llama-3.2-1b
arrival: {rate: 0.4 req/s}
input_tokens: {mean: 600, p95: 1800}
output_tokens: {mean: 120, p95: 300}
goals: {tpot: {p95: 80ms}, ttft: {p95: 2s}}
limits: {clouds: [aws], chips: [A10G, L40S]}
program:
  env: {MODE: "it's $(id) ${HOME} {{ x }}"}
  secrets: {HF_TOKEN: hub-token/token}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "chat.yaml").write_text(FILE)
    return str(tmp_path / "chat.yaml")


def test_the_targets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "--list"]) == 0
    shown = capsys.readouterr().out
    assert "kubernetes" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_the_targets_that_fit_are_listed_with_reasons_for_the_others(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", file, "--list", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["kubernetes"].startswith("fits: ")


def test_files_are_shown_where_no_directory_is_given(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", file, "--to", "kubernetes"]) == 0
    shown = capsys.readouterr().out
    objects = [one for one in yaml.safe_load_all(shown) if one]
    deployment = next(one for one in objects if one["kind"] == "Deployment")
    env = {one["name"]: one for one in deployment["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert env["MODE"]["value"] == "it's $$(id) ${HOME} {{ x }}"
    assert env["HF_TOKEN"]["valueFrom"] == {"secretKeyRef": {"name": "hub-token", "key": "token"}}


def test_files_are_written_once_and_not_over_others(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "deploy"
    assert main(["render", file, "--to", "kubernetes", "--out", str(out)]) == 0
    kept = (out / "workload.yaml").read_text()
    assert main(["render", file, "--to", "kubernetes", "--out", str(out)]) == 2
    assert "--force" in capsys.readouterr().err
    assert (out / "workload.yaml").read_text() == kept
    assert main(["render", file, "--to", "kubernetes", "--out", str(out), "--force"]) == 0
    assert main(["audit", str(out)]) == 0
    assert "no problems found" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "a target are needed"),
        (["--to", "kuberntes"], "kubernetes"),
        (["--to", "kubernetes", "--choice", "900"], "choices"),
        (["--to", "kubernetes", "--stage", "x"], "no pipeline"),
        (["--to", "kubernetes", "--out", "/dev/null"], "is a file"),
        (["--to", "kubernetes", "--limit", "chips=[nothing]"], "nothing"),
    ],
)
def test_mistakes_are_told(file: str, words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", file, *words]) == 2
    told = capsys.readouterr()
    assert said in told.err
    assert not told.out


def test_nothing_fits_renders_nothing(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", file, "--to", "kubernetes", "--limit", "regions=[us-gov-west-1]", "--limit", "chips=[l40s]"]) in (
        1,
        2,
    )
    assert not capsys.readouterr().out


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "nowhere.yaml", "--to", "kubernetes"]) == 2
    assert "nowhere.yaml" in capsys.readouterr().err


def test_an_audit_reads_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("kind: Pod\nspec: {hostPID: true, containers: [{name: a, image: b}]}\n"))
    assert main(["audit", "-", "--json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    assert {"host-access", "root-container"} <= {one["rule"] for one in shown["findings"]}
    assert all(set(one) == {"rule", "weight", "path", "line", "what", "fix", "also", "page"} for one in shown["findings"])


def test_an_audit_of_nothing_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(tmp_path)]) == 2
    assert "no file of a known type" in capsys.readouterr().err
    assert main(["audit", str(tmp_path / "none")]) == 2
    (tmp_path / "large.json").write_text(" " * 5_000_001)
    assert main(["audit", str(tmp_path)]) == 2
    assert "large.json: it is larger than 5 MB" in capsys.readouterr().err


def test_the_rules_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--rules"]) == 0
    assert "spot-without-checkpoint" in capsys.readouterr().out


def test_all_environments_are_written_as_one_tree(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path(file).write_text(FILE + "environments:\n  dev: {arrival: {rate: 0.1 req/s}}\n  prod: {}\n")
    out = tmp_path / "deploy"
    assert main(["render", file, "--to", "kubernetes", "--layout", "kustomize", "--out", str(out)]) == 0
    assert {one.name for one in (out / "overlays").iterdir()} == {"dev", "prod"}
    assert yaml.safe_load((out / "overlays/prod/kustomization.yaml").read_text())["namespace"] == "chat-prod"
    capsys.readouterr()
    assert main(["render", file, "--to", "terraform", "--layout", "helm"]) == 2
    assert "no manifests" in capsys.readouterr().err
