"""A port that is open to the world is found within minutes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from chipwise.auditor.cloudformation import Resource, resources_of
from chipwise.auditor.commands import words_of_container
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import pods_of
from chipwise.auditor.source import Located, Sources, TerraformBlock, line_of, listed, look, mapped
from chipwise.auditor.terraform import inner, line_inside, text_of
from chipwise.auditor.workloads import LabelledPods

ABOUT = "nothing is open to the whole internet by accident"
_WORLD = ("0.0.0.0/0", "::/0", "*", "Internet", "any")
_NO_TOKEN = re.compile(r"""(?:ServerApp|NotebookApp|IdentityProvider)\.(?:token|password)=(?:''|\\?"\\?"|\s|"|,|$)""")
_RULE = "open-network"
_API = ("public_access_cidrs", "authorized_ip_ranges", "api_server_authorized_ip_ranges", "authorized_networks")
_FIX = "Name the networks that may come in, or put a gateway with sign-in before it."


def check(sources: Sources) -> Iterator[Finding]:
    for manifest in sources.manifests:
        spec = manifest.body.get("spec")
        if manifest.kind == "Service" and look(spec, "type") == "LoadBalancer" and not look(spec, "loadBalancerSourceRanges"):
            notes = str(look(manifest.body, "metadata", "annotations") or "")
            if "internal" not in notes.lower():
                yield Finding(
                    rule=_RULE,
                    weight=Weight.HIGH,
                    path=manifest.path,
                    line=line_of(spec, "type"),
                    what=f"{manifest.title} is open to the internet",
                    fix=_FIX,
                )
        if manifest.kind in ("RayCluster", "RayService", "RayJob"):
            for head in _heads(manifest.body.get("spec")):
                if look(head, "serviceType") in ("LoadBalancer", "NodePort"):
                    yield Finding(
                        rule=_RULE,
                        weight=Weight.HIGH,
                        path=manifest.path,
                        line=line_of(head, "serviceType"),
                        what=f"{manifest.title} opens Ray's head, which runs whatever code it is sent",
                        fix="Use ClusterIP, and kubectl port-forward for those who may.",
                    )
        if manifest.kind == "Ingress" and look(spec, "rules") and not look(spec, "tls"):
            notes = str(look(manifest.body, "metadata", "annotations") or "").lower()
            if not any(sign in notes for sign in ("certificate", "ssl", "tls", "internal")):
                yield Finding(
                    rule=_RULE,
                    weight=Weight.MEDIUM,
                    path=manifest.path,
                    line=line_of(spec),
                    what=f"{manifest.title} answers without encryption",
                    fix="Add tls with a certificate, or the annotation that names one.",
                )
    yield from _doors(sources)
    for compose in sources.compose:
        services = compose.body.get("services")
        for name, service in services.items() if isinstance(services, dict) else ():
            if everywhere := [str(port) for port in listed(look(service, "ports")) if _everywhere(port)]:
                yield Finding(
                    rule=_RULE,
                    weight=Weight.LOW,
                    path=compose.path,
                    line=line_of(service, "ports"),
                    what=f"service {name} listens on every interface of the machine ({', '.join(everywhere)[:80]})",
                    fix="Write 127.0.0.1: before the port, unless other machines need to reach it.",
                )
    for block in sources.blocks:
        yield from _block(sources, block)
        yield from _control_plane(sources, block)
        yield from _public_machines(sources, block)
    for manifest in sources.manifests:
        vpc = manifest.body.get("vpc")
        if manifest.kind == "ClusterConfig" and _world(listed(look(vpc, "publicAccessCIDRs"))):
            yield _api(manifest.path, line_of(vpc, "publicAccessCIDRs"), "the cluster")
        for key in ("managedNodeGroups", "nodeGroups") if manifest.kind == "ClusterConfig" else ():
            for group in listed(manifest.body.get(key)):
                ssh = look(group, "ssh")
                if look(ssh, "allow") is True and not (look(group, "privateNetworking") or look(ssh, "sourceSecurityGroupIds")):
                    message = f"node group {look(group, 'name')} lets the whole internet reach its port 22"
                    fix = "Drop ssh (enableSsm leads to a shell too), or name sourceSecurityGroupIds."
                    line = line_of(ssh, "allow")
                    yield Finding(rule=_RULE, weight=Weight.HIGH, path=manifest.path, line=line, what=message, fix=fix)
    for resource in resources_of(sources):
        yield from _resource(resource)


def _doors(sources: Sources) -> Iterator[Finding]:
    """Other ways in: ports of every machine, addresses of machines, notebooks without a token."""
    pods = LabelledPods(sources)
    for manifest in sources.manifests:
        spec = manifest.body.get("spec")
        if manifest.kind == "Service" and look(spec, "type") == "NodePort":
            served = pods.selected({"matchLabels": mapped(look(spec, "selector"))}, manifest) or pods.near(manifest)
            if any(pod.chips for pod in served):
                message = f"{manifest.title} opens a port on every machine of the cluster"
                fix = "Use ClusterIP, with a gateway that has TLS and sign-in before it."
                yield Finding(
                    rule=_RULE, weight=Weight.LOW, path=manifest.path, line=line_of(spec, "type"), what=message, fix=fix
                )
        if manifest.kind == "EC2NodeClass" and look(spec, "associatePublicIPAddress") is True:
            message, fix = f"{manifest.title} gives each machine a public address", "Set associatePublicIPAddress: false."
            line = line_of(spec, "associatePublicIPAddress")
            yield Finding(rule=_RULE, weight=Weight.MEDIUM, path=manifest.path, line=line, what=message, fix=fix)
    commands = [
        (one.path, one.line, one.rest) for file in sources.dockerfiles for one in file if one.word in ("CMD", "ENTRYPOINT")
    ]
    for pod in pods_of(sources):
        for container in pod.mains:
            words = words_of_container(container)
            commands += [(pod.owner.path, words[0].line, " ".join(word.text for word in words))] if words else []
    for path, line, command in commands:
        if "jupyter" in command and _NO_TOKEN.search(command):
            message = "a notebook server without a token runs whatever code it is sent"
            fix = "Drop the empty token, or set JUPYTER_TOKEN from a secret."
            yield Finding(rule=_RULE, weight=Weight.HIGH, path=path, line=line, what=message, fix=fix)


def _public_machines(sources: Sources, block: TerraformBlock) -> Iterator[Finding]:
    """Machines of Google with accelerators and an address of the internet, and buckets that may be made public."""
    kind = block.labels[0] if block.labels and block.type == "resource" else ""
    if kind.startswith("google_compute_instance") and inner(block.body, "guest_accelerator"):
        for interface in inner(block.body, "network_interface"):
            if "access_config" in interface:
                line = line_inside(sources, block, "access_config", "network_interface")
                message, fix = (
                    f"{block.title} has an address of the internet",
                    "Drop access_config; Cloud NAT and IAP lead there.",
                )
                yield Finding(rule=_RULE, weight=Weight.MEDIUM, path=block.path, line=line, what=message, fix=fix)
    if kind == "aws_s3_bucket_public_access_block":
        switches = ("block_public_acls", "block_public_policy", "ignore_public_acls", "restrict_public_buckets")
        if off := [name for name in switches if text_of(block.body.get(name)).lower() == "false"]:
            message, fix = f"{block.title} lets the bucket be made public", f"Set {', '.join(off)} to true."
            line = line_inside(sources, block, off[0])
            yield Finding(rule=_RULE, weight=Weight.MEDIUM, path=block.path, line=line, what=message, fix=fix)


def _heads(spec: Any) -> Iterator[Any]:
    yield look(spec, "headGroupSpec")
    for key in ("rayClusterConfig", "rayClusterSpec"):
        yield look(spec, key, "headGroupSpec")


def _everywhere(port: Any) -> bool:
    """`8000:8000` without an address before it, or published so at length."""
    if isinstance(port, Mapping):
        return bool(port.get("published")) and not port.get("host_ip")
    return str(port).count(":") == 1


def _control_plane(sources: Sources, block: TerraformBlock) -> Iterator[Finding]:
    """Who may reach the API of a cluster: written by a resource or as an argument of a module."""
    for name, values in _arguments(block.body):
        if name.endswith(_API) and _world(values):
            yield _api(block.path, line_inside(sources, block, "cidr_block" if "networks" in name else name), block.title)
    member = str(block.body.get("member") or block.body.get("members") or "")
    if (
        block.type == "resource"
        and "_iam_" in "".join(block.labels[:1])
        and re.search(r"\ball(?:Authenticated)?Users\b", member)
    ):
        line = line_inside(sources, block, "member" if "member" in block.body else "members")
        message = f"{block.title} gives everybody on the internet its role"
        yield Finding(rule=_RULE, weight=Weight.HIGH, path=block.path, line=line, what=message, fix="Name who may have it.")


def _arguments(body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in body.items():
        bare = str(name).strip('"')
        yield bare, value
        for inside in value if isinstance(value, list) else [value]:
            if isinstance(inside, Mapping):
                yield from _arguments(inside)
    for key in ("cidr_blocks", "master_authorized_networks"):
        for network in inner(body, key):
            settings = {str(name).strip('"'): value for name, value in network.items()}
            yield "authorized_networks", [settings.get("cidr_block")]


def _api(path: str, line: int, title: str) -> Finding:
    message = f"{title} lets the whole internet reach its API"
    fix = "Name the networks of those who administer it, or give it a private endpoint."
    return Finding(rule=_RULE, weight=Weight.HIGH, path=path, line=line, what=message, fix=fix)


def _resource(resource: Resource) -> Iterator[Finding]:
    """Of CloudFormation."""
    properties = resource.properties
    if resource.type == "AWS::EC2::SecurityGroup":
        rules = [one for one in listed(properties.get("SecurityGroupIngress")) if isinstance(one, Located)]
    elif resource.type == "AWS::EC2::SecurityGroupIngress":
        rules = [properties]
    else:
        rules = []
    for rule in rules:
        if _world([rule.get("CidrIp"), rule.get("CidrIpv6")]):
            message = f"{resource.name} lets the whole internet in"
            line = line_of(rule, "CidrIp" if "CidrIp" in rule else "CidrIpv6")
            yield Finding(rule=_RULE, weight=Weight.HIGH, path=resource.path, line=line, what=message, fix=_FIX)


def _block(sources: Sources, block: TerraformBlock) -> Iterator[Finding]:
    kind = block.labels[0] if block.labels else ""
    if block.type != "resource":
        return
    opened, argument = [], "cidr_blocks"
    if kind == "aws_security_group":
        opened = [
            rule
            for rule in inner(block.body, "ingress")
            if _world([*listed(rule.get("cidr_blocks")), *listed(rule.get("ipv6_cidr_blocks"))])
        ]
    elif kind in ("aws_vpc_security_group_ingress_rule",):
        opened = [block.body] if _world([block.body.get("cidr_ipv4"), block.body.get("cidr_ipv6")]) else []
    elif kind == "aws_security_group_rule" and text_of(block.body.get("type")) == "ingress":
        opened = [block.body] if _world(listed(block.body.get("cidr_blocks"))) else []
    elif kind == "google_compute_firewall" and text_of(block.body.get("direction")) != "EGRESS":
        argument = "source_ranges"
        opened = [block.body] if _world(listed(block.body.get("source_ranges"))) else []
    elif kind == "azurerm_network_security_rule":
        argument = "source_address_prefix"
        inbound = text_of(block.body.get("direction")) == "Inbound" and text_of(block.body.get("access")) == "Allow"
        opened = [block.body] if inbound and _world([block.body.get("source_address_prefix")]) else []
    elif kind in ("aws_s3_bucket", "aws_s3_bucket_acl"):
        opened = [block.body] if text_of(block.body.get("acl")).startswith("public-") else []
    if opened:
        yield Finding(
            rule=_RULE,
            weight=Weight.HIGH,
            path=block.path,
            line=block.line,
            what=f"{block.title} lets the whole internet in",
            fix=_FIX,
            also=((block.path, line_inside(sources, block, argument)),),
        )


def _world(values: list[object] | tuple[object, ...] | object) -> bool:
    return any(text_of(one) in _WORLD for one in (values if isinstance(values, list | tuple) else [values]) if one is not None)
