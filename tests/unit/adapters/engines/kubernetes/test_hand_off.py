"""What a pod must leave behind: the shell around its command, run by every shell that is here, and what is read of its word."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.adapters.engines.kubernetes import hand_off
from chipwise.adapters.engines.kubernetes.progress_reports import MESSAGE, parse_report
from chipwise.errors import BadInput
from chipwise.runner.job import Spec

SHELLS = [
    pytest.param(
        [shutil.which(words[0]) or "", *words[1:]],
        id=words[0],
        marks=pytest.mark.skipif(shutil.which(words[0]) is None, reason=f"{words[0]} is not here"),
    )
    for words in (["sh"], ["bash", "--posix"], ["busybox", "sh"])
]


def _spec(*produces: str) -> Spec:
    return Spec(("train",), "train", "kubernetes", produces=produces)


def _words(command: list[str], *produces: str, body: dict[str, Any] | None = None) -> list[str]:
    found = hand_off.looking({"command": command}, _spec(*produces), body or {})["command"]
    return [one.replace("$$", "$") if one.startswith("who=") else one for one in found]


def _started(shell: list[str], here: Path, command: list[str], *produces: str, **more: Any) -> subprocess.Popen[str]:
    message = here / "message"
    settings = {"PATH": "/usr/bin:/bin", MESSAGE: str(message), **more.pop("env", {})}
    words = _words(command, *produces, **more)
    assert words[0] == hand_off.SHELL
    return subprocess.Popen([*shell, *words[1:]], cwd=here, env=settings, stderr=subprocess.PIPE, text=True)


def _ended(shell: list[str], here: Path, command: list[str], *produces: str, **more: Any) -> tuple[int, str]:
    process = _started(shell, here, command, *produces, **more)
    process.communicate(timeout=20)
    message = here / "message"
    said = message.read_text() if message.exists() else ""
    return process.returncode, hand_off.missing(process.returncode, said)


@pytest.mark.parametrize("shell", SHELLS)
def test_what_is_there_is_done_and_what_is_missing_or_empty_is_a_failure_of_its_own(shell: list[str], tmp_path: Path) -> None:
    write = ["sh", "-c", "echo x > 'a b'; mkdir out hid void; : > out/part; : > hid/.done; : > none"]
    assert _ended(shell, tmp_path, write, "a b", "out", "hid", str(tmp_path / "out")) == (0, "")
    assert _ended(shell, tmp_path, ["true"], "a b", "no such", "none") == (66, "it ended well, but no such is not there")
    for empty in ("none", "void"):
        assert _ended(shell, tmp_path, ["true"], empty) == (66, f"it ended well, but {empty} is empty")


@pytest.mark.parametrize("shell", SHELLS)
def test_how_the_command_ends_is_how_its_pod_ends(shell: list[str], tmp_path: Path) -> None:
    assert _ended(shell, tmp_path, ["sh", "-c", "exit 3"], "none") == (3, "")
    assert _ended(shell, tmp_path, ["sh", "-c", "exit 66"], "none") == (66, ""), "its own code, of which it says nothing"
    assert _ended(shell, tmp_path, ["sh", "-c", "kill -KILL $$"], "none") == (137, "")
    assert _ended(shell, tmp_path, ["no-such-program"], "none")[0] == 127
    assert _ended(shell, tmp_path, ["printf", "%s", "a'b $(NO) `x` $HOME"], "message-none")[0] == 66


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("leaves", "code"), [("exit 75", 75), ("echo x > made; exit 0", 0), ("exit 0", 66)])
def test_who_asks_it_to_leave_is_heard_by_the_program_and_one_that_ends_well_then_must_be_done_all_the_same(
    shell: list[str], leaves: str, code: int, tmp_path: Path
) -> None:
    program = f"trap 'echo saved > saved; sleep 0.2; {leaves}' TERM; echo > began; while :; do sleep 0.05; done"
    process = _started(shell, tmp_path, ["sh", "-c", program], "made")
    until = time.monotonic() + 20
    while not (tmp_path / "began").exists() and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == code
    assert (tmp_path / "saved").read_text() == "saved\n"


def test_of_pods_that_work_together_the_first_looks_and_of_others_each_does(tmp_path: Path) -> None:
    second = {"env": {"JOB_COMPLETION_INDEX": "1"}}
    assert _ended(["sh"], tmp_path, ["true"], "none", env={"JOB_COMPLETION_INDEX": "0"})[0] == 66
    assert _ended(["sh"], tmp_path, ["true"], "none", **second)[0] == 0
    assert _ended(["sh"], tmp_path, ["true"], "none", body={"backoffLimitPerIndex": 3}, **second)[0] == 66


def test_what_a_program_told_of_its_steps_stays_readable_beside_it(tmp_path: Path) -> None:
    line = '{"chipwise": 1, "attempt": 2, "step": 7}'
    assert _ended(["sh"], tmp_path, ["sh", "-c", f"printf '{line}' > message"], "none")[0] == 66
    said = (tmp_path / "message").read_text()
    found = parse_report(said, 2)
    assert found is not None
    assert found.step == 7
    assert hand_off.missing(66, said) == "it ended well, but none is not there"


@given(st.text(min_size=1, max_size=50).filter(lambda text: text.isprintable() and text.strip() and "/" not in text))
def test_whatever_a_file_is_called_it_is_looked_for_and_runs_nothing(path: str) -> None:
    done = subprocess.run(
        _words(["true"], f"/no/such/{path}"),
        env={MESSAGE: "/dev/stdout"},
        capture_output=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 66
    assert hand_off.missing(66, done.stdout.decode()) == f"it ended well, but /no/such/{path} is not there"


@given(st.text(max_size=300))
def test_a_message_of_another_says_nothing(message: str) -> None:
    assert hand_off.missing(66, message) == "" or message.rstrip("\n").rpartition("\n")[2].startswith(hand_off.SAYS)
    assert hand_off.missing(1, f"\n{hand_off.SAYS}x is not there\n") == ""
    assert hand_off.missing(66, None) == ""


def test_an_image_that_starts_something_by_itself_cannot_be_looked_after() -> None:
    with pytest.raises(BadInput, match="so a cannot be checked afterwards"):
        hand_off.looking({"args": ["x"]}, _spec("a"), {})
    assert hand_off.looking({"args": ["x"]}, _spec(), {}) == {"args": ["x"]}
    assert hand_off.looking({"args": ["x"]}, _spec("s3://b/k"), {}) == {"args": ["x"]}, "the controller looks there"


def test_an_image_without_a_shell_is_told_from_a_command_that_is_not_there() -> None:
    said = 'failed to create task: exec: "/bin/sh": stat /bin/sh: no such file or directory'
    assert "its image has no /bin/sh, which would look for a" in hand_off.without_shell(_spec("a"), said)
    assert hand_off.without_shell(_spec(), said) == ""
    assert hand_off.without_shell(_spec("a"), 'exec: "train": not found') == ""


def test_files_on_no_volume_that_stays_are_told() -> None:
    pod = {
        "containers": [
            {
                "workingDir": "/work",
                "volumeMounts": [{"name": "data", "mountPath": "/data/"}, {"name": "tmp", "mountPath": "/tmp"}],
            }
        ],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "x"}}, {"name": "tmp", "emptyDir": {}}],
    }
    job = {"kind": "Job", "spec": {"template": {"spec": pod}}}
    wanted = ("/data/a", "../data/b", "c", "/tmp/d", "/database/e", "s3://f/g")
    spec = Spec(("train",), "train", "kubernetes", produces=wanted, objects=({"kind": "Service"}, job))
    assert hand_off.passing(spec) == ["c", "/tmp/d", "/database/e"]
