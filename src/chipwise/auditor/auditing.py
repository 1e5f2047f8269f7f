"""All rules over all files: findings in the order of weight, file and line."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from types import ModuleType

from chipwise.auditor import rules
from chipwise.auditor.ecs import as_compose
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.kustomize import patched
from chipwise.auditor.slurm import is_slurm, read_slurm
from chipwise.auditor.source import Instruction, Manifest, Sources, TerraformBlock, Unreadable, read_dockerfile
from chipwise.auditor.terraform import read_terraform, read_terraform_json
from chipwise.auditor.yaml_files import read_yaml

MOST_VALUES = 2_000_000  # of all YAML files together: what they become takes some 500 bytes each
MOST_TERRAFORM = 2_000_000  # characters of all: their reader takes some 20 s for a million
_FEWER = "Give one of its directories at a time."
_ORDER = {weight: at for at, weight in enumerate(Weight)}


@dataclass(frozen=True, slots=True)
class Audit:
    findings: tuple[Finding, ...]
    audited: tuple[str, ...]  # files that some rule understands
    skipped: tuple[str, ...]  # with the reason, where the name alone promised something


@cache
def every_rule() -> dict[str, ModuleType]:
    """By name, as findings carry it."""
    names = sorted(module.name for module in pkgutil.iter_modules(rules.__path__))
    return {name.replace("_", "-"): import_module(f"chipwise.auditor.rules.{name}") for name in names}


def audit(files: Iterable[tuple[str, str | Unreadable]]) -> Audit:
    """Each as (path, text), or why there is no text. One that cannot be read is told, and the others go on."""
    read = _Read()
    for path, text in files:
        try:
            if isinstance(text, Unreadable):
                raise text
            read.take(path, text)
        except Unreadable as error:
            read.tell(path, error)
    patches = patched({one.path: one for one in read.manifests if one.kind == "Kustomization"})
    read.skipped += [f"{path}: a patch of a kustomization" for path in sorted(patches & set(read.audited))]
    manifests = [one for one in read.manifests if one.path not in patches]
    sources = Sources(
        manifests=tuple(manifests),
        blocks=tuple(read.blocks),
        dockerfiles=tuple(read.dockerfiles),
        compose=tuple(read.compose),
        texts=tuple(read.texts),
    )
    sources = replace(sources, compose=(*sources.compose, *as_compose(sources)))
    findings = [*read.unread, *(finding for rule in every_rule().values() for finding in rule.check(sources))]
    findings.sort(key=lambda one: (_ORDER[one.weight], one.path, one.line, one.rule, one.what))
    audited = tuple(path for path in dict.fromkeys(read.audited) if path not in patches)
    return Audit(tuple(dict.fromkeys(findings)), audited, tuple(read.skipped))


class _Read:
    """What was found in the files so far."""

    def __init__(self) -> None:
        self.manifests: list[Manifest] = []
        self.compose: list[Manifest] = []
        self.blocks: list[TerraformBlock] = []
        self.dockerfiles: list[tuple[Instruction, ...]] = []
        self.texts: list[tuple[str, str]] = []
        self.audited: list[str] = []
        self.skipped: list[str] = []
        self.unread: list[Finding] = []
        self.values = self.terraform = 0

    def take(self, path: str, text: str) -> None:
        kind = kind_of(path, text)
        if not kind:
            self.skipped.append(path)
            return
        self.texts.append((path, text))  # a secret is one in a broken file, too
        match kind:
            case "yaml":
                self.values += text.count("\n") + text.count(",")  # about as many as it has
                if self.values > MOST_VALUES:
                    raise Unreadable(f"the files before it have {MOST_VALUES:,} values already", fix=_FEWER)
                for document in read_yaml(path, text):
                    if isinstance(document, Unreadable):
                        self.tell(path, document)
                    elif document.kind != "CustomResourceDefinition":  # large, and a language rather than something that runs
                        (self.compose if "services" in document.body and not document.kind else self.manifests).append(document)
            case "terraform":
                self.terraform += len(text)
                if self.terraform > MOST_TERRAFORM:
                    raise Unreadable(f"the files before it have {MOST_TERRAFORM / 1e6:g} MB of Terraform already", fix=_FEWER)
                self.blocks += read_terraform(path, text)
            case "terraform-json":
                self.blocks += read_terraform_json(path, text)
            case "slurm":
                if not is_slurm(text):
                    raise Unreadable("it is a script without directives of Slurm", foreign=True)
                self.manifests.append(read_slurm(path, text))
            case "dockerfile":
                self.dockerfiles.append(read_dockerfile(path, text))
        self.audited.append(path)

    def tell(self, path: str, error: Unreadable) -> None:
        if error.foreign:
            self.skipped.append(f"{path}: {error}")
        elif error.template:
            fix = "Audit what it gives when it is filled in: helm template CHART | chipwise audit -"
            self.unread.append(
                Finding(
                    rule="unreadable",
                    weight=Weight.LOW,
                    path=path,
                    line=error.line,
                    what=f"the file is not looked at: {error}",
                    fix=fix,
                )
            )
        else:
            message = f"the file cannot be read: {error}"
            self.unread.append(
                Finding(rule="unreadable", weight=Weight.HIGH, path=path, line=error.line, what=message, fix=error.fix)
            )


def kind_of(path: str, text: str = "") -> str:
    """By the file's name; what comes without one, by what it looks like."""
    name = path.rpartition("/")[2].lower()
    if name.endswith(".tf.json"):
        return "terraform-json"
    if name.endswith((".yaml", ".yml", ".json")):
        return "yaml"
    if name.endswith(".tf"):
        return "terraform"
    if name == "dockerfile" or name.startswith("dockerfile.") or name.endswith(".dockerfile"):
        return "dockerfile"
    if name.endswith((".sbatch", ".slurm")) or (name.endswith(".sh") and is_slurm(text)):
        return "slurm"
    if name == "-" and is_slurm(text):
        return "slurm"
    if name == "-":
        return "dockerfile" if text.lstrip().upper().startswith("FROM ") else "terraform" if _is_hcl(text) else "yaml"
    return ""


def _is_hcl(text: str) -> bool:
    return any(
        line.startswith(("resource ", "provider ", "variable ", "terraform {", "data ", "module ")) for line in _head(text)
    )


def _head(text: str) -> Iterator[str]:
    yield from text.splitlines()[:200]
