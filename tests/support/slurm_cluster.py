"""A real Slurm on this machine: munge, a controller and nodes with chips that are only device files.

Everything lies in one folder and listens on ports of its own, so that a Slurm that is here already is not touched.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from patience import deadline

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "sinfo")
GET = "apt-get install slurm-wlm munge; see make tools"
NULL_DEVICE = os.makedev(1, 3)
ABSENT = 64


class Missing(Exception):
    """What the machine lacks, and how to get it."""


@dataclass(frozen=True, slots=True)
class Cluster:
    folder: Path
    settings: Mapping[str, str]  # of the environment: which cluster the commands talk to

    def run(self, *words: str, cwd: Path | None = None, **more: str) -> str:
        done = subprocess.run(
            words, env={**self.settings, **more}, cwd=cwd or self.folder, capture_output=True, text=True, timeout=300
        )
        if done.returncode:
            raise AssertionError(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}\n{self.logs()}")
        return done.stdout.strip()

    def submit(self, script: Path, **more: str) -> str:
        return self.run("sbatch", "--parsable", str(script), cwd=script.parent, **more)

    def ended(self, job: str, seconds: float = 60.0) -> str:
        """The state in which a job, or the last task of an array, stopped."""
        end = deadline(seconds)
        while time.monotonic() < end:
            told = self.run("scontrol", "--oneliner", "show", "job", job)
            states = [word.removeprefix("JobState=") for word in told.split() if word.startswith("JobState=")]
            if states and not set(states) & {"PENDING", "RUNNING", "COMPLETING", "CONFIGURING"}:
                return ",".join(sorted(set(states)))
            time.sleep(0.3)
        raise AssertionError(f"job {job} did not end in {seconds:.0f} s: {told}\n{self.logs()}")

    def logs(self) -> str:
        return "\n".join(f"--- {path.name}\n{path.read_text()[-2000:]}" for path in sorted(self.folder.glob("*.log")))


@contextlib.contextmanager
def started(folder: Path, nodes: int = 2, chips: int = 16) -> Iterator[Cluster]:
    lacking = [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]
    if lacking:
        raise Missing(f"{lacking[0]}: not found; {GET}")
    if os.geteuid() != 0:
        raise Missing("slurmd: only root may start jobs and make device files; run the tests as root")
    folder.chmod(0o755)
    for name in ("state", *(f"spool-n{at}" for at in range(nodes))):
        (folder / name).mkdir()
    try:
        for at in range(chips):
            os.mknod(folder / f"chip{at}", 0o666 | 0o020000, NULL_DEVICE)
    except OSError as problem:
        raise Missing(f"slurmd: device files cannot be made here ({problem}); run the tests where mknod is allowed") from None
    ports = _ports(1 + nodes)
    (folder / "slurm.conf").write_text(_configuration(folder, ports, chips))
    (folder / "gres.conf").write_text(f"Name=gpu File={folder}/chip[0-{chips - 1}]\n")
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    settings = {**os.environ, "PATH": _path(), "SLURM_CONF": str(folder / "slurm.conf"), "HOME": str(folder)}
    running: list[subprocess.Popen[bytes]] = []
    cluster = Cluster(folder, settings)

    def start(name: str, *words: str) -> None:
        with (folder / f"{name}.log").open("wb") as log:
            running.append(subprocess.Popen(words, env=settings, cwd=folder, stdout=log, stderr=log, start_new_session=True))

    try:
        start(
            "munged",
            "munged",
            "--foreground",
            "--force",
            f"--key-file={key}",
            f"--socket={folder}/munge.socket",
            f"--pid-file={folder}/munge.pid",
            f"--log-file={folder}/munge.txt",
            f"--seed-file={folder}/munge.seed",
        )
        _until(lambda: (folder / "munge.socket").exists(), cluster)
        start("slurmctld", "slurmctld", "-D", "-f", str(folder / "slurm.conf"))
        for at in range(nodes):
            start(f"slurmd-{at}", "slurmd", "-D", "-N", f"n{at}", "-f", str(folder / "slurm.conf"))
        _until(lambda: _idle(cluster) == nodes, cluster)
        yield cluster
    finally:
        _cancel(cluster)
        for process in reversed(running):
            process.terminate()
        for process in running:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(timeout=10)


def _cancel(cluster: Cluster, seconds: float = 15.0) -> None:
    """A job that still runs would outlive its node's daemon. Whatever happens here, the daemons are stopped afterwards."""
    with contextlib.suppress(AssertionError, OSError, subprocess.SubprocessError):
        cluster.run("scancel", "--user=root")
        end = deadline(seconds)
        while cluster.run("squeue", "--noheader") and time.monotonic() < end:
            time.sleep(0.3)


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def _idle(cluster: Cluster) -> int:
    done = subprocess.run(
        ["sinfo", "--noheader", "--partition=work", "--format=%D %t"],
        env=dict(cluster.settings),
        capture_output=True,
        text=True,
        timeout=30,
    )
    rows = [line.split() for line in done.stdout.splitlines()]
    return sum(int(row[0]) for row in rows if len(row) == 2 and row[1].startswith("idle"))


def _until(holds: object, cluster: Cluster, seconds: float = 40.0) -> None:
    assert callable(holds)
    end = deadline(seconds)
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(f"Slurm did not come up in {seconds:.0f} s\n{cluster.logs()}")
        time.sleep(0.2)


def _ports(count: int) -> list[int]:
    """Free ones; they are taken at once by whom we start."""
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    found = [int(one.getsockname()[1]) for one in held]
    for one in held:
        one.close()
    return found


def _configuration(folder: Path, ports: list[int], chips: int) -> str:
    """Nodes are as large as any machine of a plan. Those behind the last port nobody runs: jobs for them only queue."""
    host = socket.gethostname().partition(".")[0]
    lines = [
        "ClusterName=proof",
        f"SlurmctldHost={host}(127.0.0.1)",
        "SlurmUser=root",
        f"SlurmctldPort={ports[0]}",
        "AuthType=auth/munge",
        f"AuthInfo=socket={folder}/munge.socket",
        "CredType=cred/munge",
        f"StateSaveLocation={folder}/state",
        f"SlurmdSpoolDir={folder}/spool-%n",
        f"SlurmctldPidFile={folder}/slurmctld.pid",
        f"SlurmdPidFile={folder}/slurmd-%n.pid",
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_CPU_Memory",
        "GresTypes=gpu",
        "MpiDefault=none",
        "SlurmdParameters=config_overrides",
        "ReturnToService=2",
        "JobAcctGatherType=jobacct_gather/none",
        "SchedulerParameters=sched_interval=1,batch_sched_delay=0",
        "KillWait=2",
        "MinJobAge=300",
        "SwitchType=switch/none",
        "SlurmctldDebug=info",
        "SlurmdDebug=info",
        "InactiveLimit=0",
        "RequeueExit=99",
    ]
    shape = f"CPUs=512 RealMemory=4000000 Gres=gpu:{chips} State=UNKNOWN"
    lines += [f"NodeName=n{at} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} {shape}" for at, port in enumerate(ports[1:])]
    lines.append(f"NodeName=absent[0-{ABSENT - 1}] NodeAddr=127.0.0.1 {shape}")
    lines.append(f"PartitionName=work Nodes=n[0-{len(ports) - 2}] Default=YES MaxTime=INFINITE State=UP")
    lines.append(f"PartitionName=large Nodes=absent[0-{ABSENT - 1}] MaxTime=INFINITE State=UP")
    return "\n".join(lines) + "\n"
