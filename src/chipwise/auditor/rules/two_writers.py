"""Pods that run at once and write one file overwrite each other: what is left is of one of them, or of none."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chipwise.auditor.commands import Word, words_of_container
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import Pod, pods_of, variables
from chipwise.auditor.source import Sources, line_of, listed, look, walk
from chipwise.auditor.tasks import Task, tasks_of
from chipwise.auditor.workloads import FANNED_OUT, WORKFLOWS, copies

_RULE = "two-writers"
ABOUT = "pods that run at once write different files"
_OUTPUT = re.compile(r"--?(?:o|out|output|output[-_](?:file|path)|save|save[-_]path|dest|destination)")
_FILE = re.compile(r"(?:/|s3://|gs://)\S*\.[A-Za-z0-9]{1,8}")
_OUTPUT_SETTINGS = ("OUT", "RESULT", "DEST", "SAVE")  # settings that say where to write
_INDEX = ("JOB_COMPLETION_INDEX", "HOSTNAME", "POD_NAME", "RANK", "hostname", "$(date", "`date")


def check(sources: Sources) -> Iterator[Finding]:
    for task in tasks_of(sources):
        yield from _array(task)
    for pod in pods_of(sources):
        overlaps = pod.owner.kind == "CronJob" and look(pod.owner.body, "spec", "concurrencyPolicy") not in (
            "Forbid",
            "Replace",
        )
        if pod.owner.kind in WORKFLOWS:
            yield from _fanned_out(pod)
        if pod.owner.kind == "ScaledJob":
            yield from _consumers(pod)
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
                        rule=_RULE,
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


def _fanned_out(pod: Pod) -> Iterator[Finding]:
    """A template of Argo that a task runs once for each item."""
    name = pod.spec.get("name")
    fans = [one for one in walk(pod.owner.body) if one.get("template") == name and any(key in one for key in FANNED_OUT)]
    volumes = [*listed(look(pod.owner.body, "spec", "volumes")), *listed(pod.spec.get("volumes"))]
    claims = {str(look(one, "name")) for one in volumes if look(one, "persistentVolumeClaim") is not None}
    claims |= {str(look(one, "metadata", "name")) for one in listed(look(pod.owner.body, "spec", "volumeClaimTemplates"))}
    for container in pod.mains if name and fans else ():
        shared = tuple(
            str(look(mount, "mountPath")).rstrip("/") + "/"
            for mount in listed(container.get("volumeMounts"))
            if str(look(mount, "name")) in claims
        )
        for word in _outputs(words_of_container(container)):
            own_disk = word.text.startswith("/") and not (shared and word.text.startswith(shared))
            if "{{" not in word.text and "$" not in word.text and not own_disk:
                yield Finding(
                    rule=_RULE,
                    weight=Weight.HIGH,
                    path=pod.owner.path,
                    line=word.line,
                    what=f"{pod.owner.title} runs {name} once for each item, and each run writes {word.text}",
                    fix="Put the item into the name of the output, as a parameter of the template.",
                    also=((pod.owner.path, line_of(fans[0])),),
                )


def _consumers(pod: Pod) -> Iterator[Finding]:
    """Jobs of KEDA that run at once and are told the same file; what they take differs, and where they put it does not."""
    shared_names = {str(look(one, "name")) for one in listed(pod.spec.get("volumes")) if look(one, "emptyDir") is None}
    for container in pod.mains:
        shared = tuple(
            str(look(mount, "mountPath")).rstrip("/") + "/"
            for mount in listed(container.get("volumeMounts"))
            if str(look(mount, "name")) in shared_names
        )
        settings = [Word(value, line) for name, value, line in variables(container) if name.startswith(_OUTPUT_SETTINGS)]
        for word in [*settings, *_outputs(words_of_container(container))]:
            if shared and word.text.startswith(shared) and _FILE.fullmatch(word.text) and "$" not in word.text:
                yield Finding(
                    rule=_RULE,
                    weight=Weight.HIGH,
                    path=pod.owner.path,
                    line=word.line,
                    what=f"{pod.owner.title} runs many jobs at once, and each writes {word.text}",
                    fix="Name the output after the message that a job takes.",
                )


def _array(task: Task) -> Iterator[Finding]:
    """Tasks of an array of Slurm run at once in one directory."""
    body = task.manifest.body
    if "array" not in body:
        return
    log = str(body.get("log") or "")
    if log and not any(sign in log for sign in ("%a", "%A", "%j", "%J", "%x%N", "/dev/null")):
        yield _of_array(task, Word(log, line_of(body, "log")), "Write --output=logs/%A_%a.log.")
    commands = [word for word in task.words if not word.text.startswith("#SBATCH")]
    for word in _outputs(commands):
        if "$" not in word.text and not word.text.startswith(("/tmp/", "/dev/")):
            yield _of_array(task, word, "Put $SLURM_ARRAY_TASK_ID into the name of the output.")


def _of_array(task: Task, word: Word, fix: str) -> Finding:
    message = f"tasks of the array run at once, and each writes {word.text}"
    also = ((task.path, line_of(task.manifest.body, "array")),)
    return Finding(rule=_RULE, weight=Weight.HIGH, path=task.path, line=word.line, what=message, fix=fix, also=also)


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
