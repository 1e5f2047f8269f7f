"""A container that runs as root, or may become it, is one mistake away from the machine."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import is_device_plugin, pods_of
from chipwise.auditor.source import Sources, line_of, look, mapped

ABOUT = "containers run as a user without rights"
_RULE = "root-container"


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources):
        whole = mapped(look(pod.spec, "securityContext"))
        for container in pod.containers:
            own = mapped(look(container, "securityContext"))
            name, line = container.get("name", "?"), line_of(container, "securityContext")
            told = f"{pod.owner.title}: container {name}"
            user = own.get("runAsUser", whole.get("runAsUser"))
            if own.get("privileged") is True:
                yield _found(
                    pod.owner.path,
                    line_of(container, "securityContext", "privileged"),
                    f"{told} is privileged",
                    "Drop privileged.",
                )
            if user == 0 and not is_device_plugin(pod):
                yield _found(
                    pod.owner.path,
                    line,
                    f"{told} runs as root (runAsUser 0)",
                    "Give runAsUser a number above 0, such as 10001.",
                )
            elif own.get("runAsNonRoot", whole.get("runAsNonRoot")) is not True and not is_device_plugin(pod):
                yield _found(pod.owner.path, line, f"{told} may run as root", "Set runAsNonRoot: true and a runAsUser.")
            if own.get("allowPrivilegeEscalation") is not False:
                yield _found(
                    pod.owner.path,
                    line,
                    f"{told} may gain privileges",
                    "Set allowPrivilegeEscalation: false and drop all capabilities.",
                    Weight.MEDIUM,
                )
    for file in sources.dockerfiles:
        users = [one for one in file if one.word == "USER"]
        if not users and file:
            yield _found(
                file[0].path, file[-1].line, "the image runs as root: no USER", "Add a user and USER 10001 before the command."
            )
        elif users and users[-1].rest.partition(":")[0] in ("root", "0"):
            yield _found(
                users[-1].path, users[-1].line, "the image runs as root", "End with USER 10001, or another without rights."
            )
    for one in sources.compose:
        services = one.body.get("services")
        for name, service in services.items() if isinstance(services, dict) else ():
            if look(service, "privileged") is True:
                yield _found(one.path, line_of(service, "privileged"), f"service {name} is privileged", "Drop privileged.")
            user = str(look(service, "user") or "")
            if not user or user.partition(":")[0] in ("root", "0"):
                yield _found(
                    one.path, line_of(service, "user"), f"service {name} may run as root", 'Set user: "10001".', Weight.MEDIUM
                )


def _found(path: str, line: int, what: str, fix: str, weight: Weight = Weight.HIGH) -> Finding:
    return Finding(_RULE, weight, path, line, what, fix)
