"""Targets by their names, and what each makes of a deployment: a file in `targets/`, or an entry point of another package."""

from __future__ import annotations

from functools import cache
from types import ModuleType

from chipwise import plugins
from chipwise.errors import UnknownName
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.image_checks import checked
from chipwise.renderer.left_out import refuse_large_copies, refuse_parts, refuse_reservation, with_notes
from chipwise.renderer.limits import bounded
from chipwise.spelling import nearest

PACKAGE, GROUP = "chipwise.renderer.targets", "chipwise.targets"
SPELLED = {"k8s": "kubernetes", "docker": "dockerfile", "tf": "terraform"}  # what people type for a target


@cache
def target_names() -> tuple[str, ...]:
    """As the user types them."""
    return plugins.names(PACKAGE, GROUP)


def target(name: str) -> ModuleType:
    name = SPELLED.get(name, name)
    if name not in target_names():
        raise UnknownName("target", name, nearest(name, target_names()), remedy="`chipwise render --list` shows all.")
    module = plugins.load(PACKAGE, GROUP, name)
    assert module is not None
    return module


def fits(name: str) -> str:
    """What a target can express, in one line."""
    return str(getattr(target(name), "FITS", ""))


def files(name: str, module: ModuleType, deployment: Deployment) -> list[File]:
    expresses = getattr(module, "EXPRESSES", ())
    refuse_large_copies(name, deployment, expresses)
    refuse_parts(name, deployment, expresses)
    refuse_reservation(name, deployment, expresses, getattr(module, "STARTS_MACHINES", False))
    rendered: list[File] = checked(deployment, module.render(with_notes(deployment, expresses)))
    if not rendered:
        raise CannotRender(f"{name} has nothing to write for {deployment.title}.", remedy="Use another target.")
    bounded(name, rendered)
    return rendered
