"""Ranks wait for each other: with fewer machines than the command counts, none of them ever starts its work."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.auditor.commands import NODES, Number, number_of, words_of_container, words_of_text
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import Pod, pods_in
from chipwise.auditor.source import Manifest, Sources, line_of, listed, look, mapped, whole_number

ABOUT = "a group has as many machines as its command counts"
_REPLICAS = ("pytorchReplicaSpecs", "xgbReplicaSpecs", "paddleReplicaSpecs")


def check(sources: Sources) -> Iterator[Finding]:
    for manifest in sources.manifests:
        pods = list(pods_in(manifest))
        if manifest.kind == "MPIJob":
            yield from _mpi(manifest, pods)
            continue
        nodes = next(
            (count for pod in pods for container in pod.mains if (count := number_of(words_of_container(container), NODES))),
            None,
        )
        if not manifest.kind and isinstance(run := manifest.body.get("run"), str) and "resources" in manifest.body:
            nodes = number_of(words_of_text(run, line_of(manifest.body, "run")), NODES)
        size = _size(manifest)
        if nodes and size and nodes.value != size.value:
            is_group = manifest.kind == "LeaderWorkerSet"
            title = manifest.title if manifest.kind else "the task"
            yield _finding(
                manifest.path,
                size.line if is_group else nodes.line,
                f"{title}: machines of the group are {size.value}, and its command counts {nodes.value}",
                f"Set {'size' if is_group else 'the number of pods'} to {nodes.value}, or the flag to {size.value}.",
            )


def _size(manifest: Manifest) -> Number | None:
    """Machines of one group, and where that stands."""
    spec = manifest.body.get("spec")
    match manifest.kind:
        case "LeaderWorkerSet":
            template = look(spec, "leaderWorkerTemplate")
            return _number(look(template, "size"), line_of(template, "size"))
        case "Job":
            return _number(look(spec, "parallelism") or 1, line_of(spec, "parallelism"))
        case "JobSet":
            jobs = listed(look(spec, "replicatedJobs"))
            counts = [
                max(1, whole_number(look(job, "replicas"))) * max(1, whole_number(look(job, "template", "spec", "parallelism")))
                for job in jobs
            ]
            return Number(sum(counts), line_of(spec, "replicatedJobs")) if len(counts) == 1 else None
        case "TrainJob":
            return _number(look(spec, "trainer", "numNodes"), line_of(spec, "trainer", "numNodes"))
        case "":
            return _number(manifest.body.get("num_nodes", 1), line_of(manifest.body, "num_nodes"))
    for key in _REPLICAS:
        groups = mapped(look(spec, key))
        if groups and not look(spec, "elasticPolicy"):
            return Number(sum(max(1, whole_number(look(one, "replicas"))) for one in groups.values()), line_of(spec, key))
    return None


def _number(value: object, line: int) -> Number | None:
    count = whole_number(value)
    return Number(count, line) if count else None


def _mpi(manifest: Manifest, pods: list[Pod]) -> Iterator[Finding]:
    spec = manifest.body.get("spec")
    slots = max(1, whole_number(look(spec, "slotsPerWorker") or 1))
    workers = whole_number(look(spec, "mpiReplicaSpecs", "Worker", "replicas"))
    if workers and look(spec, "runLauncherAsWorker") is True:
        workers += 1
    for container in (container for pod in pods for container in pod.mains):
        ranks = number_of(words_of_container(container), ("-np", "-n", "--np", "-c"))
        is_mpi = any(word.text.rpartition("/")[2] in ("mpirun", "mpiexec") for word in words_of_container(container))
        if ranks and is_mpi and workers and ranks.value > slots * workers:
            message = f"{manifest.title} starts {ranks.value} ranks on {workers} workers of {slots} slots"
            yield _finding(manifest.path, ranks.line, message, f"Start {slots * workers}, or raise the number of workers.")


def _finding(path: str, line: int, message: str, fix: str) -> Finding:
    return Finding(rule="group-size", weight=Weight.HIGH, path=path, line=line, what=message, fix=fix)
