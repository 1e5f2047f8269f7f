"""What an image is built from decides what runs: a script of the network, a branch of today, weights in a layer."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.source import Instruction, Sources
from chipwise.auditor.started import scripts_of

ABOUT = "images are built from fixed sources, without weights, and not writable by everybody"
_PIPED = re.compile(r"\b(?:curl|wget)\b[^|;&]*\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b")
_WEIGHTS = re.compile(r"\b(?:huggingface-cli\s+download|hf\s+download|snapshot_download\s*\(|git\s+lfs\s+pull)")
_WRITABLE = re.compile(r"\bchmod\s+(?:-R\s+|--recursive\s+)?(?:0?777|a\+rwx|ugo\+rwx)\b")
_CLONED = re.compile(r"\bgit\s+clone\b(?P<words>[^;&|]*)")
_FIXED = re.compile(r"(?:\s-b\s|--branch[= ]|--revision[= ])")
_CHECKED_OUT = re.compile(r"\bgit\s+(?:-C\s+\S+\s+)?(?:checkout|reset\s+--hard)\s+\S")


def check(sources: Sources) -> Iterator[Finding]:
    for file in sources.dockerfiles:
        steps = [one for one in file if one.word == "RUN"]
        checked_out = any(_CHECKED_OUT.search(one.rest) for one in steps)
        for step in steps:
            yield from _step(step, checked_out)
    for block, rows in scripts_of(sources):
        for number, row in rows:
            if _PIPED.search(row):
                yield _piped(block.path, number, "on every new machine, as root")


def _step(step: Instruction, checked_out: bool) -> Iterator[Finding]:
    if _PIPED.search(step.rest):
        yield _piped(step.path, step.line, "in the image")
    if _WEIGHTS.search(step.rest):
        message = "weights become a layer: every machine pulls them with each new image"
        yield _finding(step, message, "Load them at the start, from a volume or a cache that machines share.", Weight.LOW)
    if _WRITABLE.search(step.rest):
        message = "everybody in the container may change its program"
        yield _finding(step, message, "Give the folders that are written to its user: COPY --chown, chown.", Weight.LOW)
    cloned = _CLONED.search(step.rest)
    if cloned and not _FIXED.search(cloned["words"]) and not checked_out:
        message = "a repository is cloned without a tag or a commit: it is another one tomorrow"
        yield _finding(step, message, "Clone a tag (--branch v1.2), or check a commit out.", Weight.LOW)


def _piped(path: str, line: int, place: str) -> Finding:
    message = f"a script is fetched and run as it is today: what is changed there runs {place}"
    fix = "Fetch a release, compare its checksum, then run it."
    return Finding(rule="image-build", weight=Weight.MEDIUM, path=path, line=line, what=message, fix=fix)


def _finding(step: Instruction, message: str, fix: str, weight: Weight) -> Finding:
    return Finding(rule="image-build", weight=weight, path=step.path, line=step.line, what=message, fix=fix)
