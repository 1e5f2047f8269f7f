"""Packages without a version are other ones tomorrow: an image that was built again may not run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chipwise.auditor.commands import words_of_text
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.source import Instruction, Sources

ABOUT = "packages of an image have a version"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[\w,.-]+\])?")
_TOOLS = ("pip", "setuptools", "wheel", "uv", "build", "poetry", "hatchling", "packaging", "ninja")
_INSTALL = re.compile(
    r"(?:^|[;&|]\s*|\s)(?:(?:\S*/)?(?:python[\d.]*|uv)\s+(?:-m\s+)?)?(?:\S*/)?pip[\d.]*\s+install\s+([^;&|]+)"
)
_WITH_VALUE = (
    *("-r", "--requirement", "-c", "--constraint", "-i", "--index-url", "--extra-index-url", "-f", "--find-links"),
    *("-t", "--target", "-e", "--editable", "--prefix", "--timeout", "--trusted-host", "--python", "--root", "--progress-bar"),
)


def check(sources: Sources) -> Iterator[Finding]:
    for file in sources.dockerfiles:
        for instruction in file:
            loose = list(_loose(instruction)) if instruction.word == "RUN" else []
            if loose:
                yield Finding(
                    rule="unpinned-packages",
                    weight=Weight.LOW,
                    path=instruction.path,
                    line=instruction.line,
                    what=f"{', '.join(loose[:4])}{' and others' if len(loose) > 4 else ''} are installed without a version",
                    fix="Name versions (torch==2.8.0), or install from a lock file: pip install -r requirements.txt.",
                )


def _loose(instruction: Instruction) -> Iterator[str]:
    for command in _INSTALL.findall(instruction.rest):
        words, skip = [word.text for word in words_of_text(command, 1)], False
        if any(word in ("-c", "--constraint", "--require-hashes") for word in words):
            continue
        for word in words:
            if not skip and _NAME.fullmatch(word) and word.lower() not in _TOOLS:
                yield word
            skip = word in _WITH_VALUE
