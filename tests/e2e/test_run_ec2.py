"""The command line on EC2: a moto server, stand-ins for machines that execute their user data, real controllers."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from aws_stand_in import started
from ec2_user import REGION, Account

pytestmark = pytest.mark.e2e
SAYS = "import time; print('trained', flush=True); time.sleep(0.5)"
STAYS = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(75)); print('here'); time.sleep(120)"


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Account]:
    pytest.importorskip("moto", reason="moto: not installed")
    with started() as aws:
        made = Account(aws, tmp_path)
        try:
            yield made
        finally:
            made.close()


def own(folder: Path) -> Path:
    """Of a workload and its code, and of nothing else."""
    made = folder / "own"
    made.mkdir()
    return made


def test_a_command_rents_a_machine_runs_tells_and_leaves_nothing(account: Account) -> None:
    id = account.submit("--machine", "g6.xlarge", "--spot", "--name", "train", "--", "python3", "-c", SAYS)
    found = account.wait(id, "done")
    [attempt] = found["attempts"]
    assert (attempt["purchase"], attempt["machine"], attempt["region"]) == ("spot", "g6.xlarge", REGION)
    assert account.run("logs", "train").out == "trained\n"
    assert account.run("logs", "-f", "train").out == "trained\n"
    for words in (("logs", "train", "--rank", "7"), ("logs", "-f", "train", "--rank", "7")):
        unknown = account.run(*words)
        assert unknown.code != 0
        assert "has one machine" in unknown.err
    assert account.gone()
    assert account.run("reap", "--json").json == []
    assert "train" in account.run("ps").out


def test_a_folder_of_this_machine_goes_along(account: Account, tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text("print(open('words.txt').read().strip())")
    (code / "words.txt").write_text("brought along")
    id = account.submit("--machine", "g6.xlarge", "--folder", str(code), "--", "python3", "train.py")
    account.wait(id, "done")
    assert account.run("logs", id).out == "brought along\n"
    refused = account.run("run", "--engine", "ec2", "--machine", "g6.xlarge", "--folder", "/nowhere", "--", "true")
    assert (refused.code, "The folder /nowhere does not exist." in refused.err) == (2, True)
    assert account.gone()


def test_whoever_follows_sees_what_it_prints_and_gets_its_code(account: Account) -> None:
    done = account.run("run", "--engine", "ec2", "--machine", "g6.xlarge", "--", "sh", "-c", "echo before; exit 7")
    assert (done.code, done.out) == (7, "before\n"), done.err + account.controller_log()
    assert account.gone()


def test_a_job_is_stopped_and_its_controller_may_be_killed_before(account: Account) -> None:
    id = account.submit("--machine", "g6.xlarge", "--", "python3", "-c", STAYS)
    account.wait(id, "running")
    os.kill(account.controller(), signal.SIGKILL)
    assert account.run("stop", "--wait", id).err.endswith("stopped\n")
    assert len(account.job(id)["attempts"]) == 1
    assert account.gone()


def test_what_a_lost_record_left_running_is_found_and_ended(account: Account) -> None:
    id = account.submit("--machine", "g6.xlarge", "--", "python3", "-c", STAYS)
    account.wait(id, "running")
    os.kill(account.controller(), signal.SIGKILL)
    for one in account.user.data_dir.glob("record.db*"):
        if one.suffix != ".id":
            one.unlink()
    listed = account.run("reap", "--dry-run", "--engine", "ec2")
    assert id in listed.out
    assert account.living()
    assert {one["kind"] for one in account.run("reap", "--engine", "ec2", "--json").json} == {"machine", "launch template"}
    assert account.gone()
    assert account.run("reap", "--engine", "ec2").out == "No leftovers.\n"


def test_without_keys_nothing_is_recorded(account: Account) -> None:
    words = ("run", "--engine", "ec2", "--machine", "g6.xlarge", "--", "true")
    done = account.run(*words, AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="", HOME=str(account.user.home / "none"))
    assert done.code == 3, done.err
    assert "aws sts get-caller-identity" in done.err
    assert len(done.err.splitlines()) <= 3
    assert account.run("ps", "--all", "--json").json == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--machine", "g4dn.xlarge", "--budget", "0.01"), "a start needs 2.5"),
        (("--machine", "z1d.large", "--budget", "5"), "Without a price no budget"),
        (("--machine", "g5.xlarge", "--gpus", "4"), "g5.xlarge has 1 GPU, and --gpus asks for 4"),
    ],
)
def test_what_cannot_be_held_is_refused_before_anything_is_recorded(
    account: Account, words: tuple[str, ...], told: str
) -> None:
    done = account.run("run", "--engine", "ec2", *words, "--", "true")
    assert (done.code, told in done.err) == (2, True), done.err
    assert len(done.err.splitlines()) <= 3
    assert account.run("ps", "--all", "--json").json == []
    assert account.hall.instances() == []


def test_a_planned_workload_runs_on_the_machines_of_its_plan(account: Account, tmp_path: Path) -> None:
    path = own(tmp_path) / "work.yaml"
    path.write_text(
        "kind: finetune\nname: tune\nmodel: llama-3.1-8b\nmethod: lora\ntokens: 20M\n"
        f"program: {{command: [python3, -c, {json.dumps(SAYS)}]}}\n"
    )
    done = account.run("run", "--json", "--engine", "ec2", str(path))
    assert done.code == 0, done.err
    [told] = done.json
    assert told["predicted"]["seconds"] > 60
    found = account.wait(told["id"], "done")
    [attempt] = found["attempts"]
    assert (attempt["provider"], attempt["region"]) == ("aws", REGION)
    assert account.run("logs", told["id"]).out == "trained\n"
    assert account.gone()


PLAIN = "kind: hpc\nname: heat\nsteps: 20\nflop_per_step: 2e12\nbytes_per_step: 1GB\nprecision: fp32\n"


def test_the_folder_of_a_workload_goes_along_unless_an_image_is_named(account: Account, tmp_path: Path) -> None:
    path = own(tmp_path) / "heat.yaml"
    path.write_text(PLAIN + "program: {command: [python3, heat.py]}\n")
    (path.parent / "heat.py").write_text("print('warm')")
    done = account.run("run", "--json", "--engine", "ec2", "--machine", "g6.xlarge", str(path))
    assert (done.code, done.err) == (0, f"uploads the folder {path.parent} (1 kB)\n")
    [told] = done.json
    account.wait(told["id"], "done")
    assert account.run("logs", told["id"]).out == "warm\n"
    assert account.gone()
    quiet = account.run("run", "--json", "--engine", "ec2", "--machine", "g6.xlarge", "--image", "a.example/b:1", str(path))
    assert (quiet.code, quiet.err) == (0, "")
    assert account.run("stop", "--wait", quiet.json[0]["id"]).code == 0
    (tmp_path / "bare.yaml").write_text(path.read_text())  # the home of this user
    refused = account.run("run", "--engine", "ec2", "--machine", "g6.xlarge", str(tmp_path / "bare.yaml"))
    assert (refused.code, "all of that folder would be uploaded" in refused.err) == (2, True)
    assert account.gone()


PIPELINE = """
kind: pipeline
name: flow
stages:
  - kind: hpc
    name: prepare
    steps: 1
    flop_per_step: 2e12
    bytes_per_step: 1GB
    precision: fp32
    program: {command: [sh, -c, "echo data > out.txt"], produces: [out.txt]}
  - kind: finetune
    name: train
    model: llama-3.1-8b
    method: lora
    tokens: 20M
    program: {command: [python3, -c, "print('trained')"]}
hand_offs:
  - {from: prepare, to: train, size: 1MB}
"""


def test_stages_of_a_pipeline_run_in_order_each_on_its_own_engine(account: Account, tmp_path: Path) -> None:
    path = own(tmp_path) / "flow.yaml"
    path.write_text(PIPELINE)
    done = account.run("run", "--json", "--stage-engine", "train=ec2", str(path))
    assert done.code == 0, done.err
    first, second = done.json
    assert (first["engine"], second["engine"], second["after"]) == ("local", "ec2", [first["id"]])
    found = account.wait(second["id"], "done")
    before = account.job(first["id"])
    assert before["phase"] == "done"
    assert found["attempts"][0]["placed"] >= before["ended"]
    assert account.run("logs", second["id"]).out == "trained\n"
    assert account.gone()


def test_the_same_work_is_measured_here_and_on_a_rented_machine(account: Account, tmp_path: Path) -> None:
    path = own(tmp_path) / "sweep.yaml"
    path.write_text(
        "kind: hpc\nname: sweep\nsteps: 20\nflop_per_step: 2e12\nbytes_per_step: 1GB\nprecision: fp32\n"
        "program: {command: [python3, sweep.py]}\n"
    )
    (path.parent / "sweep.py").write_text("import time; time.sleep(2)")
    done = account.run("bench", str(path), "--on", "local", "--on", "ec2:g4dn.xlarge", "--json")
    assert done.code == 0, done.err + account.controller_log()
    assert f"uploads the folder {path.parent} (1 kB)\n" in done.err
    here, rented = done.json
    assert (here["on"], rented["on"]) == ("local", "ec2:g4dn.xlarge")
    for one in (here, rented):
        assert 1 <= 20 / one["speed"] < 30, one  # machines tell whole seconds
    assert rented["usd_per_unit"] > 0
    assert account.gone()
