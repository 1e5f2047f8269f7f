"""Bad input and hostile text: `chipwise render`, `audit` and `plan --render` answer with a sentence and an exit code, write
nothing half, and what they write does no more than it says. Scripts are run here with stand-ins for what they start."""

from __future__ import annotations

import io
import json
import os
import random
import signal
import subprocess
import sys
from copy import deepcopy
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from chipwise.api import render as rendering
from chipwise.api.session import wiring
from chipwise.api.session.config import read_config
from chipwise.auditor.auditing import audit
from chipwise.cli.main import main
from chipwise.planner.options import flat, with_limits
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.quoting import kubernetes, shell

CANARY = "escaped"  # a file that appears where a text was run; `>` needs no program
SERVE: dict[str, Any] = {
    "kind": "serve",
    "name": "s",
    "model": "llama-3.2-1b",
    "arrival": 0.4,
    "input_tokens": 600,
    "output_tokens": 120,
    "limits": {"clouds": ["aws"], "chips": ["A10G", "L40S"]},
}
TRAIN: dict[str, Any] = {
    "kind": "finetune",
    "name": "t",
    "model": "llama-3.2-1b",
    "method": "lora",
    "tokens": "20M",
    "sequence_length": 2048,
    "limits": {"clouds": ["aws"], "chips": ["L40S"], "chip_count": 1},
}
TEXTS = (
    f"$(>{CANARY})",
    f"`>{CANARY}`",
    f"';>{CANARY};'",
    f'";>{CANARY};"',
    f"\n>{CANARY}\n",
    f"x\n#SBATCH --wrap='>{CANARY}'",
    "'",
    '"',
    "\\",
    "a\\",
    "${HOME}",
    "$$(HOME)",
    "a$$b",
    "$(HOME)",
    "%{ if true }",
    "{0} %s @KEEP@ _PART_",
    "${{ secrets.X }}",
    "<script>x</script>",
    "]]>",
    "a: b # c",
    "- x",
    "--flag",
    "!!python/object",
    "EOF\nEOF",
    "\x1b[31mred",
    "\x9b31m",
    "\r\n",
    "\u202eabc",
    "\u2028",
    "\ufeff",
    "\x7f",
    "é😀",
    "~",
    "null",
    "*",
    "",
)


class Asked:
    """A workload, asked for as the command line does it."""

    def __init__(self, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.folder, self.file, self.capfd = folder, folder / "w.yaml", capfd

    def __call__(self, work: dict[str, Any], *options: str, verb: str = "render") -> tuple[int, str, str]:
        self.file.write_text(flat(work))
        code = main([verb, str(self.file), *options])
        return (code, *self.capfd.readouterr())


@pytest.fixture(scope="module")
def session() -> wiring.Session:
    return wiring.Session(read_config(), date(2026, 11, 15), [])


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session: wiring.Session, capfd: pytest.CaptureFixture[str]) -> Asked:
    monkeypatch.setattr(wiring, "open_session", lambda: session)
    monkeypatch.delenv("CHIPWISE_DEBUG", raising=False)
    return Asked(tmp_path, capfd)


def planned(session: wiring.Session, work: dict[str, Any], **program: Any) -> Deployment:
    text = flat(work | {"program": program})
    return rendering.deployment_of(session, "w.yaml", rendering.RenderRequest(text=text))


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ({"command": ["python", False]}, "program.command"),
        ({"command": ["python", None]}, "program.command"),
        ({"command": [""]}, "begins with an empty word"),
        ({"command": {"a": 1}}, "program.command"),
        ({"command": ["x"] * 401}, "at most 400 words"),
        ({"command": ["x" * 20_000]}, "program.command"),
        ({"env": {"A B": "x"}}, "program.env"),
        ({"env": {"A": True}}, "program.env"),
        ({"env": ["A=1"]}, "program.env"),
        ({"env": {"A": "x" * 20_000}}, "program.env"),
        ({"env": {f"A{n}": "x" * 16_000 for n in range(70)}}, "the limit is"),
        ({"secrets": {"A": "hub/.."}}, "program.secrets"),
        ({"secrets": {"A": "/etc/passwd"}}, "program.secrets"),
        ({"port": True}, "program.port"),
        ({"port": "80; x"}, "program.port"),
        ({"image": "a\n"}, "program.image"),
        ({"image": "x;y"}, "program.image"),
        ({"health": "/$(id)"}, "program.health"),
        ({"requirements": "../../x"}, "not a file next to the program"),
        ({"checkpoints": "s3://a\n/b"}, "program.checkpoints"),
        ({"trigger": "s3://abc/$(id)"}, "program.trigger"),
        ({"engine": "vlm"}, "vllm"),
        ({"nothing": 1}, "program.nothing"),
    ],
)
def test_a_program_that_cannot_be_is_a_sentence(ask: Asked, program: dict[str, Any], told: str) -> None:
    out = ask.folder / "out"
    code, shown, err = ask(SERVE | {"program": program}, "--to", "kubernetes", "--out", str(out))
    assert (code, shown) == (2, "")
    assert told in err
    assert "w.yaml" in err
    assert len(err) < 1000
    assert not out.exists()


@pytest.mark.parametrize("model", ["meta-llama/Llama-3.2-1B;'$(>escaped)", "meta-llama/Llama 3.2 1B\n#", 'x"/llama-3.2-1b'])
def test_a_model_that_is_no_hub_id_is_fetched_by_the_one_that_is(session: wiring.Session, model: str) -> None:
    """Names are found whatever their signs, so signs must not travel on."""
    try:
        what = planned(session, SERVE | {"model": model})
    except Exception as error:
        assert "model" in str(error)  # noqa: PT017 - not found is an answer as well
        return
    assert what.model is not None
    assert what.model.hub == "meta-llama/Llama-3.2-1B"
    assert model not in "".join(what.software.command)


def test_a_hub_id_stays_as_it_is_written(session: wiring.Session) -> None:
    what = planned(session, SERVE | {"model": "unsloth/Llama-3.2-1B-Instruct"})
    assert what.model is not None
    assert what.model.hub == "unsloth/Llama-3.2-1B-Instruct"


def test_stages_that_would_have_one_name_are_told(ask: Asked) -> None:
    stage = {key: value for key, value in SERVE.items() if key != "limits"}
    work = {
        "kind": "pipeline",
        "name": "p",
        "limits": SERVE["limits"],
        "stages": [stage | {"name": "a.b"}, stage | {"name": "A-b"}],
    }
    code, shown, err = ask(work, "--to", "dockerfile", "--out", str(ask.folder / "out"))
    assert (code, shown) == (2, "")
    assert "'a.b' and 'A-b'" in err
    assert not (ask.folder / "out").exists()


@pytest.mark.parametrize("work", [SERVE, TRAIN], ids=["serve", "train"])
def test_no_text_steers_a_terminal_or_changes_what_is_built(session: wiring.Session, work: dict[str, Any]) -> None:
    """Every target still writes what its files are named for, of signs that can be seen."""
    settings = {f"S{at}": text for at, text in enumerate(TEXTS)}
    what = planned(
        session,
        work | {"description": "".join(TEXTS)[:200], "labels": {f"{text}k": text for text in TEXTS}},
        command=["python", "main.py", *TEXTS, *(f"--a={text}" for text in TEXTS)],
        env=settings,
        framework="pytorch",
    )
    written = 0
    for name in rendering.target_names():
        try:
            files = rendering.files(name, rendering.target(name), what)
        except CannotRender:
            continue
        written += len(files)
        for file in files:
            assert all(sign.isprintable() or sign in "\n\t" for sign in file.text), (name, file.path)
            if file.path.endswith((".yaml", ".yml")):
                assert all(one is not None for one in yaml.safe_load_all(file.text)), (name, file.path)
            elif file.path.endswith(".py"):
                compile(file.text, file.path, "exec")
    assert written > 10


def test_signs_beyond_the_first_plane_outlive_an_option_over_the_file() -> None:
    """JSON writes them as two halves; YAML reads no halves."""
    text = with_limits("kind: serve\nname: é😀\u2028\n", "w.yaml", ["clouds=[aws]"])
    assert yaml.safe_load(text) == {"kind": "serve", "name": "é😀\u2028".strip(), "limits": {"clouds": ["aws"]}}


def stand_ins(folder: Path) -> dict[str, str]:
    """A place to run a script in: `record` notes its words and settings, srun and others start what they are given."""
    (folder / "bin").mkdir()
    for name, body in {
        "record": 'printf "%s\\0" "$@" > "$NOTED"\n'
        'for one in ${!S@}; do case $one in S[0-9][0-9]) printf "%s\\0" "${!one}";; esac; done > "$NOTED.settings"',
        "srun": 'while [ "${1#-}" != "$1" ]; do shift; done; "$@"',
        "torchrun": "record",
        "scontrol": ":",
        "scancel": ":",
    }.items():
        (folder / "bin" / name).write_text(f"#!/bin/bash\n{body}\n")
        (folder / "bin" / name).chmod(0o755)
    here = {key: str(folder) for key in ("HOME", "SLURM_SUBMIT_DIR", "STORE")}
    return here | {
        "PATH": f"{folder / 'bin'}:/usr/bin:/bin",
        "NOTED": str(folder / "noted"),
        "IMAGE": "",
        "SLURM_JOB_ID": "7",
        "SLURM_CPUS_PER_TASK": "1",
        "SLURM_NODEID": "0",
        "SLURM_PROCID": "0",
        "LC_ALL": "C.UTF-8",
    }


@pytest.mark.parametrize(
    ("target", "file", "work"), [("slurm", "job.sbatch", TRAIN), ("vllm", "serve.sh", SERVE), ("tgi", "serve.sh", SERVE)]
)
def test_a_script_hands_on_what_was_written_and_runs_nothing_else(
    session: wiring.Session, tmp_path: Path, target: str, file: str, work: dict[str, Any]
) -> None:
    env = stand_ins(tmp_path)
    words = [*TEXTS, *(f"--a={text}" for text in TEXTS)]
    settings = {f"S{at:02d}": text for at, text in enumerate(TEXTS)}
    engine = {"engine": target} if work is SERVE else {}
    what = planned(session, work, command=["record", *words], env=settings, **engine)
    made = {one.path: one.text for one in rendering.files(target, rendering.target(target), what)}
    done = subprocess.run(["bash", "-c", made[file]], env=env, cwd=tmp_path, capture_output=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "noted").read_bytes().decode().split("\0")[:-1] == words
    assert (tmp_path / "noted.settings").read_bytes().decode().split("\0")[:-1] == list(settings.values())
    assert not list(tmp_path.rglob(CANARY))
    directives = made[file].partition("\nset -euo")[0].splitlines()
    assert not [line for line in directives if line.startswith("#SBATCH") and "--wrap" in line]


@pytest.mark.parametrize("program", [{"env": {"IMAGE": "x"}}, {"env": {"UID": "5"}}, {"secrets": {"STORE": "a/b"}}])
def test_a_setting_that_would_lead_a_script_astray_is_told(ask: Asked, program: dict[str, Any]) -> None:
    code, shown, err = ask(TRAIN | {"program": program}, "--to", "slurm")
    assert (code, shown) == (2, "")
    assert "has" in err
    assert next(iter(next(iter(program.values())))) in err


@pytest.mark.parametrize("tool", ["bash", "dash"])
def test_words_reach_every_shell_unchanged(tool: str, tmp_path: Path) -> None:
    done = subprocess.run([tool, "-c", f"printf '%s\\0' {shell(TEXTS)}"], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == list(TEXTS)
    assert not list(tmp_path.iterdir())


def _expanded(text: str) -> str:
    """As Kubernetes replaces references in commands and settings, where no setting has the name."""
    made, at = "", 0
    while at < len(text):
        pair = text[at : at + 2]
        if pair == "$$":
            made += "$"
        elif pair == "$(" and ")" in text[at:]:
            made += "REPLACED"
            at = text.index(")", at) - 1
        else:
            made += text[at]
            at -= 1
        at += 2
    return made


@pytest.mark.parametrize("text", [*TEXTS, "$$$(A)", "$", "$$", "$$$", "a$", "$a$(b", "$$a$(b)", "$${A}"])
def test_kubernetes_gives_a_container_what_was_written(text: str) -> None:
    assert _expanded(kubernetes(text)) == text


# Kills a copy of itself at the first operation, the second and so on, until one ends by itself; tells each time what is there.
KILLED = """
import json, os, signal, sys
from pathlib import Path
from chipwise.adapters.stores import whole_set

def writer(folder, left, force):
    def counted(call):
        def wrapped(*given, **named):
            nonlocal left
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            return call(*given, **named)
        return wrapped
    for name in ("mkdir", "replace", "rename", "hardlink_to", "open"):
        setattr(Path, name, counted(getattr(Path, name)))
    os.fsync = counted(os.fsync)
    whole_set.write(folder, [("a", "new a" * 9, False), ("b/c", "new c" * 9, True)], force)

for at in range(40):
    folder = Path(sys.argv[1]) if sys.argv[2] == "force" else Path(sys.argv[1]) / f"at-{at}"
    child = os.fork()
    if child == 0:
        writer(folder, at, sys.argv[2] == "force")
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    found = {str(one.relative_to(folder)): one.read_text() for one in folder.rglob("*") if one.is_file()}
    print(json.dumps([status, found]), flush=True)
    if status == 0:
        break
"""


def _killed(folder: Path, how: str) -> list[dict[str, str]]:
    """What is there after each of the writers, of which only the last came to its end."""
    words = [sys.executable, "-c", KILLED, str(folder), how]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [status for status, _ in told] == [signal.SIGKILL] * (len(told) - 1) + [0]
    assert len(told) > 5
    return [found for _, found in told]


def test_a_writer_that_is_killed_has_written_all_or_nothing(tmp_path: Path) -> None:
    whole = {"a": "new a" * 9, "b/c": "new c" * 9}
    found = _killed(tmp_path, "new")
    assert all(one in ({}, whole) for one in found)
    assert found[-1] == whole


def test_a_writer_that_is_killed_while_it_replaces_leaves_every_file_whole(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for name in ("a", "b/c"):
        (tmp_path / name).write_text("old")
    for found in _killed(tmp_path, "force"):
        assert found["a"] in ("old", "new a" * 9)
        assert found["b/c"] in ("old", "new c" * 9)


@pytest.mark.parametrize("out", ["file", "file/below", "dangling", "x" * 300])
def test_a_place_that_cannot_be_written_is_told(ask: Asked, out: str) -> None:
    (ask.folder / "file").write_text("mine")
    (ask.folder / "dangling").symlink_to("nowhere")
    before = sorted(path.name for path in ask.folder.iterdir())
    for verb, option in (("render", "--to"), ("plan", "--render")):
        code, _, err = ask(SERVE, option, "kubernetes", "--out", str(ask.folder / out), verb=verb)
        assert code == 2
        assert len(err) < 600
        assert sorted(path.name for path in ask.folder.iterdir() if path.name != "w.yaml") == before
    assert (ask.folder / "file").read_text() == "mine"


def test_an_audit_of_what_never_ends_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    for path in ("/dev/zero", str(tmp_path / "pipe.yaml"), ""):
        assert main(["audit", path]) == 2
    monkeypatch.setattr("sys.stdin", None)
    assert main(["audit", "-"]) == 2
    assert "Standard input is closed" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.StringIO("#" * 5_000_001))
    assert main(["audit", "-"]) == 2
    assert "more than 5 MB" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe"), encoding="utf-8"))
    assert main(["audit", "-"]) == 2
    assert "not UTF-8" in capsys.readouterr().err
    (tmp_path / "large.tf").write_text("#" * 500_001)
    assert main(["audit", str(tmp_path)]) == 1
    assert "larger than 500 kB" in capsys.readouterr().out


def test_an_audit_passes_over_links_that_lead_round_and_what_a_killed_writer_left(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "up").symlink_to(tmp_path)
    (tmp_path / "self.yaml").symlink_to("self.yaml")
    (tmp_path / ".chipwise-1-ab" / "old").mkdir(parents=True)
    (tmp_path / ".chipwise-1-ab" / "old" / "bad.yaml").write_text("kind: Pod\nspec: {hostPID: true, containers: []}\n")
    (tmp_path / "a.yaml").write_text("\ufeffkind: ConfigMap\n")
    assert main(["audit", str(tmp_path)]) == 0


_KEYS = "abcdefghi"
_BOMB = "? &a [x,x,x,x,x,x,x,x,x]\n: 1\n" + "".join(
    f"? &{one} [{','.join(['*' + before] * 9)}]\n: 1\n" for before, one in pairwise(_KEYS)
)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 50_000,
        '{"a":' * 30_000,
        "&a [*a]\n",
        "&a {? *a : 1}\n",
        _BOMB,
        "kind: Pod\nspec: !!python/object:os.system x\n",
        "kind: Pod\nspec: {securityContext: x, containers: [{securityContext: [1], resources: {limits: 5, requests: x}}]}\n",
        "kind: Pod\nspec: {containers: [{resources: {limits: {nvidia.com/gpu: '\u00b2'}}, command: [vllm, --tp, '\u00b2']}]}\n",
        "kind: PodDisruptionBudget\nspec: {selector: {matchLabels: x}}\n---\nkind: Deployment\nspec: {replicas: 3}\n",
        'kind: Pod\nspec: {containers: [{name: "a',
    ],
    ids=range(10),
)
def test_an_audit_outlives_any_manifest(text: str) -> None:
    audit([("a.yaml", text)])


def test_an_audit_outlives_manifests_in_which_anything_stands_anywhere(session: wiring.Session) -> None:
    what, chance = planned(session, SERVE), random.Random(5)
    documents = [
        one
        for name in ("kubernetes", "compose", "ray")
        for file in rendering.files(name, rendering.target(name), what)
        for one in yaml.safe_load_all(file.text)
    ]
    for _ in range(400):
        changed = deepcopy(chance.choice(documents))
        for _ in range(3):
            _spoil(changed, chance)
        audit([("a.yaml", yaml.safe_dump(changed))])


def _spoil(value: Any, chance: random.Random) -> None:
    while isinstance(value, dict | list) and value:
        key = chance.choice(list(value) if isinstance(value, dict) else range(len(value)))
        if chance.random() < 0.25 or not isinstance(value[key], dict | list):
            value[key] = deepcopy(chance.choice([None, 5, -1, "x", "", [], {}, [None], [[]], {"a": None}, True, "\u00b2", 1.5]))
            return
        value = value[key]


def test_a_dockerfile_whose_last_line_goes_on_is_read_to_its_end() -> None:
    assert "root-container" in {one.rule for one in audit([("Dockerfile", "FROM a:1 \\")]).findings}
