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
    images = unverified(deployment)
    return [replace(file, text=_marked(file, images)) for file in files]


def _marked(file: File, images: Mapping[str, str]) -> str:
    """Below the comments at its top, where every language of ours takes another."""
    found_images = [image for image in images if image in file.text]
    if not found_images or file.path.endswith(_WITHOUT_COMMENTS):
        return file.text
    lines = file.text.splitlines(keepends=True)
    head = next((at for at, line in enumerate(lines) if not line.startswith("#")), len(lines))
    checks = [f"{SIGN}docker buildx imagetools inspect {image} ({images[image]})\n" for image in found_images]
    return "".join([*lines[:head], *checks, *lines[head:]])
