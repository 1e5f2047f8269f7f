"""Rendered files are taken by the tools they are for, or by the parsers and schemas that those publish."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

import pytest

from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.named_targets import files, target
from deployments import AWS_NAMES, NAMES, deployment
from fixed_deployments import CASES
from render_checks import program, python_of, said

pytestmark = pytest.mark.e2e

_SKY = """
import sys, yaml, sky
for path in sys.argv[1:]:
    config = yaml.safe_load(open(path))
    given = {name: "x" for name in config.get("secrets") or {}}
    task = sky.Task.from_yaml_config(config, secrets_overrides=given or None)
    assert task.resources and task.run, path
    print("taken", task.name, task.num_nodes, bool(task.service))
"""
_PCLUSTER = """
import sys, yaml
from pcluster.schemas.cluster_schema import ClusterSchema
for path in sys.argv[1:]:
    made = ClusterSchema(cluster_name="proof").load(yaml.safe_load(open(path)))
    print("taken", [queue.name for queue in made.scheduling.queues])
"""


def rendered(name: str) -> dict[str, list[File]]:
    """By case and example: the files of every one that fits the target."""
    every = {f"case-{key}": value for key, value in CASES.items()} | {example: deployment(example) for example in NAMES}
    every |= {f"{example}-aws": deployment(example, "clouds=[aws]") for example in AWS_NAMES}
    found = {}
    for key, what in every.items():
        with contextlib.suppress(CannotRender):
            found[key] = files(name, target(name), what)
    assert found
    return found


def written(folder: Path, name: str, ending: str) -> list[Path]:
    paths = []
    for key, made in rendered(name).items():
        for file in made:
            at = folder / key / file.path
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_text(file.text, encoding="utf-8")
            paths += [at] if file.path.endswith(ending) else []
    return paths


def test_dockers_own_parser_reads_every_dockerfile() -> None:
    dockerfile = pytest.importorskip("dockerfile", reason="dockerfile: not installed; see make tools")
    for key, made in rendered("dockerfile").items():
        for file in made:
            if file.path.endswith("Dockerfile"):
                read = dockerfile.parse_string(file.text)
                commands = [one for one in read if one.cmd.lower() == "cmd"]
                assert len(commands) == 1, key
                assert commands[0].json, "exec form"
                users = [one.value[0] for one in read if one.cmd.lower() == "user"]
                assert users[-1] == "10001:10001", key


def test_hadolint_objects_to_no_dockerfile(tmp_path: Path) -> None:
    paths = written(tmp_path, "dockerfile", "Dockerfile")
    code, text = said([program("hadolint"), "--no-color", *map(str, paths)])
    assert (code, text.strip()) == (0, "")


def test_composes_own_loader_takes_every_file(tmp_path: Path) -> None:
    loader = program("compose-go")
    for path in written(tmp_path, "compose", "compose.yaml"):
        # The loader by itself reads no environment, and a part or a group of streams must be named.
        given = re.sub(r":\?which [a-z ]+, from 0}", ":-0}", path.read_text(encoding="utf-8"))
        path.write_text(given, encoding="utf-8")
        code, text = said([loader, "--format", "json", path.name], cwd=path.parent)
        assert code == 0, f"{path.parent.name}: {text}"
        main = json.loads(text[text.index("{") :])["services"]["main"]
        assert main["read_only"] is True
        assert main["user"] == "10001:10001"


@pytest.mark.parametrize(
    ("name", "ending", "schema"),
    [("compose", "compose.yaml", "vendor.compose-spec"), ("github-actions", ".yaml", "vendor.github-workflows")],
)
def test_the_published_schema_holds(tmp_path: Path, name: str, ending: str, schema: str) -> None:
    paths = written(tmp_path, name, ending)
    code, text = said([program("check-jsonschema"), "--builtin-schema", schema, *map(str, paths)])
    assert code == 0, text


def test_actionlint_objects_to_no_workflow(tmp_path: Path) -> None:
    paths = written(tmp_path, "github-actions", ".yaml")
    code, text = said([program("actionlint"), "-no-color", "-shellcheck=", "-pyflakes=", *map(str, paths)])
    assert code == 0, text


def test_skypilots_own_loader_takes_every_task(tmp_path: Path) -> None:
    python = python_of("skypilot")
    paths = written(tmp_path, "skypilot", "task.yaml")
    code, text = said([python, "-c", _SKY, *map(str, paths)], cwd=tmp_path, HOME=str(tmp_path))
    assert code == 0, text[-3000:]
    assert text.count("taken ") == len(paths)


def test_parallelclusters_own_schema_takes_every_cluster(tmp_path: Path) -> None:
    python = python_of("parallelcluster")
    paths = written(tmp_path, "parallelcluster", "cluster.yaml")
    code, text = said([python, "-W", "ignore", "-c", _PCLUSTER, *map(str, paths)], AWS_DEFAULT_REGION="us-east-1")
    assert code == 0, text[-3000:]
    assert text.count("taken ") == len(paths)


def test_a_shell_reads_every_script(tmp_path: Path) -> None:
    for name in ("slurm", "parallelcluster", "skypilot"):
        for ending in (".sbatch", ".sh"):
            for path in written(tmp_path / name, name, ending):
                code, text = said([program("bash"), "-n", str(path)])
                assert code == 0, f"{path}: {text}"
