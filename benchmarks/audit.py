"""What the audit finds of the faults that were planted in files of our own, and what it objects to besides.

    python benchmarks/audit.py [open|aside] [--list]

`audit_corpus/` has files in the style of public repositories, one directory a case, which is audited as a whole. A line with
a fault ends in `#! RULE, RULE`, which is taken away before the audit reads the file. A fault is found when a finding of its rule, of
its own, stands in its file within `NEAR` lines; a finding that no fault explains is a false alarm. `open` was looked at while rules were
written; `aside` was measured once before anybody looked (recall 93.2%, false alarms 2.2%), and rules were corrected after it.

Where checkov is installed (on the path, or CHECKOV names it), it looks at the same files: a fault is found when a check of the
same subject (`CHECKOV_RULES`) fails on lines that contain the fault. Checkov has other aims, so the rest is only counted.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from chipwise.auditor.auditing import audit
from chipwise.auditor.finding import Finding
from figure import Figure

CORPUS = Path(__file__).resolve().parent / "audit_corpus"
HALVES = ("open", "aside", "later")
NEAR = 6  # lines: what is missing has no line of its own
_MARK = re.compile(r"[ \t]*#! (.*)$", re.MULTILINE)
CHECKOV_RULES = {
    "missing-probes": ("CKV_K8S_8", "CKV_K8S_9"),
    "missing-limits": ("CKV_K8S_10", "CKV_K8S_11", "CKV_K8S_12", "CKV_K8S_13"),
    "unpinned-image": ("CKV_K8S_14", "CKV_DOCKER_7"),
    "root-container": ("CKV_K8S_16", "CKV_K8S_20", "CKV_K8S_23", "CKV_K8S_40", "CKV_DOCKER_3", "CKV_DOCKER_8"),
    "host-access": ("CKV_K8S_17", "CKV_K8S_18", "CKV_K8S_19", "CKV_K8S_27"),
    "broad-rights": ("CKV_K8S_49", *(f"CKV_AWS_{number}" for number in (62, 63, 286, 287, 288, 289, 290, 355))),
    "open-network": ("CKV_AWS_24", "CKV_AWS_25", "CKV_AWS_260", "CKV_AWS_277"),
    "unencrypted-disk": ("CKV_AWS_3", "CKV_AWS_8", "CKV_AWS_189"),
    "metadata-v1": ("CKV_AWS_79", "CKV_AWS_341"),
    "open-secrets": ("CKV_SECRET", "CKV_AWS_46", "CKV_AWS_41", "CKV_DOCKER_10"),
}


@dataclass(frozen=True, slots=True)
class Fault:
    path: str
    line: int
    rule: str


@dataclass(frozen=True, slots=True)
class Case:
    files: tuple[tuple[str, str], ...]  # path and text, without marks
    faults: tuple[Fault, ...]


def cases(half: str) -> Iterator[Case]:
    for folder in sorted(path for path in (CORPUS / half).iterdir() if path.is_dir()):
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


def score(half: str) -> Score:
    faults, findings, missed, false = 0, 0, list[Fault](), list[Finding]()
    for case in cases(half):
        found = audit(case.files).findings
        faults, findings = faults + len(case.faults), findings + len(found)
        missed += _missed(case.faults, found)
        false += [finding for finding in found if not any(_explains(fault, finding) for fault in case.faults)]
    return Score(faults, tuple(missed), findings, tuple(false))


def _missed(faults: Sequence[Fault], findings: Sequence[Finding]) -> Iterator[Fault]:
    """Each fault takes the nearest finding that no other has taken."""
    left = list(findings)
    for fault in faults:
        near = [finding for finding in left if _explains(fault, finding)]
        if near:
            left.remove(min(near, key=lambda finding: abs(finding.line - fault.line)))
        else:
            yield fault


def _explains(fault: Fault, finding: Finding) -> bool:
    return (fault.path, fault.rule) == (finding.path, finding.rule) and abs(fault.line - finding.line) <= NEAR


def figures() -> Iterator[Figure]:
    halves = HALVES
    for half in halves:
        result = score(half)
        yield Figure(f"audit_faults_{half}", result.faults, "faults", {})
        yield Figure(f"audit_recall_{half}", 100 * result.recall, "%", {"min": 95.0})
        yield Figure(f"audit_false_alarms_{half}", 100 * result.false_alarms, "%", {"max": 5.0})
    checkov = os.environ.get("CHECKOV") or shutil.which("checkov")
    if not checkov:
        print("checkov is not installed: its figures are left out", file=sys.stderr)
        return
    for half in halves:
        recall, other = _checkov(checkov, half)
        yield Figure(f"checkov_recall_{half}", 100 * recall, "%", {})
        yield Figure(f"checkov_other_findings_{half}", other, "findings", {})


def _checkov(program: str, half: str) -> tuple[float, int]:
    """The share of faults that it finds, and how many findings it has besides."""
    faults = [fault for case in cases(half) for fault in case.faults]
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(half):
            for name, text in case.files:
                path = Path(folder, name)
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
        command = [program, "--directory", folder, "--output", "json", "--quiet", "--soft-fail", "--skip-download", "--compact"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    reports = json.loads(done.stdout)
    failed = [
        one for report in (reports if isinstance(reports, list) else [reports]) for one in report["results"]["failed_checks"]
    ]
    caught = [fault for fault in faults if any(_checks(fault, one) for one in failed)]
    other = [one for one in failed if not any(_checks(fault, one) for fault in faults)]
    return len(caught) / len(faults), len(other)


def _checks(fault: Fault, failed: dict[str, object]) -> bool:
    first, last = failed["file_line_range"]  # type: ignore[misc]
    of_rule = str(failed["check_id"]).startswith(CHECKOV_RULES.get(fault.rule, ("-",))) and (
        "SECRET" in str(failed["check_id"]) or failed["check_id"] in CHECKOV_RULES.get(fault.rule, ())
    )
    return of_rule and str(failed["file_path"]).lstrip("/") == fault.path and first <= fault.line <= last


def main(arguments: list[str]) -> None:
    for half in [one for one in arguments if one in HALVES] or list(HALVES):
        result = score(half)
        print(
            f"{half}: {result.faults} faults, recall {100 * result.recall:.1f}%; {result.findings} findings, "
            f"{len(result.false)} false alarms ({100 * result.false_alarms:.1f}%)"
        )
        if "--list" in arguments:
            for fault in result.missed:
                print(f"  missed {fault.path}:{fault.line} {fault.rule}")
            for finding in result.false:
                print(f"  false  {finding.path}:{finding.line} {finding.rule} ({finding.weight}): {finding.what}")


if __name__ == "__main__":
    main(sys.argv[1:])
