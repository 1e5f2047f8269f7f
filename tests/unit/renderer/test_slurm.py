"""Batch scripts: what is asked follows from the plan, divided work is an array, and what saves is queued again."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from dataclasses import replace
from datetime import time
from pathlib import Path

import pytest

from chipwise.planner.values.split import Frames, Runs
from chipwise.renderer.deployment import Deployment, HandOff, Volume
from chipwise.renderer.file import CannotRender
from chipwise.renderer.open_hours import OpenHours, Weekly
from chipwise.renderer.slurm.script import limit_seconds
from chipwise.renderer.targets.slurm import render
from chipwise.units import HOUR
from fixed_deployments import BATCH, DEVICE, HPC, NEURON, NOTEBOOKS, PIPELINE, SERVE, TPU, TRAIN

RUNS = replace(HPC, runs=6, machines=4, split=Runs(at_once=2, chips_each=16), node=replace(TRAIN.node), chips_each=8)


def text(what: Deployment) -> str:
    (file,) = render(what)
    return file.text


def asked(what: Deployment) -> dict[str, str]:
    pairs = re.findall(r"^#SBATCH --([a-z-]+)(?:=(.*))?$", text(what), re.MULTILINE)
    return dict(pairs)


def test_a_job_asks_for_the_machines_of_the_plan() -> None:
    wanted = asked(TRAIN)
    assert (wanted["nodes"], wanted["gres"], wanted["ntasks-per-node"]) == ("2", "gpu:8", "1")
    assert "exclusive" in wanted


def test_the_limit_is_the_high_end_of_the_prediction() -> None:
    assert asked(TRAIN)["time"] == "2-04:05:00"
    assert limit_seconds(TRAIN) == TRAIN.predicted.high_s + 300


def test_runs_that_follow_each_other_share_the_predicted_time() -> None:
    assert limit_seconds(RUNS) == pytest.approx(RUNS.predicted.high_s / 3 + 300)
    assert asked(RUNS)["array"] == "0-5%2"
    assert asked(RUNS)["nodes"] == "2"


def test_a_run_on_half_a_machine_leaves_the_other_half() -> None:
    half = replace(RUNS, machines=3, split=Runs(at_once=6, chips_each=4))
    wanted = asked(half)
    assert (wanted["nodes"], wanted["gres"], wanted["array"]) == ("1", "gpu:4", "0-5")
    assert "exclusive" not in wanted


def test_divided_work_is_an_array_of_machines() -> None:
    wanted = asked(BATCH)
    assert (wanted["array"], wanted["nodes"], wanted["ntasks-per-node"]) == ("0-3", "1", "4")
    assert "PARTS=16" in text(BATCH)
    assert "/data/requests /data/answers" in text(BATCH)


def test_a_batch_is_queued_again_even_where_it_has_no_checkpoints() -> None:
    volumes = tuple(one for one in BATCH.volumes if one.name != "checkpoints")
    assert "requeue" in asked(replace(BATCH, volumes=volumes, purchase="on-demand"))


def test_frames_are_dealt_out() -> None:
    blender = ("blender", "--frame-start", "1", "--frame-end", "90", "--render-anim")
    film = replace(BATCH, split=Frames(at_once=4), software=replace(BATCH.software, command=blender), chips_each=4)
    assert '--frame-start "$((PART + 1))"' in text(film)
    assert '--frame-jump "$PARTS" --render-anim' in text(film)


def test_what_saves_is_queued_again_and_what_does_not_is_not() -> None:
    assert {"requeue", "signal", "open-mode"} <= set(asked(TRAIN))
    assert "scontrol requeue" in text(TRAIN)
    assert "no-requeue" in asked(HPC)
    assert "scontrol requeue" not in text(HPC)


def test_solvers_get_a_rank_for_each_core() -> None:
    assert asked(HPC)["ntasks-per-node"] == "192", "one thread a core on this machine"
    intel = replace(HPC, node=replace(HPC.node, machine="c7i.48xlarge"))
    assert asked(intel)["ntasks-per-node"] == "96"
    assert "--mpi=" in text(HPC)


def test_neuron_takes_nodes_whole() -> None:
    assert "gres" not in asked(NEURON)
    assert "--nproc-per-node=32" in text(NEURON)


def test_the_users_words_are_words() -> None:
    hostile = replace(
        TRAIN.software, command=("python", "train.py", "a b", "$(id)", "`x`", "'", "#SBATCH"), env=(("A", "$B'"),)
    )
    words = shlex.split(text(replace(TRAIN, software=hostile)), comments=True)
    assert {"a b", "$(id)", "`x`", "'", "#SBATCH"} <= set(words)
    assert "A=$B'" in words


def ran(folder: Path, what: Deployment, **given: str) -> list[str]:
    """What the program is given: its setting HF_HOME, then its words. srun and apptainer are stand-ins."""
    programs = {
        "srun": 'shift $(($# - 3)); exec "$@"',
        "apptainer": 'while [ "$1" != image ]; do if [ "$1" = --home ]; then export HOME=$2; fi; shift; done; shift; exec "$@"',
        "solve": 'printf "%s\\n" "$HF_HOME" "$@"',
        "look": 'stat -c %a "$HOME"; touch "$HOME/kernel"; rm -r "$HOME"; echo "$HOME"',
    }
    for name, body in programs.items():
        (folder / name).write_text(f"#!/bin/bash\n{body}\n")
        (folder / name).chmod(0o755)
    (folder / "image").touch()
    usual = {"SLURM_SUBMIT_DIR": str(folder), "SLURM_CPUS_PER_TASK": "1", "SLURM_JOB_ID": f"7-{os.getpid()}"}
    env = {"PATH": f"{folder}:{os.environ['PATH']}", **usual, **given}
    done = subprocess.run(
        ["bash", "-c", text(what)], cwd=folder, env=env, capture_output=True, text=True, check=True, timeout=20
    )
    return done.stdout.splitlines()


def test_a_container_has_a_home_that_can_be_written_to_and_is_not_the_users(tmp_path: Path) -> None:
    """Images are read-only, and compilers of kernels keep what they make in the home of whoever runs them."""
    software = replace(HPC.software, command=("look",), is_custom=True, framework="none")
    what = replace(HPC, software=software, machines=1, runs=1, split=Runs(at_once=1, chips_each=1))
    rights, home = ran(tmp_path, what, IMAGE="image", STORE=str(tmp_path / "store"), HOME=str(tmp_path / "mine"))
    assert rights == "700"
    assert home.startswith("/tmp/"), "the node's own disk, which is there in every container"


def test_what_is_installed_finds_its_folders_where_they_are(tmp_path: Path) -> None:
    """Without a container nothing is mounted at the paths that commands and settings name."""
    command = ("solve", "/gone/data", "--in=/gone/data/a b", "/gone/data.csv", "s3://x/gone/data", f"{tmp_path}/there/models/w")
    volumes = (Volume("data", "/gone/data", 1e9), Volume("models", f"{tmp_path}/there/models", 1e9))
    (tmp_path / "there" / "models").mkdir(parents=True)
    software = replace(HPC.software, command=command, is_custom=True, framework="none", env=(("HF_HOME", "/gone/data/hub"),))
    what = replace(HPC, software=software, volumes=volumes, machines=1, runs=1, split=Runs(at_once=1, chips_each=1))
    store = tmp_path / "store"
    bare = ran(tmp_path, what, IMAGE="", STORE=str(store))
    assert bare == [
        f"{store}/data/hub",
        f"{store}/data",
        f"--in={store}/data/a b",
        "/gone/data.csv",
        "s3://x/gone/data",
        f"{tmp_path}/there/models/w",  # the node has it
    ]
    assert ran(tmp_path, what, IMAGE="image", STORE=str(store)) == ["/gone/data/hub", *command[1:]]


def test_a_pipeline_of_jobs_waits_for_what_it_needs() -> None:
    first, second = replace(TRAIN, title="one"), replace(HPC, title="two")
    files = {
        one.path: one.text for one in render(replace(PIPELINE, stages=(first, second), hand_offs=(HandOff("one", "two", 1.0),)))
    }
    assert set(files) == {"submit.sh", "one.sbatch", "two.sbatch"}
    assert "--dependency=afterok:${stage_0} two.sbatch" in files["submit.sh"]


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (SERVE, "jobs that end"),
        (NOTEBOOKS, "jobs that end"),
        (DEVICE, "jobs that end"),
        (TPU, "slices"),
        (PIPELINE, "Stage serve"),
    ],
)
def test_what_is_no_job_is_refused(what: Deployment, why: str) -> None:
    with pytest.raises(CannotRender, match=why) as caught:
        render(what)
    assert caught.value.remedy


def test_a_short_job_has_time_to_start() -> None:
    short = replace(HPC, predicted=replace(HPC.predicted, high_s=1.0))
    assert limit_seconds(short) == HOUR / 6


def test_a_job_of_some_hours_waits_for_its_opening_in_the_queue() -> None:
    open_late = replace(TRAIN, hours=OpenHours(Weekly(time(19, 30), (1, 5)), Weekly(time(7, 5), (2, 6)), "Europe/Rome"))
    script = text(open_late)
    assert "next_time 19:30 1,5)" in script
    assert "next_time 07:05 2,6)" in script
    assert "TZ=Europe/Rome date" in script
    forgets = replace(open_late, checkpoint_s=None, volumes=())
    assert "next_time" not in text(forgets)  # each pause would lose all of it
