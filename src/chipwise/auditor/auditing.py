"""All rules over all files: findings in the order of weight, file and line."""

from __future__ import annotations

import pkgutil
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from chipwise.auditor import rules
from chipwise.auditor.building import Build, charts, inside
from chipwise.auditor.chart_values import Chart
from chipwise.auditor.charts import filled, manifests, with_values
from chipwise.auditor.ecs import as_compose
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.kustomize import NAMES, built, files_of, parts, patched, tops
from chipwise.auditor.plain_values import is_plain, read_plain
from chipwise.auditor.pods import pods_in
from chipwise.auditor.slurm import is_slurm, read_slurm
from chipwise.auditor.source import (
    At,
    Instruction,
    Located,
    Manifest,
    Sources,
    TerraformBlock,
    Unreadable,
    look,
    read_dockerfile,
)
from chipwise.auditor.stack_values import is_stack, read_stack
from chipwise.auditor.terraform import read_terraform, read_terraform_json
from chipwise.auditor.yaml_files import read_yaml
from chipwise.text import decimal_size

MOST_VALUES = 2_000_000  # of all YAML files together: what they become takes some 500 bytes each
MOST_TERRAFORM = 2_000_000  # characters of all: their reader takes some 20 s for a million
_HELM = "Install helm and audit the chart again, or audit what it writes: helm template CHART | chipwise audit -"
_CHANGES = ("patches", "patchesStrategicMerge", "patchesJson6902", "images", "replicas", "components", "replacements")
_SHAPES = ({"services"}, {"resources", "run"}, {"service", "resources"}, {"Resources"}, {"containerDefinitions"})
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


def audit(files: Iterable[tuple[str, str | Unreadable]], builds: Mapping[str, Build] | None = None) -> Audit:
    """Each as (path, text), or why there is no text. One that cannot be read is told, and the others go on.

    `builds`: by directory, what Helm or Kustomize makes of it, or why it does not."""
    files = list(files)
    read = _Read([*charts((path for path, _ in files))])
    for path, text in files:
        try:
            if isinstance(text, Unreadable):
                raise text
            read.take(path, text)
        except Unreadable as error:
            read.tell(path, error)
    read.fill(builds or {})
    kustomizations = {one.path: one for one in read.manifests if one.path.rpartition("/")[2] in NAMES}
    read.build(kustomizations, builds or {})
    patches = patched(kustomizations)
    foreign = read.foreign()
    read.skipped += [f"{path}: nothing says what it is for" for path in foreign]
    read.skipped += [f"{path}: a patch of a kustomization" for path in sorted((patches - read.built) & set(read.audited))]
    remaining = [one for one in read.manifests if one.path not in patches]
    sources = Sources(
        manifests=tuple(remaining),
        blocks=tuple(read.blocks),
        dockerfiles=tuple(read.dockerfiles),
        compose=tuple(read.compose),
        texts=tuple(read.texts),
    )
    sources = replace(sources, compose=(*sources.compose, *as_compose(sources)))
    findings = [*read.unread, *(finding for rule in every_rule().values() for finding in rule.check(sources))]
    findings = [_placed(read, finding) for finding in findings]
    findings.sort(key=lambda one: (_ORDER[one.weight], one.path, one.line, one.rule, one.what))
    unseen = {*foreign, *(patches - read.built)}
    audited = tuple(path for path in dict.fromkeys(read.audited) if path not in unseen)
    return Audit(tuple(_without_repeats(findings)), audited, tuple(read.skipped))


def _without_repeats(findings: Iterable[Finding]) -> Iterator[Finding]:
    """What two objects share, such as the runtime of several models of KServe, is told once: titles end at the colon."""
    seen = set[tuple[object, ...]]()
    for finding in findings:
        title, colon, rest = finding.what.partition(": ")
        key = (finding.rule, finding.weight, finding.path, finding.line, rest if colon else title)
        if key not in seen:
            seen.add(key)
            yield finding


def _placed(read: _Read, finding: Finding) -> Finding:
    """At the file that its line names, and with the values behind a line of a template."""
    also = tuple((line.path, int(line)) if isinstance(line, At) else (path, line) for path, line in finding.also)
    finding = replace(finding, also=also)
    if isinstance(finding.line, At):
        return replace(finding, path=finding.line.path, line=int(finding.line))
    chart = read.chart_of(finding.path)
    rows = read.templates.get(finding.path, "").splitlines()
    if chart is None or not 0 < finding.line <= len(rows):
        return finding
    path = posixpath.join(chart, "values.yaml")
    return with_values(finding, rows, path, read.values_of(path))


class _Read:
    """What was found in the files so far."""

    def __init__(self, roots: Sequence[str] = ()) -> None:
        self.roots = roots  # of charts
        self.templates: dict[str, str] = {}
        self.built: set[str] = set()  # files that went into what Kustomize built
        self.values_files: dict[str, Located] = {}
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
        if self._is_template(path):
            self.templates[path] = text
            self.audited += [path] if not path.endswith(".tpl") else []
            return
        match kind:
            case "yaml":
                self.values += text.count("\n") + text.count(",")  # about as many as it has
                if self.values > MOST_VALUES:
                    raise Unreadable(f"the files before it have {MOST_VALUES:,} values already", fix=_FEWER)
                for document in read_yaml(path, text):
                    if isinstance(document, Unreadable):
                        self.tell(path, document)
                    elif is_stack(document.body):
                        self.manifests += read_stack(path, document.body)
                    elif document.kind != "CustomResourceDefinition":  # large, and a language rather than something that runs
                        (self.compose if "services" in document.body and not document.kind else self.manifests).append(document)
            case "terraform":
                self.terraform += len(text)
                if self.terraform > MOST_TERRAFORM:
                    raise Unreadable(
                        f"the files before it have {decimal_size(MOST_TERRAFORM)} of Terraform already", fix=_FEWER
                    )
                self.blocks += read_terraform(path, text)
            case "terraform-json":
                self.blocks += read_terraform_json(path, text)
            case "script":
                if not is_slurm(text):
                    return  # its secrets are looked for, and nothing else is known of it
                self.manifests.append(read_slurm(path, text))
            case "dockerfile":
                self.dockerfiles.append(read_dockerfile(path, text))
        self.audited.append(path)

    def chart_of(self, path: str) -> str | None:
        return next((root for root in self.roots if inside(path, root)), None)

    def _is_template(self, path: str) -> bool:
        root = self.chart_of(path)
        return path.endswith(".tpl") or (root is not None and "/templates/" in f"/{path.removeprefix(root)}")

    def values_of(self, path: str) -> Any:
        """Of a chart, before and after they were taken out of what is audited."""
        return self.values_files.get(path) or next((one.body for one in self.manifests if one.path == path), {})

    def fill(self, builds: Mapping[str, Build]) -> None:
        """Charts: what Helm wrote; without it, templates filled in as far as that goes, which is said."""
        for root in self.roots:
            chart = self.values_of(posixpath.join(root, "Chart.yaml"))
            build = builds.get(root, Build(reason="helm was not asked", fix=_HELM))
            if build.text:
                documents = list(manifests(root, build.text, self.templates))
            else:
                self._unbuilt(posixpath.join(root, "Chart.yaml"), f"templates not rendered: {build.reason}", build.fix)
                documents = list(self._filled(root, chart))
            for document in documents:
                if isinstance(document, Manifest):
                    self.manifests.append(document)
        self.values_files = {one.path: one.body for one in self.manifests if self._is_part(one.path)}
        self.manifests = [one for one in self.manifests if one.path not in self.values_files]
        self.manifests = [part for one in self.manifests for part in (read_plain(one) if is_plain(one) else (one,))]

    def _is_part(self, path: str) -> bool:
        """Values and the description of a chart are no manifests."""
        name = path.rpartition("/")[2]
        return self.chart_of(path) is not None and (name == "Chart.yaml" or name.startswith("values"))

    def _filled(self, root: str, chart: Any) -> Iterator[Manifest | Unreadable]:
        helpers = "\n".join(text for path, text in self.templates.items() if inside(path, root))
        values = self.values_of(posixpath.join(root, "values.yaml"))
        chart_parts = Chart(str(look(chart, "name") or "chart"), str(look(chart, "appVersion") or ""), values, helpers)
        for path, text in self.templates.items():
            if inside(path, root) and path.endswith((".yaml", ".yml")):
                for document in filled(path, chart_parts.fill(text)):
                    if isinstance(document, Unreadable):
                        self._unbuilt(path, f"the file is not looked at: {document}", _HELM)
                    else:
                        yield document

    def build(self, kustomizations: Mapping[str, Manifest], builds: Mapping[str, Build]) -> None:
        """Kustomizations: what was built takes the place of what it was built from."""
        built_manifests, consumed = list[Manifest](), set[str]()
        for top in tops(kustomizations):
            paths, build = parts(top, kustomizations), builds.get(top)
            if build is None or not build.text:
                overlaid = any(one.body.get(key) for one in map(kustomizations.__getitem__, paths) for key in _CHANGES)
                if build is not None and overlaid:
                    self._unbuilt(paths[0], f"patches not applied: {build.reason}", build.fix)
                continue
            built_manifests += [
                one for one in built(build.text, paths, kustomizations, self.manifests) if isinstance(one, Manifest)
            ]
            consumed |= set(files_of(paths, kustomizations))
        self.built = consumed
        self.manifests = [one for one in self.manifests if one.path not in consumed] + built_manifests

    def foreign(self) -> list[str]:
        """Files of mappings of which none has a shape that some rule reads."""
        documents: dict[str, list[Manifest]] = {}
        for document in (*self.manifests, *self.compose):
            documents.setdefault(document.path, []).append(document)
        return [path for path, every in documents.items() if not any(map(_is_ours, every))]

    def _unbuilt(self, path: str, message: str, fix: str) -> None:
        self.unread.append(Finding(rule="unreadable", weight=Weight.LOW, path=path, line=1, what=message, fix=fix))

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


def _is_ours(document: Manifest) -> bool:
    """Whether it says what it is: by its kind, its name or its keys."""
    body = document.body
    if document.kind or document.path.rpartition("/")[2] in NAMES or document.path == "-":
        return True
    return any(keys <= body.keys() for keys in _SHAPES) or any(True for _ in pods_in(document))


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
    if name.endswith((".sbatch", ".slurm", ".sh", ".bash")):
        return "script"
    if name.endswith(".tpl"):
        return "template"
    if name == "-" and is_slurm(text):
        return "script"
    if name == "-":
        return "dockerfile" if text.lstrip().upper().startswith("FROM ") else "terraform" if _is_hcl(text) else "yaml"
    return ""


def _is_hcl(text: str) -> bool:
    return any(
        line.startswith(("resource ", "provider ", "variable ", "terraform {", "data ", "module ")) for line in _head(text)
    )


def _head(text: str) -> Iterator[str]:
    yield from text.splitlines()[:200]
