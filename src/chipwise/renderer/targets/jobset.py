"""JobSet: training over several machines whose pods keep their names and are started again together, in a queue of Kueue."""

from __future__ import annotations

from chipwise.renderer.cluster import devices, guards, job_sets
from chipwise.renderer.cluster.accelerators import resource_of
from chipwise.renderer.cluster.pod import Object, meta, queue_of, queued
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import File
from chipwise.renderer.heading import heading
from chipwise.renderer.yaml_text import Noted, document

FITS = "training over several machines: pods with names that stay, restarts of all together, a queue of Kueue"
EXPRESSES = frozenset({"pulls"})
WRITES = ("workload.yaml",)
MANIFESTS = True


def render(deployment: Deployment) -> list[File]:
    job_sets.check(deployment, "JobSet")
    resource_of(deployment.node)  # raises for what Kubernetes cannot hand out
    first = "What surrounds it: apply this first."
    runs = (
        "What runs. Needs the JobSet controller (sigs.k8s.io/jobset), 0.12 or newer. With Kueue it waits in its queue:\n"
        "apply queues.yaml of --to kueue first. Without Kueue the label does nothing, and it starts at once."
    ) + job_sets.hours_note(deployment, "jobset")
    work = [*guards.claims(deployment), job_set(deployment)]
    return [
        File("namespace.yaml", document(*guards.surroundings(deployment), title=heading(deployment, first))),
        File("workload.yaml", document(*work, title=heading(deployment, runs))),
        *devices.device_files(deployment),
    ]


def job_set(deployment: Deployment) -> Object:
    lifetime = Noted(job_sets.KEPT_S, "Kept for a day, for inspection.")
    return {
        "apiVersion": job_sets.API,
        "kind": "JobSet",
        "metadata": queued(meta(deployment), queue_of(deployment), deployment),
        "spec": {"ttlSecondsAfterFinished": lifetime} | job_sets.spec(deployment),
    }
