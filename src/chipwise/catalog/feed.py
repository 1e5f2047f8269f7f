"""The contract of a feed: something outside that knows machines and prices, and hands them over as one snapshot.

One file in `adapters/feeds/` per feed; its name is the name the user types. It defines

    def fetch(settings: FeedSettings, report: Report) -> Snapshot

and raises the errors of `chipwise.errors`, nothing else. A snapshot is
complete or does not exist: a feed that fails half-way raises, and the catalog that was there stays as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Protocol

from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import Offer
from chipwise.catalog.region import Region


@dataclass(frozen=True, slots=True)
class FeedSettings:
    """What a feed is told. `options` holds what is particular to one feed, such as `endpoint` or `path`."""

    today: date
    regions: tuple[str, ...] = ()  # empty: all the feed knows
    options: Mapping[str, str] = field(default_factory=dict)
    chip_of: Mapping[str, str] = field(default_factory=dict)  # folded names people use -> chip names of the catalog
    known: tuple[Machine, ...] = ()  # the provider's machines the catalog has: some feeds price parts, not machines


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one provider offered on one day. Rows already in the catalog under the same key are replaced by these."""

    provider: str
    taken: date
    machines: tuple[Machine, ...]
    offers: tuple[Offer, ...]
    regions: tuple[Region, ...] = ()
    skipped: tuple[str, ...] = ()  # what the feed saw and could not use, with the reason


class Report(Protocol):
    """Called as work proceeds, from any thread, so that a person sees it move."""

    def __call__(self, done: int, total: int | None, what: str) -> None: ...


class Feed(Protocol):
    def fetch(self, settings: FeedSettings, report: Report) -> Snapshot: ...
