"""A user of the ec2 engine: keys, a file of engines, a moto server, and stand-ins for machines that execute their user data."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from aws_stand_in import AMI, Aws
from command import Chipwise, Done
from ec2_machines import Hall
from patience import deadline

REGION, OTHER = "eu-west-1", "eu-north-1"


class Account:
    """What a user has: keys, a file of engines, and machines that work while commands run."""

    def __init__(self, aws: Aws, folder: Path, url: str = "", more: Mapping[str, object] | None = None) -> None:
        """`url`: of a proxy before the server. `more`: fields of the engine."""
        self.aws, self.hall = aws, Hall(aws, folder / "hall", REGION, also=(OTHER,))
        aws.client("s3", "us-east-1").create_bucket(Bucket="kept")
        keys = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_EC2_METADATA_DISABLED": "true"}
        self.user = Chipwise(folder, {**keys, "CHIPWISE_GPUS": "", "CHIPWISE_CPUS": "0"})
        self.user.config_dir.mkdir(parents=True)
        fields = {"region": REGION, "keep": "s3://kept/team", "endpoint_url": url or aws.moto, "image": AMI, **(more or {})}
        (self.user.config_dir / "engines.yaml").write_text(json.dumps({"ec2": fields}))
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        while not self._done.wait(0.1):
            self.hall.turn()

    def run(self, *words: str, **more: Any) -> Done:
        return self.user.process(*words, **more)

    def submit(self, *words: str) -> str:
        done = self.run("run", "--json", "--engine", "ec2", *words)
        assert done.code == 0, done.err
        return str(done.json[0]["id"])

    def job(self, id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.run("describe", id, "--json").json
        return found

    def wait(self, id: str, phase: str, seconds: float = 90) -> dict[str, Any]:
        until = deadline(seconds)
        while time.monotonic() < until:
            if (found := self.job(id))["phase"] == phase:
                return found
            time.sleep(0.5)
        raise AssertionError(self.run("describe", id).out + self.controller_log())

    def controller_log(self) -> str:
        return "".join(one.read_text() for one in self.user.data_dir.glob("run/places/*/controller.log"))

    def controller(self) -> int:
        [lock] = self.user.data_dir.glob("run/places/*/controller.lock")
        return int(lock.read_text())

    def living(self) -> list[str]:
        return [one.id for one in self.hall.instances() if one.state in ("pending", "running")]

    def gone(self, seconds: float = 40) -> bool:
        until = deadline(seconds)
        while time.monotonic() < until and self.living():
            time.sleep(0.2)
        return not self.living()

    def close(self) -> None:
        for lock in self.user.data_dir.glob("run/places/*/controller.lock"):
            if text := lock.read_text().strip():
                with suppress(ProcessLookupError):
                    os.kill(int(text), signal.SIGTERM)
        self._done.set()
        self._thread.join()
        self.hall.close()
