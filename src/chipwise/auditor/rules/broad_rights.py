"""A role that may do everything turns one leaked credential into all of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.source import Sources, line_of, listed, look, walk
from chipwise.auditor.terraform import inner, text_of

ABOUT = "roles have the rights they need and no others"
_RULE = "broad-rights"
_ADMINISTRATOR = re.compile(r":policy/AdministratorAccess\b")
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
                )
            elif (action := re.search(r'"([\w-]+:\*)"', text)) and re.search(r'"?Resource"?\s*[:=]\s*\[?\s*"\*"', text):
                yield Finding(
                    rule=_RULE,
                    weight=Weight.HIGH,
                    path=block.path,
                    line=block.line,
                    what=f"{block.title} allows {action[1]} on everything",
                    fix=_FIX,
                )
        if _ADMINISTRATOR.search(text_of(block.body.get("policy_arn")) or str(block.body.get("managed_policy_arns", ""))):
            message = f"{block.title} attaches AdministratorAccess"
            yield Finding(rule=_RULE, weight=Weight.HIGH, path=block.path, line=block.line, what=message, fix=_FIX)
    for manifest in sources.manifests:
        for mapping in walk(manifest.body) if manifest.kind == "ClusterConfig" else ():
            if any(_ADMINISTRATOR.search(str(one)) for one in listed(mapping.get("attachPolicyARNs"))):
                line, message = line_of(mapping, "attachPolicyARNs"), "AdministratorAccess is attached"
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


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = [value]
    return [text_of(one) for one in listed(value)]
