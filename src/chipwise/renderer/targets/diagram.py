"""The deployment as a picture: Mermaid for pages that know it, SVG for everything else."""

from __future__ import annotations

from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import File
from chipwise.renderer.heading import heading
from chipwise.renderer.picture.mermaid import mermaid
from chipwise.renderer.picture.scene import scene
from chipwise.renderer.picture.svg import svg

FITS = "anything: places, machines, storage, links and traffic, as Mermaid and SVG"
EXPRESSES = frozenset({"regions", "streams", "no run", "groups"})
WRITES = ("diagram.svg",)


def render(deployment: Deployment) -> list[File]:
    shown = scene(deployment)
    return [File("diagram.mmd", mermaid(shown, heading(deployment))), File("diagram.svg", svg(shown))]
