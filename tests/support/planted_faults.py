"""Files with planted faults (`benchmarks/audit_corpus`), and what the audit finds of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from chipwise.auditor.auditing import audit
from chipwise.auditor.finding import Finding

CORPUS = Path(__file__).resolve().parents[2] / "benchmarks" / "audit_corpus"
PARTS = ("open", "aside", "later", "last")
NEAR = 6  # lines: what is missing has no line of its own
_MARK = re.compile(r"[ \t]*#! (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Fault:
    path: str
    line: int
    rule: str


@dataclass(frozen=True, slots=True)
class Case:
    files: tuple[tuple[str, str], ...]  # path and text, without marks
    faults: tuple[Fault, ...]


def cases(part: str) -> Iterator[Case]:
    for folder in sorted(path for path in (CORPUS / part).iterdir() if path.is_dir()):
        files, faults = [], []
        for path in sorted(folder.iterdir()):
            name, text = f"{folder.name}/{path.name}", path.read_text()
            files.append((name, _MARK.sub("", text)))
            for number, line in enumerate(text.splitlines(), start=1):
                if mark := _MARK.search(line):
                    faults += [Fault(name, number, rule.strip()) for rule in mark[1].split(",")]
        yield Case(tuple(files), tuple(faults))


@dataclass(frozen=True, slots=True)
class Score:
    faults: int
    missed: tuple[Fault, ...]
    findings: int
    false: tuple[Finding, ...]

    @property
    def recall(self) -> float:
        return 1 - len(self.missed) / self.faults

    @property
    def false_alarms(self) -> float:
        return len(self.false) / max(1, self.findings)


def score(part: str) -> Score:
    faults, findings, missed, false = 0, 0, list[Fault](), list[Finding]()
    for case in cases(part):
        found = audit(case.files).findings
        faults, findings = faults + len(case.faults), findings + len(found)
        missed += _missed(case.faults, found)
        false += [finding for finding in found if not any(near(fault, finding) for fault in case.faults)]
    return Score(faults, tuple(missed), findings, tuple(false))


def _missed(faults: Sequence[Fault], findings: Sequence[Finding]) -> Iterator[Fault]:
    """Each fault takes the nearest finding that no other has taken."""
    left = list(findings)
    for fault in faults:
        close = [finding for finding in left if near(fault, finding)]
        if close:
            left.remove(min(close, key=lambda finding: abs(finding.line - fault.line)))
        else:
            yield fault


def near(fault: Fault, finding: Finding) -> bool:
    return (fault.path, fault.rule) == (finding.path, finding.rule) and abs(fault.line - finding.line) <= NEAR
