"""A sick machine is replaced, a program's own fault is not; and what devices did comes home with the last word."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from chipwise.adapters.engines.ec2.seeing import Instance, sight
from chipwise.catalog.offer import Purchase
from chipwise.observe import device_summary
from chipwise.observe.health.verdict import Condition
from chipwise.runner.engine import Seen, Sight, State
from chipwise.runner.events import Again, Begun, Ended, Leaving, Measured, Placed, Submitted, after, first
from chipwise.runner.job import Job, LeaveReason, MachinePlace, Needs, Outcome, Spec
from chipwise.runner.step import step

PACKAGE = resources.files("chipwise")
CODES = list(csv.DictReader((PACKAGE / "data" / "health" / "xids.csv").read_text().splitlines()))
NOW = 10_000.0
PLACE = MachinePlace(Purchase.ON_DEMAND, "aws", "eu-west-1", "eu-west-1a", "p5.48xlarge", 98.0)
RUNS = Instance("i-1", "running", "p5.48xlarge", "eu-west-1a", False, 9_000.0)


def job() -> Job:
    placed = after(
        first("j1", Submitted(Spec(("a",), "train", "ec2", needs=Needs(8), places=(PLACE,))), 0.0), Placed(1, PLACE), 0
    )
    return after(placed, Begun(1, "j1/1"), 1.0)


def logged(*codes: int) -> dict[str, Any]:
    return {"lines": ["", *(f"NVRM: Xid (PCI:0000:3b:00): {code}, pid=12, name=python" for code in codes)]}


def seen(saved: int | None = None, **said: Any) -> Sight:
    marks: dict[str, Any] = {"begun-0": {"value": 9_100}, **{name.replace("_", "-"): what for name, what in said.items()}}
    if saved is not None:
        marks["progress"] = {"step": saved, "saved_step": saved}
    return sight(job(), [RUNS], dict.fromkeys(marks, "v1"), lambda mark: marks[mark] or {}, NOW)


@pytest.mark.parametrize("row", CODES, ids=[row["code"] for row in CODES])
def test_each_code_is_played_and_only_a_sick_device_moves_a_job(row: dict[str, str]) -> None:
    found = seen(saved=5, health_0=logged(int(row["code"])))
    is_sick = Condition(row["verdict"]) in (Condition.DRAIN, Condition.REPLACE) or row["code"] == "64"
    assert (found.leave_by is not None) == is_sick
    assert ("is unhealthy and is replaced: XID" in found.reason) == is_sick


def test_a_single_corrected_error_replaces_nothing() -> None:
    for code in (92, 94, 63):
        worst = next(row["verdict"] for row in CODES if row["code"] == str(code))
        assert (seen(saved=5, health_0=logged(code)).leave_by is None) == (worst in ("fine", "watch")), code
    assert seen(health_0={"lines": ["pcieport 0000:00:1c.0: AER: PCIe Bus Error: severity=Corrected"]}).leave_by is None


def test_the_job_leaves_from_its_checkpoint_and_its_story_says_why() -> None:
    found = seen(saved=5, health_0=logged(79))
    [act] = step({"j1": job()}, Seen(NOW, {("j1", 1): found}), NOW)
    [leaving] = [event for event in act.events if isinstance(event, Leaving)]
    assert leaving.why is LeaveReason.NOTICE
    assert "its machine is unhealthy and is replaced: XID 79" in leaving.reason


def test_one_that_failed_on_a_sick_device_is_lost_and_goes_on_elsewhere() -> None:
    found = seen(health_0=logged(79), ended_0_1={"at": 9_900, "reason": ""})
    assert (found.state, found.leave_by) == (State.LOST, None)
    [act] = step({"j1": job()}, Seen(NOW, {("j1", 1): found}), NOW)
    assert [event.outcome for event in act.events if isinstance(event, Ended)] == [Outcome.LOST]
    assert any(isinstance(event, Again) for event in act.events)
    own = seen(health_0=logged(13), ended_0_1={"at": 9_900, "reason": ""})
    assert own.state is State.EXITED  # an illegal access is the program's own fault


@pytest.mark.parametrize("said", [{}, {"lines": 7}, {"lines": [3, None, "x" * 9000]}, {"value": 1}])
def test_what_a_machine_makes_up_moves_nothing(said: dict[str, Any]) -> None:
    assert seen(health_0=said).leave_by is None


def test_the_summary_of_all_machines_comes_with_the_end() -> None:
    busy = {"mean": 0.9, "p10": 0.8, "p50": 0.9, "p90": 1.0}
    part = {
        "seconds": 600,
        "energy_kwh": 0.5,
        "conditions": {"driver": "570.1"},
        "devices": {"nvidia:0": {"name": "NVIDIA H200", "busy": busy, "energy_j": 1.8e6, "made_up": "x"}},
    }
    found = seen(watched_0=part, watched_1=part, ended_0_0={"at": 9_900})
    assert found.watched["energy_kwh"] == 1.0
    assert found.watched["conditions"] == {"driver": "570.1"}
    devices = found.watched["devices"]
    assert isinstance(devices, dict)
    assert devices["1/nvidia:0"] == {"name": "NVIDIA H200", "busy": busy, "energy_j": 1.8e6}
    [act] = step({"j1": job()}, Seen(NOW, {("j1", 1): found}), NOW)
    [measured] = [event for event in act.events if isinstance(event, Measured)]
    assert measured.measured["watched"] == dict(found.watched)


@pytest.mark.parametrize(
    "part",
    [None, 3, {}, {"seconds": -1, "devices": {}}, {"seconds": float("nan"), "devices": {}}, {"seconds": 1, "devices": [1]}],
)
def test_a_summary_that_is_none_is_left_out(part: object) -> None:
    assert device_summary.read([part]) == {}


def test_figures_that_cannot_be_are_left_out() -> None:
    busy = {"mean": 0.9, "p10": 0.8, "p50": 0.9, "p90": 7.0}
    device = {"name": "a\u202eb" * 200, "busy": busy, "energy_j": -1, "memory_peak_bytes": True, "temperature_max_c": 61}
    [told] = device_summary.read([{"seconds": 5, "devices": {"nvidia:0": device}}])["devices"].values()
    assert set(told) == {"name", "temperature_max_c"}
    assert len(told["name"]) <= 100


# The machine's own part, as bash runs it.

SMI = """#!/bin/sh
echo "0, NVIDIA H200, 570.1, 50, 1000, 400.0, 60"
echo "1, NVIDIA H200, 570.1, [N/A], 2000, [N/A], 65"
"""
RUN = """
KEEP=s3://kept/team CHIPWISE_ROOT=$PWD
source "$SAMPLES"
source "$PROGRAM"
put() { cat >"put-$1"; }
for at in 1 2 3; do sample_devices "$ROOT/samples"; done
SAMPLED=$(($(up) - 30))
tell_samples
CHIPWISE_DMESG=
DMESG=./kernel
tell_health
rm put-health-0.old 2>/dev/null
mv put-health-0 first
tell_health
ls put-health-0 2>/dev/null
"""


@pytest.mark.skipif(shutil.which("bash") is None or not Path("/proc/uptime").exists(), reason="needs bash and /proc/uptime")
def test_a_machine_samples_its_devices_and_tells_what_its_kernel_says_once(tmp_path: Path) -> None:
    kernel = "#!/bin/sh\necho '[ 1.0] NVRM: Xid (PCI:0000:3b:00): 79, pid=\"7\", GPU has fallen off'\necho 'other'\n"
    for name, text in (("nvidia-smi", SMI), ("kernel", kernel)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    env = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "SAMPLES": str(PACKAGE / "renderer" / "programs" / "device_samples.sh"),
        "PROGRAM": str(PACKAGE / "adapters" / "engines" / "ec2" / "programs" / "supervise.sh"),
    }
    done = subprocess.run(["bash", "-c", RUN], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
    assert done.stdout == "", done.stdout  # the same lines are not told again
    lines = json.loads((tmp_path / "first").read_text())["lines"]
    assert seen(health_0={"lines": lines}).leave_by is not None
    told = device_summary.read([json.loads((tmp_path / "put-watched-0").read_text())])
    half = {"mean": 0.5, "p10": 0.5, "p50": 0.5, "p90": 0.5}
    assert told["conditions"] == {"driver": "570.1"}
    assert told["devices"]["nvidia:0"]["busy"] == half
    assert told["devices"]["nvidia:0"]["energy_j"] == pytest.approx(400.0 * told["seconds"])
    assert told["devices"]["nvidia:1"] == {
        "name": "NVIDIA H200",
        "memory_peak_bytes": 2000 * 2.0**20,
        "temperature_max_c": 65.0,
    }
