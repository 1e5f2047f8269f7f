"""A formula of KEDA may use the names of its triggers only: with another one the object is rejected, and nothing scales."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.source import Sources, line_of, listed, look

ABOUT = "formulas of KEDA use names of triggers"
_NAME = re.compile(r"(?<![\w.$])[A-Za-z_]\w*")
_TEXT = re.compile(r'"[^"]*"|\'[^\']*\'')
_LANGUAGE = {
    *(
        "true",
        "false",
        "nil",
        "not",
        "and",
        "or",
        "in",
        "if",
        "else",
        "let",
        "len",
        "abs",
        "ceil",
        "floor",
        "round",
        "int",
        "float",
    ),
    *("string", "max", "min", "sum", "mean", "median", "count", "all", "any", "one", "none", "map", "filter", "find", "now"),
}


def check(sources: Sources) -> Iterator[Finding]:
    for manifest in sources.manifests:
        modifiers = look(manifest.body, "spec", "advanced", "scalingModifiers")
        formula = look(modifiers, "formula")
        if manifest.kind != "ScaledObject" or not isinstance(formula, str):
            continue
        triggers = {str(look(one, "name")) for one in listed(look(manifest.body, "spec", "triggers")) if look(one, "name")}
        used = dict.fromkeys(_NAME.findall(_TEXT.sub("", formula)))
        unknown = [name for name in used if name not in triggers and name not in _LANGUAGE]
        if unknown:
            stated = ", ".join(sorted(triggers)) or "unnamed"
            yield Finding(
                rule="autoscaling-formula",
                weight=Weight.HIGH,
                path=manifest.path,
                line=line_of(modifiers, "formula"),
                what=f"{manifest.title}: the formula uses {', '.join(unknown)}, and triggers are {stated}",
                fix="Give a trigger that name, or use the name of one.",
            )
