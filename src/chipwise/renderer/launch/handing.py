"""Where stages of a pipeline put what they hand on, and find what they are handed: the same directories in every target.

A program of the user's own writes `/hand-offs/out/TARGET` and reads `/hand-offs/in/SOURCE` (HAND_OFFS_OUT and HAND_OFFS_IN name
the directories above them). A command of ours writes where it writes: that directory is what is handed on.
"""

from __future__ import annotations

from chipwise.renderer.deployment import Deployment, HandOff
from chipwise.renderer.launch import finetuning
from chipwise.renderer.launch.archive import RESULTS, in_archive
from chipwise.renderer.launch.shards import in_shards, shard_arguments
from chipwise.renderer.quoting import dns_name

ROOT = "/hand-offs"
SETTINGS = {"HAND_OFFS_IN": f"{ROOT}/in", "HAND_OFFS_OUT": f"{ROOT}/out"}


def key(text: str) -> str:
    """Of a stage, as directories, tasks, templates and artifacts are named."""
    return dns_name(text, 30)


def arrives_at(source: str) -> str:
    return f"{ROOT}/in/{key(source)}"


def written_by(stage: Deployment) -> str | None:
    """The directory of the results of a command of ours; None: a program that writes what it is told to."""
    software = stage.software
    if software.is_custom:
        return None
    if finetuning.is_written(stage):
        return finetuning.RESULT
    if in_shards(stage):
        return shard_arguments(stage)[1]
    if in_archive(software.command):
        return RESULTS
    if "--render-output" in software.command:
        return software.command[software.command.index("--render-output") + 1].rstrip("/")
    return None


def leaves_from(stage: Deployment, hand_off: HandOff) -> str:
    """The directory of the stage that is handed on."""
    return written_by(stage) or f"{ROOT}/out/{key(hand_off.target)}"
