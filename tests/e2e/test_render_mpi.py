"""What the launcher and the workers of an MPIJob run, by the real sshd and the real Open MPI, on two machines here."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chipwise.planner.values.split import Runs
from chipwise.renderer.deployment import Deployment
from fixed_deployments import CASES
from kube.rendered import manifests
from mpi_machines import missing, pair

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(bool(missing()), reason=missing())]
HPC = CASES["hpc"]


def job(command: str) -> Deployment:
    """Two machines with two cores each."""
    node = replace(HPC.node, vcpus=2, machine="hpc7a.12xlarge")
    software = replace(HPC.software, command=("sh", "-c", command), env=(("COLOUR", "light blue"),))
    return replace(HPC, node=node, machines=2, split=Runs(at_once=1, chips_each=2), software=software)


def scripts(planned: Deployment) -> tuple[dict[str, Any], dict[str, Any]]:
    [made] = [one for one in manifests("mpijob", planned) if one["kind"] == "MPIJob"]
    roles = made["spec"]["mpiReplicaSpecs"]
    containers = [roles[role]["template"]["spec"]["containers"][0] for role in ("Launcher", "Worker")]
    return containers[0], containers[1]


def settings(container: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in container["env"]}


def words(container: dict[str, Any]) -> list[str]:
    return [str(word).replace("$$", "$") for word in container["command"]]  # as a kubelet hands them on


def test_every_slot_of_both_machines_gets_a_rank_with_its_settings(tmp_path: Path) -> None:
    launcher, worker = scripts(job("echo $(cat /etc/machine) $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE, $COLOUR"))
    with pair(tmp_path, ("wing-cfd-launcher", "wing-cfd-worker-0")) as (first, second):
        for one in (first, second):
            (one.folder / "etc" / "machine").write_text(f"{one.name} ", encoding="utf-8")
        served = subprocess.Popen(
            second.command(words(worker)), env=second.environment(settings(worker)), stderr=subprocess.PIPE, text=True
        )
        try:
            done = subprocess.run(
                first.command(words(launcher)),
                env=first.environment(settings(launcher)),
                capture_output=True,
                text=True,
                timeout=120,
            )
        finally:
            served.terminate()
            said = served.communicate(timeout=20)[1]
    assert done.returncode == 0, done.stderr + said
    lines = sorted(line for line in done.stdout.splitlines() if line)
    assert lines == [
        "wing-cfd-launcher 0 of 4, light blue",
        "wing-cfd-launcher 1 of 4, light blue",
        "wing-cfd-worker-0 2 of 4, light blue",
        "wing-cfd-worker-0 3 of 4, light blue",
    ]


def test_a_machine_with_another_key_is_not_taken_for_a_worker(tmp_path: Path) -> None:
    _, worker = scripts(job("true"))
    with pair(tmp_path, ("wing-cfd-launcher", "wing-cfd-worker-0")) as (first, second):
        keys = second.folder / "etc" / "mpi-keys"
        for old in keys.glob("id_rsa*"):
            old.unlink()
        subprocess.run(["ssh-keygen", "-q", "-t", "ecdsa", "-b", "521", "-N", "", "-f", keys / "id_rsa"], check=True)
        (keys / "id_rsa").chmod(0o644)
        served = subprocess.Popen(second.command(words(worker)), env=second.environment(settings(worker)))
        client = words(worker)[2].partition("exec /usr/sbin/sshd")[0]
        try:
            script = f"{client}for _ in 1 2 3; do ssh -n wing-cfd-worker-0 true && exit 9; sleep 1; done; exit 3"
            done = subprocess.run(
                first.command(["/bin/sh", "-c", script]), env=first.environment({}), capture_output=True, text=True, timeout=60
            )
        finally:
            served.terminate()
            served.wait(timeout=20)
    assert done.returncode == 3
    assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in done.stderr or "verification failed" in done.stderr
