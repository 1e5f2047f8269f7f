"""What machines of Terraform start by themselves: containers that a script of theirs runs, and the groups that they are in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chipwise.auditor.commands import Word, words_of_text
from chipwise.auditor.machines import accelerated, accelerated_google
from chipwise.auditor.source import Sources, TerraformBlock
from chipwise.auditor.terraform import rows_of, text_of

_SCRIPTS = ("user_data", "user_data_base64", "metadata_startup_script", "custom_data")
_BARE = re.compile(r"--?(?:d|i|t|it|rm|init|privileged|detach|interactive|tty|read-only|no-healthcheck)")
_TEMPLATE = re.compile(r"aws_launch_template\.([\w-]+)")
_GROUP = re.compile(r"aws_autoscaling_group\.([\w-]+)")


@dataclass(frozen=True, slots=True)
class Container:
    """One that `docker run` starts: its image, and what follows it on the same command."""

    block: TerraformBlock
    machine: str  # its type; empty: not known
    image: Word
    words: tuple[Word, ...]


def scripts_of(sources: Sources) -> Iterator[tuple[TerraformBlock, list[tuple[int, str]]]]:
    """Machines that run a script when they start, with the rows of their block."""
    for block in sources.blocks:
        if any(key in block.body for key in _SCRIPTS) or "startup-script" in str(block.body.get("metadata")):
            yield block, list(rows_of(sources, block))


def containers_of(sources: Sources) -> Iterator[Container]:
    for block, rows in scripts_of(sources):
        machine = text_of(block.body.get("instance_type") or block.body.get("machine_type"))
        words = words_of_text("\n".join(row for _, row in rows), block.line - 1)
        for index, word in enumerate(words):
            if word.text == "run" and index and words[index - 1].text == "docker":
                rest = [one for one in words[index + 1 :] if one.line == word.line]
                if (place := _image(rest)) is not None:
                    yield Container(block, machine, rest[place], tuple(rest[place + 1 :]))


def _image(words: Sequence[Word]) -> int | None:
    """The first word that is neither an option nor what one is given."""
    is_value = False
    for index, word in enumerate(words):
        if is_value:
            is_value = False
        elif word.text.startswith("-"):
            is_value = "=" not in word.text and not _BARE.fullmatch(word.text)
        else:
            return index
    return None


def accelerated_groups(sources: Sources) -> Iterator[TerraformBlock]:
    """Groups of AWS whose template or types have accelerators."""
    templates = {
        block.labels[1]: text_of(block.body.get("instance_type"))
        for block in sources.blocks
        if block.type == "resource" and block.labels[:1] == ("aws_launch_template",)
    }
    for block in sources.blocks:
        if block.type == "resource" and block.labels[:1] == ("aws_autoscaling_group",):
            names = _TEMPLATE.findall(str(block.body))
            if any(accelerated(templates.get(name, "")) for name in names):
                yield block


def group_named(text: str) -> str:
    """The group that an argument refers to; empty: none by its name."""
    reference = _GROUP.search(text)
    return reference[1] if reference else ""


def has_accelerators(machine: str) -> bool:
    return accelerated(machine) or accelerated_google(machine)
