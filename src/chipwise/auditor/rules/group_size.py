"""Ranks wait for each other: with fewer machines than the command counts, none of them ever starts its work."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod

from chipwise.auditor.commands import MEGATRON, NODES, Word, number_of, words_of_container, words_of_text
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import Pod, chips_of, pods_in
from chipwise.auditor.source import Manifest, Sources, TerraformBlock, line_of, listed, look, whole_number
from chipwise.auditor.tasks import Task, tasks_of
from chipwise.auditor.terraform import inner, line_inside, text_of
from chipwise.auditor.workloads import Group, group_of

ABOUT = "a group has as many machines as its command counts"
_TOPOLOGY = "cloud.google.com/gke-tpu-topology"
_MPI = ("mpirun", "mpiexec")
_TPU_HOST = re.compile(r"^ct\w+-(?:hightpu|standard)-(\d)t$")
_TPU_HOST_CHIPS = 4  # of slices of several hosts
_HOST_CHIPS = 8  # the most that one host has, as a slice of its own
_SHAPE = re.compile(r"\d{1,3}(?:x\d{1,3}){1,2}")


def check(sources: Sources) -> Iterator[Finding]:
    for task in tasks_of(sources):
        counted = number_of(task.words, NODES)
        if counted and "num_nodes" in task.manifest.body and counted.value != task.nodes:
            message = f"the task has {task.nodes} machines, and its command counts {counted.value}"
            fix = f"Set the number of nodes to {counted.value}, or the flag to {task.nodes}."
            yield _finding(task.path, counted.line, message, fix, line_of(task.manifest.body, "num_nodes"))
        yield from _divided(task)
    for block in sources.blocks:
        yield from _slice(sources, block)
    for manifest in sources.manifests:
        pods = list(pods_in(manifest))
        yield from _gang(manifest)
        if manifest.kind == "Job" and listed(look(manifest.body, "spec", "tasks")):
            yield from _volcano(manifest, pods)
        yield from _topology(manifest, pods)
        if manifest.kind == "MPIJob":
            yield from _mpi(manifest, pods)
            continue
        nodes = next(
            (count for pod in pods for container in pod.mains if (count := number_of(words_of_container(container), NODES))),
            None,
        )
        size = group_of(manifest)
        if manifest.kind == "StatefulSet":  # whose pods are one group where its command counts machines
            spec = manifest.body.get("spec")
            size = Group(max(1, whole_number(look(spec, "replicas"))), line_of(spec, "replicas"))
        if nodes and size and manifest.kind and nodes.value != size.size:
            is_group = manifest.kind == "LeaderWorkerSet"
            yield _finding(
                manifest.path,
                size.line if is_group else nodes.line,
                f"{manifest.title}: machines of the group are {size.size}, and its command counts {nodes.value}",
                f"Set {'size' if is_group else 'the number of pods'} to {nodes.value}, or the flag to {size.size}.",
                nodes.line if is_group else size.line,
            )


def _divided(task: Task) -> Iterator[Finding]:
    """Megatron ends at once where its ranks are no whole number of copies of the model."""
    splits = [count for flags in MEGATRON if (count := number_of(_flat(task.words), flags))]
    model, ranks = prod(one.value for one in splits), task.nodes * task.devices
    if splits and ranks and ranks % model:
        message = f"a copy of the model takes {model} ranks, and {task.nodes} machines of {task.devices} devices have {ranks}"
        yield _finding(task.path, splits[0].line, message, "Split it over a number of ranks that divides them all.")


def _flat(words: Sequence[Word]) -> list[Word]:
    """Also of flags that a script collects in a variable."""
    flat = list[Word]()
    for word in words:
        name, equals, value = word.text.partition("=")
        collected = equals and name.isidentifier() and " " in value
        flat += words_of_text(value, word.line) if collected else [word]
    return flat


def _volcano(manifest: Manifest, pods: list[Pod]) -> Iterator[Finding]:
    """Ranks of MPI in a gang, whose devices are in tasks of their own."""
    tasks = listed(look(manifest.body, "spec", "tasks"))
    places = 0
    for task, pod in zip(tasks, pods, strict=False):
        places += max(1, whole_number(look(task, "replicas") or 1)) * sum(pod.chips.values())
    for container in (container for pod in pods for container in pod.mains):
        words = words_of_container(container)
        ranks = number_of(words, ("-np", "-n", "--np"))
        if ranks and places and ranks.value > places and any(word.text.rpartition("/")[2] in _MPI for word in words):
            message = f"{manifest.title} starts {ranks.value} ranks, and its tasks have {places} devices"
            yield _finding(manifest.path, ranks.line, message, f"Start {places}, or raise the number of workers.")


def _slice(sources: Sources, block: TerraformBlock) -> Iterator[Finding]:
    """A pool of GKE whose machines do not make up the slice of TPUs that it names."""
    if block.labels[:1] != ("google_container_node_pool",):
        return
    shape = next((text_of(one.get("tpu_topology")) for one in inner(block.body, "placement_policy")), "")
    machine = next((text_of(one.get("machine_type")) for one in inner(block.body, "node_config")), "")
    host_chips, count = _TPU_HOST.search(machine), text_of(block.body.get("node_count"))
    if not host_chips or not _SHAPE.fullmatch(shape) or not count.isdecimal():
        return
    hosts = prod(int(side) for side in shape.split("x")) // int(host_chips[1])
    if hosts and int(count) != hosts:
        message = f"{block.title}: {shape} takes {hosts} machines of {machine}, and {count} are asked for"
        yield _finding(block.path, line_inside(sources, block, "tpu_topology"), message, f"Set node_count = {hosts}.")


def _gang(manifest: Manifest) -> Iterator[Finding]:
    """A gang of Volcano that waits for more pods than it has."""
    spec = manifest.body.get("spec")
    tasks = listed(look(spec, "tasks"))
    minimum = whole_number(look(spec, "minAvailable"))
    pods = sum(max(1, whole_number(look(task, "replicas") or 1)) for task in tasks)
    if tasks and minimum > pods:
        message = f"{manifest.title} waits for {minimum} pods, and has {pods}"
        yield _finding(manifest.path, line_of(spec, "minAvailable"), message, f"Set minAvailable to {pods} or less.")


def _topology(manifest: Manifest, pods: list[Pod]) -> Iterator[Finding]:
    """A slice of TPUs, whose chips are those of its pods together."""
    group = group_of(manifest)
    for pod in pods:
        selector = pod.spec.get("nodeSelector")
        shape = str(look(selector, _TOPOLOGY) or "")
        chips = pod.chips.get("google.com/tpu", 0)
        if not group or not chips or not _SHAPE.fullmatch(shape):
            continue
        slice_chips = prod(int(side) for side in shape.split("x"))
        if slice_chips > _HOST_CHIPS and chips > _TPU_HOST_CHIPS:
            message = f"{manifest.title}: hosts of the slice {shape} have {_TPU_HOST_CHIPS} chips, and a pod asks for {chips}"
            limits = next((one for main in pod.mains if (one := look(main, "resources", "limits"))), None)
            fix = f"Ask for {_TPU_HOST_CHIPS} in each of {slice_chips // _TPU_HOST_CHIPS} pods."
            yield _finding(manifest.path, line_of(limits, "google.com/tpu"), message, fix)
            continue
        count = next((n for one in reversed(pod.above) if (n := whole_number(one.get("parallelism")))), group.size)
        if slice_chips != chips * count:  # several slices are several jobs
            message = f"{manifest.title}: the slice {shape} has {slice_chips} chips, and {count} pods ask for {chips} each"
            fix = f"Run {max(1, slice_chips // chips)} pods of {chips} chips, or take another topology."
            yield _finding(manifest.path, line_of(selector, _TOPOLOGY), message, fix, group.line)


def _mpi(manifest: Manifest, pods: list[Pod]) -> Iterator[Finding]:
    spec = manifest.body.get("spec")
    slots = max(1, whole_number(look(spec, "slotsPerWorker") or 1))
    workers = whole_number(look(spec, "mpiReplicaSpecs", "Worker", "replicas"))
    if workers and look(spec, "runLauncherAsWorker") is True:
        workers += 1
    for container in (container for pod in pods for container in pod.mains):
        devices = sum(chips_of(container).values())
        if 0 < devices < slots:
            message = f"{manifest.title} has {slots} slots per worker on {devices} devices"
            fix = f"Set slotsPerWorker to {devices}, or ask for {slots} devices."
            limits = look(container, "resources", "limits")
            yield _finding(manifest.path, line_of(spec, "slotsPerWorker"), message, fix, line_of(limits))
        ranks = number_of(words_of_container(container), ("-np", "-n", "--np", "-c"))
        is_mpi = any(word.text.rpartition("/")[2] in _MPI for word in words_of_container(container))
        if ranks and is_mpi and workers and ranks.value > slots * workers:
            message = f"{manifest.title} starts {ranks.value} ranks on {workers} workers of {slots} slots"
            yield _finding(manifest.path, ranks.line, message, f"Start {slots * workers}, or raise the number of workers.")


def _finding(path: str, line: int, message: str, fix: str, also: int | None = None) -> Finding:
    places = ((path, also),) if also else ()
    return Finding(rule="group-size", weight=Weight.HIGH, path=path, line=line, what=message, fix=fix, also=places)
