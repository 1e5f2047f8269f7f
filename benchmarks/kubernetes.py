"""1,000 jobs on the kubernetes engine: the real control plane, a record in SQLite, the real controller; only the kubelet is
played. Needs `make cluster`, and two minutes; `python benchmarks/kubernetes.py 100` takes fewer jobs.

Wall times are those of a whole control plane beside us on one machine. CPU and memory are of this process alone; the kubelet is
played in another.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from chipwise.adapters.engines.kubernetes.engine import Config, Kubernetes, connect
from chipwise.adapters.stores.record import connect as open_record
from chipwise.runner.job import Phase, Spec
from chipwise.runner.loop import Controller
from chipwise.runner.record import Wanted
from figure import ROOT, Figure

if TYPE_CHECKING:
    from kube.control_plane import Cluster

sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "tools")]

JOBS = 1_000
LIMIT_S = 900.0
KUBELET = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[4:]
from kube.api import Api
from kube.kubelet import PlayedKubelet
played = PlayedKubelet(Api(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
played.start()
played._thread.join()
"""


def figures(jobs: int = JOBS) -> Iterator[Figure]:
    import pytest

    from kube import control_plane, programs

    try:
        programs.program("kube-apiserver")
    except pytest.skip.Exception as missing:
        print(f"kubernetes: left out: {missing}", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory(prefix="chipwise-bench-") as folder, control_plane.started(Path(folder)) as cluster:
        player = _kubelet(cluster)
        try:
            with cluster.namespace() as namespace:
                for number in range(jobs // 100 + 1):
                    cluster.fake_node(f"{namespace}-{number}", {})
                engine = connect(Config(cluster.kubeconfig(), namespace=namespace, record="bench"))
                yield from _played(engine, Path(folder), jobs)
        finally:
            player.kill()
            player.wait()


def _kubelet(cluster: Cluster) -> subprocess.Popen[bytes]:
    assert cluster._kubelet is not None
    cluster._kubelet.stop()
    words = [cluster.server, str(cluster._authority), cluster._tokens["admin"], *sys.path[:2]]
    return subprocess.Popen([sys.executable, "-c", KUBELET, *words])


def _played(engine: Kubernetes, folder: Path, jobs: int) -> Iterator[Figure]:
    from engines.kubernetes import job_object
    from kube.kubelet import RUNS_SECONDS

    record, own = open_record(f"sqlite:///{folder / 'record.db'}"), psutil.Process()
    spec = Spec(("program",), "many", "kubernetes", engine.place, objects=(job_object({RUNS_SECONDS: "1"}),))
    engine.look([], time.time())
    before, began = own.memory_info().rss, time.monotonic()
    record.submit([(f"many-{number:05}", spec) for number in range(jobs)], time.time())
    yield Figure(f"kubernetes: {jobs:,} jobs submitted", time.monotonic() - began, "s", {"max": 5})
    controller = Controller(record, engine, "bench:1")
    cpu, most, started_s = time.process_time(), 0, 0.0
    looks = [(0.0, 0.0)]  # CPU and wall
    phases: Counter[Phase] = Counter()
    while phases[Phase.DONE] < jobs and time.monotonic() - began < LIMIT_S:
        controller.turn(time.time())
        placed = [one for one in controller._jobs.values() if one.phase.placed]
        if len(placed) == jobs:
            started_s = started_s or time.monotonic() - began
            looked = time.process_time(), time.monotonic()
            engine.look(placed, time.time())
            looks.append((time.process_time() - looked[0], time.monotonic() - looked[1]))
        most = max(most, own.memory_info().rss)
        phases = Counter(row.phase for row in record.rows(Wanted()))
        time.sleep(0.1)
    used, took = time.process_time() - cpu, time.monotonic() - began
    assert phases[Phase.DONE] == jobs, phases
    attempts = sum(row.attempts for row in record.rows(Wanted()))
    yield Figure(f"kubernetes: {jobs:,} jobs given to the server", started_s, "s", {"max": 120})
    yield Figure("kubernetes: of them a second", jobs / started_s if started_s else 0.0, "jobs/s", {"min": 8})
    yield Figure(f"kubernetes: {jobs:,} jobs done, each of 1 s", took, "s", {"max": 300})
    yield Figure("kubernetes: CPU for each job from start to clearing", 1e3 * used / jobs, "ms CPU", {"max": 60})
    yield Figure("kubernetes: attempts of each job", attempts / jobs, "attempts", {"max": 1})
    # All threads are counted in it: watches take in what the cluster does meanwhile.
    yield Figure(f"kubernetes: one look at {jobs:,} jobs", 1e3 * max(cpu for cpu, _ in looks), "ms CPU", {"max": 200})
    yield Figure("kubernetes: the same by the clock", 1e3 * max(wall for _, wall in looks), "ms", {"max": 1000})
    yield Figure("kubernetes: memory of the controller", most / 2**20, "MiB", {"max": 300})
    yield Figure("kubernetes: of it for the jobs", (most - before) / 2**20, "MiB", {"max": 150})
    record.close()
    engine.close()


if __name__ == "__main__":
    for figure in figures(int(sys.argv[1]) if len(sys.argv) > 1 else JOBS):
        print(figure.line(), flush=True)
