"""Packages without a version are other ones tomorrow: what was installed again may not run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chipwise.auditor.commands import words_of_text
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.source import Manifest, Sources, line_of, look
from chipwise.auditor.tasks import tasks_of
from chipwise.auditor.terraform import rows_of

ABOUT = "packages of an image, a task or a machine have a version"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[\w,.-]+\])?")
_TOOLS = ("pip", "setuptools", "wheel", "uv", "build", "poetry", "hatchling", "packaging", "ninja")
_INSTALL = re.compile(
    r"(?:^|[;&|]\s*|\s)(?:(?:\S*/)?(?:python[\d.]*|uv)\s+(?:-m\s+)?)?(?:\S*/)?pip[\d.]*\s+install\s+([^;&|]+)"
)
_WITH_VALUE = (
    *("-r", "--requirement", "-c", "--constraint", "-i", "--index-url", "--extra-index-url", "-f", "--find-links"),
    *("-t", "--target", "-e", "--editable", "--prefix", "--timeout", "--trusted-host", "--python", "--root", "--progress-bar"),
)
_STARTED_BY = ("user_data", "user_data_base64", "metadata_startup_script", "custom_data")
_RAY_OPENED = re.compile(r"""^\s*["']?pip["']?\s*:\s*$""")
_RAY_ITEM = re.compile(r"""^\s*-\s*["']?([^"'\s#]+)""")
_RAY_LIST = re.compile(r"""^\s*["']?pip["']?\s*:\s*\[([^\]]*)\]""")


def check(sources: Sources) -> Iterator[Finding]:
    for path, line, command in _commands(sources):
        if loose := list(_loose(command)):
            yield Finding(
                rule="unpinned-packages",
                weight=Weight.LOW,
                path=path,
                line=line,
                what=f"{', '.join(loose[:4])}{' and others' if len(loose) > 4 else ''} are installed without a version",
                fix="Name versions (torch==2.8.0), or install from a lock file: pip install -r requirements.txt.",
            )


def _commands(sources: Sources) -> Iterator[tuple[str, int, str]]:
    """What installs: (file, line, command) of images, tasks, machines that start, and environments of Ray."""
    for file in sources.dockerfiles:
        yield from ((one.path, one.line, one.rest) for one in file if one.word == "RUN")
    for task in tasks_of(sources):
        for key in ("setup", "run"):
            text = str(task.manifest.body.get(key) or "")
            yield from ((task.path, line, row) for line, row in _rows(text, line_of(task.manifest.body, key)))
    for block in sources.blocks:
        if any(key in block.body for key in _STARTED_BY) or "startup-script" in str(block.body.get("metadata")):
            yield from ((block.path, number, row) for number, row in rows_of(sources, block))
    for manifest in sources.manifests:
        yield from _ray(manifest)


def _rows(text: str, line: int) -> Iterator[tuple[int, str]]:
    """Commands of a block of text, which begins on the line after its sign; one that goes on has the line of its beginning."""
    first, command = line + 1, ""
    for index, row in enumerate(text.split("\n"), start=line + 1):
        first, command = (index, row) if not command else (first, f"{command} {row}")
        if command.endswith("\\"):
            command = command[:-1]
            continue
        if not command.lstrip().startswith("#"):
            yield first, command
        command = ""


def _ray(manifest: Manifest) -> Iterator[tuple[str, int, str]]:
    """Lists of packages of a job of Ray, as if they were installed by hand."""
    spec = manifest.body.get("spec")
    text = str(look(spec, "runtimeEnvYAML") or "") if manifest.kind == "RayJob" else ""
    listing = False
    for line, row in _rows(text, line_of(spec, "runtimeEnvYAML")):
        if packages := _RAY_LIST.match(row):
            yield manifest.path, line, f"pip install {packages[1].replace(',', ' ')}"
        item = _RAY_ITEM.match(row)
        listing = bool(_RAY_OPENED.match(row)) or (listing and item is not None)
        if listing and item:
            yield manifest.path, line, f"pip install {item[1]}"


def _loose(text: str) -> Iterator[str]:
    for command in _INSTALL.findall(text):
        words, skip = [word.text for word in words_of_text(command, 1)], False
        if any(word in ("-c", "--constraint", "--require-hashes") for word in words):
            continue
        for word in words:
            branch = word.startswith("git+") and "@" not in word.rpartition("/")[2]
            if not skip and (branch or _NAME.fullmatch(word)) and word.lower() not in _TOOLS:
                yield word
            skip = word in _WITH_VALUE
