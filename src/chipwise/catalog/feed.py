"""The contract of a feed: something outside that knows machines and prices, and hands them over as one snapshot.

One file in `adapters/feeds/` per feed; its name is the name the user types. It defines

    OPTIONS                    names of the options that it takes
    PROVIDER                   where it asks an API: whose prices they are; its own name unless given
    ENVIRONMENT                variables that hold an option which is not given, by option
    EXTRA                      of `pip install 'chipwise[EXTRA]'`, where it needs an SDK
    def fetch(settings: FeedSettings, report: Report) -> Snapshot

and, where it reads files of the user, what `Imports` says. It raises the errors of `chipwise.errors`, nothing else. A snapshot
is complete or does not exist: a feed that fails half-way raises, and the catalog that was there stays as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Protocol, runtime_checkable

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
    day: date
    machines: tuple[Machine, ...]
    offers: tuple[Offer, ...]
    regions: tuple[Region, ...] = ()
    skipped: tuple[str, ...] = ()  # what the feed saw and could not use, with the reason


class Report(Protocol):
    """Called as work proceeds, from any thread, so that a person sees it move."""

    def __call__(self, done: int, total: int | None, what: str) -> None: ...


class Feed(Protocol):
    OPTIONS: Sequence[str]

    def fetch(self, settings: FeedSettings, report: Report) -> Snapshot: ...


@runtime_checkable
class Imports(Protocol):
    """A feed that reads what the user has."""

    def takes(self, path: Path) -> bool:
        """Whether it could be one of its files, by its look."""
        ...

    def parts(self, options: Mapping[str, str]) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Providers of which it holds something, each with the options that fetch it."""
        ...
