"""1,000 jobs on the kubernetes engine: the real control plane, a record in SQLite, the real controller; only the kubelet is
played. Needs `make cluster`, and a few minutes, so it is run by itself: `python benchmarks/kubernetes.py [JOBS]`.

Half a turn's time is the server's: figures of ours are CPU and memory of this process alone, without the played kubelet, which
runs in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("tests/support", "tools")]

import psutil

from chipwise.adapters.engines.kubernetes import Config, Kubernetes, connect
from chipwise.adapters.stores.record import connect as open_record
from chipwise.run.job import Phase, Spec
from chipwise.run.loop import Controller
from chipwise.run.record import Wanted
from engines.kubernetes import job_object
from figure import Figure
from kube import control_plane, kubelet

JOBS = 1_000
LIMIT_S = 900.0
KUBELET = "import sys; sys.path[:0] = {path!r}; from kube.kubelet import PlayedKubelet; from kube.api import Api; from pathlib import Path; k = PlayedKubelet(Api({server!r}, Path({authority!r}), {token!r})); k.start(); k._thread.join()"


def figures(jobs: int = JOBS) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="chipwise-bench-") as folder, control_plane.started(Path(folder)) as cluster:
        assert cluster._kubelet is not None
        cluster._kubelet.stop()  # another process plays it: its CPU and memory are not ours
        text = KUBELET.format(
            path=sys.path[:2],
            server=cluster.server,
            authority=str(cluster._authority),
            token=cluster._tokens[control_plane.ADMIN],
        )
        player = subprocess.Popen([sys.executable, "-c", text])
        try:
            with cluster.namespace() as namespace:
                for number in range(jobs // 100 + 1):
                    cluster.fake_node(f"{namespace}-{number}", {})
                engine = connect(Config(cluster.kubeconfig(), namespace=namespace, record="bench"))
                yield from _played(engine, Path(folder), jobs)
        finally:
            player.kill()
            player.wait()


def _played(engine: Kubernetes, folder: Path, jobs: int) -> Iterator[Figure]:
    record = open_record(f"sqlite:///{folder / 'record.db'}")
    own = psutil.Process()
    spec = Spec(("program",), "many", "kubernetes", engine.place, objects=(job_object({kubelet.RUNS_SECONDS: "1"}),))
    engine.look([], time.time())
    before = own.memory_info().rss
    began = time.monotonic()
    record.submit([(f"many-{number:05}", spec) for number in range(jobs)], time.time())
    yield Figure(f"{jobs:,} jobs submitted", time.monotonic() - began, "s", {"max": 5})
    controller = Controller(record, engine, "bench:1")
    cpu, looked = time.process_time(), time.monotonic()
    turn = controller.turn(time.time())
    while turn.behind:
        turn = controller.turn(time.time())
    yield Figure(f"{jobs:,} jobs started in the cluster", time.monotonic() - looked, "s", {"max": 120})
    yield Figure("CPU of one start", 1e3 * (time.process_time() - cpu) / jobs, "ms CPU", {"max": 20})
    most, looks, phases = 0, [], Counter[Phase]()
    while time.monotonic() - began < LIMIT_S:
        placed = [one for one in controller._jobs.values() if one.phase.placed]
        cpu = time.process_time()
        engine.look(placed, time.time())
        if len(placed) == jobs:
            looks.append(time.process_time() - cpu)
        controller.turn(time.time())
        most = max(most, own.memory_info().rss)
        phases = Counter(row.phase for row in record.rows(Wanted()))
        if phases[Phase.DONE] == jobs:
            break
        time.sleep(0.2)
    took = time.monotonic() - began
    assert phases[Phase.DONE] == jobs, phases
    attempts = sum(row.attempts for row in record.rows(Wanted()))
    yield Figure(f"{jobs:,} jobs done, played kubelet included", took, "s", {"max": 600})
    yield Figure("attempts of each job", attempts / jobs, "attempts", {"max": 1})
    yield Figure(f"one look at {jobs:,} jobs", 1e3 * sorted(looks)[len(looks) // 2] if looks else 0.0, "ms CPU", {"max": 200})
    yield Figure("memory of the controller", most / 2**20, "MiB", {"max": 300})
    yield Figure("of it for the jobs", (most - before) / 2**20, "MiB", {"max": 150})
    record.close()
    engine.close()


if __name__ == "__main__":
    for figure in figures(int(sys.argv[1]) if len(sys.argv) > 1 else JOBS):
        print(figure.line(), flush=True)
