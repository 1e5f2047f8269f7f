"""The devices of AMD belong to the groups video and render: a user outside of them sees none."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import node_labels, pods_of
from chipwise.auditor.source import Sources, line_of, listed, look, whole_number

ABOUT = "users of containers may open the devices of AMD"


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources):
        of_amd = "amd.com/gpu" in pod.chips or any(name.startswith("amd.com/") for name in node_labels(pod.spec))
        context = pod.spec.get("securityContext")
        users = [
            whole_number(look(one, "runAsUser")) for one in (context, *(look(main, "securityContext") for main in pod.mains))
        ]
        if of_amd and pod.chips and any(users) and not listed(look(context, "supplementalGroups")):
            yield Finding(
                rule="device-rights",
                weight=Weight.LOW,
                path=pod.owner.path,
                line=line_of(pod.spec, "securityContext"),
                what=f"{pod.owner.title} runs as user {max(users)}, and many systems keep /dev/kfd for the group render",
                fix="Set supplementalGroups: [44, 109] (video, and render as `stat -c %g /dev/kfd` on a node tells).",
            )
