"""GPUs of this machine that are given no new jobs, each with its reason: a file beside the folders of jobs.

Whoever judged the devices (`chipwise health --drain`) writes it, and every controller here reads it at every look: what runs on
such a device goes on, and nothing new starts there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from chipwise.adapters import state_files

FILE = "drained.json"
_LONGEST_REASON = 500


def read(root: Path) -> dict[int, str]:
    """By number; `root`: the folder of jobs. A file that cannot be read drains nothing."""
    content = state_files.read(root.parent, FILE) or {}
    gpus = content.get("gpus")
    if not isinstance(gpus, dict):
        return {}
    return {int(gpu): str(reason)[:_LONGEST_REASON] for gpu, reason in gpus.items() if str(gpu).isdecimal()}


def write(root: Path, gpus: Mapping[int, str]) -> None:
    state_files.write(root.parent, FILE, {"gpus": {str(gpu): reason for gpu, reason in sorted(gpus.items())}})


def usable(root: Path, gpus: Sequence[int]) -> tuple[int, ...]:
    drained = read(root)
    return tuple(gpu for gpu in gpus if gpu not in drained)
