"""Batch scripts of Slurm as tasks: nodes, devices and a command, in the shape that tasks of SkyPilot have."""

from __future__ import annotations

import re
from typing import Any

from chipwise.auditor.source import Located, Manifest

_DIRECTIVE = re.compile(r"^#SBATCH\s+(--?[\w-]+)(?:[=\s]\s*([^\s#]+))?", re.MULTILINE)
_CHIP = re.compile(r"[abhlmtv]\d{1,3}[a-z]?(?:[-_]\d+gb?)?", re.IGNORECASE)  # as sites mark their nodes: a100, h100_80gb
_NODES = ("--nodes", "-N")
_DEVICES = ("--gres", "--gpus-per-node")
_FURTHER = {
    "--ntasks-per-node": "tasks_per_node",
    "--array": "array",
    "-a": "array",
    "--output": "log",
    "-o": "log",
    "--requeue": "requeue",
    "--partition": "partition",
    "-p": "partition",
    "--constraint": "constraint",
    "-C": "constraint",
}


def is_slurm(text: str) -> bool:
    return _DIRECTIVE.search(text) is not None


def read_slurm(path: str, text: str) -> Manifest:
    """Lines are those of the script; a range of nodes counts as none."""
    body, resources = Located(), Located()
    for directive in _DIRECTIVE.finditer(text):
        line = text.count("\n", 0, directive.start()) + 1
        if directive[1] in _NODES:
            _put(body, "num_nodes", directive[2], line)
        elif directive[1] in _FURTHER:
            _put(body, _FURTHER[directive[1]], directive[2] or "true", line)
        elif directive[1] in _DEVICES and directive[2]:
            name = ":".join(part for part in directive[2].removeprefix("gpu:").split(":") if part)
            _put(resources, "accelerators", f"gpu:{name}" if name.isdecimal() else name, line)
    wanted = str(resources.get("accelerators") or "")
    if wanted.startswith("gpu:") and (chip := _CHIP.fullmatch(str(body.get("constraint") or ""))):
        resources["accelerators"] = f"{chip[0]}:{wanted.removeprefix('gpu:')}"
    _put(body, "resources", resources, 1)
    _put(body, "run", text, 0)  # what follows its sign begins on the next line
    return Manifest(path, body)


def _put(mapping: Located, key: str, value: Any, line: int) -> None:
    mapping[key], mapping.lines[key] = value, line
