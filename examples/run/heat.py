"""Heat that spreads over a plate: so many bytes in each step, step after step, with NumPy alone.

    chipwise bench examples/run/heat.yaml --on local --on local:cpus=2

Each step reads and writes three arrays of doubles (`heat.yaml` says how many bytes that is), so a machine's memory decides how
fast it goes. `job.steps` tells how far it is, and saves the plate now and then.
"""

from __future__ import annotations

import os
from itertools import pairwise
from threading import Thread

import numpy as np

import chipwise.job as job

SIDE = 1536
THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1  # the CPUs that this job holds

plate = np.zeros((SIDE, SIDE))
plate[SIDE // 4 : SIDE // 2, SIDE // 4 : SIDE // 2] = 100.0
state = {"plate": plate}
after, flow = plate.copy(), np.empty_like(plate)


def spread(first: int, last: int) -> None:
    """Rows of one step: each point moves towards the mean of its four neighbours."""
    here, out, new = plate[first:last, 1:-1], flow[first:last, 1:-1], after[first:last, 1:-1]
    np.add(plate[first - 1 : last - 1, 1:-1], plate[first + 1 : last + 1, 1:-1], out=out)
    np.add(out, plate[first:last, :-2], out=out)
    np.add(out, plate[first:last, 2:], out=out)
    np.multiply(out, 0.125, out=out)
    np.multiply(here, 0.5, out=new)
    np.add(new, out, out=new)


edges = np.linspace(1, SIDE - 1, THREADS + 1).astype(int)
for step in job.steps(state, total=300, every=200):
    threads = [Thread(target=spread, args=pair) for pair in pairwise(edges)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    plate[1:-1, 1:-1] = after[1:-1, 1:-1]
    if step % 100 == 99:
        print(f"step {step + 1}: hottest {plate.max():.3f}, in all {plate.sum():.6g}", flush=True)
