"""Pods that run at once and write one file overwrite each other: what is left is of one of them, or of none."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chipwise.auditor.commands import Word, words_of_container
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import pods_of
from chipwise.auditor.source import Sources, line_of, listed, look
from chipwise.auditor.workloads import copies

ABOUT = "pods that run at once write different files"
_OUTPUT = re.compile(r"--?(?:o|out|output|output[-_](?:file|path)|save|save[-_]path|dest|destination)")
_FILE = re.compile(r"(?:/|s3://|gs://)\S*\.[A-Za-z0-9]{1,8}")
_INDEX = ("JOB_COMPLETION_INDEX", "HOSTNAME", "POD_NAME", "RANK", "hostname", "$(date", "`date")


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources):
        overlaps = pod.owner.kind == "CronJob" and look(pod.owner.body, "spec", "concurrencyPolicy") not in (
            "Forbid",
            "Replace",
        )
        if pod.owner.kind not in ("Job", "CronJob") or (copies(pod) < 2 and not overlaps):
            continue
        own = {str(look(one, "name")) for one in listed(pod.spec.get("volumes")) if look(one, "emptyDir") is not None}
        for container in pod.mains:
            words = words_of_container(container)
            private = [
                str(look(mount, "mountPath")).rstrip("/") + "/"
                for mount in listed(container.get("volumeMounts"))
                if look(mount, "name") in own
            ]
            if any(sign in word.text for word in words for sign in _INDEX):
                continue
            for word in _outputs(words):
                if not word.text.startswith(("/tmp/", "/dev/", *private)):
                    yield Finding(
                        rule="two-writers",
                        weight=Weight.HIGH,
                        path=pod.owner.path,
                        line=word.line,
                        what=f"{pod.owner.title} runs {copies(pod)} pods at once, and each writes {word.text}"
                        if copies(pod) > 1
                        else f"{pod.owner.title} may begin before the last run has ended, and both write {word.text}",
                        fix="Make it an Indexed Job, and put $(JOB_COMPLETION_INDEX) into the input and the output."
                        if copies(pod) > 1
                        else "Set concurrencyPolicy: Forbid, or give each run a file of its own.",
                        also=((pod.owner.path, line_of(pod.owner.body, "spec", "concurrencyPolicy")),)
                        if overlaps
                        else ((pod.owner.path, line_of(pod.owner.body, "spec", "parallelism")),),
                    )


def _outputs(words: list[Word]) -> Iterator[Word]:
    """Files that a command is told to write; the last word of ffmpeg is one."""
    for index, word in enumerate(words):
        flag, equals, value = word.text.partition("=")
        after = words[index + 1] if index + 1 < len(words) else None
        target = Word(value, word.line) if equals else after
        if target and (_OUTPUT.fullmatch(flag) or word.text in (">", ">>", "tee")) and _FILE.fullmatch(target.text):
            yield target
    if words and any(word.text.rpartition("/")[2] == "ffmpeg" for word in words) and _FILE.fullmatch(words[-1].text):
        yield words[-1]
