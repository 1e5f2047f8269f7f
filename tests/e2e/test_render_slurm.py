"""Rendered batch scripts are taken by a real Slurm and run there: on two nodes, in arrays, and again after a stop."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from chipwise.planner.values.split import Runs
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.open_hours import OpenHours, Weekly
from chipwise.renderer.targets.slurm import render
from deployments import NAMES, deployment
from fixed_deployments import BATCH, CASES, HPC, TRAIN
from patience import deadline
from slurm_cluster import Cluster, Missing, started

pytestmark = pytest.mark.e2e

# In place of the container's programs: each says how it was started. `saving` is stopped before it ends by itself.
_TELLS = """#!/bin/bash
echo "$(basename "$0") $* | node $SLURM_NODEID task $SLURM_PROCID chips $CUDA_VISIBLE_DEVICES part $PART of $PARTS run $RUN"
"""
_SAVES = """#!/bin/bash
if [ -e saved ]; then echo "resumed from $(cat saved)"; exit 0; fi
trap 'echo step 7 > saved; echo saved; exit 0' TERM
echo begun
for _ in $(seq 600); do sleep 0.1; done
"""
# A stand-in for vLLM: requests are their own answers.
_COPIES = """
while [ $# -gt 0 ]; do
  case $1 in --input-file) from=$2 ;; --output-file) to=$2 ;; esac
  shift
done
cp "$from" "$to"
"""
_CONTAINER = """#!/bin/bash
while [[ "$1" != *.sif ]]; do echo "apptainer $1"; shift; done
echo "apptainer $1"
shift
exec "$@"
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    try:
        with started(tmp_path_factory.mktemp("slurm")) as running:
            secret = running.folder / ".secrets" / "hub-token" / "token"
            secret.parent.mkdir(parents=True)
            secret.write_text("not-a-real-token")
            yield running
    except Missing as what:
        pytest.skip(str(what))


def _run(slurm: Cluster, folder: Path, what: Deployment, program: str, text: str = _TELLS, **more: str) -> str:
    """What the job wrote, after it ended well."""
    job = _submitted(slurm, folder, what, program, text, (), **more)
    assert slurm.ended(job) == "COMPLETED", _output(folder)
    return _output(folder)


def _submitted(
    slurm: Cluster,
    folder: Path,
    what: Deployment,
    program: str,
    text: str,
    changes: Sequence[tuple[str, str]] = (),
    **more: str,
) -> str:
    (script,) = render(what)
    made = script.text
    for old, new in changes:
        assert old in made
        made = made.replace(old, new)
    (folder / script.path).write_text(made)
    programs = folder / "bin"
    programs.mkdir()
    for name, body in ((program, text), ("apptainer", _CONTAINER)):
        (programs / name).write_text(body)
        (programs / name).chmod(0o755)
    return slurm.submit(folder / script.path, PATH=f"{programs}:{slurm.settings['PATH']}", **more)


def _output(folder: Path) -> str:
    return "".join(path.read_text() for path in sorted(folder.glob("*.out")))


def test_a_training_job_meets_on_two_nodes(slurm: Cluster, tmp_path: Path) -> None:
    said = _run(slurm, tmp_path, TRAIN, "torchrun", IMAGE="").splitlines()
    told = sorted(line for line in said if line.startswith("torchrun"))
    assert [line.split("--node-rank=")[1].split()[0] for line in told] == ["0", "1"]
    assert len({line.split("--rdzv-endpoint=")[1].split()[0] for line in told}) == 1, "one place to meet"
    assert all("--nnodes=2 --nproc-per-node=8" in line and "train.py --config legal.yaml" in line for line in told)
    assert all("chips 0,1,2,3,4,5,6,7 " in line for line in told)


def test_the_container_gets_chips_and_directories(slurm: Cluster, tmp_path: Path) -> None:
    (tmp_path / "llama-8b-legal.sif").touch()
    said = _run(slurm, tmp_path, TRAIN, "torchrun")
    assert f"apptainer {tmp_path}/checkpoints:/checkpoints" in said
    assert "apptainer --nv" in said
    assert said.count("torchrun --nnodes=2") == 2


def test_a_missing_container_is_told_at_once(slurm: Cluster, tmp_path: Path) -> None:
    job = _submitted(slurm, tmp_path, TRAIN, "torchrun", _TELLS)
    assert slurm.ended(job) == "FAILED"
    assert "llama-8b-legal.sif is not there" in _output(tmp_path)


def test_shards_of_a_batch_are_each_answered_once_by_one_chip(slurm: Cluster, tmp_path: Path) -> None:
    data = tmp_path / "shared data"
    (data / "requests").mkdir(parents=True)
    for number in range(20):
        (data / "requests" / f"{number:05d}.jsonl").write_text(f'{{"custom_id": "{number}"}}\n')
    words = tuple(word.replace("/data", str(data)) for word in BATCH.software.command)
    planned = replace(BATCH, software=replace(BATCH.software, command=words))
    said = _run(slurm, tmp_path, planned, "vllm", _TELLS + _COPIES, IMAGE="").splitlines()
    told = [line for line in said if line.startswith("vllm")]
    done = sorted((int(line.split("/requests/")[1].split(".")[0]), int(line.split(" part ")[1].split()[0])) for line in told)
    assert done == [(number, number % 16) for number in range(20)], "every shard by its replica, and none twice"
    assert all(len(line.split(" chips ")[1].split()[0].split(",")) == 1 for line in told)
    assert len(list((data / "answers").glob("*.jsonl"))) == 20  # beside the hidden sums of their requests


def test_mpi_ranks_are_started_by_srun(slurm: Cluster, tmp_path: Path) -> None:
    small = replace(HPC, machines=2, split=Runs(at_once=1, chips_each=2), node=replace(HPC.node, vcpus=4), runs=3)
    solver = replace(small, software=replace(HPC.software, command=("solver", "--case", "wing")))
    said = _run(slurm, tmp_path, solver, "solver", IMAGE="", MPI="none").splitlines()
    told = [line for line in said if line.startswith("solver")]
    assert len(told) == 3 * 2 * 4, "three runs of two nodes with four ranks"
    assert sorted({line.split(" run ")[1] for line in told}) == ["0", "1", "2"]


def test_a_job_near_its_limit_saves_and_goes_on(slurm: Cluster, tmp_path: Path) -> None:
    one = replace(TRAIN, machines=1)
    job = _submitted(slurm, tmp_path, one, "torchrun", _SAVES, IMAGE="")
    _until(lambda: "begun" in _output(tmp_path))
    slurm.run("scancel", "--batch", "--signal=USR1", job)  # what Slurm sends five minutes before the limit
    _until(lambda: "Restarts=1" in slurm.run("scontrol", "show", "job", job))
    time.sleep(2)  # in the same second the node would take the new start for the one that it just ended
    slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now")  # a queued-again job otherwise waits two minutes
    assert slurm.ended(job) == "COMPLETED", _output(tmp_path)
    assert "saved" in _output(tmp_path)
    assert "resumed from step 7" in _output(tmp_path)


def _between(opens: datetime, closes: datetime) -> OpenHours:
    first, last = (Weekly(moment.time(), (moment.isoweekday() % 7,)) for moment in (opens, closes))
    return OpenHours(first, last, "UTC")


def test_a_job_that_comes_while_it_is_closed_waits_for_the_opening(slurm: Cluster, tmp_path: Path) -> None:
    now = datetime.now(UTC)
    opens = (now + timedelta(hours=3)).replace(second=0, microsecond=0)
    closed = replace(TRAIN, machines=1, hours=_between(opens, now + timedelta(hours=5)))
    job = _submitted(slurm, tmp_path, closed, "torchrun", _SAVES, IMAGE="")
    when = opens.astimezone().strftime("%Y-%m-%dT%H:%M:%S")
    _until(lambda: f"EligibleTime={when}" in slurm.run("scontrol", "show", "job", job))
    assert "begun" not in _output(tmp_path)
    slurm.run("scancel", job)


def test_a_job_saves_at_closing_and_goes_on_at_the_next_opening(slurm: Cluster, tmp_path: Path) -> None:
    now = datetime.now(UTC)
    closes = (now + timedelta(seconds=90)).replace(second=0, microsecond=0)
    opens = closes - timedelta(hours=4)
    window = replace(TRAIN, machines=1, hours=_between(opens, closes))
    left = int((closes - now).total_seconds())
    shorter = (("-le 600", f"-le {left - 15}"), ("- 300", f"- {left - 18}"))  # minutes before closing become seconds
    job = _submitted(slurm, tmp_path, window, "torchrun", _SAVES, shorter, IMAGE="")
    _until(lambda: "saved" in _output(tmp_path), 40)
    when = (opens + timedelta(days=7)).astimezone().strftime("%Y-%m-%dT%H:%M:%S")  # that day of the next week
    _until(lambda: f"EligibleTime={when}" in slurm.run("scontrol", "show", "job", job))
    slurm.run("scancel", job)


def test_a_pipeline_of_jobs_runs_in_order(slurm: Cluster, tmp_path: Path) -> None:
    for file in render(deployment("quantum")):
        (tmp_path / file.path).write_text(file.text)
    slurm.run("bash", "submit.sh", cwd=tmp_path, IMAGE="", SBATCH_HOLD="1", SBATCH_PARTITION="large")
    told = slurm.run("squeue", "--noheader", "--format=%j %E")
    assert "active-site-energy-dress afterok" in told
    slurm.run("scancel", "--state=PENDING", "--user=root")


@pytest.mark.parametrize("name", [*NAMES, *(f"@{name}" for name in CASES)])
def test_slurm_takes_what_is_rendered(slurm: Cluster, tmp_path: Path, name: str) -> None:
    """As it stands, for nodes like those of the plan; nobody runs it."""
    try:
        files = render(CASES[name[1:]] if name.startswith("@") else deployment(name))
    except CannotRender:
        return
    for file in files:
        if file.path.endswith(".sbatch"):
            (tmp_path / file.path).write_text(file.text)
            job = slurm.submit(tmp_path / file.path, SBATCH_PARTITION="large", SBATCH_HOLD="1")
            slurm.run("scancel", job)


def _until(holds: object, seconds: float = 30.0) -> None:
    assert callable(holds)
    end = deadline(seconds)
    while not holds():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.2)
