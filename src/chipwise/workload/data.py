"""What surrounds the work itself: labels, the data it reads, and where its users are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field

from chipwise.countries import country_of
from chipwise.workload.country import Origin
from chipwise.workload.goals import Text
from chipwise.workload.part import EnumChoice, Section, fault, show_value
from chipwise.workload.quantity import Bytes, BytesOrZero, Count, Share


class Access(StrEnum):
    ONCE = "once"
    EPOCHS = "epochs"
    RANDOM = "random"
    STREAMING = "streaming"


_ACCESS = (("sequential", "once"), ("repeated", "epochs"), ("stream", "streaming"))


def parse_name(text: object) -> str:
    """A name that files, labels and clouds accept: letters, digits, dot, dash, underscore, at most 63."""
    if not isinstance(text, str) or not re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", text):
        raise fault(
            f"{show_value(text)} is not a name", "1 to 63 letters, digits, '.', '-' or '_', with a letter or digit at both ends"
        )
    return text


Name = Annotated[str, BeforeValidator(parse_name), Field(examples=["chat-api"], max_length=63)]


class Labels(Section):
    """Who it belongs to. Bills are split by these; any further label may be added."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, str] = Field(init=False)

    owner: Text | None = None
    team: Text | None = None
    project: Text | None = None


class Data(Section):
    """The data set that is read."""

    size: Bytes | None = None
    """In all; left open where the rest of the file tells it: tokens, samples, items, a bitrate and a duration."""
    place: Text | None = None
    """Where it is: cloud:region such as aws:eu-central-1, or a URL or path. Results go back there."""
    results: BytesOrZero | None = None
    """Bytes that are written; left open where the rest of the file tells them, 0 where they stay next to the chips."""
    access: Annotated[Access, EnumChoice(Access, "an access pattern", _ACCESS)] = Access.ONCE
    """Read once from end to end, once per epoch, at random, or as it arrives."""
    files: Count | None = None
    """Number of files or objects: many small ones are slower than a few large ones."""
    format: Text | None = None

    @property
    def read_bytes(self) -> float:
        """`size`, of a workload that `volume.sized` has filled in."""
        assert self.size is not None
        return self.size

    @property
    def region(self) -> tuple[str, str] | None:
        """(cloud, region) where `place` names them."""
        return region_of(self.place or "")


def region_of(place: str) -> tuple[str, str] | None:
    """("aws", "eu-central-1") of "aws:eu-central-1"; None for a URL or a path."""
    match = re.fullmatch(r"([A-Za-z][\w-]*):(?!/)([\w-]+)", place)
    return (match[1], match[2]) if match else None


def _each_once(value: object) -> object:
    """DE and DEU are one place: the second would take the first one's share."""
    if isinstance(value, Mapping):
        seen: dict[str, str] = {}
        for name in value:
            place = country_of(name) if isinstance(name, str) else None
            if place is not None and seen.setdefault(place, name) != name:
                raise fault(f"{seen[place]} and {name} are the same place", "each place once")
    return value


Traffic = Annotated[Mapping[Origin, Share], BeforeValidator(_each_once)]
