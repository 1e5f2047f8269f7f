"""Managed transcoders: what an archive costs where every minute of every output is paid.

    USD = sum over outputs of minutes x USD per minute of the picture's class x [factor above 30 frames a second]

A service sells some codecs in a dearer tier; each output takes the cheapest tier that has it. Lower rates for large volumes are
left out: what they save is agreed on, or begins where nobody states it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chipwise.catalog.price_tables import MediaPrice
from chipwise.money.cost import Cost, Line
from chipwise.text import number
from chipwise.units import MINUTE
from chipwise.workload.media import Video

PICTURES = (("SD", 1280 * 720 - 1), ("HD", 1920 * 1080), ("UHD", 4096 * 2160))  # and the most pixels of each
FAST_FPS = 30.0


@dataclass(frozen=True, slots=True)
class MediaService:
    """One provider's service with its prices."""

    provider: str
    name: str
    rows: tuple[MediaPrice, ...]

    @property
    def title(self) -> str:
        return f"{self.provider} {self.name}"

    @property
    def regions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for row in self.rows for name in row.regions.split("|") if name))


@dataclass(frozen=True, slots=True)
class MediaBill:
    """What a service takes for all outputs, and the rows it is reckoned from."""

    cost: Cost
    rows: tuple[MediaPrice, ...]

    @property
    def certain(self) -> bool:
        return not any("usd_per_minute" in row.fact.inferred for row in self.rows)

    @property
    def tiers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.tier for row in self.rows if row.tier))


def media_services_of(rows: Iterable[MediaPrice]) -> tuple[MediaService, ...]:
    groups: dict[tuple[str, str], list[MediaPrice]] = {}
    for row in rows:
        groups.setdefault((row.provider, row.service), []).append(row)
    return tuple(MediaService(provider, name, tuple(priced)) for (provider, name), priced in groups.items())


def picture_of(video: Video) -> str | None:
    """The class that a price is of; None: larger than any."""
    return next((name for name, limit in PICTURES if video.resolution.pixels <= limit), None)


def bill(service: MediaService, outputs: Sequence[Video], seconds: float) -> MediaBill | None:
    """Of `seconds` of playing time; None: it makes no such output."""
    lines, used = [], []
    for video in outputs:
        row = min(_rows(service, video), key=lambda priced: _usd_per_minute(priced, video), default=None)
        if row is None:
            return None
        usd, minutes = _usd_per_minute(row, video), seconds / MINUTE
        size = f"{video.resolution.width}x{video.resolution.height}"
        lines.append(Line(f"{video.codec} {size}", minutes * usd, f"{minutes:,.0f} min x ${number(usd, 4)}"))
        used.append(row)
    return MediaBill(Cost.of(lines), tuple(used))


def _rows(service: MediaService, video: Video) -> list[MediaPrice]:
    picture = picture_of(video)
    return [
        row
        for row in service.rows
        if row.picture == picture and video.codec in row.codecs.split("|") and row.usd_per_minute is not None
    ]


def _usd_per_minute(row: MediaPrice, video: Video) -> float:
    faster = row.above_30_fps if video.fps > FAST_FPS else None
    return (row.usd_per_minute or 0.0) * (faster or 1.0)
