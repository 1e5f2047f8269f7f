"""A pod that is ended before it has drained drops the answers that it was writing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chipwise.auditor.commands import Number, number_of, words_of_container
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.machines import pools
from chipwise.auditor.pods import Pod, pods_of
from chipwise.auditor.source import Located, Sources, line_of, listed, look, whole_number

ABOUT = "pods have time to drain before they are ended"
DEFAULT_S = 30
SHORTEST_NODE_S = 120
_TASK_TIME = ("--task-timeout", "--task_timeout", "--job-timeout", "--visibility-timeout", "--task-time-limit")
_SPAN = re.compile(r"(\d{1,6})([smh])")
_SLEEP = re.compile(r"(?:^|[\s/;&])sleep\s+(\d{1,6})s?\b")


def check(sources: Sources) -> Iterator[Finding]:
    for manifest, spec in pools(sources):
        limit = _SPAN.fullmatch(str(spec.get("terminationGracePeriod") or ""))
        seconds = int(limit[1]) * {"s": 1, "m": 60, "h": 3600}[limit[2]] if limit else None
        if seconds is not None and seconds < SHORTEST_NODE_S:
            yield Finding(
                rule="short-grace",
                weight=Weight.MEDIUM,
                path=manifest.path,
                line=line_of(spec, "terminationGracePeriod"),
                what=f"{manifest.title} ends a machine {seconds} s after it begins to drain, whatever its pods still need",
                fix="Give it more than the longest grace of a pod; budgets are not asked either once it is over.",
            )
    for pod in pods_of(sources):
        stated = pod.spec.get("terminationGracePeriodSeconds")
        grace = DEFAULT_S if stated is None else whole_number(stated)
        waits = [(_wait(container), container) for container in pod.mains]
        longest, container = max(waits, key=lambda pair: pair[0], default=(0, pod.spec))
        serves = pod.chips and not pod.is_job and (_is_graph(pod) or any(listed(one.get("ports")) for one in pod.mains))
        if serves and stated is not None and grace < DEFAULT_S:
            yield Finding(
                rule="short-grace",
                weight=Weight.MEDIUM,
                path=pod.owner.path,
                line=line_of(pod.spec, "terminationGracePeriodSeconds"),
                what=f"{pod.owner.title} is ended after {grace} s: answers that it is writing are cut off",
                fix="Give it the time of the longest answer (tokens x time per token); drop the line for 30 s.",
            )
        elif not pod.is_job and (task := _task_time(pod)) is not None and task.value > grace:
            yield Finding(
                rule="short-grace",
                weight=Weight.MEDIUM,
                path=pod.owner.path,
                line=task.line,
                what=f"{pod.owner.title} is ended after {grace} s, and one of its tasks may take {task.value} s",
                fix=f"Set terminationGracePeriodSeconds to {task.value} and a little more.",
            )
        elif longest and longest >= grace:
            path = pod.spec if stated is not None else container
            keys = ("terminationGracePeriodSeconds",) if stated is not None else ("lifecycle", "preStop")
            yield Finding(
                rule="short-grace",
                weight=Weight.MEDIUM,
                path=pod.owner.path,
                line=line_of(path, *keys),
                what=f"{pod.owner.title} is ended after {grace} s, and its preStop alone takes {longest} s",
                fix=f"Set terminationGracePeriodSeconds to {longest} and the longest answer together.",
            )


def _task_time(pod: Pod) -> Number | None:
    """Seconds that a worker of a queue gives one task."""
    times = (number_of(words_of_container(container), _TASK_TIME) for container in pod.mains)
    return next((time for time in times if time is not None), None)


def _is_graph(pod: Pod) -> bool:
    """Workers of Dynamo answer without a port of their own."""
    return pod.owner.kind == "DynamoGraphDeployment"


def _wait(container: Located) -> int:
    """Seconds that its preStop sleeps."""
    stop = look(container, "lifecycle", "preStop")
    command = " ".join(str(word) for word in listed(look(stop, "exec", "command")))
    return whole_number(look(stop, "sleep", "seconds")) or sum(int(number) for number in _SLEEP.findall(command))
