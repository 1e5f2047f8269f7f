"""The queueing model against a simulation of 400,000 requests: the largest difference by setup, burstiness and load.

python benchmarks/run.py queueing         about two minutes; `tests/support/queueing_cases.py` has the setups
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from figure import ROOT, Figure

sys.path.insert(0, str(ROOT / "tests" / "support"))

REQUESTS = 400_000


def figures() -> Iterator[Figure]:
    from queueing_cases import BURSTS, LOADS, SETUPS, differences, service_for

    all_differences: list[float] = []
    for name in SETUPS:
        for burstiness in BURSTS:
            for load in LOADS:
                differ = differences(service_for(name, burstiness), load, REQUESTS)
                all_differences += list(differ.values())
                (metric, share), worst = max(differ.items(), key=lambda one: abs(one[1]))
                label = f"queueing {name}, burstiness {burstiness:g}, load {load:.0%}: {metric} p{100 * share:g}"
                yield Figure(label, worst, "share", {"min": -0.15, "max": 0.15})
    within = sum(abs(one) <= 0.15 for one in all_differences) / len(all_differences)
    yield Figure("queueing_within_15_percent", within, "share", {})
