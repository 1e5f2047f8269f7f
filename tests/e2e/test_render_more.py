"""Ray, Argo, Triton, engines, MLflow and pictures, each before the real thing that will read it."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from playwright.sync_api import Page, sync_playwright

from checks_here import definitions, place, triton_messages
from chipwise.renderer.deployment import Deployment, HandOff, Stand
from chipwise.renderer.file import CannotRender
from chipwise.renderer.named_targets import files, target
from deployments import NAMES, deployment
from fixed_deployments import CASES, PIPELINE, SERVE
from kube.control_plane import Cluster
from render_checks import program

pytestmark = pytest.mark.e2e
ALL = [f"{name} planned" for name in NAMES] + [f"{name} fixed" for name in CASES]
OWN = {"kuberay": "ray", "argo": "argo"}
REGIONAL = replace(SERVE, stands=tuple(Stand("aws", one, "g6e.xlarge", 2, 0.5) for one in ("eu-central-1", "us-east-1")))


def the(name: str) -> Deployment:
    which, _, how = name.rpartition(" ")
    return deployment(which) if how == "planned" else CASES[which]


def rendered(name: str, to: str) -> dict[str, str]:
    """By path; empty where the target refuses."""
    try:
        return {file.path: file.text for file in files(to, target(to), the(name))}
    except CannotRender:
        return {}


def objects(made: dict[str, str]) -> list[dict[str, Any]]:
    return list(chain.from_iterable(yaml.safe_load_all(text) for path, text in made.items() if path.endswith(".yaml")))


# -- KubeRay and Argo: their definitions on a real server, and their own rules


@pytest.fixture(scope="module")
def knowing(cluster: Cluster) -> Cluster:
    for name in OWN:
        cluster.install(name, definitions(name))
    return cluster


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("to", ["ray", "argo"])
def test_the_server_accepts_every_field(knowing: Cluster, namespace: str, to: str, name: str) -> None:
    made = objects(rendered(name, to))
    for one in (every := [*made, *_applied(made)]):
        metadata = one["metadata"]
        if "generateName" in metadata:
            metadata["name"] = metadata.pop("generateName") + "x"
        if "namespace" in metadata:
            metadata["namespace"] = namespace
    for one, answer in zip(every, knowing.api.apply(every, dry_run=True), strict=True):
        assert answer.accepted, f"{one['kind']}: {answer.message}"


def _applied(made: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What the steps of a workflow apply, as it is when Argo has put its own names in."""
    for one in made:
        spec = one.get("spec", {})
        for template in spec.get("workflowSpec", spec).get("templates", ()) if "argoproj" in one["apiVersion"] else ():
            manifest = template.get("resource", {}).get("manifest")
            if manifest:
                yield yaml.safe_load(manifest.replace("{{workflow.name}}", "run-abcde"))


@pytest.mark.parametrize(("to", "kind"), [("ray", "RayJob"), ("argo", "Workflow")])
def test_the_server_refuses_a_misspelt_field(knowing: Cluster, to: str, kind: str) -> None:
    [one] = [one for one in objects(rendered("train fixed", to)) if one["kind"] == kind]
    one["metadata"] = {"name": "wrong", "namespace": "default"}
    one["spec"]["entripoint"] = "x"
    [answer] = knowing.api.apply([one], dry_run=True)
    assert not answer.accepted
    assert "entripoint" in answer.message


@pytest.mark.parametrize(("rules", "to"), OWN.items())
def test_the_projects_own_rules_hold(rules: str, to: str, tmp_path: Path) -> None:
    group = "ray.io" if to == "ray" else "argoproj.io"
    mine = [one for name in ALL for one in objects(rendered(name, to)) if one["apiVersion"].startswith(group)]
    assert len(mine) > len(ALL) / 2
    said = _judged(rules, mine, tmp_path)
    assert not said, said


def _judged(rules: str, mine: list[dict[str, Any]], folder: Path) -> str:
    paths = []
    for number, one in enumerate(mine):
        path = folder / f"{number}.yaml"
        path.write_text(yaml.safe_dump(one), encoding="utf-8")
        paths.append(str(path))
    done = subprocess.run([place(f"{rules} rules"), *paths], capture_output=True, text=True, timeout=300)
    assert (done.returncode == 0) == (not done.stdout), done.stderr
    return done.stdout


def test_argo_itself_refuses_a_task_that_waits_for_nobody(tmp_path: Path) -> None:
    [one] = [one for one in objects(rendered("train fixed", "argo")) if one["kind"] == "Workflow"]
    one["spec"]["templates"][0]["dag"]["tasks"][0]["depends"] = "nobody"
    assert "nobody" in _judged("argo", [one], tmp_path)


def test_kuberay_itself_refuses_a_name_that_is_too_long(tmp_path: Path) -> None:
    [one] = [one for one in objects(rendered("train fixed", "ray")) if one["kind"] == "RayJob"]
    one["metadata"]["name"] = "x" * 60
    assert "characters" in _judged("kuberay", [one], tmp_path)


# -- Triton, by its own description of a configuration


@pytest.mark.parametrize("name", ALL)
def test_triton_reads_its_configuration(name: str) -> None:
    configs = {path: text for path, text in rendered(name, "triton").items() if path.endswith(".pbtxt")}
    if not configs:
        return
    messages, text_format = triton_messages(), importlib.import_module("google.protobuf.text_format")
    for path, text in configs.items():
        read = text_format.Parse(text, messages.ModelConfig())
        assert read.name == path.split("/")[1]
        assert read.backend
        assert read.instance_group[0].count == 1


# -- scripts of engines: what the program is really started with


@pytest.mark.parametrize(("to", "called"), [("vllm", "vllm"), ("tgi", "text-generation-launcher"), ("triton", "tritonserver")])
def test_a_script_starts_its_engine_with_the_plans_flags(to: str, called: str, tmp_path: Path) -> None:
    made = {file.path: file.text for file in files(to, target(to), deployment("serve", "chips=[l40s]"))}  # all three have it
    stand_in = tmp_path / "bin" / called
    stand_in.parent.mkdir()
    stand_in.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "$SEEN"\n', encoding="utf-8")
    stand_in.chmod(0o755)
    for path, text in made.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    settings = {"PATH": f"{stand_in.parent}:{os.environ['PATH']}", "SEEN": str(tmp_path / "seen"), "HF_TOKEN": "x"}
    subprocess.run([program("bash"), str(tmp_path / "serve.sh"), "--last"], env=settings, check=True, timeout=30)
    seen = (tmp_path / "seen").read_text(encoding="utf-8").splitlines()
    assert seen[-1] == "--last"
    assert all(word in seen for word in {"vllm": ["serve", "--config"], "tgi": ["--quantize", "fp8"], "triton": []}[to])


# -- MLflow, real, with files


def test_mlflow_holds_predicted_and_measured_beside_each_other(tmp_path: Path) -> None:
    python = place("mlflow")
    path = tmp_path / "track.py"
    for name, text in rendered("train fixed", "mlflow").items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    store = {"MLFLOW_TRACKING_URI": f"file:{tmp_path / 'runs'}", "MLFLOW_ALLOW_FILE_STORE": "true"}
    settings = {**os.environ, **store}
    for words, code in (
        (["--items", "10", "--", "true"], 0),
        (["--", "false"], 1),
        (["--measured", "latency p99=9.5", "--measured", "seconds=150000"], 0),
    ):
        done = subprocess.run([str(python), str(path), *words], env=settings, capture_output=True, text=True, timeout=120)
        assert done.returncode == code, done.stderr
    ask = (
        "import json, mlflow; print(json.dumps([[run.info.status, run.data.metrics, run.data.params, run.data.tags]"
        " for run in mlflow.search_runs(output_format='list')]))"
    )
    told = subprocess.run([str(python), "-c", ask], env=settings, capture_output=True, text=True, timeout=120, check=True)
    by_hand, failed, good = json.loads(told.stdout.splitlines()[-1])
    assert (good[0], failed[0], by_hand[0]) == ("FINISHED", "FAILED", "FINISHED")
    assert good[1]["predicted.seconds"] == 144000
    assert good[1]["ratio.seconds"] == pytest.approx(good[1]["measured.seconds"] / 144000)
    assert good[1]["measured.items_per_second"] > 0
    assert (good[2]["machine"], good[2]["machines"]) == ("p5.48xlarge", "2")
    assert by_hand[1]["ratio.seconds"] == pytest.approx(150000 / 144000)
    assert by_hand[3]["within_predicted_range"] == "true"


# -- pictures, in a real browser


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program("chromium"), args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": 1000, "height": 900})
        browser.close()


PICTURES = [*ALL, "regions", "text"]
_OUTSIDE = """() => {
  const svg = document.querySelector('svg'), frame = svg.viewBox.baseVal;
  return [...svg.querySelectorAll('text')].filter(one => {
    const box = one.getBBox();
    return box.x < 0 || box.y < 0 || box.x + box.width > frame.width || box.y + box.height > frame.height;
  }).map(one => one.textContent)
}"""
_CROWDED = """() => {
  const boxes = [...document.querySelectorAll('svg rect[rx]:not([stroke-dasharray])')].map(one => one.getBBox());
  const middle = t => t.x + t.width / 2;
  const inside = (t, b) => middle(t) > b.x && middle(t) < b.x + b.width && t.y > b.y - 4 && t.y < b.y + b.height;
  return [...document.querySelectorAll('svg text')].filter(one => {
    const text = one.getBBox(), box = boxes.find(b => inside(text, b));
    return box && (text.x < box.x || text.x + text.width > box.x + box.width);
  }).map(one => one.textContent)
}"""


def _picture(name: str) -> dict[str, str]:
    if name == "regions":
        planned: Deployment = REGIONAL
    elif name == "text":
        texts = ('a"b', "<script>alert(1)</script>", "end", "%%{init}%%", "漢字漢字😀" * 9, "`**x**`", "A --> B", "#35;")
        stages = tuple(replace(SERVE, title=text) for text in texts)
        passed = tuple(HandOff(a, b, 1e9, "onnx") for a, b in pairwise(texts))
        planned = replace(PIPELINE, title=texts[1], stages=stages, hand_offs=passed)
    else:
        planned = the(name)
    return {file.path: file.text for file in files("diagram", target("diagram"), planned)}


@pytest.mark.parametrize("name", PICTURES)
def test_no_text_of_a_picture_leaves_its_box_or_the_frame(page: Page, name: str) -> None:
    page.set_content(f"<body>{_picture(name)['diagram.svg']}")
    assert page.evaluate(_OUTSIDE) == []
    assert page.evaluate(_CROWDED) == []


def test_mermaid_draws_every_picture(page: Page) -> None:
    page.set_content("<body></body>")
    page.add_script_tag(path=str(place("mermaid")))
    page.evaluate("mermaid.initialize({startOnLoad: false})")
    for name in PICTURES:
        drawn = page.evaluate("async text => (await mermaid.render('x', text)).svg", _picture(name)["diagram.mmd"])
        assert drawn.startswith("<svg"), name
        assert "Syntax error" not in drawn, name
        assert "<script" not in drawn, name
