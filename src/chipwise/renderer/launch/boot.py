"""The script by which machines start: what the plan says as shell variables, what its cloud calls things, and `boot.sh`."""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.renderer.program_files import ShellSetting, body, comment, program, variables

_ABOUT = """\
Settings of this plan; what follows them is the same for every plan.
shellcheck disable=SC2016 # words of a command may be text for a shell in the container"""


def boot_script(
    heading: str, settings: Mapping[str, ShellSetting], cloud: str, reasons: Mapping[str, str] | None = None
) -> str:
    """`cloud`: aws, azure or google. `reasons`: of settings, as comments."""
    stated = {name: value for name, value in settings.items() if value not in ("", [])}  # boot.sh knows what holds without
    head = f"#!/bin/bash\n{comment(heading)}{comment(_ABOUT)}{variables(stated, reasons)}\n"
    return head + booting(cloud) + "\nboot\n"


def booting(cloud: str) -> str:
    """What every machine of a cloud does when it comes up; nothing happens before `boot` is called."""
    return body(program(f"cloud_{cloud}.sh")) + "\n" + body(program("boot.sh"))
