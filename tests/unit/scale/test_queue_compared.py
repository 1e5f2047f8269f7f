"""A queue over the time: the GPUs that were in use, and when jobs ran."""

from __future__ import annotations

import pytest

from chipwise.scale.policy_files import queue_policy
from chipwise.scale.queue import Cluster, NodeGroup, QueueJob
from chipwise.scale.simulator.queue import play_queue
from chipwise.scale.simulator.queue_compared import queue_timeline


def test_the_gpus_in_use_add_up_to_the_work_and_never_exceed_the_cluster() -> None:
    jobs = [
        QueueJob(name=str(place), arrival_s=600.0 * place, gpus=1 + place % 3, work_s=3600.0, estimate_s=3600.0)
        for place in range(90)
    ]
    outcome = play_queue(jobs, Cluster((NodeGroup("gpu", 4, 2),)), queue_policy("fifo"))
    line = queue_timeline("fifo", outcome)
    mean = sum(line.gpus) / len(line.gpus)
    assert mean / line.cluster_gpus == pytest.approx(outcome.utilisation)
    assert max(line.gpus) <= line.cluster_gpus * (1 + 1e-9)
    assert len(line.jobs) == 60
    assert all(job.runs_h[0][0] >= job.arrival_h and job.runs_h[-1][1] == job.end_h for job in line.jobs)
