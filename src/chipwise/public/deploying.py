"""The verbs that write a plan down, and look at what others wrote down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from chipwise.auditor.finding import Finding
from chipwise.errors import BadInput
from chipwise.public.calling import verbs
from chipwise.public.files import Files
from chipwise.public.layout import data_frame, html_table, text_table
from chipwise.public.making import rendered
from chipwise.public.opened import Opened
from chipwise.public.plans import NoPlan, Plan
from chipwise.public.records import Targets
from chipwise.public.workloads import LimitOptions, Names, read_workload, within

if TYPE_CHECKING:
    from chipwise.workload.common import Common


@dataclass(frozen=True, slots=True, repr=False)
class Audited:
    """What a careful engineer would object to. It is true when nothing of high or medium weight was found."""

    findings: tuple[Finding, ...]
    files: tuple[str, ...]
    passed_over: tuple[str, ...]

    def __bool__(self) -> bool:
        return all(finding.weight == "low" for finding in self.findings)

    def _rows(self) -> list[list[object]]:
        return [[f"{finding.path}:{finding.line}", finding.weight, finding.what, finding.fix] for finding in self.findings]

    def to_dict(self) -> dict[str, Any]:
        """As `chipwise audit --json` prints it."""
        findings = [{**asdict(finding), "weight": str(finding.weight)} for finding in self.findings]
        return {"schema": 1, "files": list(self.files), "passed_over": list(self.passed_over), "findings": findings}

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with a row for each finding."""
        return data_frame(self.to_dict()["findings"])

    def __repr__(self) -> str:
        title = f"{len(self.files)} files, {len(self.findings)} findings"
        if not self.findings:
            return title
        left_out = max(len(self.findings) - 16, 0)
        return "\n".join([title, *text_table(("where", "weight", "what", "fix"), self._rows()[:16], left_out)])

    def _repr_html_(self) -> str:
        return html_table(("where", "weight", "what", "fix"), self._rows(), notes=self.passed_over)


@verbs
class DeployVerbs(Opened):
    """A plan as files."""

    __slots__ = ()

    def render(
        self,
        workload: str | Path | Mapping[str, Any] | Common | Plan | NoPlan,
        *targets: str,
        to: Names = (),
        choice: int | None = None,
        stage: str | None = None,
        objective: str | None = None,
        environment: str | None = None,
        layout: str | None = None,
        **limits: Unpack[LimitOptions],
    ) -> Files:
        """The plan of a workload as deployment files for one or more targets: kubernetes, terraform, dockerfile, ...

        Targets are named after the workload, or as `to`; `cw.targets()` lists them. `choice` takes another choice by
        rank, `stage` one stage of a pipeline; `layout` (kustomize, helm) writes all environments as one tree. Of a plan, its
        own objective and environment count. Nothing is written until `write`.

        >>> cw.render("workload.yaml", "kubernetes").write("deploy")
        """
        if isinstance(workload, Plan | NoPlan):
            objective = objective or workload.request.objective
            environment = environment or workload.request.environment
        source = within(self, read_workload(workload), limits)
        targets = (*targets, *((to,) if isinstance(to, str) else to))
        return rendered(
            self,
            source,
            targets,
            environment=environment,
            objective=objective,
            choice=choice,
            stage=stage,
            layout=layout,
        )

    def init(self, kind: str = "serve") -> str:
        """A workload file of a kind with comments, as text to change and then plan: serve, train, finetune, batch, ...

        >>> Path("workload.yaml").write_text(cw.init("finetune"))
        """
        from chipwise.api import templates

        return templates.text(kind)

    def targets(self) -> Targets:
        """What `render` can write for, and what each of them expresses.

        >>> cw.targets()["kubernetes"]
        """
        from chipwise.api import render as rendering

        return Targets({name: rendering.fits(name) for name in rendering.target_names()})

    def audit(self, path: str | Path | Files | Sequence[str | Path]) -> Audited:
        """Check manifests, Terraform, Dockerfiles and Compose files in a folder, a file, several of them, or rendered `Files`.

        >>> audited = cw.audit("deploy")
        >>> bool(audited), [finding.what for finding in audited.findings]
        """
        from chipwise.api.audit import audit as ask
        from chipwise.auditor.auditing import audit as audit_texts

        paths: list[Any] = list(path) if isinstance(path, list | tuple) else [path]
        if missing := [str(one) for one in paths if not isinstance(one, Files) and not Path(one).exists()]:
            raise BadInput(f"There is no {missing[0][:200]!r}.", remedy="Give a folder, a file or rendered files.")
        results = [audit_texts(one.items()) if isinstance(one, Files) else ask(str(one)) for one in paths]
        findings, files, skipped = (
            tuple(row for result in results for row in getattr(result, name)) for name in ("findings", "audited", "skipped")
        )
        if not files and not findings:
            reason = f" Skipped: {'; '.join(skipped[:3])}." if skipped else ""
            raise BadInput(
                f"There is nothing in it that we know.{reason}",
                remedy="YAML, Terraform, Dockerfiles and Compose files are read.",
            )
        return Audited(findings, files, skipped)
