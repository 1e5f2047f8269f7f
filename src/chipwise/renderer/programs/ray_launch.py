#!/usr/bin/env python3
"""Starts one command on every worker of this Ray cluster and waits for all of them. The RayJob runs it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

SETTINGS: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
WORKERS: int = SETTINGS["WORKERS"]  # machines of the plan, or replicas that work apart
BUNDLE: dict[str, float] = SETTINGS["BUNDLE"]  # what one of them gives to the command
STRATEGY: str = SETTINGS["STRATEGY"]
CHIPS: int = SETTINGS["CHIPS"]  # of one machine
COMMAND: str = SETTINGS["COMMAND"]


@ray.remote(max_retries=0)
def meeting_point() -> tuple[str, int]:
    """Where the others find the first worker: its address and a port that is free there."""
    with socket.socket() as listener:
        listener.bind(("", 0))
        return ray.util.get_node_ip_address(), int(listener.getsockname()[1])


@ray.remote(max_retries=0)
def run(rank: int, first: str, port: int) -> int:
    """The command, with what it needs to find its place. What it prints shows in the log of the job."""
    place = {"RANK": rank, "PART": rank, "PARTS": WORKERS, "WORLD_SIZE": WORKERS, "SHARD": f"{rank:05d}"}
    place |= {"MASTER_ADDR": first, "MASTER_PORT": port}
    place |= {"NODE_RANK": rank, "NODES": WORKERS, "HEAD_ADDRESS": first, "GPUS_PER_NODE": CHIPS}
    settings = {**os.environ, **{name: str(value) for name, value in place.items()}}
    return subprocess.call(["bash", "-c", COMMAND], env=settings)


def main() -> int:
    ray.init()
    group = placement_group([BUNDLE] * WORKERS, strategy=STRATEGY)
    ray.get(group.ready())  # waits until every worker is there
    resources = {name: amount for name, amount in BUNDLE.items() if name not in ("CPU", "GPU")}

    def placement(rank: int) -> dict[str, object]:
        place = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=rank)
        reservation = {"num_cpus": BUNDLE["CPU"], "num_gpus": BUNDLE.get("GPU", 0), "resources": resources}
        return {**reservation, "scheduling_strategy": place}

    first, port = ray.get(meeting_point.options(**placement(0)).remote())
    waiting = [run.options(**placement(rank)).remote(rank, first, port) for rank in range(WORKERS)]
    while waiting:
        finished, waiting = ray.wait(waiting)
        if code := ray.get(finished[0]):
            return int(code)  # the others end with the job: they would wait for this one for ever
    return 0


if __name__ == "__main__":
    sys.exit(main())
