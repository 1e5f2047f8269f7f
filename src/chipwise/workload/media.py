"""Pictures and videos: resolutions and codecs, for rendering and transcoding."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from chipwise.workload.part import EnumChoice, JsonSchema, Section, fault
from chipwise.workload.quantity import Bandwidth, FrameRate

_RESOLUTIONS = {
    "480p": (854, 480),
    "720p": (1280, 720),
    "1080p": (1920, 1080),
    "1440p": (2560, 1440),
    "2160p": (3840, 2160),
    "4320p": (7680, 4320),
    "hd": (1280, 720),
    "fullhd": (1920, 1080),
    "2k": (2048, 1080),
    "uhd": (3840, 2160),
    "4k": (3840, 2160),
    "dci4k": (4096, 2160),
    "8k": (7680, 4320),
}


class Resolution(Section):
    """Width and height in pixels; 1080p, 4k and 1920x1080 are read as well."""

    width: Annotated[int, Field(gt=0, le=65536)]
    height: Annotated[int, Field(gt=0, le=65536)]

    @property
    def pixels(self) -> int:
        return self.width * self.height

    @classmethod
    def expand(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        text = re.sub(r"[\s_-]", "", value.lower())
        match = re.fullmatch(r"(\d{1,6})[x×*](\d{1,6})", text)  # noqa: RUF001  the real sign is what people paste
        if match is None and text not in _RESOLUTIONS:
            raise fault(f"{value[:40]!r} is not a resolution", f"WIDTHxHEIGHT such as 1920x1080, or {', '.join(_RESOLUTIONS)}")
        width, height = (int(match[1]), int(match[2])) if match else _RESOLUTIONS[text]
        return {"width": width, "height": height}

    @classmethod
    def short_schema(cls, full: JsonSchema) -> JsonSchema | None:
        return {"type": "string", "examples": ["1080p", "4k", "1920x1080"]}


class Codec(StrEnum):
    H264 = "h264"
    H265 = "h265"
    AV1 = "av1"
    VP9 = "vp9"
    MPEG2 = "mpeg2"
    MJPEG = "mjpeg"
    PRORES = "prores"
    RAW = "raw"


_CODECS = (("avc", "h264"), ("x264", "h264"), ("hevc", "h265"), ("x265", "h265"), ("svt-av1", "av1"))


class Video(Section):
    """One stream of video."""

    codec: Annotated[Codec, EnumChoice(Codec, "a codec", _CODECS)]
    resolution: Resolution
    fps: FrameRate
    bit_depth: Annotated[int, Field(ge=8, le=16)] = 8
    bitrate: Bandwidth | None = None
    """Of the encoded stream, such as 6 Mbit/s."""
