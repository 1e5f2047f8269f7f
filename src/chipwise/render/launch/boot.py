"""The script by which machines start: what the plan says as shell variables, what its cloud calls things, and `boot.sh`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from chipwise.render.program_files import comment, program
from chipwise.render.quoting import shell

SETTING = str | int | Sequence[str]
WIDTH = 120
_WHAT = """\
Settings of this plan; what follows them is the same for every plan.
shellcheck disable=SC2016 # words of a command may be text for a shell in the container"""


def boot_script(heading: str, settings: Mapping[str, SETTING], cloud: str, why: Mapping[str, str] | None = None) -> str:
    """`cloud`: aws, azure or google. `why`: reasons for settings, as comments."""
    given = {name: value for name, value in settings.items() if value not in ("", [])}  # boot.sh knows what holds without
    head = f"#!/bin/bash\n{comment(heading)}{comment(_WHAT)}{variables(given, why)}\n"
    return head + booting(cloud) + "\nboot\n"


def booting(cloud: str) -> str:
    """What every machine of a cloud does when it comes up; nothing happens before `boot` is called."""
    return body(program(f"cloud_{cloud}.sh")) + "\n" + body(program("boot.sh"))


def variables(settings: Mapping[str, SETTING], why: Mapping[str, str] | None = None) -> str:
    """Each a text or an array; whatever a user wrote is one word of it."""
    return "".join(comment((why or {}).get(name, "")) + _variable(name, value) for name, value in settings.items())


def _variable(name: str, value: SETTING) -> str:
    if isinstance(value, str | int):
        return f"{name}={shell([str(value)])}\n"
    words = [shell([word]) for word in value]
    flat = f"{name}=({' '.join(words)})\n"
    return flat if len(flat) <= WIDTH else f"{name}=(\n" + "".join(f"  {line}\n" for line in _lines(words)) + ")\n"


def _lines(words: Sequence[str]) -> Iterator[str]:
    """As many words on a line as fit."""
    line = ""
    for word in words:
        if line and len(line) + len(word) + 3 > WIDTH:
            yield line
            line = word
        else:
            line = f"{line} {word}".lstrip(" ")
    yield line


def body(text: str) -> str:
    """A program without the line that names its shell."""
    return text.partition("\n")[2]
