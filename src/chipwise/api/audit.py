"""The verb `audit`: a directory, a file or standard input, looked at as a careful engineer would."""

from __future__ import annotations

from typing import TextIO

from chipwise.adapters import audited_files
from chipwise.auditor.auditing import Audit
from chipwise.auditor.auditing import audit as _audit
from chipwise.auditor.auditing import every_rule as every_rule


def audit(path: str, stdin: TextIO | None = None) -> Audit:
    """`stdin`: standard input, for the path `-`."""
    files = audited_files.read(path, stdin)
    return _audit(files.texts, files.builds)
