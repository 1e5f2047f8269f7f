"""Places that have no accelerators, whatever is asked of them: what wants one there never starts."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.auditor.ecs import task_definitions
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import node_labels, pods_of
from chipwise.auditor.source import Sources, line_of

ABOUT = "accelerators are asked for where there are some"
_FIX = "Run it on machines: EC2 capacity with GPUs, such as g6, in place of Fargate."
_COMPUTE = "eks.amazonaws.com/compute-type"


def check(sources: Sources) -> Iterator[Finding]:
    for task in task_definitions(sources):
        if task.is_fargate and task.gpus:
            message = f"{task.title} asks for {task.gpus} GPUs on Fargate, which has none"
            yield _finding(task.path, task.line, message)
    for pod in pods_of(sources, partial=True):
        if pod.chips and "fargate" in node_labels(pod.spec).get(_COMPUTE, ()):
            message = f"{pod.owner.title} asks for accelerators on Fargate, which has none"
            yield _finding(pod.owner.path, line_of(pod.spec, "nodeSelector", _COMPUTE), message)


def _finding(path: str, line: int, message: str) -> Finding:
    return Finding(rule="no-accelerators", weight=Weight.HIGH, path=path, line=line, what=message, fix=_FIX)
