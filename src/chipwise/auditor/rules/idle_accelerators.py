"""Accelerators that are asked for and not used cost as much as those that are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from chipwise.auditor.cloudformation import resources_of
from chipwise.auditor.commands import DATA, PIPELINE, PROCESSES, RANKS, TENSOR
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.machines import accelerated
from chipwise.auditor.pods import Pod, pods_in, pods_of, words_of
from chipwise.auditor.source import Manifest, Sources, line_of, listed, look, whole_number
from chipwise.auditor.terraform import inner, line_inside, text_of

ABOUT = "what is asked for is used"
_FLAGS = {*TENSOR, *PIPELINE, *DATA, *PROCESSES, *RANKS}
_SERVERS = ("vllm", "text-generation-launcher", "sglang.launch_server")
_SHELLS = ("sh", "bash", "-c", "exec", "while", "true", "do")
_LONG = re.compile(r"infinity|inf|\d+d|\d{2,}h|\d{5,}s?")  # half a day and more


def check(sources: Sources) -> Iterator[Finding]:
    for manifest in sources.manifests:
        yield from _left_running(manifest)
    yield from _waiting(sources)
    for resource in resources_of(sources, "AWS::Batch::ComputeEnvironment"):
        chosen = resource.properties.get("ComputeResources")
        types = [str(one) for one in listed(look(chosen, "InstanceTypes"))]
        if whole_number(look(chosen, "MinvCpus")) and any(map(accelerated, types)):
            yield Finding(
                rule="idle-accelerators",
                weight=Weight.MEDIUM,
                path=resource.path,
                line=line_of(chosen, "MinvCpus"),
                what=f"{resource.name} keeps {look(chosen, 'MinvCpus')} processors of machines with accelerators without jobs",
                fix="Set MinvCpus: 0.",
            )
    for pod in pods_of(sources):
        chips = sum(pod.chips.values())
        if not chips or pod.owner.kind == "DaemonSet":
            continue
        words = _words(pod)
        if _sleeps(words):
            yield _finding(
                pod,
                f"{pod.owner.title} holds {chips} accelerators and sleeps",
                "Start it when there is work: a Job, or a notebook hub with culling.",
            )
            continue
        used = _used(words)
        server = any(sign in words for sign in _SERVERS)
        if (server and used < chips) or (used > 1 and used != chips and used < chips):
            yield _finding(
                pod,
                f"{pod.owner.title} asks for {chips} accelerators and its command uses {used}",
                f"Ask for {used}, or raise the split to {chips}.",
            )


def _left_running(manifest: Manifest) -> Iterator[Finding]:
    """KubeRay keeps the cluster of a job that has ended, unless it is told otherwise."""
    spec = manifest.body.get("spec")
    ends = look(spec, "shutdownAfterJobFinishes") is True or look(spec, "deletionStrategy")
    if manifest.kind == "RayJob" and not ends and not look(spec, "clusterSelector"):
        chips = sum(sum(pod.chips.values()) for pod in pods_in(manifest))
        if chips:
            yield Finding(
                rule="idle-accelerators",
                weight=Weight.MEDIUM,
                path=manifest.path,
                line=line_of(spec, "shutdownAfterJobFinishes"),
                what=f"{manifest.title} keeps its cluster, and the accelerators of it, after the job has ended",
                fix="Set shutdownAfterJobFinishes: true and ttlSecondsAfterFinished.",
            )


def _waiting(sources: Sources) -> Iterator[Finding]:
    """Machines of AWS Batch that stay while no job waits."""
    for block in (one for one in sources.blocks if one.labels[:1] == ("aws_batch_compute_environment",)):
        for resources in inner(block.body, "compute_resources"):
            names = [text_of(name) for name in listed(resources.get("instance_type"))]
            vcpus = text_of(resources.get("min_vcpus"))
            if any(map(accelerated, names)) and vcpus.isdecimal() and int(vcpus):
                yield Finding(
                    rule="idle-accelerators",
                    weight=Weight.MEDIUM,
                    path=block.path,
                    line=line_inside(sources, block, "min_vcpus"),
                    what=f"{block.title} keeps machines with accelerators for {vcpus} vCPUs while no job waits",
                    fix="Set min_vcpus = 0.",
                )


def _words(pod: Pod) -> Sequence[str]:
    return [word for container in pod.containers for word in words_of(container)]


def _sleeps(words: Sequence[str]) -> bool:
    """Nothing but waiting, perhaps inside a shell: `sleep infinity`, `tail -f /dev/null`, `while true; do sleep 3600; done`."""
    bare = [name for word in words if (name := word.rpartition("/")[2].strip(";")) and not re.fullmatch(r"-[a-z]*c", name)]
    looped = "while" in bare[:3]
    rest = [word for word in bare if word not in _SHELLS]
    if rest[:1] == ["tail"]:
        return "-f" in rest and "null" in rest
    return rest[:1] == ["sleep"] and (looped or len(rest) == 1 or _LONG.fullmatch(rest[1]) is not None)


def _used(words: Sequence[str]) -> int:
    """The product of the splits that a command names."""
    total = 1
    for index, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if flag in _FLAGS:
            number = value if equals else words[index + 1] if index + 1 < len(words) else ""
            total *= whole_number(number) if 0 < whole_number(number) < 10_000 else 1
    return total


def _finding(pod: Pod, message: str, fix: str) -> Finding:
    return Finding(
        rule="idle-accelerators",
        weight=Weight.MEDIUM,
        path=pod.owner.path,
        line=line_of(pod.spec, "containers"),
        what=message,
        fix=fix,
    )
