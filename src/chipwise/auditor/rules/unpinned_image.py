"""An image without a version is another one tomorrow."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chipwise.auditor.commands import value_of
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import pods_of
from chipwise.auditor.source import Sources, line_of, listed, look
from chipwise.auditor.started import containers_of
from chipwise.auditor.tasks import tasks_of
from chipwise.auditor.terraform import holds_containers, inner, line_inside, rows_of, text_of

ABOUT = "images have a version"
_MOVING = ("", "latest", "main", "master", "nightly", "dev", "develop", "edge", "head", "HEAD", "unstable", "canary")
_WRITTEN = re.compile(r'(?:^|[\s{,])"?image"?\s*[=:]\s*"([^"]+)"')


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources, partial=True):
        for container in pod.containers:
            if (image := container.get("image")) and _loose(str(image)):
                yield _finding(pod.owner.path, line_of(container, "image"), f"{pod.owner.title}: {image} has no fixed version")
    for manifest in sources.manifests:
        for term in listed(look(manifest.body, "spec", "amiSelectorTerms")) if manifest.kind == "EC2NodeClass" else ():
            if str(look(term, "alias") or "").endswith("@latest"):
                message = f"{manifest.title}: {look(term, 'alias')} replaces machines whenever a new system appears"
                yield _finding(manifest.path, line_of(term, "alias"), message)
    for file in sources.dockerfiles:
        stages = {one.rest.split()[-1] for one in file if one.word == "FROM" and " as " in one.rest.lower()}
        for instruction in file:
            image = instruction.rest.split()[0] if instruction.word == "FROM" and instruction.rest else ""
            image = instruction.rest.split()[1] if image.startswith("--") and len(instruction.rest.split()) > 1 else image
            if image and image not in stages and image != "scratch" and "$" not in image and _loose(image):
                yield _finding(instruction.path, instruction.line, f"{image} has no fixed version")
    for task in tasks_of(sources):
        image = value_of(task.words, ("--container-image",))
        if image and "$" not in image.text and not image.text.startswith("/") and _loose(image.text.replace("#", "/")):
            yield _finding(task.path, image.line, f"the task: {image.text} has no fixed version")
        resources = task.manifest.body.get("resources")
        chosen = str(look(resources, "image_id") or "")
        if chosen.startswith("docker:") and _loose(chosen.removeprefix("docker:")):
            yield _finding(task.path, line_of(resources, "image_id"), f"the task: {chosen} has no fixed version")
    for started in containers_of(sources):
        if "$" not in started.image.text and _loose(started.image.text):
            message = f"{started.block.title} starts {started.image.text}, which has no fixed version"
            yield _finding(started.block.path, started.image.line, message)
    for block in (one for one in sources.blocks if holds_containers(one)):
        for number, row in rows_of(sources, block):
            written = _WRITTEN.search(row)
            if written and "$" not in written[1] and _loose(written[1]):
                yield _finding(block.path, number, f"{block.title}: {written[1]} has no fixed version")
    for block in sources.blocks:
        for settings in inner(block.body, "primary_container") if block.labels[:1] == ("aws_sagemaker_model",) else ():
            image = text_of(settings.get("image"))
            if image and "$" not in image and _loose(image):
                line = line_inside(sources, block, "image")
                yield _finding(block.path, line, f"{block.title}: {image} has no fixed version")
        for image in inner(block.body, "source_image_reference"):
            if text_of(image.get("version")) == "latest":
                line = line_inside(sources, block, "version")
                yield _finding(block.path, line, f"{block.title}: its system is whatever is newest when it is made")
    for manifest in sources.compose:
        services = manifest.body.get("services")
        for name, service in services.items() if isinstance(services, dict) else ():
            if (image := look(service, "image")) and not look(service, "build") and _loose(str(image)):
                yield _finding(manifest.path, line_of(service, "image"), f"service {name}: {image} has no fixed version")


def _loose(image: str) -> bool:
    if "@sha256:" in image:
        return False
    tag = image.rpartition("/")[2].partition(":")[2]
    return tag in _MOVING or "latest" in tag.split("-")  # also of a variant: main-latest, latest-gpu


def _finding(path: str, line: int, message: str) -> Finding:
    return Finding(
        rule="unpinned-image", weight=Weight.LOW, path=path, line=line, what=message, fix="Name a release, or pin it by digest."
    )
