"""The ec2 engine under contract: a moto server, and stand-ins for machines that execute their user data for real."""

from __future__ import annotations

import atexit
import json
import sys
import time
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pytest

from aws_stand_in import AMI, Aws, started
from chipwise.adapters.engines.ec2.engine import Config, connect
from chipwise.catalog.offer import Purchase
from chipwise.runner.engine import Engine
from chipwise.runner.job import Job, MachinePlace, Spec
from ec2_machines import Hall
from faulty_aws import Faulty, faulty

CAN = frozenset({"lose", "notice"})
E2E = True  # a server and real processes on machines that are played: a quarter of a minute
REGION, OTHER = "eu-west-1", "eu-north-1"
SPOT = MachinePlace(Purchase.SPOT, "aws", REGION, "eu-west-1a", "g6.xlarge", 0.3)
READY = "import os, signal, sys, time; open(os.environ['CHIPWISE_RUN_DIR'] + '/ready', 'w').close(); "
PROGRAMS = {
    "steps": READY + "time.sleep(0.6)",
    "long": "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(75)); " + READY + "time.sleep(60)",
    "deaf": "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + READY + "time.sleep(60)",
    "fails": READY + "sys.exit(3)",
}


@cache
def _account() -> tuple[Aws, Faulty, dict[str, Any]]:
    """One server for all tests of a run, emptied before each, and the clients to it: making those takes a second."""
    running = ExitStack()
    atexit.register(running.close)
    aws = running.enter_context(started())
    return aws, running.enter_context(faulty(aws.moto)), {}


class Rented:
    def __init__(self, folder: Path) -> None:
        pytest.importorskip("moto", reason="moto: not installed")
        self.patience_s, self.where = 25.0, SPOT
        self._keys = pytest.MonkeyPatch()
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            self._keys.setenv(name, "testing")
        self._keys.setenv("AWS_EC2_METADATA_DISABLED", "true")
        self.aws, self.between, self._clients = _account()
        self.aws.reset()
        self.between.clear()
        self.aws.client("s3", "us-east-1").create_bucket(Bucket="kept")
        self.queue = self.aws.client("sqs", REGION).create_queue(QueueName="events")["QueueUrl"]
        self.hall = Hall(self.aws, folder / "hall", REGION, also=(OTHER,))
        self.engine: Engine = self.again()

    def again(self) -> Engine:
        config = Config(REGION, "s3://kept/team", endpoint_url=self.between.url, image=AMI, queue_url=self.queue, tries=1)
        engine = connect(config)
        engine.regions.first._clients = self._clients
        return engine

    def spec(self, behaviour: str) -> Spec:
        command = ("no-such-command-here",) if behaviour == "missing" else (sys.executable, "-S", "-c", PROGRAMS[behaviour])
        return Spec(command, behaviour, "ec2", places=(SPOT,))

    def _machines(self, job: Job) -> list[str]:
        wanted = {"chipwise:job": job.id, "chipwise:attempt": str(len(job.attempts))}
        return [
            one.id
            for one in self.hall.instances()
            if wanted.items() <= {tag["key"]: tag["value"] for tag in one.get_tags()}.items()
        ]

    def ready(self, job: Job) -> bool:
        self.hall.turn()
        return any((self.hall.folder(one) / "run" / "ready").exists() for one in self._machines(job))

    def now(self) -> float:
        return time.time()

    def wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        self.hall.turn()
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 0.1))
            self.hall.turn()

    def lose(self, job: Job) -> None:
        for one in self._machines(job):
            self.hall.lose(one, "taken")

    def notice(self, job: Job) -> None:
        for one in self._machines(job):
            self.aws.client("sqs", REGION).send_message(QueueUrl=self.queue, MessageBody=warning(one))

    def lives(self, job: Job) -> int:
        """Copies of the command, whatever supervises them."""
        self.hall.turn()
        found = 0
        for one in (one for machine in self._machines(job) for one in self.hall.of(machine)):
            with suppress(psutil.Error):  # it ended meanwhile
                found += one.cmdline()[:2] == [sys.executable, "-S"]
        return found

    def close(self) -> None:
        self.hall.close()
        self._keys.undo()


def warning(machine: str, kind: str = "EC2 Spot Instance Interruption Warning") -> str:
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    detail = {"instance-id": machine, "instance-action": "terminate"}
    return json.dumps({"version": "0", "detail-type": kind, "source": "aws.ec2", "time": at, "detail": detail})


def harness(folder: Path) -> Rented:
    return Rented(folder)
