"""Writes docs/reference/audit-rules.md from the rules of the audit and planted faults. `make docs` runs it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from chipwise.auditor.auditing import audit, every_rule  # noqa: E402
from chipwise.auditor.finding import Finding  # noqa: E402
from planted_faults import PARTS, Case, cases, near  # noqa: E402

PAGE = ROOT / "docs" / "reference" / "audit-rules.md"
_SECRET = re.compile(r"[\w-]{24,}")
_HEAD = """\
# Rules of the audit

Written from the code by `make docs`. What each rule wants, why, and one finding of it in our own
[files with planted faults](../../benchmarks/audit_corpus). `high`: an attacker can get in, money or work is lost, or it would
not run; `medium`: it will hurt one day; `low`: a habit worth having. High and medium make `chipwise audit` exit with 1.

Beside rules, a file that is no file of a known type is listed as skipped, and a kind that no rule reads is named.
"""


_UNREADABLE = """\
A file, or a document of one, could not be read, and nothing else is said of it. Charts of Helm and overlays of Kustomize are
built first, where helm, and kustomize or kubectl, are installed: findings stand at the line of the template or the patch, and
name the line of the value behind it. Without helm, templates are filled in as far as values and simple actions go; without
kustomize, bases are read as they are; both are said in a finding of this name."""


def examples() -> dict[str, tuple[str, Finding]]:
    """By rule: the line of a file, and what is said of it."""
    found: dict[str, tuple[str, Finding]] = {}
    for case in (case for part in PARTS for case in cases(part)):
        for rule, example in _of_case(case):
            found.setdefault(rule, example)
    return found


def _of_case(case: Case) -> Iterator[tuple[str, tuple[str, Finding]]]:
    texts = dict(case.files)
    for finding in audit(case.files).findings:
        if any(near(fault, finding) for fault in case.faults):
            yield finding.rule, (texts[finding.path].splitlines()[finding.line - 1].strip(), finding)


def text() -> str:
    parts, found = [_HEAD], examples()
    parts.append(f"\n## unreadable\n\n{_UNREADABLE}\n")
    for name, rule in every_rule().items():
        reason = " ".join((rule.__doc__ or "").split())
        parts.append(f"\n## {name}\n\nWanted: {rule.ABOUT}.\n\n{reason}\n")
        if name in found:
            line, finding = found[name]
            line = _SECRET.sub("...", line) if name == "open-secrets" else line
            parts.append(f"\n```text\n{line}\n\n{finding.weight}: {finding.what} [{name}]\n    {finding.fix}\n```\n")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(text())
