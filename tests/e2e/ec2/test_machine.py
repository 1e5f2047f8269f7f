"""What a machine of the ec2 engine does with one job, executed for real by `bash`.

The metadata, the shutdown, docker and the AWS CLI of the machines are stand-ins (`ec2_machines`); EC2, S3 and SQS are moto's.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chipwise.adapters.engines.ec2.config import Config
from chipwise.adapters.engines.ec2.engine import Ec2
from chipwise.adapters.engines.ec2.user_data import user_data
from chipwise.errors import BadInput, NotFound
from chipwise.renderer.launch.starting import RENDEZVOUS_PORT
from chipwise.runner.events import Placed, Submitted, after, first
from chipwise.runner.job import Job, MachinePlace, Needs, Spec
from ec2_programs import LISTENS, READY, WAITS, python
from engines.ec2 import REGION, SPOT, Rented
from patience import deadline
from render_checks import program

pytestmark = pytest.mark.e2e

KEEP = Config(REGION, "s3://kept/team")


def a_job(command: tuple[str, ...], where: MachinePlace = SPOT, **asked: Any) -> Job:
    spec = replace(Spec(command, "train", "ec2", places=(SPOT,)), **asked)
    return after(first("j1", Submitted(spec), 0.0), Placed(1, where), 0.0)


def boot(bench: Rented, job: Job, *names: str, config: Config = KEEP, hard: int = 0) -> None:
    for at, name in enumerate(names or ("i-1",)):
        bench.hall.boot(name, f"10.0.0.{at + 1}", user_data(job, config, hard))


def until(bench: Rented, wanted: Callable[[], bool], machine: str = "i-1") -> None:
    end = deadline(30)
    while not wanted():
        assert time.monotonic() < end, bench.hall.console(machine)
        time.sleep(0.05)


def told(bench: Rented, mark: str) -> dict[str, Any]:
    """The mark of the attempt whose name begins so, with its whole name."""
    s3 = bench.aws.client("s3", "us-east-1")
    found = s3.list_objects_v2(Bucket="kept", Prefix=f"team/live/j1/1/{mark}").get("Contents", [])
    if not found:
        return {}
    body = s3.get_object(Bucket="kept", Key=found[0]["Key"])["Body"].read()
    return {"name": found[0]["Key"].rpartition("/")[2], **(json.loads(body) if body.startswith(b"{") else {})}


def over(bench: Rented, machine: str = "i-1") -> dict[str, Any]:
    until(bench, lambda: bench.hall.shut_down(machine), machine)
    until(bench, lambda: bench.hall.processes[machine].poll() is not None, machine)
    return told(bench, "ended-")


def ready(bench: Rented, machine: str = "i-1") -> None:
    until(bench, (bench.hall.folder(machine) / "run" / "ready").exists, machine)


def test_a_notice_becomes_a_file_and_a_signal_and_the_word_of_the_job_is_told(bench: Rented) -> None:
    boot(bench, a_job(python(WAITS)))
    ready(bench)
    bench.hall.metadata.interrupt("i-1")
    ended = over(bench)
    assert ended["name"] == "ended-0-75"
    assert "is reclaiming the spot machine" in ended["reason"]
    assert ended["noticed"]["by"] > time.time() + 60
    notice = json.loads((bench.hall.folder("i-1") / "run" / "notice.json").read_text())
    assert notice["until"] < ended["noticed"]["by"]
    assert told(bench, "notice-i-1")["by"] == ended["noticed"]["by"]
    assert bench.hall.of("i-1") == []
    assert bench.hall.metadata.refused == 0  # each question came with a token


def test_a_recommendation_to_leave_is_a_notice_unless_it_is_not_heeded(bench: Rented) -> None:
    boot(bench, a_job(python(WAITS)))
    boot(
        bench,
        a_job(python(LISTENS + READY + "time.sleep(3)")),
        "i-calm",
        config=replace(KEEP, heeds_rebalance=False, keep="s3://kept/calm"),
    )
    for one in ("i-1", "i-calm"):
        ready(bench, one)
        bench.hall.metadata.recommend(one)
    assert "rebalance" in over(bench)["reason"]
    until(bench, lambda: bench.hall.shut_down("i-calm"), "i-calm")
    assert not (bench.hall.folder("i-calm") / "run" / "notice.json").exists()


def test_who_heeds_no_notice_is_ended_when_the_time_is_over_with_all_that_it_started(bench: Rented) -> None:
    deaf = "import os, signal, subprocess, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    boot(bench, a_job(python(deaf + "subprocess.Popen(['sleep', '60']); " + READY + "time.sleep(60)")))
    ready(bench)
    bench.hall.metadata.interrupt("i-1", in_s=11.0)  # ten of them are for telling
    assert over(bench)["name"] == "ended-0-137"
    assert bench.hall.of("i-1") == []


def test_a_job_that_is_done_ends_its_machine_and_leaves_log_and_progress(bench: Rented) -> None:
    code = "import os; file = open(os.environ['CHIPWISE_RUN_DIR'] + '/progress.json', 'w'); "
    code += 'file.write(\'{"step": 7, "saved_step": 5}\'); file.close(); '
    code += "print(os.environ['TOKEN'], os.environ['GREETING'], os.environ['CHIPWISE_CHECKPOINTS'])"
    for name, value in {"hf_token": "not shown anywhere", "ssm_value": "three"}.items():
        (bench.hall.programs / name).write_text(value)
    asked: dict[str, Any] = {
        "env": {"GREETING": 'it\'s "$HOME" `here`'},
        "secrets": {"TOKEN": "hf/token", "OTHER": "ssm:ssm/value"},
    }
    boot(bench, a_job(python(code), **asked), hard=90)
    ended = over(bench)
    assert (ended["name"], ended["reason"], ended["noticed"]) == ("ended-0-0", "", None)
    log = bench.aws.client("s3", "us-east-1").get_object(Bucket="kept", Key="team/logs/j1/1/rank-0.log")["Body"].read().decode()
    assert log == '[secret] it\'s "$HOME" `here` s3://kept/team/checkpoints/j1\n'
    assert told(bench, "progress")["saved_step"] == 5
    assert "not shown" not in (bench.hall.folder("i-1") / "user-data").read_text()
    # first a timer for the start, then that is taken back, then one for the money, then the end.
    assert bench.hall.shutdowns("i-1") == ["-h +30", "-c", "-h +90", "-h now"]


AWKWARD = r"""a\1&/.*[x]$(id)'"%s"""
KEY = "-----BEGIN KEY-----\nbG9uZw==\nAAAAAAAAAA\n-----END KEY-----"


@pytest.mark.parametrize(
    ("value", "printed", "log"),
    [
        (AWKWARD, f"<{AWKWARD}{AWKWARD}>\n{AWKWARD}", "<[secret][secret]>\n[secret]"),
        (KEY, f"{KEY}\nand\n", "[secret]\n[secret]\n[secret]\n[secret]\nand\n"),
        (
            "short",
            "short cuts, shorts short_ 1short (short)\nshort",
            "[secret] cuts, shorts short_ 1short ([secret])\n[secret]",
        ),
        ("a+b/", "xa+b/ =a+b/y a+b/", "xa+b/ =[secret]y [secret]"),
        ("h\u00fclle-value", "in h\u00fclle-value, \u00fc\n\n", "in [secret], \u00fc\n\n"),
    ],
)
def test_values_of_secrets_are_blotted_out_before_a_log_leaves_the_machine(
    bench: Rented, value: str, printed: str, log: str
) -> None:
    (bench.hall.programs / "hf").write_text(value)
    (bench.hall.programs / "longer").write_text(value + "-and-more")
    (bench.hall.programs / "text").write_text(printed + "\0\x1b[1m" + value + "-and-more")
    code = f"import sys; sys.stdout.buffer.write(open({str(bench.hall.programs / 'text')!r}, 'rb').read())"
    boot(bench, a_job(python(code), secrets={"A": "hf", "B": "longer"}))
    assert over(bench)["name"] == "ended-0-0"
    found = bench.aws.client("s3", "us-east-1").get_object(Bucket="kept", Key="team/logs/j1/1/rank-0.log")["Body"].read()
    end = "[secret]" if value != KEY else "[secret]\n[secret]\n[secret]\n[secret]"
    assert found.decode() == log + "\0\x1b[1m" + end
    assert (bench.hall.folder("i-1") / "hidden").stat().st_mode & 0o77 == 0


@pytest.mark.parametrize(
    ("asked", "name", "reason"),
    [
        ({"command": ("no-such-command",)}, "ended-0-127", "no-such-command was not found"),
        ({"command": python("pass"), "produces": ("/no/such/file",)}, "ended-0-66", "/no/such/file"),
        ({"command": python("pass"), "folder": "/no/such/folder"}, "ended-0-126", "/no/such/folder is not there"),
        ({"command": python("pass"), "secrets": {"A": "no-such-secret"}}, "ended-0-126", "a secret could not be read"),
        ({"command": python("pass"), "secrets": {"A": "pin"}}, "ended-0-126", "fewer than 4 characters"),
        (
            {"command": ("a",), "env": {"CHIPWISE_IMAGE": "a.example/missing:1"}},
            "ended-0-126",
            "a.example/missing:1 could not",
        ),
        ({"command": python("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")}, "ended-0-139", ""),
    ],
)
def test_what_is_missing_is_said_in_a_sentence(bench: Rented, asked: dict[str, Any], name: str, reason: str) -> None:
    (bench.hall.programs / "pin").write_text("123")
    boot(bench, a_job(**asked))
    ended = over(bench)
    assert ended["name"] == name
    assert reason in ended["reason"]


@pytest.mark.parametrize(
    ("code", "name"), [("os.makedirs('out/deep')", "ended-0-66"), ("os.mkdir('out'); open('out/x', 'w')", "ended-0-0")]
)
def test_a_folder_is_handed_over_when_something_is_in_it(bench: Rented, tmp_path: Path, code: str, name: str) -> None:
    boot(bench, a_job(python(f"import os; {code}"), folder=str(tmp_path), produces=("out",)))
    assert over(bench)["name"] == name, bench.hall.console("i-1")


def test_one_that_ends_well_when_it_is_told_to_leave_is_done_only_if_what_it_was_to_make_is_there(bench: Rented) -> None:
    boot(bench, a_job(python(WAITS.replace("sys.exit(75)", "sys.exit(0)")), produces=("/no/such/file",)))
    ready(bench)
    bench.hall.metadata.interrupt("i-1")
    ended = over(bench)
    assert (ended["name"], "/no/such/file" in ended["reason"]) == ("ended-0-66", True)
    assert ended["noticed"]["by"] > time.time() + 60, "so that it counts as one that left, and is started again"


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("made/model.bin", True),
        ("made", True),
        ("made/", True),
        ("made/a b (1+).bin", True),
        ("made/sub", True),
        ("made/mod", False),
        ("made/none.bin", False),
        ("made/modelxbin", False),
        ("other/", False),
        ("model.bin", False),
    ],
)
def test_what_must_lie_in_s3_is_told_from_what_begins_like_it_and_what_is_empty(bench: Rented, path: str, there: bool) -> None:
    s3 = bench.aws.client("s3", "us-east-1")
    for key, body in (("model.bin", b"x"), ("none.bin", b""), ("a b (1+).bin", b"x"), ("sub/deep/x", b"x")):
        s3.put_object(Bucket="kept", Key=f"made/{key}", Body=body)
    boot(bench, a_job(python("pass"), produces=(f"s3://kept/{path}",)))
    ended = over(bench)
    assert ended["name"] == ("ended-0-0" if there else "ended-0-66"), bench.hall.console("i-1")
    assert (f"s3://kept/{path}" in ended["reason"]) is not there


def test_an_attempt_that_was_given_up_before_its_machine_came_never_runs(bench: Rented) -> None:
    bench.aws.client("s3", "us-east-1").put_object(Bucket="kept", Key="team/over/j1/1", Body=b"over")
    boot(bench, a_job(python(READY)))
    assert over(bench) == {}
    assert not (bench.hall.folder("i-1") / "run" / "ready").exists()


@pytest.mark.parametrize("led", [False, True])
def test_a_machine_that_nobody_leads_for_long_lets_its_job_save_and_ends_itself(bench: Rented, led: bool) -> None:
    text = user_data(a_job(python(LISTENS + READY + "time.sleep(6)")), KEEP, 0)
    bench.hall.boot("i-1", "10.0.0.1", text.replace("ORPHAN_S=86400\n", "ORPHAN_S=3\n"))
    s3 = bench.aws.client("s3", "us-east-1")
    turns = itertools.count()

    def ended() -> bool:
        if led:  # whatever its clock says
            s3.put_object(Bucket="kept", Key="team/controller", Body=f"{next(turns)}\n".encode())
        return bench.hall.shut_down("i-1")

    until(bench, ended)
    found = told(bench, "ended-")
    assert (found["name"], found["reason"]) == (
        ("ended-0-0", "") if led else ("ended-0-75", "nobody has led this job for 0 minutes")
    )


def test_one_whose_attempt_was_given_up_ends_without_a_word_however_deaf_its_job_is(bench: Rented) -> None:
    deaf = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + READY + "time.sleep(60)"
    s3 = bench.aws.client("s3", "us-east-1")
    for name, mark in (("i-1", "live/j1/1/end"), ("i-2", "over/j1/1")):
        boot(bench, a_job(python(deaf)), name)
        ready(bench, name)
        s3.put_object(Bucket="kept", Key=f"team/{mark}", Body=b"")
        if name == "i-2":  # cleared, which takes all marks away
            marks = s3.list_objects_v2(Bucket="kept", Prefix="team/live/").get("Contents", [])
            for one in marks:
                s3.delete_object(Bucket="kept", Key=one["Key"])
        assert over(bench, name) == {}
        assert bench.hall.of(name) == []
        s3.delete_object(Bucket="kept", Key=f"team/{mark}")


def test_that_it_began_is_told_again_where_it_could_not_be_written(bench: Rented) -> None:
    boot(bench, a_job(python(WAITS)))
    ready(bench)
    until(bench, lambda: bool(told(bench, "begun-0")))
    bench.aws.client("s3", "us-east-1").delete_object(Bucket="kept", Key="team/live/j1/1/begun-0")
    until(bench, lambda: bool(told(bench, "begun-0")))
    assert not bench.hall.shut_down("i-1")


@pytest.mark.parametrize(("code", "name"), [(WAITS, "ended-0-75"), (WAITS.replace("exit(75)", "exit(0)"), "ended-0-75")])
def test_the_timer_of_the_money_lets_a_job_save_before_it_ends_the_machine(bench: Rented, code: str, name: str) -> None:
    """Twenty seconds before the end the machine tells how it went; a job that ends with 0 when it is told to go is not done."""
    boot(bench, a_job(python(code), grace_s=38.0), hard=1)
    began = time.monotonic()
    ended = over(bench)
    assert (ended["name"], ended["reason"]) == (name, "its time or money is used up")
    assert time.monotonic() - began < 20
    assert bench.hall.shutdowns("i-1") == ["-h +1", "-c", "-h +1", "-h now"]


@pytest.mark.parametrize("load", ["0.04", "1.00"])
def test_a_machine_on_which_nothing_happens_for_long_ends_its_job(bench: Rented, load: str) -> None:
    (bench.hall.programs / "loadavg").write_text(f"9.00 {load} 9.00 1/1 1\n")
    text = user_data(a_job(python(LISTENS + READY + "time.sleep(4)")), KEEP, 0)
    bench.hall.boot("i-1", "10.0.0.1", text.replace("IDLE_S=1800\n", "IDLE_S=1\n"))
    ended = over(bench)
    assert (ended["name"], "idle for" in ended["reason"]) == (("ended-0-124", True) if load == "0.04" else ("ended-0-0", False))


def test_machines_meet_and_each_process_knows_its_rank(bench: Rented) -> None:
    names = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "NNODES", "NODE_RANK"]
    code = f"import os; print(*(os.environ[one] for one in {names!r}))"
    boot(bench, a_job(python(code), needs=Needs(machines=2, processes=2)), "i-2", "i-1")
    s3 = bench.aws.client("s3", "us-east-1")
    lines = []
    for rank, one in enumerate(("i-1", "i-2")):
        until(bench, lambda one=one: bench.hall.shut_down(one), one)  # type: ignore[misc]
        lines += s3.get_object(Bucket="kept", Key=f"team/logs/j1/1/rank-{rank}.log")["Body"].read().decode().splitlines()
    assert sorted(lines) == [f"{rank} 4 {rank % 2} 10.0.0.2 2 {rank // 2}" for rank in range(4)]


def test_with_one_process_a_machine_each_has_a_rank_and_torchrun_its_own_words(bench: Rented) -> None:
    names = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "PET_NODE_RANK", "NODE_RANK"]
    code = f"import os; print(*(os.environ[one] for one in {names!r}))"
    boot(bench, a_job(python(code), needs=Needs(machines=2)), "i-1", "i-2")
    s3 = bench.aws.client("s3", "us-east-1")
    for rank, one in enumerate(("i-1", "i-2")):
        until(bench, lambda one=one: bench.hall.shut_down(one), one)  # type: ignore[misc]
        log = s3.get_object(Bucket="kept", Key=f"team/logs/j1/1/rank-{rank}.log")["Body"].read().decode()
        assert log == f"{rank} 2 0 1 10.0.0.1 {RENDEZVOUS_PORT} {rank} {rank}\n"


def test_logs_are_of_all_machines_in_order_or_of_one_that_is_there(bench: Rented) -> None:
    assert isinstance(bench.engine, Ec2)
    job = a_job(python("import os; print('from', os.environ['RANK'])"), needs=Needs(machines=2))
    boot(bench, job, "i-1", "i-2")
    for one in ("i-1", "i-2"):
        until(bench, lambda one=one: bench.hall.shut_down(one), one)  # type: ignore[misc]
    whole = b"--- machine 0 of 2\nfrom 0\n--- machine 1 of 2\nfrom 1\n"
    assert b"".join(bench.engine.logs(job, 1)) == whole
    assert b"".join(bench.engine.logs(job, 1, rank=1)) == b"from 1\n"
    assert next(bench.engine.logs(job, 1, follow=True)) == b"from 0\n"
    with pytest.raises(NotFound, match="has 2 machines, with the ranks 0 to 1"):
        list(bench.engine.logs(job, 1, rank=7))
    with pytest.raises(BadInput, match="has 2 machines"):  # nothing to wait for
        next(bench.engine.logs(job, 1, follow=True, rank=7))


def test_one_process_on_one_machine_has_no_rank(bench: Rented) -> None:
    boot(bench, a_job(python("import os; print('RANK' in os.environ, 'WORLD_SIZE' in os.environ)")))
    assert over(bench)["name"] == "ended-0-0"
    assert bench.hall.console("i-1").endswith("False False\n")


def test_where_one_machine_fails_the_others_leave(bench: Rented) -> None:
    code = LISTENS + "time.sleep(0.5) or sys.exit(3) if os.environ['NODE_RANK'] == '1' else time.sleep(60)"
    boot(bench, a_job(python(code), needs=Needs(machines=2)), "i-1", "i-2")
    for one in ("i-1", "i-2"):
        until(bench, lambda one=one: bench.hall.shut_down(one), one)  # type: ignore[misc]
    assert told(bench, "ended-0")["name"] == "ended-0-75"
    assert "machine 1 of 2 ended with 3" in told(bench, "ended-0")["reason"]


def test_a_container_gets_the_settings_by_name(bench: Rented) -> None:
    image = {"CHIPWISE_IMAGE": "example.com/trainer:1", "SIZE": "4"}
    (bench.hall.programs / "hf").write_text("hidden")
    boot(bench, a_job(("python", "train.py"), env=image, secrets={"TOKEN": "hf"}, needs=Needs(gpus=1)))
    assert over(bench)["name"] == "ended-0-0"
    asked = (bench.hall.folder("i-1") / "docker").read_text().splitlines()
    assert asked[0] == "pull -q example.com/trainer:1"
    assert asked[1].startswith("run --init --rm --name chipwise-0 --network host")
    assert asked[1].endswith("--entrypoint python example.com/trainer:1 train.py")
    assert "--gpus all" in asked[1]
    assert {"--env SIZE", "--env TOKEN", "--env CHIPWISE_JOB"} <= {
        f"--env {one.split()[0]}" for one in asked[1].split("--env ")[1:]
    }
    assert "hidden" not in asked[1]


@pytest.mark.parametrize(
    "job", [a_job(("a", "it's")), a_job(("a",), env={"A": "b"}, secrets={"C": "d/e"}, produces=("f", "s3://g/h"))]
)
def test_shellcheck_has_nothing_to_say(tmp_path: Path, job: Job) -> None:
    (tmp_path / "user-data").write_text(user_data(job, KEEP, 60))
    # SC2329: steps of boot.sh that the engine takes over. SC2034: settings that its own steps read alone.
    words = [program("shellcheck"), "--exclude=SC2329,SC2034,SC2317", str(tmp_path / "user-data")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_folder_that_was_sent_is_where_the_command_runs(bench: Rented, tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.sh").write_text("#!/bin/sh\ncat beside; echo '!'\n")
    (code / "train.sh").chmod(0o755)
    (code / "beside").write_text("in its folder")
    assert isinstance(bench.engine, Ec2)
    where = bench.engine.bring(code)
    assert bench.engine.bring(code) == where
    assert bench.between.count("PUT /kept/team/code/") == 1
    boot(bench, a_job(("./train.sh",), folder=where))
    assert over(bench)["name"] == "ended-0-0", bench.hall.console("i-1")
    assert bench.hall.console("i-1").endswith("in its folder!\n")
    boot(bench, a_job(("./train.sh",), folder=where.replace("code/", "gone/")), "i-2")
    until(bench, lambda: bench.hall.shut_down("i-2"), "i-2")
    assert "could not be read" in told(bench, "ended-0-126")["reason"]


def test_a_folder_that_was_sent_is_in_the_container_too(bench: Rented, tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text("pass\n")
    assert isinstance(bench.engine, Ec2)
    where = bench.engine.bring(tmp_path / "code")
    boot(bench, a_job(("python", "train.py"), folder=where, env={"CHIPWISE_IMAGE": "example.com/trainer:1"}))
    assert over(bench)["name"] == "ended-0-0"
    work = bench.hall.folder("i-1") / "work"
    assert (work / "train.py").exists()
    asked = (bench.hall.folder("i-1") / "docker").read_text()
    assert f"--volume {work}:{work} --workdir {work}" in asked


def test_a_machine_that_cannot_work_is_no_fault_of_the_job(bench: Rented) -> None:
    text = user_data(a_job(python(READY)), KEEP, 0)
    bench.hall.boot("i-1", "10.0.0.1", text.replace("ID=$(metadata instance-id)", "ID=$(metadata no-such-thing)"))
    assert over(bench) == {}
    assert told(bench, "broken-")["reason"] == "a machine does not hear its own metadata"
    assert not (bench.hall.folder("i-1") / "run" / "ready").exists()
