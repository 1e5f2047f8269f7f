"""A program that is split over more devices than its pod has ends before it serves or learns anything."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

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
from chipwise.auditor.pods import Pod, chips_of, pods_of, title_of
from chipwise.auditor.source import Located, Sources, line_of, listed, look, mapped, whole_number

ABOUT = "a command is split over no more devices than there are"
_RULE = "too-few-devices"
_GPUS = ("nvidia.com/gpu", "amd.com/gpu", "google.com/tpu")
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
_CORES = ("Trainium", "Inferentia", "tpu")  # devices of several cores, a process each
_NUMBERS = re.compile(r"\d+(?:,\d+)+")


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources, partial=True):
        for container in pod.mains:
            devices = sum(count for name, count in chips_of(container).items() if name in _GPUS)
            if devices:
                words = words_of_container(container)
                yield from _split(pod.owner.path, title_of(pod, container), words, devices, _nodes(pod, words))
                yield from _seen(pod, container, devices)
                yield from _processes(pod, container, devices)
    for compose in sources.compose:
        for name, service in mapped(compose.body.get("services")).items():
            devices = _reserved(service)
            if devices and isinstance(service, Located):
                yield from _split(compose.path, f"service {name}", words_of_container(service), devices, 1)
    for manifest in sources.manifests:
        if not manifest.kind and {"resources", "run"} <= manifest.body.keys():
            devices = _sky(look(manifest.body, "resources", "accelerators"))
            nodes = max(1, whole_number(manifest.body.get("num_nodes")))
            words = words_of_text(str(manifest.body["run"]), line_of(manifest.body, "run"))
            if devices:
                yield from _split(manifest.path, "the task", words, devices, nodes)


def _split(path: str, title: str, words: Sequence[Word], devices: int, nodes: int | None) -> Iterator[Finding]:
    """`nodes`: None where the command may reach over machines that the file does not count."""
    processes = number_of(words, PROCESSES)
    if processes and processes.value > devices:
        yield _finding(
            path,
            processes.line,
            f"{title} starts {processes.value} processes per machine on {devices} devices",
            processes.value,
        )
    ranks, stated = number_of(words, RANKS), number_of(words, NODES)
    counted = stated.value if stated else 1
    if ranks and ranks.value > devices * counted:
        need = -(-ranks.value // counted)
        yield _finding(path, ranks.line, f"{title} starts {need} processes per machine on {devices} devices", need)
    splits = [split for split in (number_of(words, flags) for flags in (TENSOR, PIPELINE, DATA)) if split]
    if not splits or (nodes is None and not stated):
        return
    total = _product(splits)
    machines = max(nodes or 1, counted)
    if total > devices * machines:
        place = f"{devices} devices" if machines == 1 else f"{machines} machines of {devices} devices"
        need = -(-total // machines)
        yield _finding(path, splits[0].line, f"{title} is split over {total} devices and has {place}", need)


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
    if kind == "LeaderWorkerSet":
        return max(1, whole_number(look(pod.owner.body, "spec", "leaderWorkerTemplate", "size")))
    return 1


def _seen(pod: Pod, container: Located, devices: int) -> Iterator[Finding]:
    for variable in listed(container.get("env")):
        value = str(look(variable, "value") or "")
        if look(variable, "name") in _VISIBLE and _NUMBERS.fullmatch(value) and len(value.split(",")) > devices:
            count = len(value.split(","))
            message = f"{title_of(pod, container)} names {count} devices in {look(variable, 'name')} and has {devices}"
            yield _finding(pod.owner.path, line_of(variable, "value"), message, count)


def _processes(pod: Pod, container: Located, devices: int) -> Iterator[Finding]:
    """Of a TrainJob, which names them outside of its command."""
    processes = whole_number(container.get("numProcPerNode", ""))
    if pod.owner.kind == "TrainJob" and processes > devices:
        message = f"{pod.owner.title} starts {processes} processes per machine on {devices} devices"
        yield _finding(pod.owner.path, line_of(container, "numProcPerNode"), message, processes)


def _reserved(service: object) -> int:
    """Devices of a service of Compose; 0 where it takes all of them or none."""
    for device in listed(look(service, "deploy", "resources", "reservations", "devices")):
        if "gpu" in map(str, listed(look(device, "capabilities"))):
            return len(listed(look(device, "device_ids"))) or whole_number(look(device, "count"))
    return 0


def _sky(accelerators: object) -> int:
    """`A100:4`, or {A100: 4}; 0 where it names several."""
    if isinstance(accelerators, Located):
        [(name, count), *others] = accelerators.items() or [("", 0)]
        return 0 if others or str(name).startswith(_CORES) else whole_number(count)
    if isinstance(accelerators, str) and accelerators and not accelerators.startswith(_CORES):
        return whole_number(accelerators.partition(":")[2] or "1")
    return 0


def _finding(path: str, line: int, message: str, need: int) -> Finding:
    fix = f"Ask for {need} devices per machine, or split it over as many as there are."
    return Finding(rule=_RULE, weight=Weight.HIGH, path=path, line=line, what=message, fix=fix)
