"""A container that runs as root, or may become it, is one mistake away from the machine."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import Pod, is_device_plugin, pods_of, title_of
from chipwise.auditor.source import Sources, line_of, listed, look, mapped
from chipwise.auditor.terraform import holds_containers, rows_of

ABOUT = "containers run as a user without rights"
_RULE = "root-container"
_PRIVILEGED = re.compile(r'(?:^|[\s{,])"?privileged"?\s*[=:]\s*true\b')
_FOLDERS = re.compile(r"(?:(?:/?bin/)?sh -e?c )?(?:(?:chown|chmod|mkdir)\b[^;&|`$]*(?:&&|;)?\s*)+")
_TPU = "google.com/tpu"
_WORKFLOWS = ("Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate")


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources, partial=True):
        pod_context, device_plugin = mapped(look(pod.spec, "securityContext") or _of_workflow(pod)), is_device_plugin(pod)
        for container in pod.containers:
            own = mapped(look(container, "securityContext"))
            line, title = line_of(container, "securityContext"), title_of(pod, container)
            if _TPU in mapped(look(container, "resources", "limits")):
                if own.get("privileged") is True:
                    yield _finding(
                        pod.owner.path,
                        line_of(container, "securityContext", "privileged"),
                        f"{title} is privileged",
                        "Drop privileged: nodes of GKE 1.28 and newer give TPUs to pods without it.",
                        Weight.LOW,
                    )
                continue  # its devices belong to root, and only root may lock the memory that they need
            user = own.get("runAsUser", pod_context.get("runAsUser"))
            if own.get("privileged") is True:
                yield _finding(
                    pod.owner.path,
                    line_of(container, "securityContext", "privileged"),
                    f"{title} is privileged",
                    "Drop privileged.",
                )
            if user == 0 and not device_plugin:
                stated = container if "runAsUser" in own else pod.spec
                yield _finding(
                    pod.owner.path,
                    line_of(stated, "securityContext", "runAsUser"),
                    f"{title} runs as root (runAsUser 0)",
                    "Give runAsUser a number above 0, such as 10001.",
                )
            elif pod.partial:
                continue  # another object may say it
            elif own.get("runAsNonRoot", pod_context.get("runAsNonRoot")) is not True and not device_plugin:
                yield _finding(pod.owner.path, line, f"{title} may run as root", "Set runAsNonRoot: true and a runAsUser.")
            if own.get("allowPrivilegeEscalation") is not False and not pod.partial:
                yield _finding(
                    pod.owner.path,
                    line,
                    f"{title} may gain privileges",
                    "Set allowPrivilegeEscalation: false and drop all capabilities.",
                    Weight.MEDIUM,
                )
    for file in sources.dockerfiles:
        users = [one for one in file if one.word == "USER"]
        if not users and file:
            yield _finding(
                file[0].path, file[-1].line, "the image runs as root: no USER", "Add a user and USER 10001 before the command."
            )
        elif users and users[-1].rest.partition(":")[0] in ("root", "0"):
            yield _finding(
                users[-1].path, users[-1].line, "the image runs as root", "End with USER 10001, or another without rights."
            )
    for block in (one for one in sources.blocks if holds_containers(one)):
        for number, row in rows_of(sources, block):
            if _PRIVILEGED.search(row):
                yield _finding(block.path, number, f"{block.title} has a container that is privileged", "Drop privileged.")
    for compose in sources.compose:
        services = compose.body.get("services")
        for name, service in services.items() if isinstance(services, dict) else ():
            if look(service, "privileged") is True:
                yield _finding(
                    compose.path, line_of(service, "privileged"), f"service {name} is privileged", "Drop privileged."
                )
            user = str(look(service, "user") or "")
            if (not user or user.partition(":")[0] in ("root", "0")) and not _gives_folders(look(service, "command")):
                yield _finding(
                    compose.path,
                    line_of(service, "user"),
                    f"service {name} may run as root",
                    'Set user: "10001".',
                    Weight.MEDIUM,
                )


def _gives_folders(command: object) -> bool:
    """All it does is to give folders to another user and to end, which root alone may do."""
    words = [str(word) for word in listed(command)] if isinstance(command, list) else [str(command or "")]
    return _FOLDERS.fullmatch(" ".join(words)) is not None


def _of_workflow(pod: Pod) -> object:
    """What Argo gives the pods of a workflow whose template says nothing."""
    return look(pod.owner.body, "spec", "securityContext") if pod.owner.kind in _WORKFLOWS else None


def _finding(path: str, line: int, message: str, fix: str, weight: Weight = Weight.HIGH) -> Finding:
    return Finding(rule=_RULE, weight=weight, path=path, line=line, what=message, fix=fix)
