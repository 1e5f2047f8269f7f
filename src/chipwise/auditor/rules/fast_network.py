"""A group over several machines that leaves their fast network out trains at a fraction; machines without one reject it."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.hardware import machines_for, machines_named
from chipwise.auditor.pods import pods_of, title_of
from chipwise.auditor.source import Located, Sources, line_of, listed, look, mapped, whole_number
from chipwise.auditor.terraform import is_true, line_inside, machine_groups, text_of
from chipwise.auditor.workloads import spans_machines

ABOUT = "groups use the fast network that their machines have"
_EFA = "vpc.amazonaws.com/efa"
_FAST_BYTES_PER_S = 400e9 / 8  # below it, plain sockets keep up nearly as well


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources, partial=True):
        machines = machines_for(pod)
        if not machines or not pod.chips or pod.spec.get("hostNetwork") is True:
            continue
        for container in pod.mains:
            limits = mapped(look(container, "resources", "limits"))
            fast = all(one.fabric == "efa" and (one.network_bytes_per_s or 0) >= _FAST_BYTES_PER_S for one in machines)
            if spans_machines(pod.owner) and fast and _EFA not in limits and pod.owner.kind != "TrainJob":
                message = f"{title_of(pod, container)} works over several {machines[0].name} and asks for no {_EFA}"
                line = line_of(container, "resources", "limits")
                fix = f"Add {_EFA} to its limits, and the device plugin of EFA to the cluster."
                yield _finding(pod.owner.path, line, message, fix)
            if _EFA in limits and all(one.fabric != "efa" for one in machines):
                message = f"{title_of(pod, container)} asks for {_EFA}, which {machines[0].name} does not have"
                line = line_of(container, "resources", "limits", _EFA)
                yield _finding(pod.owner.path, line, message, "Drop it, or take a machine with EFA.", Weight.HIGH)
    yield from _groups(sources)


def _groups(sources: Sources) -> Iterator[Finding]:
    """Groups of machines of eksctl and of the EKS module of Terraform."""
    for manifest in sources.manifests:
        for key in ("managedNodeGroups", "nodeGroups") if manifest.kind == "ClusterConfig" else ():
            for group in (one for one in listed(manifest.body.get(key)) if isinstance(one, Located)):
                names = [str(name) for name in (group.get("instanceType"), *listed(group.get("instanceTypes"))) if name]
                slow = _without_efa(names)
                if group.get("efaEnabled") is True and slow:
                    message = f"node group {group.get('name')} wants EFA, which {slow} does not have"
                    line = line_of(group, "efaEnabled")
                    yield _finding(manifest.path, line, message, "Drop efaEnabled, or take a machine with EFA.", Weight.HIGH)
                zones = listed(group.get("availabilityZones"))
                if group.get("efaEnabled") is True and len(zones) > 1:
                    message = f"node group {group.get('name')} is spread over {len(zones)} zones, and EFA ends at each"
                    line = line_of(group, "availabilityZones")
                    yield _finding(manifest.path, line, message, "Name one zone.", Weight.HIGH)
                several = max(whole_number(group.get("desiredCapacity")), whole_number(group.get("minSize"))) > 1
                if several and not group.get("efaEnabled") and names and all(map(_is_fast, names)):
                    message = f"node group {group.get('name')} has several {names[0]} and leaves their EFA out"
                    line = line_of(group, "instanceType" if "instanceType" in group else "instanceTypes")
                    yield _finding(manifest.path, line, message, "Set efaEnabled: true if its pods work together.", Weight.LOW)
    for block in sources.blocks:
        for name, nodes in machine_groups(block) if block.type == "module" else ():
            slow = _without_efa([text_of(one) for one in listed(nodes.get("instance_types"))])
            if is_true(nodes.get("enable_efa_support")) and slow:
                line = line_inside(sources, block, "enable_efa_support", name)
                message = f"{block.title}: {name} wants EFA, which {slow} does not have"
                yield _finding(block.path, line, message, "Drop it, or take a machine with EFA.", Weight.HIGH)


def _without_efa(names: list[str]) -> str:
    return next((one.name for name in names for one in machines_named(name) if one.fabric != "efa"), "")


def _is_fast(name: str) -> bool:
    machines = machines_named(name)
    return bool(machines) and all(
        one.fabric == "efa" and (one.network_bytes_per_s or 0) >= _FAST_BYTES_PER_S for one in machines
    )


def _finding(path: str, line: int, message: str, fix: str, weight: Weight = Weight.MEDIUM) -> Finding:
    return Finding(rule="fast-network", weight=weight, path=path, line=line, what=message, fix=fix)
