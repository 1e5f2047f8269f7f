"""Programs that are rendered or sent to machines are files: each is checked as it stands, and none hides in a string."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chipwise
from chipwise.renderer.launch import shards
from chipwise.renderer.program_files import NOTES, Setting, inline, program, settings_text, variables
from hostile import TEXTS
from render_checks import program as tool

SOURCE = Path(chipwise.__file__).parent
GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "render"
PROGRAMS = sorted(path for path in SOURCE.rglob("programs/*") if path.suffix in (".py", ".sh"))
SHELL = [path for path in PROGRAMS if path.suffix == ".sh"]
PYTHON = [path for path in PROGRAMS if path.suffix == ".py"]
RENDERED = {"ec2_launch": "launch", "mlflow_track": "track", "lambda_handler": "handler"}  # where the names differ
GOLDEN_ELSEWHERE = ("ray_launch", "push_handler", "finetune")  # whose settings their own tests hold against them
LONGEST = 8  # lines of a string: what has more is a program, or a page of it
SQL = re.compile(r"\s*(BEGIN|CREATE|INSERT)\b")


def ids(path: Path) -> str:
    return path.name


@pytest.mark.parametrize("path", SHELL, ids=ids)
def test_shellcheck_has_nothing_to_say(path: Path) -> None:
    done = subprocess.run([tool("shellcheck"), str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", PROGRAMS, ids=ids)
def test_a_program_names_its_interpreter(path: Path) -> None:
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    assert first in (("#!/bin/bash", "#!/bin/sh") if path.suffix == ".sh" else ("#!/usr/bin/env python3",))


def read_by(path: Path) -> set[str]:
    """Names of the settings that a program reads."""
    found = [one for one in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(one, ast.Subscript)]
    return {
        str(one.slice.value)
        for one in found
        if isinstance(one.value, ast.Name) and one.value.id == "SETTINGS" and isinstance(one.slice, ast.Constant)
    }


@pytest.mark.parametrize("path", [path for path in PYTHON if path.stem not in GOLDEN_ELSEWHERE], ids=ids)
def test_a_target_writes_what_its_program_reads_and_no_more(path: Path) -> None:
    written = list(GOLDEN.glob(f"*/*/{RENDERED.get(path.stem, path.stem)}.json"))
    assert written
    for one in written:
        assert set(json.loads(one.read_text())) - {NOTES} == read_by(path), one


def long_texts(source: str) -> Iterator[tuple[int, int]]:
    """(line, lines) of each string in code that is longer than a sentence or a small snippet; comments on objects are not."""
    nodes = list(ast.walk(ast.parse(source)))
    passed_over = {id(one.value) for one in nodes if isinstance(one, ast.Expr)}
    passed_over |= {id(part) for one in nodes if isinstance(one, ast.JoinedStr) for part in one.values}
    for one in nodes:
        if id(one) in passed_over or not isinstance(one, ast.Constant | ast.JoinedStr):
            continue
        parts = one.values if isinstance(one, ast.JoinedStr) else [one]
        text = "".join(str(part.value) for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str))
        if text.count("\n") > LONGEST and not SQL.match(text):
            yield one.lineno, text.count("\n")


@pytest.mark.parametrize("folder", ["renderer", "adapters"])
def test_no_module_holds_a_program_in_a_string(folder: str) -> None:
    found = {
        f"{path.relative_to(SOURCE)}:{line}": many
        for path in (SOURCE / folder).rglob("*.py")
        if path not in PYTHON
        for line, many in long_texts(path.read_text(encoding="utf-8"))
    }
    assert found == {}, "put it into programs/, and its settings into data beside it"


def test_a_program_in_a_string_would_be_found() -> None:
    lines = "echo a\\n" * (LONGEST + 1)
    assert list(long_texts(f'"""{lines}"""\nX = "{lines}"\n')) == [(2, LONGEST + 1)]
    assert list(long_texts(f'X = f"{lines}{{y}}"\n')) == [(1, LONGEST + 1)]
    assert list(long_texts('X = "CREATE TABLE a (\\n' + "b INT,\\n" * 20 + ')"\n')) == []


@given(st.text(max_size=200), st.lists(st.text(max_size=20), max_size=5))
def test_settings_are_read_back_as_they_were(text: str, words: list[str]) -> None:
    made = json.loads(settings_text([Setting("A", text, f"why\n{text}"), Setting("B", {text: [words], "c": words})]))

    def clean(one: str) -> str:
        return one.encode("utf-8", "replace").decode()

    assert (made["A"], made["B"]["c"]) == (clean(text), [clean(one) for one in words])


@pytest.mark.parametrize("text", TEXTS)
def test_settings_of_a_shell_are_data_whatever_they_hold(text: str, tmp_path: Path) -> None:
    made = variables({"ONE": text, "MANY": [text, "", f"{text} {text}"]}, {"ONE": text})
    show = 'printf "%s\\0" "$ONE" "${MANY[@]}"'
    done = subprocess.run(["bash", "-c", made + show], cwd=tmp_path, capture_output=True, check=True)
    kept = text.replace("\0", "").encode("utf-8", "surrogateescape")
    assert done.stdout.split(b"\0")[:-1] == [kept, kept, b"", kept + b" " + kept]
    assert list(tmp_path.iterdir()) == []


def test_the_program_of_shards_names_them_as_the_plan_does() -> None:
    assert f" digits={shards.DIGITS} " in program("shards.sh")
    assert inline(program("shards.sh")).startswith("set -u\n")
    assert "'" not in inline(program("shards.sh")) + inline(program("streams.sh")), "they stand between single quotes"


def beside(folder: Path, name: str, path: str, settings: dict[str, Any]) -> Path:
    (folder / path).write_text(program(name))
    (folder / path).with_suffix(".json").write_text(json.dumps(settings))
    return folder / path


MLFLOW = """
import contextlib, json, os
def write(*what): open(os.environ["OUT"], "a").write(json.dumps(what) + chr(10))
def log_metric(name, value): write(name, value)
def log_params(values): write("params", values)
def set_tags(values): write("tags", values)
def set_tag(name, value): write(name, value)
@contextlib.contextmanager
def start_run(**about):
    write("run", about["run_name"])
    yield
"""


def test_the_tracker_logs_what_was_predicted_and_what_was_measured(tmp_path: Path) -> None:
    stage = {"about": "a", "command": ["true"], "usd_per_hour": 36, "settings": {"chip": "x"}, "predicted": {"seconds": 10}}
    script = beside(tmp_path, "mlflow_track.py", "track.py", {"TAGS": {"team": "t"}, "STAGES": {"train": stage}})
    (tmp_path / "mlflow.py").write_text(MLFLOW)
    env = {**os.environ, "OUT": str(tmp_path / "out")}
    for words, code in (([], 0), (["--", "false"], 1), (["--measured", "seconds=20"], 0)):
        assert subprocess.run([sys.executable, str(script), *words], env=env, check=False).returncode == code
    said = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert [one for one in said if one[0] == "exit_code"] == [["exit_code", 0], ["exit_code", 1]]
    assert said[-2:] == [["measured.seconds", 20.0], ["ratio.seconds", 2.0]]


def test_a_pushed_message_runs_the_command_and_its_failure_sends_it_again(tmp_path: Path) -> None:
    code = "import os, sys; sys.exit(os.environ['OBJECT_URL'] != 'gs://in/a')"
    script = beside(tmp_path, "push_handler.py", "handler.py", {"COMMAND": [sys.executable, "-c", code]})
    inside: dict[str, Any] = {"__name__": "rendered", "__file__": str(script)}
    exec(compile(script.read_text(), "handler.py", "exec"), inside)
    with inside["HTTPServer"](("127.0.0.1", 0), inside["Handler"]) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        answers = []
        for key in ("a", "b"):
            body = json.dumps({"message": {"attributes": {"bucketId": "in", "objectId": key}}}).encode()
            asked = urllib.request.Request(f"http://127.0.0.1:{server.server_address[1]}/", body)
            try:
                answers.append(urllib.request.urlopen(asked, timeout=20).status)
            except urllib.error.HTTPError as error:
                answers.append(error.code)
                error.close()
        server.shutdown()
    assert answers == [204, 500]


RAY = """
class _Task:
    def __init__(self, call): self.call = call
    def options(self, **_): return self
    def remote(self, *words): return self.call(*words)
def remote(**_): return _Task
def init(): pass
def get(what): return what
def wait(waiting): return waiting[:1], waiting[1:]
class util:
    get_node_ip_address = staticmethod(lambda: "10.0.0.1")
"""


@pytest.mark.parametrize(("command", "code"), [('test "$MASTER_ADDR" = 10.0.0.1', 0), ('test "$RANK$SHARD" = 000000', 1)])
def test_the_ray_launcher_starts_the_command_on_every_worker(command: str, code: int, tmp_path: Path) -> None:
    settings = {
        "WORKERS": 2,
        "BUNDLE": {"CPU": 1},
        "STRATEGY": "SPREAD",
        "CHIPS": 8,
        "COMMAND": f"echo $RANK >> {tmp_path}/ran; {command}",
    }
    script = beside(tmp_path, "ray_launch.py", "launch.py", settings)
    util = tmp_path / "ray" / "util"
    util.mkdir(parents=True)
    (tmp_path / "ray" / "__init__.py").write_text(RAY)
    (util / "__init__.py").write_text("")
    group = "class placement_group:\n    def __init__(self, *_, **__): pass\n    def ready(self): pass\n"
    (util / "placement_group.py").write_text(group)
    (util / "scheduling_strategies.py").write_text(group.replace("placement_group", "PlacementGroupSchedulingStrategy"))
    (tmp_path / "ray" / "__init__.py").write_text(RAY.replace("class util:", "from ray import util as _util\nclass util:"))
    assert subprocess.run([sys.executable, str(script)], check=False, timeout=30).returncode == code
    assert (tmp_path / "ran").read_text().split() == ["0", "1"]
