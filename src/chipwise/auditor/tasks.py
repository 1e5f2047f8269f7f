"""Tasks that are no objects of Kubernetes: SkyPilot's files, and batch scripts of Slurm, which are read as such."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from chipwise.auditor.commands import Word, words_of_text
from chipwise.auditor.source import Located, Manifest, Sources, line_of, listed, look, whole_number

_CORES = ("Trainium", "Inferentia", "tpu")  # devices of several cores, a process each


@dataclass(frozen=True, slots=True)
class OfferedMachine:
    chip: str
    devices: int
    line: int


@dataclass(frozen=True, slots=True)
class Task:
    manifest: Manifest
    words: tuple[Word, ...]
    nodes: int
    devices: int  # of each node; 0: none, all, or several kinds to choose from
    chip: str  # empty: not known
    alternatives: tuple[OfferedMachine, ...] = ()  # one of these it gets, and everything else of it must fit each

    @property
    def path(self) -> str:
        return self.manifest.path


def tasks_of(sources: Sources) -> Iterator[Task]:
    for manifest in sources.manifests:
        body = manifest.body
        if manifest.kind or not {"resources", "run"} <= body.keys():
            continue
        chip, devices = _accelerators(look(body, "resources", "accelerators"))
        words = tuple(words_of_text(str(body["run"]), line_of(body, "run")))
        nodes = max(1, whole_number(body.get("num_nodes")))
        yield Task(
            manifest=manifest, words=words, nodes=nodes, devices=devices, chip=chip, alternatives=tuple(_alternatives(body))
        )


def offered(task: Task) -> Iterator[tuple[Task, tuple[tuple[str, int], ...]]]:
    """The task with each of the machines that it may get, and where that one is named besides."""
    if not task.alternatives:
        yield task, ()
    for alternative in task.alternatives:
        yield replace(task, chip=alternative.chip, devices=alternative.devices), ((task.path, alternative.line),)


def _alternatives(body: Located) -> Iterator[OfferedMachine]:
    """Of SkyPilot: whole ones under any_of and ordered, or more accelerators than one."""
    resources = look(body, "resources")
    entries = [*listed(look(resources, "any_of")), *listed(look(resources, "ordered"))]
    for item in entries:
        chip, devices = _accelerators(look(item, "accelerators"))
        if chip:
            yield OfferedMachine(chip, devices, line_of(item, "accelerators"))
    accelerators = look(resources, "accelerators")
    names = accelerators if isinstance(accelerators, Located) and len(accelerators) > 1 else ()
    for name in names if not entries else ():
        chip, devices = _accelerators(str(name) if ":" in str(name) else f"{name}:{accelerators[name] or 1}")
        if chip:
            yield OfferedMachine(chip, devices, line_of(accelerators, name))


def settings_of(task: Task) -> Iterator[tuple[str, str, int]]:
    """Variables that it sets: name, value and line."""
    for key in ("envs", "secrets"):
        arguments = task.manifest.body.get(key)
        if isinstance(arguments, Located):
            yield from ((name, str(value), line_of(arguments, name)) for name, value in arguments.items() if value is not None)
    yield from exported(task.words)


def exported(words: tuple[Word, ...] | list[Word]) -> Iterator[tuple[str, str, int]]:
    """What a script sets by `NAME=value`, exported or given to a command, also by `-x NAME=value` of mpirun."""
    for word in words:
        name, equals, value = word.text.partition("=")
        if equals and name.isidentifier() and name.isupper():
            yield name, value, word.line


def _accelerators(accelerators: object) -> tuple[str, int]:
    """`A100:4`, or {A100: 4}; 0 where it names several."""
    if isinstance(accelerators, Located):
        if all(count is None and ":" in str(name) for name, count in accelerators.items()):  # a set, as {L4:4, A10G:4}
            counts = {whole_number(str(name).partition(":")[2]) for name in accelerators}
            return ("", counts.pop()) if len(counts) == 1 else ("", 0)
        [(name, count), *further] = accelerators.items() or [("", 0)]
        return ("", 0) if further or str(name).startswith(_CORES) else (str(name), whole_number(count))
    if isinstance(accelerators, str) and accelerators and not accelerators.startswith(_CORES):
        name, _, count = accelerators.partition(":")
        return "" if name == "gpu" else name, whole_number(count or "1")
    return "", 0
