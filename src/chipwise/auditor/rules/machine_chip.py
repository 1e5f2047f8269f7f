"""A machine type brings its own chip and processor: one that is asked for beside another is never made."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chipwise.auditor.cloudformation import resources_of
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.hardware import machines_named
from chipwise.auditor.machines import pools
from chipwise.auditor.source import Sources, TerraformBlock, line_of, listed, look
from chipwise.auditor.terraform import google_pools, inner, line_inside, machine_groups, text_of

ABOUT = "machines have the chip and the processor that they are asked for"
_GOOGLE = (  # families of Google's machines, and what accelerators of them are called
    (re.compile(r"g2-"), ("nvidia-l4",)),
    (re.compile(r"a2-ultragpu-"), ("nvidia-a100-80gb",)),
    (re.compile(r"a2-"), ("nvidia-tesla-a100",)),
    (re.compile(r"a3-ultragpu-"), ("nvidia-h200-141gb",)),
    (re.compile(r"a3-"), ("nvidia-h100-80gb", "nvidia-h100-mega-80gb")),
    (re.compile(r"a4-"), ("nvidia-b200",)),
    (re.compile(r"(?:n1|custom)-"), ("nvidia-tesla-t4", "nvidia-tesla-v100", "nvidia-tesla-p100", "nvidia-tesla-p4")),
    (re.compile(r"(?:e2|n2|n2d|c2|c2d|c3|c3d|c4|n4|t2d|t2a|m1|m2|m3)-"), ()),
)
_SIZE = re.compile(r"(?:a2|a3|a4|a4x)-\w+-(\d{1,2})g")
_ARM_FAMILIES = ("g5g", "p6e-gb200", "p6e-gb300")


def check(sources: Sources) -> Iterator[Finding]:
    for block in sources.blocks:
        yield from _google(sources, block) if block.type == "resource" else _pools(sources, block)
    yield from _mixed(sources)
    yield from _mixed_groups(sources)
    for manifest, spec in pools(sources):
        wanted = {str(look(one, "key")): one for one in listed(look(spec, "requirements")) if look(one, "operator") == "In"}
        arch = wanted.get("kubernetes.io/arch")
        categories = wanted.get("karpenter.k8s.aws/instance-category")
        narrower = any(key.startswith("karpenter.k8s.aws/instance-") and "category" not in key for key in wanted)
        if {"g", "p"} <= set(map(str, listed(look(categories, "values")))) and not narrower:
            yield Finding(
                rule="machine-chip",
                weight=Weight.MEDIUM,
                path=manifest.path,
                line=line_of(categories, "values"),
                what=f"{manifest.title} takes any machine with a GPU, of 16 to 288 GB and at prices 100 times apart",
                fix="Name families or machines (karpenter.k8s.aws/instance-family, node.kubernetes.io/instance-type).",
            )
        stated = {str(value) for value in listed(look(arch, "values"))}
        architectures = set().union(*(_architectures(key, listed(look(one, "values"))) for key, one in wanted.items()))
        if stated and architectures and not stated & architectures:
            kinds = ", ".join(sorted(architectures))
            yield Finding(
                rule="machine-chip",
                weight=Weight.HIGH,
                path=manifest.path,
                line=line_of(arch, "values"),
                what=f"{manifest.title} wants {', '.join(sorted(stated))}, and its machines are {kinds}: none is ever made",
                fix=f"Set kubernetes.io/arch to {kinds}.",
            )


def _mixed_groups(sources: Sources) -> Iterator[Finding]:
    """The same of modules of Terraform and of environments of AWS Batch."""
    groups: list[tuple[str, int, str, list[str]]] = []
    for block in sources.blocks:
        for name, group in machine_groups(block) if block.type == "module" else ():
            types = [text_of(one) for one in listed(group.get("instance_types"))]
            groups.append((block.path, line_inside(sources, block, "instance_types", name), f"{block.title}: {name}", types))
    for resource in resources_of(sources, "AWS::Batch::ComputeEnvironment"):
        chosen = look(resource.properties, "ComputeResources")
        types = [str(one) for one in listed(look(chosen, "InstanceTypes"))]
        groups.append((resource.path, line_of(chosen, "InstanceTypes"), resource.name, types))
    for path, line, title, types in groups:
        known = [machine[0] for one in types if (machine := machines_named(one))]
        if len({one.chips or 0 for one in known}) > 1:
            stated = ", ".join(f"{one.name} {one.chips or 0}" for one in known)
            yield Finding(
                rule="machine-chip",
                weight=Weight.MEDIUM,
                path=path,
                line=line,
                what=f"{title} mixes machines with other numbers of chips ({stated})",
                fix="Make a group for each size: who scales them takes all machines of a group for equal.",
            )


def _mixed(sources: Sources) -> Iterator[Finding]:
    """Groups of eksctl whose machines have other numbers of chips: whoever scales them counts all as the first."""
    for manifest in sources.manifests:
        for key in ("managedNodeGroups", "nodeGroups") if manifest.kind == "ClusterConfig" else ():
            for group in listed(manifest.body.get(key)):
                names = [str(name) for name in listed(look(group, "instanceTypes"))]
                machines = [known[0] for name in names if (known := machines_named(name))]
                if len({(one.chips or 0) for one in machines}) > 1 and any(one.chips for one in machines):
                    stated = ", ".join(f"{one.name} {one.chips or 0}" for one in machines)
                    yield Finding(
                        rule="machine-chip",
                        weight=Weight.MEDIUM,
                        path=manifest.path,
                        line=line_of(group, "instanceTypes"),
                        what=f"node group {look(group, 'name')} mixes machines with other numbers of chips ({stated})",
                        fix="Make a group for each size: an autoscaler takes all machines of a group for equal.",
                    )


def _architectures(key: str, values: object) -> set[str]:
    """Of machines or families that are named."""
    names = [str(value) for value in listed(values)]
    if key == "node.kubernetes.io/instance-type":
        known = [machine for name in names for machine in machines_named(name)]
        return {"arm64" if one.cpu_arch in ("arm64", "aarch64") else "amd64" for one in known if one.cpu_arch}
    if key == "karpenter.k8s.aws/instance-family":
        return {"arm64" if name in _ARM_FAMILIES else "amd64" for name in names}
    return set()


def _pools(sources: Sources, block: TerraformBlock) -> Iterator[Finding]:
    """Pools that are given to a module as values."""
    for pool in google_pools(block):
        machine, kind = text_of(pool.get("machine_type")), text_of(pool.get("accelerator_type"))
        if (message := _unfitting(machine, kind)) is not None:
            line = line_inside(sources, block, "accelerator_type", "machine_type")
            yield _finding(block.path, line, f"{block.title}: {message}")


def _unfitting(machine: str, kind: str) -> str | None:
    fitting = next((names for family, names in _GOOGLE if family.match(machine)), None)
    if fitting is None or not kind.startswith("nvidia-") or (fitting and kind.startswith(fitting)):
        return None
    return f"{machine} has {' or '.join(fitting) or 'no accelerators'}, and {kind} is asked for"


def _finding(path: str, line: int, message: str) -> Finding:
    fix = "Name the accelerator that the machine has, or take a machine that has this one."
    return Finding(rule="machine-chip", weight=Weight.HIGH, path=path, line=line, what=message, fix=fix)


def _google(sources: Sources, block: TerraformBlock) -> Iterator[Finding]:
    for body in (block.body, *inner(block.body, "node_config")):
        machine = text_of(body.get("machine_type"))
        for accelerator in inner(body, "guest_accelerator"):
            kind = text_of(accelerator.get("type")).rpartition("/")[2]
            if (message := _unfitting(machine, kind)) is not None:
                yield _finding(block.path, line_inside(sources, block, "type"), f"{block.title}: {message}")
            count, size = text_of(accelerator.get("count")), _SIZE.fullmatch(machine)
            if message is None and size and count.isdecimal() and int(count) not in (0, int(size[1])):
                line = line_inside(sources, block, "count", "guest_accelerator")
                stated = f"{machine} has {size[1]} accelerators, and {count} are asked for"
                fix = f"Set count to {size[1]}, or take a machine with {count}."
                yield Finding(
                    rule="machine-chip",
                    weight=Weight.HIGH,
                    path=block.path,
                    line=line,
                    what=f"{block.title}: {stated}",
                    fix=fix,
                )
