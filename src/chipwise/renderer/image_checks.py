"""An image whose tag nobody saw published is never written as a fact: files that name it begin with how to look it up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import File

SIGN = "# verify: "
_WITHOUT_COMMENTS = (".json", ".svg", ".mmd", ".pbtxt", ".dockerignore")


def unverified(deployment: Deployment) -> dict[str, str]:
    """By image: how its tag is known."""
    images: dict[str, str] = {}
    for stage in (deployment, *deployment.stages):
        images |= dict(stage.platforms.get("Unverified", {}))
        software = stage.software
        if software.unverified:
            images[software.base if software.built else software.image] = software.unverified
    return images


def checked(deployment: Deployment, files: Sequence[File]) -> list[File]:
    """What only files without comments name is looked up at the top of the first file that has some."""
    images = unverified(deployment)
    silent = {image for file in files if _is_silent(file) for image in images if image in file.text}
    speaking = [file for file in files if not _is_silent(file)]
    left = {image for image in silent if not any(image in file.text for file in speaking)}
    first = speaking[0] if speaking else None
    return [replace(file, text=_marked(file, images, left if file is first else set())) for file in files]


def _is_silent(file: File) -> bool:
    return file.path.endswith(_WITHOUT_COMMENTS)


def _marked(file: File, images: Mapping[str, str], elsewhere: set[str]) -> str:
    """Below the comments at its top, where every language of ours takes another."""
    found_images = [image for image in images if image in file.text or image in elsewhere]
    if not found_images or _is_silent(file):
        return file.text
    lines = file.text.splitlines(keepends=True)
    head = next((at for at, line in enumerate(lines) if not line.startswith("#")), len(lines))
    checks = [f"{SIGN}docker buildx imagetools inspect {image} ({images[image]})\n" for image in found_images]
    return "".join([*lines[:head], *checks, *lines[head:]])
