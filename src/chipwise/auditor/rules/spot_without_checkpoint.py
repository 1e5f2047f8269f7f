"""A job on machines that may be taken away loses all its work, unless it saves it somewhere that stays."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from chipwise.auditor.cloudformation import resources_of
from chipwise.auditor.commands import Word, value_of, words_of_container, words_of_text
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import Pod, is_spot, pods_in, pods_of, words_of
from chipwise.auditor.source import Manifest, Sources, line_of, listed, look, mapped, whole_number
from chipwise.auditor.tasks import tasks_of
from chipwise.auditor.terraform import inner, is_true, rows_of, text_of

_GONE = ("/tmp", "/dev/shm", "/scratch/local", "/local_scratch")
_RULE = "spot-without-checkpoint"
ABOUT = "jobs on spot machines save their work"
_SHORT_S = 3600
_SAVING = (
    *("--checkpoint-dir", "--checkpoint_dir", "--ckpt-dir", "--ckpt_dir", "--save-dir", "--save_dir", "--save"),
    *("--checkpoint-path", "--checkpoint_path", "--output-dir", "--output_dir", "--checkpoints"),
    *("--storage-path", "--storage_path"),
)
_TO_STORE = re.compile(rf"(?:{'|'.join(_SAVING)})[= ,'\"]+(?:s3|gs|az|abfss|https?)://")
_TESTS = ("pytest", "ctest", "tox", "nox", "go test")
_SIGNS = (  # the second row: what is there already is not done again
    *("checkpoint", "ckpt", "resume", "snapshot"),
    *("[ -e ", "[ -f ", "[ -s ", "test -e ", "skip-existing", "skip_existing", "ignore-existing"),
)


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources):
        if not pod.is_job or not is_spot(pod.spec) or _is_short(pod):
            continue
        lost = list(_lost(pod))
        yield from lost
        if not lost and not _saves(str(pod.owner.body)):
            yield Finding(
                rule=_RULE,
                weight=Weight.HIGH,
                path=pod.owner.path,
                line=line_of(pod.spec),
                what=f"{pod.owner.title} runs on spot machines, and nothing says that it saves its work",
                fix="Mount a volume for checkpoints (or set a URL), and let the program resume from the newest.",
            )
    for manifest in sources.manifests:
        if manifest.kind in ("MPIJob", "RayJob"):
            yield from _ends_with_pods(manifest)
    yield from _of_clouds(sources)
    for task in tasks_of(sources):
        for place in _saved_at(task.words) if task.nodes > 1 or "requeue" in task.manifest.body else ():
            if place.text.startswith(_GONE) and "use_spot" not in str(look(task.manifest.body, "resources")):
                message = f"the task saves its work to {place.text}, which the machine that resumes does not have"
                fix = "Save it to a file system that all machines share."
                yield Finding(rule=_RULE, weight=Weight.HIGH, path=task.path, line=place.line, what=message, fix=fix)
    for manifest in sources.manifests:
        is_sky = {"resources", "run"} <= manifest.body.keys() and "service" not in manifest.body and not manifest.kind
        if is_sky and look(manifest.body, "resources", "use_spot") is True:
            mounts = tuple(str(one).rstrip("/") + "/" for one in mapped(manifest.body.get("file_mounts")))
            for place in _saved_at(words_of_text(str(manifest.body["run"]), line_of(manifest.body, "run"))):
                if not mounts or not (place.text.rstrip("/") + "/").startswith(mounts):
                    yield _ephemeral(manifest.path, place, "the task")
        if is_sky and look(manifest.body, "resources", "use_spot") is True and not _saves(str(manifest.body)):
            yield Finding(
                rule=_RULE,
                weight=Weight.HIGH,
                path=manifest.path,
                line=line_of(manifest.body, "resources", "use_spot"),
                what="the task runs on spot machines, and nothing says that it saves its work",
                fix="Mount a bucket for checkpoints.",
            )


def _of_clouds(sources: Sources) -> Iterator[Finding]:
    """Machines of Google that are started with a script, and jobs of AWS Batch, both on spot machines."""
    for block in sources.blocks:
        kind = block.labels[0] if block.labels and block.type == "resource" else ""
        schedules = inner(block.body, "scheduling") if kind.startswith("google_compute_instance") else []
        if any(is_true(one.get("preemptible")) or text_of(one.get("provisioning_model")) == "SPOT" for one in schedules):
            for number, row in rows_of(sources, block):
                for place in _saved_at(words_of_text(row.strip(), number)):
                    if not place.text.startswith(("/mnt/", "/gcs/")):
                        yield _ephemeral(block.path, Word(place.text, number), block.title)
    environments = list(resources_of(sources, "AWS::Batch::ComputeEnvironment"))
    if environments and all(look(one.properties, "ComputeResources", "Type") == "SPOT" for one in environments):
        for resource in resources_of(sources, "AWS::Batch::JobDefinition"):
            container = resource.properties.get("ContainerProperties")
            line = line_of(container, "Command")
            for place in _saved_at([Word(str(one), line) for one in listed(look(container, "Command"))]):
                if place.text.startswith(_GONE):
                    yield _ephemeral(resource.path, place, resource.name)


def _ends_with_pods(manifest: Manifest) -> Iterator[Finding]:
    """What a job over several pods saves to a folder of each: nobody finds it when it has ended."""
    pods = list(pods_in(manifest))
    if not pods or any(is_spot(pod.spec) for pod in pods):
        return
    empty: dict[str, int] = {}
    for pod in pods:
        volumes = {str(look(one, "name")): one for one in listed(pod.spec.get("volumes"))}
        for mount in (mount for container in pod.mains for mount in listed(container.get("volumeMounts"))):
            volume = volumes.get(str(look(mount, "name")))
            if look(volume, "emptyDir") is not None:
                empty[str(look(mount, "mountPath")).rstrip("/") + "/"] = line_of(volume, "emptyDir")
    entry = look(manifest.body, "spec", "entrypoint")
    words = [word for pod in pods for container in pod.mains for word in words_of_container(container)]
    words += words_of_text(str(entry), line_of(manifest.body, "spec", "entrypoint")) if entry else []
    for place in _saved_at(words):
        folder = next((one for one in empty if (place.text.rstrip("/") + "/").startswith(one)), None)
        if folder is not None or place.text.startswith(_GONE):
            yield Finding(
                rule=_RULE,
                weight=Weight.MEDIUM,
                path=manifest.path,
                line=place.line,
                what=f"{manifest.title} saves its work to {place.text}, which each pod has for itself and loses as it ends",
                fix="Save it to a volume that all pods share, or to a URL.",
                also=((manifest.path, empty[folder]),) if folder is not None else (),
            )


def _lost(pod: Pod) -> Iterator[Finding]:
    """Saved where the next machine will not find it: outside of every volume, or in one that ends with the pod."""
    volumes = {str(look(one, "name")): one for one in listed(pod.spec.get("volumes"))}
    for container in pod.mains:
        remaining = [
            str(look(mount, "mountPath")).rstrip("/") + "/"
            for mount in listed(container.get("volumeMounts"))
            if look(volumes.get(str(look(mount, "name"))), "emptyDir") is None
        ]
        words = words_of_container(container)
        for place in (*_saved_at(words), *_speaks_of_checkpoints(words)):
            if not (place.text.rstrip("/") + "/").startswith(tuple(remaining)):
                yield _ephemeral(pod.owner.path, place, pod.owner.title)
    entry = look(pod.owner.body, "spec", "entrypoint")
    for place in _saved_at(words_of_text(str(entry), line_of(pod.owner.body, "spec", "entrypoint"))) if entry else ():
        if place.text.startswith(_GONE):
            yield _ephemeral(pod.owner.path, place, pod.owner.title)


def _saved_at(words: Sequence[Word]) -> Iterator[Word]:
    """Local directories that a command saves its state to."""
    for flag in _SAVING:
        place = value_of(words, (flag,))
        if place and place.text.startswith(("/", "~", "./")) and "$" not in place.text:
            yield place


def _speaks_of_checkpoints(words: Sequence[Word]) -> Iterator[Word]:
    """`--output` says nothing of what it is; a folder of checkpoints does."""
    place = value_of(words, ("--output", "--out"))
    if place and place.text.startswith("/") and any(sign in place.text for sign in ("ckpt", "checkpoint")):
        yield place


def _ephemeral(path: str, place: Word, title: str) -> Finding:
    return Finding(
        rule=_RULE,
        weight=Weight.HIGH,
        path=path,
        line=place.line,
        what=f"{title} runs on spot machines and saves its work to {place.text}, which goes with the machine",
        fix="Save it to a mounted bucket or a volume that stays, or to a URL.",
    )


def _is_short(pod: Pod) -> bool:
    """Work that is begun again at little loss: tests, and what ends within the hour anyway."""
    deadlines = [look(pod.owner.body, "spec", "activeDeadlineSeconds"), pod.spec.get("activeDeadlineSeconds")]
    tests = any(word.rpartition("/")[2] in _TESTS for container in pod.containers for word in words_of(container))
    return tests or any(0 < whole_number(one) <= _SHORT_S for one in deadlines)


def _saves(text: str) -> bool:
    return any(sign in text.lower() for sign in _SIGNS) or _TO_STORE.search(text) is not None
