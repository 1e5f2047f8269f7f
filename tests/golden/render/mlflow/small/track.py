#!/usr/bin/env python3
# tag-api: serve on c7i.large (aws eu-central-1, on-demand). Written by chipwise from the plan.
# Expected: $62.00 and 4 kg CO2e a month.
"""Logs a run to MLflow with what was predicted for it.

  python track.py                          run the planned command and measure it
  python track.py -- python other.py       another command, measured the same way
  python track.py --measured "latency p99=8.7" --measured usd_per_month=1490
                                           figures of something that runs already

Where it goes is MLflow's own setting: MLFLOW_TRACKING_URI, MLFLOW_EXPERIMENT_NAME.
Needs: pip install mlflow-skinny
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mlflow

SETTINGS: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
TAGS: dict[str, str] = SETTINGS["TAGS"]  # on every run: who it is for
STAGES: dict[str, dict[str, Any]] = SETTINGS["STAGES"]  # what the plan says of each, in seconds and dollars


def metric_name(text: str) -> str:
    """MLflow takes letters, digits, `_`, `-`, `.` and `/`."""
    return re.sub(r"[^\w./-]+", "_", text, flags=re.ASCII)


def compare(measured: Mapping[str, float], plan: Mapping[str, float]) -> None:
    """Measured figures, and for those that were predicted the ratio: 1.2 means a fifth more than expected."""
    for name, value in measured.items():
        mlflow.log_metric(f"measured.{metric_name(name)}", value)
        expected = plan.get(name)
        if expected:
            mlflow.log_metric(f"ratio.{metric_name(name)}", value / expected)
    low, high, seconds = plan.get("seconds low"), plan.get("seconds high"), measured.get("seconds")
    if low is not None and high is not None and seconds is not None:
        mlflow.set_tag("within_predicted_range", str(low <= seconds <= high).lower())


@contextmanager
def tracked(name: str, timed: bool = True) -> Iterator[dict[str, float]]:
    """A run with its prediction. Put counts into what it gives, such as `items`; time and cost are measured, if `timed`."""
    stage = STAGES[name]
    with mlflow.start_run(run_name=name, description=stage["about"]):
        mlflow.set_tags(TAGS)
        mlflow.log_params(stage["settings"])
        for key, value in stage["predicted"].items():
            mlflow.log_metric(f"predicted.{metric_name(key)}", value)
        measured: dict[str, float] = {}
        began = time.monotonic()
        try:
            yield measured
        finally:
            if timed:
                measured["seconds"] = time.monotonic() - began
                measured["usd"] = measured["seconds"] / 3600 * stage["usd_per_hour"]
                if "items" in measured and measured["seconds"]:
                    measured["items_per_second"] = measured["items"] / measured["seconds"]
            compare(measured, stage["predicted"])


def run(command: list[str]) -> int:
    """The command, which is told to stop when this is."""
    child = subprocess.Popen(command)
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_number, lambda number, _: child.send_signal(number))
    return child.wait()


def pair(text: str) -> tuple[str, float]:
    name, _, value = text.rpartition("=")
    if not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=NUMBER")
    return name, float(value)


def main() -> int:
    first = next(iter(STAGES))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stage", choices=sorted(STAGES), default=first)
    parser.add_argument("--items", type=float, help="how many were worked on: gives items_per_second")
    parser.add_argument("--measured", type=pair, action="append", default=[], metavar="NAME=NUMBER")
    parser.add_argument("command", nargs="*")
    options = parser.parse_args()
    with tracked(options.stage, timed=not options.measured) as measured:
        if options.measured:
            measured.update(options.measured)
            return 0
        if options.items is not None:
            measured["items"] = options.items
        code = run(options.command or STAGES[options.stage]["command"])
        mlflow.log_metric("exit_code", code)
        if code:
            sys.exit(code)  # from inside, so that MLflow marks the run as failed
    return 0


if __name__ == "__main__":
    sys.exit(main())
