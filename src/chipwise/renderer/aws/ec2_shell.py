"""`launch.sh`: what `launch.py` does, with the AWS CLI, for those who read a shell script faster; and its settings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from chipwise.renderer.file import File
from chipwise.renderer.program_files import ShellSetting, comment, headed, program, variables

Attempt = tuple[str, str, int, int]  # machine, how it is bought, EFA interfaces, first card with EFA


def shell_files(
    heading: str, settings: Mapping[str, ShellSetting], tags: Mapping[str, str], attempts: Sequence[Attempt]
) -> list[File]:
    pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
    ranked = [*pairs, {"Key": "chipwise-first-rank", "Value": "0"}]
    launch_settings: dict[str, ShellSetting] = {
        **settings,
        "TAGS": json.dumps([{"ResourceType": kind, "Tags": ranked} for kind in ("instance", "volume")]),
        "GROUP_TAGS": json.dumps([{"ResourceType": "security-group", "Tags": pairs}]),
        "ATTEMPTS": [" ".join(map(str, one)) for one in attempts],
    }
    about = comment("What launch.sh reads.\nshellcheck shell=bash disable=SC2034")
    return [
        File("launch.sh", headed(program("ec2_launch.sh"), heading), True),
        File("launch-settings.sh", about + variables(launch_settings)),
    ]
