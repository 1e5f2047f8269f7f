"""Accelerators that are asked for and not used cost as much as those that are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chipwise.audit.finding import Finding, Weight
from chipwise.audit.pods import Pod, pods_of
from chipwise.audit.source import Sources, line_of, listed, whole

ABOUT = "what is asked for is used"
_FLAGS = {"--tensor-parallel-size": 1, "-tp": 1, "--tp": 1, "--num-shard": 1, "--pipeline-parallel-size": 1, "-pp": 1,
          "--data-parallel-size": 1, "--nproc-per-node": 1, "--nproc_per_node": 1}  # fmt: skip
_SERVERS = ("vllm", "text-generation-launcher", "sglang.launch_server")
_SLEEPERS = ("sleep", "tail")


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources):
        chips = sum(pod.chips.values())
        if not chips or pod.owner.kind == "DaemonSet":
            continue
        words = _words(pod)
        if (words and words[0].rpartition("/")[2] in _SLEEPERS) or "sleep infinity" in " ".join(words):
            yield _found(
                pod,
                f"{pod.owner.title} holds {chips} accelerators and sleeps",
                "Start it when there is work: a Job, or a notebook hub with culling.",
            )
            continue
        used = _used(words)
        server = any(sign in words for sign in _SERVERS)
        if (server and used < chips) or (used > 1 and used != chips and used < chips):
            yield _found(
                pod,
                f"{pod.owner.title} asks for {chips} accelerators and its command uses {used}",
                f"Ask for {used}, or raise the split to {chips}.",
            )


def _words(pod: Pod) -> Sequence[str]:
    return [str(word) for container in pod.containers for key in ("command", "args") for word in listed(container.get(key))]


def _used(words: Sequence[str]) -> int:
    """The product of the splits that a command names."""
    total = 1
    for at, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if flag in _FLAGS:
            number = value if equals else words[at + 1] if at + 1 < len(words) else ""
            total *= whole(number) if 0 < whole(number) < 10_000 else 1
    return total


def _found(pod: Pod, what: str, fix: str) -> Finding:
    return Finding("idle-accelerators", Weight.MEDIUM, pod.owner.path, line_of(pod.spec, "containers"), what, fix)
