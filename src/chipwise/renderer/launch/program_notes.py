"""Who writes the program that a command names: every target says it, so that no file needs what nobody wrote."""

from __future__ import annotations

from chipwise.renderer.deployment import Deployment
from chipwise.renderer.launch import finetuning

OWN_PROGRAM = "For another, program.command of the workload."
_YOURS = "put your own into program.command of the workload."


def program_note(deployment: Deployment) -> str:
    """Empty where the workload brings its command, or an engine with a name runs."""
    software = deployment.software
    if software.is_custom or software.engine:
        return ""
    if finetuning.is_written(deployment):
        return f"finetune.py comes with the image: `--to dockerfile` writes both. {OWN_PROGRAM}"
    if deployment.kind == "finetune":
        return f"No finetune.py is written, since {finetuning.obstacle(deployment)}: {_YOURS}"
    return f"The usual program of its kind: {_YOURS}"
