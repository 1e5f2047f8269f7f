"""The planner: CPU from a cold start and warm, memory, growth with the number of offers, and agreement with brute force.

Both workloads allow every provider and region. The command runs from compiled files, as an installed package does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from array import array
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import plan
from figure import CHIPWISE, ROOT, Figure, cpu_here, cpu_of

sys.path.insert(0, str(ROOT / "tests" / "support"))

TRAINING: dict[str, Any] = {
    "kind": "train",
    "name": "anywhere",
    "model": "llama-3.1-8b",
    "tokens": "20B tokens",
    "sequence_length": 8192,
    "batch_tokens": "4M tokens",
    "precision": "bf16",
    "data": {"size": "80GB", "place": "aws:eu-central-1", "access": "once"},
    "goals": {"deadline": "20d", "objective": "cost"},
}
SERVING: dict[str, Any] = {
    "kind": "serve",
    "name": "anywhere",
    "model": "llama-3.1-8b",
    "arrival": {"rate": "12 req/s"},
    "input_tokens": {"mean": 1100},
    "output_tokens": {"mean": 240},
    "goals": {"ttft": {"p50": "250ms", "p95": "800ms"}, "tpot": {"p95": "40ms"}, "latency": {"p99": "45s"}},
}
WORKLOADS = 210  # random ones, a third of each kind
_PEAK = """
import resource, sys
from chipwise.cli.main import main
main(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


def grown(session: Session, times: int) -> Session:
    """The catalog with every offer so many times, each a little dearer."""
    made = replace(session)
    offers = copy(session.catalog.offers)
    for name in offers.__slots__:
        values = getattr(offers, name)
        if isinstance(values, array):
            setattr(offers, name, values * times)
    offers.price = array("d", [price * (1 + 1e-3 * at) for at in range(times) for price in session.catalog.offers.price])
    made.__dict__["catalog"] = replace(session.catalog, offers=offers)
    return made


def agreement(session: Session, folder: Path, workloads: int = WORKLOADS) -> float:
    """Share of random workloads of which no candidate is cheaper than the winner by more than what counts as the same."""
    from brute_planner import Brute, Wanted, counted, most_usd, random_generation, random_training

    brute, equal = Brute(session), 0
    for seed in range(workloads):
        random = Random(f"benchmark {seed}")
        wanted: Wanted = random_training(random) if seed % 3 == 0 else random_generation(random, seed % 3 == 1)
        found = plan(session, wanted.write(folder / "random.yaml"))
        winner = found.winner
        tried = brute.training(wanted) if seed % 3 == 0 else brute.generation(wanted)
        kept = [usd for usd, _ in tried.sensible("deadline_s" in wanted.file.get("goals", {}))]
        if winner is None or not kept:
            equal += winner is None and not kept
        else:
            equal += min(kept) * (1 - 1e-9) <= counted(winner) <= most_usd(found, min(kept)) * (1 + 1e-9)
    return equal / workloads


def figures() -> Iterator[Figure]:
    with TemporaryDirectory() as made:
        folder = Path(made)
        paths = {name: _written(folder / f"{name}.yaml", one) for name, one in (("training", TRAINING), ("serving", SERVING))}
        session = open_session()
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        peak = 0.0
        for name, cold, least in (("training", 1.0, 1e6), ("serving", 1.5, 1e6)):
            command = [CHIPWISE, "plan", paths[name]]
            cpu_of(command, 1)  # compiles
            yield Figure(f"plan_{name}_considered", float(plan(session, paths[name]).counts.considered), "", {"min": least})
            yield Figure(f"plan_{name}_cold_cpu", cpu_of(command), "s", {"max": cold})
            yield Figure(f"plan_{name}_warm_cpu", _warm(session, paths[name]), "s", {"max": 0.3})
            peak = max(peak, _peak_mb(paths[name]))
        yield Figure("plan_peak_memory_mb", peak, "MB", {"max": 500})
        for name, path in paths.items():
            once = _warm(session, path)
            for times in (10, 100):
                took = cpu_here(partial(plan, grown(session, times), path), 1)
                yield Figure(f"plan_{name}_growth_{times}x", took / once, "x", {"max": times})
        yield Figure("plan_brute_force_equal", agreement(session, folder), "share", {"min": 1.0})


def _written(path: Path, workload: Mapping[str, Any]) -> str:
    path.write_text(json.dumps(workload))
    return str(path)


def _warm(session: Session, path: str) -> float:
    plan(session, path)
    return cpu_here(lambda: plan(session, path), 9)


def _peak_mb(path: str) -> float:
    done = subprocess.run([sys.executable, "-c", _PEAK, "plan", path], check=True, capture_output=True, text=True)
    return float(done.stderr.split()[-1]) / 1024
