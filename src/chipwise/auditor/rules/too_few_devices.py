"""A program that is split over more devices than its pod has ends before it serves or learns anything."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from chipwise.auditor.commands import (
    DATA,
    NODES,
    PIPELINE,
    PROCESSES,
    RANKS,
    TENSOR,
    Number,
    Word,
    number_of,
    words_of_container,
    words_of_text,
)
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.hardware import machines_named
from chipwise.auditor.pods import Pod, chips_of, node_labels, pods_in, pods_of, title_of
from chipwise.auditor.sagemaker import variants_of
from chipwise.auditor.source import Located, Manifest, Sources, line_of, listed, look, mapped, whole_number
from chipwise.auditor.started import containers_of, has_accelerators
from chipwise.auditor.tasks import Task, offered, tasks_of
from chipwise.auditor.workloads import group_of

ABOUT = "a command is split over no more devices than there are"
_RULE = "too-few-devices"
_GPUS = ("nvidia.com/gpu", "amd.com/gpu", "google.com/tpu")
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
_NEURON = "aws.amazon.com/neuron"
_CORES = {"inf2": 2, "trn1": 2, "trn1n": 2}  # of one Neuron device; later ones have eight
_MOST_CORES = 8
_SRUN_WORDS = 8  # between srun and what it starts: its own flags
_NUMBERS = re.compile(r"\d+(?:,\d+)+")
_SERVED = re.compile(r"^\s*tensor_parallel_size:\s*(\d{1,4})\s*$", re.MULTILINE)


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources, partial=True):
        for container in pod.mains:
            devices = _devices(pod, container)
            if devices:
                words, place = words_of_container(container), _is_probed(container)
                yield from _split(
                    pod.owner.path, title_of(pod, container), words, devices, _nodes(pod, words), also=(pod.owner.path, place)
                )
                yield from _seen(pod, container, devices)
                yield from _processes(pod, container, devices)
    for compose in sources.compose:
        for name, service in mapped(compose.body.get("services")).items():
            devices, line = _reserved(service)
            if devices and isinstance(service, Located):
                words = words_of_container(service)
                yield from _split(compose.path, f"service {name}", words, devices, 1, also=(compose.path, line))
    for task in tasks_of(sources):
        for machine, places in offered(task):
            if machine.devices:
                yield from _split(task.path, "the task", task.words, machine.devices, task.nodes, places[0] if places else None)
                yield from _launchers(machine)
    for started in containers_of(sources):
        devices = max((int(one.chips or 0) for one in machines_named(started.machine)), default=0) if started.machine else 0
        if devices and has_accelerators(started.machine):
            yield from _split(started.block.path, started.block.title, started.words, devices, 1)
    for manifest in sources.manifests:
        if manifest.kind == "RayJob":
            yield from _ray_job(manifest)
        if manifest.kind == "RayService":
            yield from _ray(manifest, sources)
    for variant in variants_of(sources):
        if variant.devices and variant.split > variant.devices:
            message = f"{variant.title} is split over {variant.split} devices, and {variant.machine} has {variant.devices}"
            yield _finding(variant.split_path, variant.split_line, message, variant.split)


def _launchers(task: Task) -> Iterator[Finding]:
    """Slurm starts a command once for each task: one that starts a process for each device itself belongs there once."""
    per_node = whole_number(task.manifest.body.get("tasks_per_node"))
    processes = number_of(task.words, PROCESSES)
    launcher = next(
        (place for place, word in enumerate(task.words) if word.text in ("torchrun", "torch.distributed.run")), None
    )
    started = launcher is not None and any(
        word.text == "srun" for word in task.words[max(0, launcher - _SRUN_WORDS) : launcher]
    )
    if started and processes and per_node > 1 and per_node * processes.value > task.devices:
        message = f"the task starts {per_node} launchers of {processes.value} processes on {task.devices} devices"
        yield Finding(
            rule=_RULE,
            weight=Weight.HIGH,
            path=task.path,
            line=processes.line,
            what=message,
            fix="Set --ntasks-per-node=1: torchrun starts a process for each device.",
            also=((task.path, line_of(task.manifest.body, "tasks_per_node")),),
        )


def _devices(pod: Pod, container: Located) -> int:
    """Those that a process each may have; a Neuron device has several cores."""
    chips = chips_of(container)
    families = [name.partition(".")[0] for name in node_labels(pod.spec).get("node.kubernetes.io/instance-type", ())]
    cores = max((_CORES.get(family, _MOST_CORES) for family in families), default=_MOST_CORES)
    neuron = chips.get(f"{_NEURON}core", 0) + cores * (chips.get(_NEURON, 0) + chips.get(f"{_NEURON}device", 0))
    return neuron + sum(count for name, count in chips.items() if name in _GPUS)


def _is_probed(container: Located) -> int:
    """The line of its devices."""
    limits = look(container, "resources", "limits") or look(container, "resources", "requests")
    return next((line_of(limits, name) for name in chips_of(container)), line_of(container, "resources"))


def _ray_job(manifest: Manifest) -> Iterator[Finding]:
    """Workers that take a device each, against all that the cluster may have."""
    spec = manifest.body.get("spec")
    words = words_of_text(str(look(spec, "entrypoint") or ""), line_of(spec, "entrypoint"))
    workers = number_of(words, ("--num-workers", "--num_workers"))
    on_devices = any(word.text.partition("=")[0] in ("--use-gpu", "--use_gpu") for word in words)
    devices = 0
    for pod in pods_in(manifest):
        group = next((one for one in reversed(pod.above) if "rayStartParams" in one), None)
        replicas = max(whole_number(look(group, "maxReplicas")), whole_number(look(group, "replicas")), 1)
        devices += replicas * sum(count for name, count in pod.chips.items() if name in _GPUS)
    if workers and on_devices and devices and workers.value > devices:
        message = f"{manifest.title} starts {workers.value} workers with a GPU each, and its cluster has {devices}"
        yield _finding(manifest.path, workers.line, message, workers.value)


def _ray(manifest: Manifest, sources: Sources) -> Iterator[Finding]:
    """What Serve is asked to split, against the largest machine of the cluster: over two, each step waits for the network."""
    pods = [pod for pod in pods_of(sources, partial=True) if pod.owner is manifest]
    devices = max((sum(count for name, count in pod.chips.items() if name in _GPUS) for pod in pods), default=0)
    spec = manifest.body.get("spec")
    text, line = str(look(spec, "serveConfigV2") or ""), line_of(spec, "serveConfigV2")
    for match in _SERVED.finditer(text):
        if devices and int(match[1]) > devices:
            message = f"{manifest.title} is split over {match[1]} devices, and its largest machine has {devices}"
            yield _finding(manifest.path, line + text.count("\n", 0, match.start(1)) + 1, message, int(match[1]))


def _split(
    path: str, title: str, words: Sequence[Word], devices: int, nodes: int | None, also: tuple[str, int] | None = None
) -> Iterator[Finding]:
    """`nodes`: None where the command may reach over machines that the file does not count."""
    processes = number_of(words, PROCESSES)
    if processes and processes.value > devices:
        yield _finding(
            path,
            processes.line,
            f"{title} starts {processes.value} processes per machine on {devices} devices",
            processes.value,
            also,
        )
    ranks, stated = number_of(words, RANKS), number_of(words, NODES)
    counted = stated.value if stated else 1
    if ranks and ranks.value > devices * counted:
        need = -(-ranks.value // counted)
        yield _finding(path, ranks.line, f"{title} starts {need} processes per machine on {devices} devices", need, also)
    splits = [split for split in (number_of(words, flags) for flags in (TENSOR, PIPELINE, DATA)) if split]
    if not splits or (nodes is None and not stated):
        return
    total = _product(splits)
    machines = max(nodes or 1, counted)
    if total > devices * machines:
        place = f"{devices} devices" if machines == 1 else f"{machines} machines of {devices} devices"
        need = -(-total // machines)
        yield _finding(path, splits[0].line, f"{title} is split over {total} devices and has {place}", need, also)


def _product(splits: Sequence[Number]) -> int:
    total = 1
    for split in splits:
        total *= split.value
    return total


def _nodes(pod: Pod, words: Sequence[Word]) -> int | None:
    """Machines of one copy. Ray finds its own."""
    kind = pod.owner.kind
    if kind.startswith("Ray") or any(word.text == "ray" for word in words):
        return None
    group = group_of(pod.owner) if kind == "LeaderWorkerSet" else None
    return group.size if group else 1


def _seen(pod: Pod, container: Located, devices: int) -> Iterator[Finding]:
    for variable in listed(container.get("env")):
        value = str(look(variable, "value") or "")
        if look(variable, "name") in _VISIBLE and _NUMBERS.fullmatch(value) and len(value.split(",")) > devices:
            count = len(value.split(","))
            message = f"{title_of(pod, container)} names {count} devices in {look(variable, 'name')} and has {devices}"
            yield _finding(pod.owner.path, line_of(variable, "value"), message, count)


def _processes(pod: Pod, container: Located, devices: int) -> Iterator[Finding]:
    """Of kinds that name them outside of their command."""
    spec = pod.owner.body.get("spec")
    places: list[tuple[Any, str]] = []
    if pod.owner.kind == "TrainJob":
        places.append((container, "numProcPerNode"))
    if pod.owner.kind == "PyTorchJob":
        places += [(spec, "nprocPerNode"), (look(spec, "elasticPolicy"), "nProcPerNode")]
    if pod.owner.kind == "LLMInferenceService":
        places.append((look(next((one for one in reversed(pod.above) if "parallelism" in one), None), "parallelism"), "tensor"))
    if pod.owner.kind.startswith("Ray") and pod.above:
        group = next((one for one in reversed(pod.above) if "rayStartParams" in one), None)
        places.append((look(group, "rayStartParams"), "num-gpus"))
    for mapping, key in places:
        processes = whole_number(look(mapping, key) or "")
        if processes > devices:
            message = f"{pod.owner.title} starts {processes} processes per machine on {devices} devices"
            yield _finding(pod.owner.path, line_of(mapping, key), message, processes, (pod.owner.path, _is_probed(container)))


def _reserved(service: object) -> tuple[int, int]:
    """Devices of a service of Compose and the line that counts them; 0 where it takes all of them or none."""
    for device in listed(look(service, "deploy", "resources", "reservations", "devices")):
        if "gpu" in map(str, listed(look(device, "capabilities"))):
            return len(listed(look(device, "device_ids"))) or whole_number(look(device, "count")), line_of(device)
    return 0, 1


def _finding(path: str, line: int, message: str, need: int, also: tuple[str, int] | None = None) -> Finding:
    fix = f"Ask for {need} devices per machine, or split it over as many as there are."
    places = (also,) if also else ()
    return Finding(rule=_RULE, weight=Weight.HIGH, path=path, line=line, what=message, fix=fix, also=places)
