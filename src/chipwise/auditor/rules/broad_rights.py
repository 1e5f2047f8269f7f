"""A role that may do everything turns one leaked credential into all of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from chipwise.auditor.cloudformation import resources_of
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.source import Manifest, Sources, TerraformBlock, line_of, listed, look, walk
from chipwise.auditor.terraform import inner, line_inside, text_of

ABOUT = "roles have the rights they need and no others"
_RULE = "broad-rights"
_ADMINISTRATOR = re.compile(r":policy/AdministratorAccess\b")
_FULL = re.compile(r":policy/(AdministratorAccess|PowerUserAccess|IAMFullAccess|AmazonS3FullAccess|AmazonEC2FullAccess)\b")
_ANYBODY = re.compile(r'"?AWS"?\s*[=:]\s*\[?\s*"\*"')
_FIX = "List the actions and the resources that are needed."


def check(sources: Sources) -> Iterator[Finding]:
    for block in sources.blocks:
        for statement in inner(block.body, "statement"):
            actions, resources = _texts(statement.get("actions")), _texts(statement.get("resources"))
            if "*" in actions or ("*" in resources and any(one.endswith(":*") for one in actions)):
                yield Finding(
                    rule=_RULE,
                    weight=Weight.HIGH,
                    path=block.path,
                    line=block.line,
                    what=f"{block.title} allows {', '.join(actions)} on {', '.join(resources)}",
                    fix=_FIX,
                    also=((block.path, line_inside(sources, block, "actions")),),
                )
        for key in ("policy", "inline_policy"):
            text = str(block.body.get(key, ""))
            if re.search(r'"?Action"?\s*[:=]\s*\[?\s*"\*"', text):
                yield Finding(
                    rule=_RULE,
                    weight=Weight.HIGH,
                    path=block.path,
                    line=block.line,
                    what=f"{block.title} allows every action",
                    fix=_FIX,
                    also=((block.path, line_inside(sources, block, "Action", key)),),
                )
            elif (action := re.search(r'"([\w-]+:\*)"', text)) and re.search(r'"?Resource"?\s*[:=]\s*\[?\s*"\*"', text):
                yield Finding(
                    rule=_RULE,
                    weight=Weight.HIGH,
                    path=block.path,
                    line=block.line,
                    what=f"{block.title} allows {action[1]} on everything",
                    fix=_FIX,
                    also=((block.path, line_inside(sources, block, "Action", key)),),
                )
        if _ADMINISTRATOR.search(text_of(block.body.get("policy_arn")) or str(block.body.get("managed_policy_arns", ""))):
            message = f"{block.title} attaches AdministratorAccess"
            yield Finding(rule=_RULE, weight=Weight.HIGH, path=block.path, line=block.line, what=message, fix=_FIX)
        if block.labels[:1] == ("google_container_node_pool",):
            for node in inner(block.body, "node_config"):
                scopes = [text_of(one) for one in listed(node.get("oauth_scopes"))]
                if any(one.endswith("/auth/cloud-platform") for one in scopes) and not node.get("service_account"):
                    yield Finding(
                        rule=_RULE,
                        weight=Weight.MEDIUM,
                        path=block.path,
                        line=line_inside(sources, block, "oauth_scopes"),
                        what=f"{block.title} gives its machines the project's default account with every scope",
                        fix="Set service_account to one with the roles of a node, and use Workload Identity for pods.",
                    )
        yield from _machines_and_roles(sources, block)
        if (role := _broad_role(block)) is not None:
            key = "role" if "role" in block.body else "role_definition_name"
            yield Finding(
                rule=_RULE,
                weight=Weight.HIGH,
                path=block.path,
                line=line_inside(sources, block, key),
                what=f"{block.title} gives {role}, which may do nearly everything",
                fix="Give the roles of what it does, such as roles/storage.objectViewer on one bucket.",
            )
    for resource in resources_of(sources):
        for mapping in walk(resource.properties) if resource.type.startswith("AWS::IAM::") else ():
            actions, resources = _words(mapping.get("Action")), _words(mapping.get("Resource"))
            broad = "*" in actions or ("*" in resources and any(one.endswith(":*") for one in actions))
            if mapping.get("Effect") == "Allow" and broad:
                yield Finding(
                    rule=_RULE,
                    weight=Weight.HIGH,
                    path=resource.path,
                    line=line_of(mapping, "Action"),
                    what=f"{resource.name} allows {', '.join(actions)} on {', '.join(resources)}",
                    fix=_FIX,
                )
            if any(_ADMINISTRATOR.search(str(one)) for one in listed(mapping.get("ManagedPolicyArns"))):
                line, message = line_of(mapping, "ManagedPolicyArns"), f"{resource.name} attaches AdministratorAccess"
                yield Finding(rule=_RULE, weight=Weight.HIGH, path=resource.path, line=line, what=message, fix=_FIX)
    for manifest in sources.manifests:
        for mapping in walk(manifest.body) if manifest.kind == "ClusterConfig" else ():
            attached = [name[1] for one in listed(mapping.get("attachPolicyARNs")) if (name := _FULL.search(str(one)))]
            if attached:
                line, message = line_of(mapping, "attachPolicyARNs"), f"{' and '.join(attached)} is attached to every machine"
                yield Finding(rule=_RULE, weight=Weight.HIGH, path=manifest.path, line=line, what=message, fix=_FIX)
        bound = look(manifest.body, "roleRef", "name")
        if manifest.kind in ("ClusterRoleBinding", "RoleBinding") and bound == "cluster-admin" and _of_pods(manifest):
            line, message = line_of(manifest.body, "roleRef", "name"), f"{manifest.title} lets its pods do everything"
            yield Finding(rule=_RULE, weight=Weight.HIGH, path=manifest.path, line=line, what=message, fix=_FIX)
        if manifest.kind in ("Role", "ClusterRole"):
            for rule in listed(manifest.body.get("rules")):
                if "*" in listed(look(rule, "verbs")) and "*" in listed(look(rule, "resources")):
                    yield Finding(
                        rule=_RULE,
                        weight=Weight.HIGH,
                        path=manifest.path,
                        line=line_of(rule),
                        what=f"{manifest.title} may do everything",
                        fix=_FIX,
                    )


def _of_pods(manifest: Manifest) -> bool:
    """Whether what is bound are accounts of pods; people who administer a cluster are groups and users."""
    return any(look(one, "kind") == "ServiceAccount" for one in listed(manifest.body.get("subjects")))


def _machines_and_roles(sources: Sources, block: TerraformBlock) -> Iterator[Finding]:
    """Machines of Google that act as the project, and roles that anybody's account may take."""
    kind = block.labels[0] if block.labels and block.type == "resource" else ""
    if kind.startswith("google_compute_instance"):
        for account in inner(block.body, "service_account"):
            scopes = [text_of(one) for one in listed(account.get("scopes"))]
            if any(one.endswith("cloud-platform") for one in scopes) and not account.get("email"):
                message = f"{block.title} acts as the project's default account with every scope"
                line = line_inside(sources, block, "scopes", "service_account")
                fix = "Set email to an account with the roles of what it does."
                yield Finding(rule=_RULE, weight=Weight.MEDIUM, path=block.path, line=line, what=message, fix=fix)
    if kind == "aws_iam_role" and _ANYBODY.search(str(block.body.get("assume_role_policy") or "")):
        message = f"{block.title} may be taken by every account of AWS"
        line = line_inside(sources, block, "Principal", "assume_role_policy")
        fix = "Name the service or the accounts that may take it."
        yield Finding(rule=_RULE, weight=Weight.HIGH, path=block.path, line=line, what=message, fix=fix)


def _broad_role(block: TerraformBlock) -> str | None:
    """A basic role of Google, or Owner and the like of Azure on a whole subscription."""
    kind = block.labels[0] if block.labels else ""
    if kind.startswith("google_") and "_iam_" in kind:
        role = text_of(block.body.get("role"))
        return role if role in ("roles/owner", "roles/editor") else None
    if kind == "azurerm_role_assignment":
        role = text_of(block.body.get("role_definition_name"))
        is_subscription = "/resourceGroups/" not in text_of(block.body.get("scope")) and "subscription" in text_of(
            block.body.get("scope")
        )
        return role if is_subscription and role in ("Owner", "Contributor", "User Access Administrator") else None
    return None


def _words(value: Any) -> list[str]:
    return [str(one) for one in (value if isinstance(value, list) else [value]) if one is not None]


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = [value]
    return [text_of(one) for one in listed(value)]
