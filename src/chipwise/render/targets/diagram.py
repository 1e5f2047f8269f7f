"""The deployment as a picture: Mermaid for pages that know it, SVG for everything else."""

from __future__ import annotations

from chipwise.render.deployment import Deployment
from chipwise.render.file import File
from chipwise.render.heading import heading
from chipwise.render.picture.mermaid import mermaid
from chipwise.render.picture.scene import scene
from chipwise.render.picture.svg import svg

FITS = "anything: places, machines, storage, links and traffic, as Mermaid and SVG"
EXPRESSES = frozenset({"regions", "streams"})
WRITES = ("diagram.svg",)


def render(deployment: Deployment) -> list[File]:
    shown = scene(deployment)
    return [File("diagram.mmd", mermaid(shown, heading(deployment))), File("diagram.svg", svg(shown))]
