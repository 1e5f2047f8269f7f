"""Jobs and clusters from the bytes of files: own tables, and those that Philly, Sia, Alibaba and Gavel published.

A table has a heading. Columns are found by their names: a time of arrival, a number of GPUs, a duration in seconds, and where
there are such columns a team, a name, an estimate and a deadline.
"""

from __future__ import annotations

import ast
import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from math import isfinite

import numpy as np

from chipwise.errors import BadInput
from chipwise.scale.queue import Cluster, NodeGroup, QueueJob
from chipwise.scale.traces import unpacked

_MOST_JOBS = 2_000_000
_MOST_SPEED = 1e9  # of a job type
_COLUMNS = {
    "arrival": ("timestamp", "arrival", "arrival_s", "submit_time", "submitted", "submit", "time", "creation_time"),
    "gpus": ("num_gpus", "gpus", "gpu", "num_gpu", "gpu_num", "num_replicas"),
    "duration": ("duration", "duration_s", "seconds", "runtime", "run_time"),
    "team": ("team", "cluster", "vc", "user", "group", "tenant"),
    "name": ("name", "job", "job_id", "id"),
    "estimate": ("estimate", "estimate_s", "requested_time"),
    "deadline": ("deadline", "deadline_s"),
}
_EXAMPLE = "The heading needs a time of arrival, GPUs and a duration: timestamp,num_gpus,duration."

# Hours of GPU time of the applications of the Sia sets, which state none: the middle, on a logarithmic scale, of the category
# that the Pollux paper (OSDI'21) puts each in (small to 1, medium to 10, large to 100, extra large to 1,000 GPU hours).
SIA_GPU_HOURS = {"cifar10": 0.32, "bert": 3.2, "deepspeech2": 3.2, "yolov3": 32.0, "imagenet": 320.0}
SIA_CLUSTER = Cluster((NodeGroup("gpu", 4, 16),))  # the 64 GPUs of the paper

GAVEL_CLUSTER = Cluster(
    (NodeGroup("v100", 4, 9), NodeGroup("p100", 4, 9), NodeGroup("k80", 4, 9))
)  # 36 of each, as in the paper
GAVEL_JOBS = 1000
GAVEL_PER_HOUR = 5.0


def read_jobs(name: str, content: bytes) -> list[QueueJob]:
    """A table of jobs, whoever wrote it."""
    text = unpacked(name, content)
    try:
        rows = list(csv.reader(io.StringIO(text.decode("utf-8-sig"))))
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{name} is not a CSV file.", remedy=_EXAMPLE) from error
    rows = [row for row in rows if "".join(row).strip()]
    if len(rows) < 2:
        raise BadInput(f"{name} has no jobs.", remedy=_EXAMPLE)
    if len(rows) > _MOST_JOBS:
        raise BadInput(f"{name} has more than {_MOST_JOBS:,} jobs.")
    heading = [cell.strip().lower() for cell in rows[0]]
    if {"application", "num_replicas"} <= set(heading):
        return _sia(name, heading, rows[1:])
    if {"gpu_milli", "deletion_time"} <= set(heading):
        return _alibaba(name, heading, rows[1:])
    return _own(name, heading, rows[1:])


def _positions(name: str, heading: Sequence[str]) -> dict[str, int]:
    positions = {
        column: next((heading.index(one) for one in names if one in heading), -1) for column, names in _COLUMNS.items()
    }
    missing = [column for column in ("arrival", "gpus", "duration") if positions[column] < 0]
    if missing:
        raise BadInput(f"{name} has no column for {' and '.join(missing)}: {', '.join(heading)[:120]}.", remedy=_EXAMPLE)
    return positions


def _own(name: str, heading: Sequence[str], rows: Iterable[Sequence[str]]) -> list[QueueJob]:
    positions = _positions(name, heading)
    cells = _JobCells(name, heading)
    jobs = []
    for line, row in enumerate(rows, start=2):
        gpus, work_s = cells.number(line, row, positions["gpus"]), cells.number(line, row, positions["duration"])
        if gpus == 0 or work_s == 0:
            continue  # it never ran, or not on a GPU
        if gpus < 0 or work_s < 0 or gpus != int(gpus):
            raise BadInput(f"{name}, line {line}: {gpus:g} GPUs for {work_s:g} s are not possible.")
        estimate_s = cells.number(line, row, positions["estimate"]) if positions["estimate"] >= 0 else work_s
        jobs.append(
            QueueJob(
                name=cells.text(row, positions["name"]) or f"line {line}",
                arrival_s=cells.moment(line, row, positions["arrival"]),
                gpus=int(gpus),
                work_s=work_s,
                estimate_s=max(estimate_s, 1e-3),
                team=cells.text(row, positions["team"]),
                deadline_s=cells.moment(line, row, positions["deadline"]) if cells.text(row, positions["deadline"]) else None,
            )
        )
    if not jobs:
        raise BadInput(f"{name} has no job that uses a GPU.", remedy=_EXAMPLE)
    return jobs


class _JobCells:
    """Reads cells of a table, and says where one is wrong."""

    def __init__(self, name: str, heading: Sequence[str]) -> None:
        self.name, self.heading = name, heading
        self.has_zone: bool | None = None

    def columns(self, *names: str) -> dict[str, int]:
        if missing := [name for name in names if name not in self.heading]:
            raise BadInput(f"{self.name} has no column {' and '.join(missing)}.", remedy=_EXAMPLE)
        return {name: self.heading.index(name) for name in names}

    def text(self, row: Sequence[str], position: int) -> str:
        return row[position].strip() if 0 <= position < len(row) else ""

    def number(self, line: int, row: Sequence[str], position: int) -> float:
        text = self.text(row, position)
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not isfinite(value):
            raise BadInput(f"{self.name}, line {line}: {self.heading[position]} is {text[:40]!r}, and must be a number.")
        return value

    def moment(self, line: int, row: Sequence[str], position: int) -> float:
        """Seconds, or a date with a time; all with a time zone, or none."""
        text = self.text(row, position)
        try:
            seconds = float(text)
        except ValueError:
            return self._date(line, text)
        if not isfinite(seconds) or seconds < 0:
            raise BadInput(
                f"{self.name}, line {line}: the time {text[:40]!r} is not possible.", remedy="Times are not below zero."
            )
        return seconds

    def _date(self, line: int, text: str) -> float:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError as error:
            raise BadInput(
                f"{self.name}, line {line}: {text[:40]!r} is not a time.",
                remedy="Write seconds, or dates such as 2026-03-01 14:00:00.",
            ) from error
        has_zone = moment.tzinfo is not None
        if self.has_zone is not None and self.has_zone != has_zone:
            raise BadInput(f"{self.name}, line {line}: some times have a time zone and some have none.")
        self.has_zone = has_zone
        zero = datetime(1970, 1, 1, tzinfo=moment.tzinfo)
        return (moment - zero).total_seconds()


def _sia(name: str, heading: Sequence[str], rows: Iterable[Sequence[str]]) -> list[QueueJob]:
    cells = _JobCells(name, heading)
    columns = cells.columns("name", "time", "application", "num_replicas")
    jobs = []
    for line, row in enumerate(rows, start=2):
        application = cells.text(row, columns["application"])
        if application not in SIA_GPU_HOURS:
            raise BadInput(f"{name}, line {line}: the GPU time of {application[:40]!r} is not known.")
        gpus = int(cells.number(line, row, columns["num_replicas"]))
        work_s = SIA_GPU_HOURS[application] * 3600.0 / max(gpus, 1)  # a job without GPUs is refused as one
        jobs.append(
            QueueJob(
                name=cells.text(row, columns["name"]),
                arrival_s=cells.moment(line, row, columns["time"]),
                gpus=gpus,
                work_s=work_s,
                estimate_s=work_s,
                team=application,
            )
        )
    return jobs


def _alibaba(name: str, heading: Sequence[str], rows: Iterable[Sequence[str]]) -> list[QueueJob]:
    """A share of a GPU counts as one; pods that use none, or were never scheduled, are left out."""
    cells = _JobCells(name, heading)
    columns = cells.columns("name", "num_gpu", "creation_time", "scheduled_time", "deletion_time", "qos")
    jobs = []
    for line, row in enumerate(rows, start=2):
        gpus = int(cells.number(line, row, columns["num_gpu"]))
        if gpus < 1 or not cells.text(row, columns["scheduled_time"]):
            continue
        begin_s, end_s = (cells.number(line, row, columns[one]) for one in ("scheduled_time", "deletion_time"))
        if end_s <= begin_s:
            continue
        jobs.append(
            QueueJob(
                name=cells.text(row, columns["name"]),
                arrival_s=cells.moment(line, row, columns["creation_time"]),
                gpus=gpus,
                work_s=end_s - begin_s,
                estimate_s=end_s - begin_s,
                team=cells.text(row, columns["qos"]),
            )
        )
    return jobs


def read_nodes(name: str, content: bytes) -> Cluster:
    """A list of machines with the columns gpu and model, or as in Alibaba's trace of 2026."""
    rows = csv.DictReader(io.StringIO(unpacked(name, content).decode("utf-8-sig")))
    counts: dict[tuple[str, int], int] = {}
    try:
        for row in rows:
            key = (row.get("gpu_model", row.get("model")) or "", int(row.get("gpu_capacity_num") or row["gpu"]))
            counts[key] = counts.get(key, 0) + 1
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise BadInput(f"{name} is no list of machines with the columns gpu and model.") from error
    groups = tuple(NodeGroup(model or "gpu", gpus, count) for (model, gpus), count in sorted(counts.items()) if gpus)
    if not groups:
        raise BadInput(f"{name} has no machine with a GPU.", remedy="Each line has gpu and model.")
    return Cluster(groups)


def gavel_jobs(name: str, content: bytes, *, seed: int, count: int = GAVEL_JOBS) -> list[QueueJob]:
    """Jobs of the published types at the published speeds. The file has no jobs: arrivals, sizes and durations are drawn as the
    paper's simulations draw them (Poisson; 1, 2, 4 or 8 GPUs at 70, 10, 15 and 5%; 10^1.5 to 10^4 minutes on a V100, of which
    a fifth above 10^3)."""
    try:
        table = json.loads(unpacked(name, content))
        speeds = {machine: _alone(table[machine]) for machine in GAVEL_CLUSTER.machines}
    except (ValueError, KeyError, TypeError, AttributeError, SyntaxError, RecursionError, MemoryError) as error:
        raise BadInput(f"{name} is no table of throughputs by machine and job type.") from error
    chance = np.random.default_rng(seed)
    kinds = sorted(key for key, speed in speeds["v100"].items() if speed > 0.0)
    sizes = {gpus: [key for key in kinds if key[1] == gpus] for gpus in (1, 2, 4, 8)}
    if missing := [gpus for gpus, keys in sizes.items() if not keys]:
        raise BadInput(f"{name} has no job type of {missing[0]} GPUs that runs on a V100.", remedy="It needs 1, 2, 4 and 8.")
    jobs, arrival_s = [], 0.0
    for number in range(count):
        arrival_s += float(chance.exponential(3600.0 / GAVEL_PER_HOUR))
        gpus = int(chance.choice([1, 2, 4, 8], p=[0.7, 0.1, 0.15, 0.05]))
        kind = sizes[gpus][int(chance.integers(len(sizes[gpus])))]
        exponent = chance.uniform(1.5, 3.0) if chance.random() < 0.8 else chance.uniform(3.0, 4.0)
        work_s = float(60.0 * 10.0**exponent)
        jobs.append(
            QueueJob(
                name=f"{kind[0]} {number}",
                arrival_s=arrival_s,
                gpus=gpus,
                work_s=work_s,
                estimate_s=work_s,
                team=kind[0].split(" (")[0],
                speeds={
                    machine: rate / speeds["v100"][kind]
                    for machine, rates in speeds.items()
                    if (rate := rates.get(kind, 0.0)) > 0.0
                },
            )
        )
    return jobs


def _alone(rates: Mapping[str, Mapping[str, object]]) -> dict[tuple[str, int], float]:
    alone: dict[tuple[str, int], float] = {}
    for kind, pairs in rates.items():
        title, gpus = ast.literal_eval(kind)
        alone[str(title), int(gpus)] = speed = float(str(pairs["null"]))
        if not 0.0 <= speed <= _MOST_SPEED:
            raise ValueError(f"{kind} runs at {speed:g}")
    return alone
