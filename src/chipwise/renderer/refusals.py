"""Words that several targets refuse with."""

from __future__ import annotations

from chipwise.renderer.deployment import Deployment


def one_stage(deployment: Deployment) -> str:
    """The way out for who asks a target for a pipeline, where it renders single stages."""
    return "one stage with --stage: " + ", ".join(stage.title for stage in deployment.stages)
