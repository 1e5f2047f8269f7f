"""What people do during the chaos run, each as a system user of their own.

people.py submit FIRST LAST STEPS FOLDER     jobs of one member, in one go
people.py watch                              what `ps` says, one JSON line every second, with a clock that is never stepped
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import date
from pathlib import Path

from chipwise.api.running import asking, submitting
from chipwise.api.session.config import read_config
from chipwise.api.session.wiring import Session
from chipwise.errors import ChipwiseError
from chipwise.runner.job import Needs, Retry, Spec
from chipwise.runner.submission.request import of_team

EVERY_S = 1.0


def submit(session: Session, first: int, last: int, steps: int, home: Path) -> None:
    with asking.opened(session, makes=True) as runtime:
        env = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH", "CHIPWISE_DATA_DIR") if name in os.environ}
        jobs = [
            Spec(
                command=(sys.executable, str(Path(__file__).with_name("train.py")), str(steps), str(number)),
                name=f"train{number}",
                place=runtime.engine.place,
                folder=str(home / f"job{number}"),
                env=env,
                needs=Needs(gpus=1),
                owner=runtime.record.login,
                retry=Retry(failures=100, same_step=100, losses=1000, wait_s=0.05, longest_wait_s=0.2),
            )
            for number in range(first, last)
        ]
        submitting.submit(runtime.record, [(submitting.new_id(spec.name), of_team(runtime.record, spec)) for spec in jobs])


def watch() -> None:
    import chipwise as cw

    while True:
        began = time.monotonic()
        try:
            rows = [{name: row[name] for name in ("name", "phase", "reason")} for row in cw.ps(everything=True)]
            print(json.dumps({"moment": time.monotonic(), "began": began, "jobs": rows}), flush=True)
        except ChipwiseError as error:
            print(json.dumps({"moment": time.monotonic(), "error": str(error)}), flush=True)
        time.sleep(EVERY_S)


if __name__ == "__main__":
    if sys.argv[1] == "submit":
        first, last, steps = map(int, sys.argv[2:5])
        submit(Session(read_config(), date(2026, 1, 1), []), first, last, steps, Path(sys.argv[5]))
    else:
        watch()
