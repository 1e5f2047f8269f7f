"""MLflow: a Python file that writes down what the plan predicts, runs the command, and logs what was measured beside it."""

from __future__ import annotations

from chipwise.render.deployment import Deployment, Form
from chipwise.render.file import File
from chipwise.render.heading import heading
from chipwise.render.python_text import Constant, script
from chipwise.render.quoting import one_line

FITS = "anything that is planned: predicted time, cost and latency beside measured ones"
EXPRESSES = frozenset({"layers", "regions"})  # what is measured is compared with the plan as a whole
WRITES = ("track.py",)
_USAGE = """
Logs a run to MLflow with what was predicted for it.

  python track.py                          run the planned command and measure it
  python track.py -- python other.py       another command, measured the same way
  python track.py --measured "latency p99=8.7" --measured usd_per_month=1490
                                           figures of something that runs already

Where it goes is MLflow's own setting: MLFLOW_TRACKING_URI, MLFLOW_EXPERIMENT_NAME.
Needs: pip install mlflow-skinny
"""
_IMPORTS = """
from __future__ import annotations

import argparse
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import mlflow
"""
_PROGRAM = '''
def metric_name(text: str) -> str:
    """MLflow takes letters, digits, `_`, `-`, `.` and `/`."""
    return re.sub(r"[^\\w./-]+", "_", text, flags=re.ASCII)


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
    told = STAGES[name]
    with mlflow.start_run(run_name=name, description=told["about"]):
        mlflow.set_tags(TAGS)
        mlflow.log_params(told["settings"])
        for key, value in told["predicted"].items():
            mlflow.log_metric(f"predicted.{metric_name(key)}", value)
        measured: dict[str, float] = {}
        began = time.monotonic()
        try:
            yield measured
        finally:
            if timed:
                measured["seconds"] = time.monotonic() - began
                measured["usd"] = measured["seconds"] / 3600 * told["usd_per_hour"]
                if "items" in measured and measured["seconds"]:
                    measured["items_per_second"] = measured["items"] / measured["seconds"]
            compare(measured, told["predicted"])


def run(command: list[str]) -> int:
    """The command, which is told to stop when this is."""
    child = subprocess.Popen(command)
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, lambda number, _: child.send_signal(number))
    return child.wait()


def pair(text: str) -> tuple[str, float]:
    name, _, value = text.rpartition("=")
    if not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=NUMBER")
    return name, float(value)


def main() -> int:
    first = next(iter(STAGES))
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--stage", choices=sorted(STAGES), default=first)
    asked.add_argument("--items", type=float, help="how many were worked on: gives items_per_second")
    asked.add_argument("--measured", type=pair, action="append", default=[], metavar="NAME=NUMBER")
    asked.add_argument("command", nargs="*")
    given = asked.parse_args()
    with tracked(given.stage, timed=not given.measured) as measured:
        if given.measured:
            measured.update(given.measured)
            return 0
        if given.items is not None:
            measured["items"] = given.items
        code = run(given.command or STAGES[given.stage]["command"])
        mlflow.log_metric("exit_code", code)
        if code:
            sys.exit(code)  # from inside, so that MLflow marks the run as failed
    return 0


if __name__ == "__main__":
    sys.exit(main())
'''


def render(deployment: Deployment) -> list[File]:
    told = {_short(stage.title): _told(stage) for stage in deployment.stages or (deployment,)}
    text = script(
        heading(deployment),
        _USAGE,
        _IMPORTS,
        (
            Constant("TAGS", _tags(deployment), "On every run: who it is for."),
            Constant("STAGES", told, "What the plan says of each, in seconds and dollars."),
        ),
        _PROGRAM,
    )
    return [File("track.py", text, executable=True)]


def _short(text: str) -> str:
    return one_line(text) or "run"


def _tags(deployment: Deployment) -> dict[str, str]:
    return {f"chipwise.{_short(key)}": _short(value) for key, value in deployment.labels.items()} | {
        "chipwise.workload": _short(deployment.title),
        "chipwise.kind": deployment.kind,
    }


def _told(stage: Deployment) -> dict[str, object]:
    return {
        "about": _short(stage.predicted.sentence or stage.description or stage.title),
        "command": [word.replace("\x00", "") for word in stage.software.command],
        "usd_per_hour": round(stage.predicted.usd_per_hour, 6),
        "settings": _settings(stage),
        "predicted": _predicted(stage),
    }


def _settings(stage: Deployment) -> dict[str, object]:
    node = stage.node
    made: dict[str, object] = {
        "provider": node.provider,
        "region": node.region,
        "machine": node.machine,
        "machines": stage.machines,
        "chip": node.chip,
        "chips_per_machine": node.chips,
        "purchase": stage.purchase,
        "image": _short(stage.software.image),
    }
    if stage.model is not None:
        made |= {"model": _short(stage.model.name), "precision": stage.model.precision}
    return made | {f"split.{key.replace(' ', '_')}": value for key, value in stage.split.as_dict().items()}


def _predicted(stage: Deployment) -> dict[str, float]:
    """By the names that measured figures have."""
    told = stage.predicted
    made: dict[str, float] = {}
    if stage.form is Form.JOB:
        made |= {"seconds": told.seconds, "seconds low": told.low_s, "seconds high": told.high_s, "usd": told.usd}
    else:
        made["usd_per_month" if told.per == "month" else "usd"] = told.usd
    made |= dict(told.latency) | {"kg_co2e": told.kg, "watts": told.watts}
    if stage.scaling is not None and stage.scaling.per_replica:
        made["requests_per_second"] = stage.scaling.per_replica * stage.scaling.usual
    return {name: float(f"{value:.6g}") for name, value in made.items()}
