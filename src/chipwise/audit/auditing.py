"""All rules over all files: findings in the order of weight, file and line."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType

from chipwise.audit import rules
from chipwise.audit.finding import Finding, Weight
from chipwise.audit.source import Block, Instruction, Manifest, Sources, Unreadable, read_dockerfile, read_yaml
from chipwise.audit.terraform import read_terraform

_ORDER = {weight: at for at, weight in enumerate(Weight)}


@dataclass(frozen=True, slots=True)
class Audit:
    findings: tuple[Finding, ...]
    looked_at: tuple[str, ...]  # files that some rule understands
    passed_over: tuple[str, ...]


@cache
def every_rule() -> dict[str, ModuleType]:
    """By name, as findings carry it."""
    names = sorted(module.name for module in pkgutil.iter_modules(rules.__path__))
    return {name.replace("_", "-"): import_module(f"chipwise.audit.rules.{name}") for name in names}


def audit(files: Iterable[tuple[str, str]]) -> Audit:
    """Each as (path, text)."""
    manifests: list[Manifest] = []
    compose: list[Manifest] = []
    blocks: list[Block] = []
    dockerfiles: list[tuple[Instruction, ...]] = []
    texts: list[tuple[str, str]] = []
    passed: list[str] = []
    unread: list[Finding] = []
    for path, text in files:
        try:
            match kind_of(path, text):
                case "yaml":
                    for one in read_yaml(path, text):
                        (compose if "services" in one.body and not one.kind else manifests).append(one)
                case "terraform":
                    blocks += read_terraform(path, text)
                case "dockerfile":
                    dockerfiles.append(read_dockerfile(path, text))
                case _:
                    passed.append(path)
                    continue
            texts.append((path, text))
        except Unreadable as error:
            unread.append(
                Finding("unreadable", Weight.HIGH, path, error.line, f"the file cannot be read: {error}", "Mend it first.")
            )
    sources = Sources(tuple(manifests), tuple(blocks), tuple(dockerfiles), tuple(compose), tuple(texts))
    found = [*unread, *(finding for rule in every_rule().values() for finding in rule.check(sources))]
    found.sort(key=lambda one: (_ORDER[one.weight], one.path, one.line, one.rule, one.what))
    return Audit(tuple(dict.fromkeys(found)), tuple(path for path, _ in texts), tuple(passed))


def kind_of(path: str, text: str = "") -> str:
    """By the file's name; what comes without one, by what it looks like."""
    name = path.rpartition("/")[2].lower()
    if name.endswith((".yaml", ".yml", ".json")):
        return "yaml"
    if name.endswith(".tf"):
        return "terraform"
    if name == "dockerfile" or name.startswith("dockerfile.") or name.endswith(".dockerfile"):
        return "dockerfile"
    if name == "-":
        return "dockerfile" if text.lstrip().upper().startswith("FROM ") else "terraform" if _is_hcl(text) else "yaml"
    return ""


def _is_hcl(text: str) -> bool:
    return any(
        line.startswith(("resource ", "provider ", "variable ", "terraform {", "data ", "module ")) for line in _head(text)
    )


def _head(text: str) -> Iterator[str]:
    yield from text.splitlines()[:200]
