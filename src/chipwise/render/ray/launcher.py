"""A small Ray program that starts one command on every worker at once, and ends when the first of them fails.

Programs for torchrun, JAX or divided work know nothing of Ray; with it they need not.
"""

from __future__ import annotations

from chipwise.render.cluster.accelerators import pod_chips
from chipwise.render.deployment import Deployment
from chipwise.render.heading import heading
from chipwise.render.launch.starting import apart, by_torchrun, part_command, part_reason, quoted, torchrun
from chipwise.render.layout import meets, pods
from chipwise.render.limits import KUBERNETES
from chipwise.render.python_text import Constant, script

FILE = "launch.py"
FOLDER = "/launch"
_USAGE = "Starts one command on every worker of this Ray cluster and waits for all of them. The RayJob runs it."
_IMPORTS = """
import os
import socket
import subprocess
import sys

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
"""
_PROGRAM = '''
@ray.remote(max_retries=0)
def meeting_point() -> tuple[str, int]:
    """Where the others find the first worker: its address and a port that is free there."""
    with socket.socket() as one:
        one.bind(("", 0))
        return ray.util.get_node_ip_address(), int(one.getsockname()[1])


@ray.remote(max_retries=0)
def run(rank: int, first: str, port: int) -> int:
    """The command, with what it needs to find its place. What it prints shows in the log of the job."""
    place = {"RANK": rank, "PART": rank, "PARTS": WORKERS, "WORLD_SIZE": WORKERS, "SHARD": f"{rank:05d}"}
    place |= {"MASTER_ADDR": first, "MASTER_PORT": port}
    settings = {**os.environ, **{name: str(value) for name, value in place.items()}}
    return subprocess.call(["bash", "-c", COMMAND], env=settings)


def main() -> int:
    ray.init()
    group = placement_group([BUNDLE] * WORKERS, strategy=STRATEGY)
    ray.get(group.ready())  # waits until every worker is there
    resources = {name: many for name, many in BUNDLE.items() if name not in ("CPU", "GPU")}

    def on(rank: int) -> dict[str, object]:
        place = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=rank)
        given = {"num_cpus": BUNDLE["CPU"], "num_gpus": BUNDLE.get("GPU", 0), "resources": resources}
        return {**given, "scheduling_strategy": place}

    first, port = ray.get(meeting_point.options(**on(0)).remote())
    waiting = [run.options(**on(rank)).remote(rank, first, port) for rank in range(WORKERS)]
    while waiting:
        done, waiting = ray.wait(waiting)
        if code := ray.get(done[0]):
            return code  # the others end with the job: they would wait for this one for ever
    return 0


if __name__ == "__main__":
    sys.exit(main())
'''


def bundle(deployment: Deployment) -> dict[str, float]:
    """What one worker gives to the command, as Ray names it."""
    made: dict[str, float] = {"CPU": 1}
    chips = pod_chips(deployment)
    match deployment.node.kind:
        case _ if not chips:
            pass
        case "neuron":
            made["neuron_cores"] = chips * (deployment.node.cores or 1)
        case "tpu":
            made["TPU"] = chips
        case _:
            made["GPU"] = chips
    return made


def launcher(deployment: Deployment) -> str:
    if apart(deployment):
        words, why = part_command(deployment), "\n".join(part_reason(deployment))
    elif by_torchrun(deployment):
        words, why = (
            torchrun(deployment, '"$RANK"', '"$MASTER_ADDR"', '"$MASTER_PORT"', deployment.name),
            "RANK numbers machines.",
        )
    else:
        words, why = quoted(deployment.software.command), "RANK of WORLD_SIZE tells each its place."
    together = meets(deployment)
    constants = (
        Constant("WORKERS", pods(deployment), "Machines of the plan, or replicas that work apart."),
        Constant("BUNDLE", bundle(deployment), "What one of them gives to the command."),
        Constant("STRATEGY", "STRICT_SPREAD" if together else "SPREAD", "Each on a worker of its own." if together else ""),
        Constant("COMMAND", " ".join(words), why),
    )
    return KUBERNETES.script(script(heading(deployment), _USAGE, _IMPORTS, constants, _PROGRAM))
