"""The command line on EC2 when luck is bad: no machines here, machines taken away, fewer than asked for; and what their owners
ask for then. A moto server behind a proxy that injects faults; stand-ins for machines that execute their user data."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aws_stand_in import AMI, started
from ec2_account import NO_SPOT
from ec2_user import OTHER, REGION, Account
from faulty_aws import Fault, Faulty, faulty, no_machines
from patience import deadline

pytestmark = pytest.mark.e2e
PROGRAM = """
import os, sys, time
import numpy as np
from chipwise import job

state = {"weights": np.zeros(50), "made": np.random.default_rng(7).normal(size=(60, 50))}
for step in job.steps(state, 60, every=2):
    state["weights"] = np.tanh(state["weights"] * 1.01 + state["made"][step])
    with open(sys.argv[2], "a") as told:
        told.write(f"{os.environ['CHIPWISE_ATTEMPT']} {step}\\n")
    time.sleep(float(sys.argv[3]) if os.environ["CHIPWISE_ATTEMPT"] in sys.argv[4:] or not sys.argv[4:] else 0)
np.save(sys.argv[1], state["weights"])
"""
TELLS = "import os; print('world', os.environ['WORLD_SIZE'], 'rank', os.environ['RANK'])"


@dataclass
class World:
    account: Account
    between: Faulty

    def wait(self, what: Callable[[], Any], seconds: float = 60) -> Any:
        until = deadline(seconds)
        while not (found := what()):
            assert time.monotonic() < until, self.account.run("ps", "--all").out + self.account.controller_log()
            time.sleep(0.2)
        return found

    def working(self) -> list[Any]:
        return [one for one in self.account.hall.instances() if one.state == "running"]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    pytest.importorskip("moto", reason="moto: not installed")
    with started() as aws, faulty(aws.moto) as between:
        account = Account(aws, tmp_path, between.url, {"regions": {OTHER: {"image": AMI}}})
        try:
            yield World(account, between)
        finally:
            account.close()


@pytest.fixture
def train(tmp_path: Path) -> Path:
    path = tmp_path / "code" / "train.py"
    path.parent.mkdir()
    path.write_text(PROGRAM)
    return path


def did(steps: Path, attempt: int) -> bool:
    """A few steps, so that some of them are saved."""
    return steps.exists() and sum(line.startswith(f"{attempt} ") for line in steps.read_text().splitlines()) > 6


def test_a_job_that_loses_its_machines_goes_on_in_another_region_with_the_same_result(
    world: World, train: Path, tmp_path: Path
) -> None:
    alone = world.account.run(
        "run",
        "--checkpoints",
        str(tmp_path / "alone"),
        "--",
        sys.executable,
        str(train),
        str(tmp_path / "alone.npy"),
        str(tmp_path / "alone.txt"),
        "0",
    )
    assert alone.code == 0, alone.err
    steps = tmp_path / "steps.txt"
    id = world.account.submit(
        "--machine",
        "g6.xlarge",
        "--spot",
        "--checkpoints",
        str(tmp_path / "kept"),
        "--name",
        "train",
        "--",
        sys.executable,
        str(train),
        str(tmp_path / "moved.npy"),
        str(steps),
        "0.15",
    )
    for attempt in (1, 2):  # lost twice in a row here, so that another region is next
        world.wait(partial(did, steps, attempt))
        [one] = world.working()
        assert one.ec2_backend.region_name == REGION
        world.account.hall.lose(one.id, "taken")
    found = world.account.wait(id, "done")
    assert [one["region"] for one in found["attempts"]] == [REGION, REGION, OTHER]
    assert np.array_equal(np.load(tmp_path / "moved.npy"), np.load(tmp_path / "alone.npy"))
    told = " ".join(world.account.run("describe", "train").out.split())
    assert OTHER in told
    assert "AWS reclaimed the spot machine" in told
    assert world.account.gone()
    assert world.account.run("reap", "--json").json == []


def test_without_spot_machines_here_they_are_taken_elsewhere(world: World) -> None:
    world.between.faults.append(replace(NO_SPOT, holds=f"/{REGION}/ec2/"))
    id = world.account.submit("--machine", "g6.xlarge", "--spot", "--", "python3", "-c", "print('there')")
    found = world.account.wait(id, "done")
    assert [(one["region"], one["purchase"]) for one in found["attempts"]] == [(REGION, "spot"), (OTHER, "spot")]
    story = world.account.run("describe", id).out
    assert "InsufficientInstanceCapacity" in story
    assert world.account.run("logs", id).out == "there\n"


def test_a_plan_has_places_in_all_regions_of_the_engine_that_have_its_chip(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "work.yaml").write_text(
        "kind: finetune\nname: tune\nmodel: llama-3.1-8b\nmethod: lora\ntokens: 20M\nlimits: {chips: [A10G]}\n"
        "program: {command: [python3, -c, \"print('tuned')\"]}\n"
    )
    done = world.account.run("run", "--json", "--engine", "ec2", str(folder / "work.yaml"))
    assert done.code == 0, done.err
    places = done.json[0]["places"]
    assert {one["region"] for one in places} == {REGION, OTHER}
    assert {one["machine"].partition(".")[0] for one in places} == {"g5"}
    assert {one["purchase"] for one in places} == {"spot", "on-demand"}
    world.account.wait(done.json[0]["id"], "done")


def test_a_job_takes_fewer_machines_where_all_are_not_to_be_had(world: World) -> None:
    short = no_machines("InsufficientInstanceCapacity", "g6.xlarge", "spot")
    world.between.faults.append(Fault("CreateFleet", body=short, holds="TotalTargetCapacity=4"))
    id = world.account.submit("--machine", "g6.xlarge", "--spot", "--machines", "2-4", "--", "python3", "-c", TELLS)
    found = world.account.wait(id, "done")
    last = found["attempts"][-1]
    assert (last["machines"], {one["machines"] for one in found["attempts"][:-1]}) == (2, {4})
    assert "2 of 4" in world.account.run("describe", id).out
    assert world.account.run("logs", id, "--rank", "1").out == "world 2 rank 1\n"
    assert world.account.gone()


def test_what_its_owner_stopped_goes_on_from_its_checkpoint(world: World, train: Path, tmp_path: Path) -> None:
    steps = tmp_path / "steps.txt"
    id = world.account.submit(
        "--machine",
        "g6.xlarge",
        "--checkpoints",
        str(tmp_path / "kept"),
        "--",
        sys.executable,
        str(train),
        str(tmp_path / "out.npy"),
        str(steps),
        "1",
        "1",  # slow in its first attempt alone, so that it is not done before it is stopped
    )
    world.wait(partial(did, steps, 1))
    assert world.account.run("stop", "--wait", id).code == 0
    assert world.account.gone()
    assert world.account.run("resume", id).code == 0
    attached = world.account.run("attach", id)
    assert attached.code == 0, attached.err
    told = [line.split() for line in steps.read_text().splitlines()]
    last_of_first = max(int(step) for attempt, step in told if attempt == "1")
    first_of_second = min(int(step) for attempt, step in told if attempt == "2")
    assert 0 < first_of_second <= last_of_first + 1
    assert (tmp_path / "out.npy").exists()


def test_what_failed_is_tried_again_when_its_owner_says_so(world: World, tmp_path: Path) -> None:
    flag = tmp_path / "mended"
    program = f"import os, sys; sys.exit(0 if os.path.exists({str(flag)!r}) else 3)"
    id = world.account.submit("--machine", "g6.xlarge", "--", "python3", "-c", program)
    assert world.account.wait(id, "failed")["attempts"][-1]["code"] == 3
    flag.touch()
    assert world.account.run("retry", id).code == 0
    world.account.wait(id, "done")
    assert world.account.gone()
