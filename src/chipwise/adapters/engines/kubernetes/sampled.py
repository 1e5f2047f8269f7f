"""What the devices of a pod did, sampled inside it: a shell around the command runs nvidia-smi now and then. Pure.

Only a container whose command is a shell's gets one more, since only of that it is known that its image has a shell, and only
one that has NVIDIA devices. What they did is the last line of its termination message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from chipwise.renderer.program_files import inline, program
from chipwise.renderer.quoting import kubernetes

SAYS = "chipwise-watched: "
SETTING = "CHIPWISE_WATCH_S"  # of the job: 0 switches it off
_DEVICE = "nvidia.com/gpu"
_SHELLS = ("sh", "bash", "dash", "ash")
_PROGRAM = Path(__file__).parent / "programs" / "sampled.sh"
_LONGEST = 3000


@cache
def _program() -> str:
    return inline(program("device_samples.sh")) + inline(_PROGRAM.read_text(encoding="utf-8"))


def sampling(container: Mapping[str, Any]) -> dict[str, Any]:
    """The container with a shell around its command, where it can have one."""
    command: list[str] = list(container.get("command") or ())
    limits = (container.get("resources") or {}).get("limits") or {}
    settings = {setting["name"]: setting.get("value") for setting in container.get("env") or ()}
    has_shell = bool(command) and str(command[0]).rpartition("/")[2] in _SHELLS
    if not has_shell or str(limits.get(_DEVICE, "0")) in ("0", "") or settings.get(SETTING) == "0":
        return dict(container)
    return {**container, "command": [command[0], "-c", kubernetes(_program()), "sh", *command]}


def without(message: str) -> str:
    """The message as its program and other shells left it."""
    head, mark, _ = message.rpartition(f"\n{SAYS}")
    return head if mark else message


def summary_told(message: object) -> Mapping[str, Any]:
    """What it says at its end, as it is written; whoever uses it makes it fit for a record."""
    if not isinstance(message, str):
        return {}
    text = message.rpartition(f"\n{SAYS}")[2] if f"\n{SAYS}" in message else ""
    try:
        summary = json.loads(text[:_LONGEST]) if text else {}
    except (ValueError, RecursionError):
        return {}
    return summary if isinstance(summary, dict) else {}
